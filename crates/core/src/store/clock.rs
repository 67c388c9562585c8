//! What the store remembers of the clock, and of how the last server ended.

use super::Later;
use crate::audit::Actor;
use crate::clock::{Age, Leap, UnixMillis};
use std::time::Duration;

/// What a check of the whole database found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Nothing wrong.
    Sound,
    /// It is damaged: what was found first.
    Damaged(String),
    /// It took too long and was left.
    Unfinished,
}

/// The clock by which things grow old. While it has leapt and nobody has
/// confirmed that, nothing is dropped for its age.
pub trait ClockStore: Send + Sync {
    /// Looks at the clock: the leap that nobody has confirmed. Costs next to nothing.
    fn leap(&self) -> Option<Leap>;

    /// How long ago something of this store was written.
    fn age(&self, stamp: UnixMillis) -> Age;

    /// Writes down what is known of the clock.
    fn keep_clock(&self) -> Later<'_, ()>;

    /// Takes the clock as it is for right; answers the leap that this was about.
    fn accept_clock(&self, by: &Actor) -> Later<'_, Option<Leap>>;

    /// A server begins; `true` if the one before did not end as it should.
    fn begin_run(&self) -> Later<'_, bool>;

    /// It ends as it should.
    fn end_run(&self) -> Later<'_, ()>;

    /// Looks through the database beside everything else, for so long.
    fn quick_check(&self, within: Duration) -> Later<'_, Checked>;
}
