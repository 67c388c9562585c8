//! Sealed values as the store sees them: bytes that only a master key opens, each of
//! which says which one it needs.

use super::{BoxFuture, Page, PageSize};
use crate::audit::Actor;
use crate::error::Result;
use crate::records::{Change, Erased, Records, change, look};
use crate::seal::{Head, KeyId, stored};

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

/// The first step of a change of the master key: from here on it is the new key that
/// opens the store, and finds the old one in it.
#[derive(Clone, Debug)]
pub struct KeyChange {
    /// The key there was.
    pub from: KeyId,
    /// The key there is to be.
    pub to: KeyId,
    /// The note [`KEY_CHECK`](crate::seal::KEY_CHECK) as it was read.
    pub old_check: Vec<u8>,
    /// The same under the new key.
    pub check: Vec<u8>,
    /// The old key under the new one, for the note [`FORMER_KEY`](crate::seal::FORMER_KEY).
    pub former: Vec<u8>,
}

/// What became of the key before the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retired {
    /// Something needs it still: nothing was changed.
    Needed,
    /// It is forgotten.
    Gone {
        /// Whether what was sealed with it is gone from the disk already, or goes when
        /// the log is emptied next.
        erased: bool,
    },
}

/// Everything that is sealed, for a look at it and for a change of the master key: the rules
/// of [`crate::seal`], asked of any records.
pub trait SealStore: Records {
    /// What comes after a value, in an order that stays, or the first of all.
    fn sealed_values(
        &self,
        after: Option<&SealedValue>,
        size: PageSize,
    ) -> BoxFuture<'_, Result<Page<SealedValue>>> {
        let after = after.map(|value| (value.kind, value.row.clone()));
        look(self, "read what is sealed", move |view| stored::list(view, after.as_ref(), size))
    }

    /// Begins a change of the master key. A conflict, and nothing changed, if the check is
    /// not the one that was read, or a change before it is not finished.
    fn begin_key_change(&self, to: KeyChange, by: &Actor) -> BoxFuture<'_, Result<()>> {
        let by = by.clone();
        change(self, Change::to("begin a change of keys"), move |view| stored::begin_change(view, &to, &by))
    }

    /// Replaces those of the values that are still the `old` ones, in one commit, and
    /// answers how many that were.
    fn reseal(&self, values: Vec<Resealed>) -> BoxFuture<'_, Result<usize>> {
        change(self, Change::to("seal some values anew"), move |view| stored::replace(view, &values))
    }

    /// Forgets the key before the current one, if [`may_retire`](crate::seal::may_retire)
    /// says so of what is stored at that moment.
    fn retire_key(&self, current: Head) -> BoxFuture<'_, Result<Retired>> {
        let erased = Erased::default();
        let told = erased.clone();
        let forget =
            change(self, Change::to("forget a key"), move |view| stored::retire(view, &current, &told));
        Box::pin(async move {
            let gone = forget.await?;
            Ok(if gone { Retired::Gone { erased: erased.is_so() } } else { Retired::Needed })
        })
    }
}

impl<R: Records + ?Sized> SealStore for R {}
