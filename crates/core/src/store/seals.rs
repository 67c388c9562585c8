//! Sealed values as the store sees them: bytes that only the master key opens.

use super::Later;
use crate::audit::Actor;

/// One sealed value, wherever it rests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedValue {
    /// What it is, in words for people.
    pub kind: &'static str,
    /// Which of its kind.
    pub row: String,
    /// What it is bound to; it opens only together with it.
    pub bound_to: String,
    /// The sealed bytes.
    pub sealed: Vec<u8>,
}

/// A sealed value and what takes its place.
#[derive(Clone, Debug)]
pub struct Resealed {
    /// As it was read.
    pub old: SealedValue,
    /// The same secret under another key.
    pub sealed: Vec<u8>,
}

/// Every sealed value at once, for a change of the master key.
pub trait SealStore: Send + Sync {
    /// All of them.
    fn sealed_values(&self) -> Later<'_, Vec<SealedValue>>;

    /// Replaces all of them in one commit; a conflict, and nothing changed, if
    /// they are not exactly the `old` ones any more. Answers whether the bytes
    /// they replaced are gone from the disk already, or go when the log is
    /// emptied next.
    fn reseal(&self, values: Vec<Resealed>, key_id: &str, by: &Actor) -> Later<'_, bool>;
}
