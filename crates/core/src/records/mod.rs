//! The records: what changes seldom and is read as a whole. Who is known here, what
//! lets somebody in, who did what, what bots know of chats.
//!
//! A change is a rule: a plain function that reads a [`View`], and writes into it or
//! refuses. It touches nothing else, so an engine may run it again when somebody else
//! came first. Engines keep rows and know no rules; the rules stand beside the words
//! they are about: in [`identity`](crate::identity), [`directory`](crate::directory),
//! [`notices`](crate::notices), [`quarantine`](crate::quarantine), [`rooms`](crate::rooms). Every
//! change of what servers remember also writes a line of the change feed, in the same commit.

mod erased;
pub mod rows;
mod table;
mod view;

pub use erased::Erased;
pub use table::{Column, Field, Kind, Record, Row, Table, ToValue, Value, Walk};
pub use view::{By, Direction, Key, Query, RowRange, Source, View, Write, order};

use crate::error::{Error, Result};
use crate::inbox::InstanceId;
use crate::ports::BoxFuture;
use crate::space::Class;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Lines of the change feed that stay, and for how long: whoever was away for longer, or
/// is further behind, finds a gap in their numbers and reads everything anew. The last line stays.
pub const FEED_KEPT: i64 = 10_000;
/// See [`FEED_KEPT`].
pub const FEED_FOR: Duration = Duration::from_secs(24 * 3600);

/// A rule, as engines run it: perhaps more than once.
pub type Rule = Box<dyn FnMut(&mut View<'_>) -> Result<()> + Send>;

/// What an engine has to know of a change besides its rule.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// What it does, for errors: `create a tenant`.
    pub what: &'static str,
    /// Whether it may be made while space is short.
    pub class: Class,
    /// The instance in whose turn it is made; `None` for nobody's in particular.
    pub instance: Option<InstanceId>,
}

impl Change {
    /// An ordinary change.
    pub fn to(what: &'static str) -> Self {
        Self { what, class: Class::Ordinary, instance: None }
    }

    /// The same, by whoever may do it although space is short.
    pub fn class(self, class: Class) -> Self {
        Self { class, ..self }
    }

    /// The same, in the turn of an instance.
    pub fn of(self, instance: InstanceId) -> Self {
        Self { instance: Some(instance), ..self }
    }
}

/// One line of the change feed: what is not any more as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its number; grows.
    pub id: i64,
    /// The table.
    pub records: String,
    /// What names the record, as a JSON array.
    pub key: String,
}

/// Where records are kept.
pub trait Records: Send + Sync {
    /// Runs a rule and writes what it wrote, durably and at once, or nothing.
    fn change(&self, change: Change, rule: Rule) -> BoxFuture<'_, Result<()>>;

    /// Runs a rule that only reads.
    fn look(&self, what: &'static str, rule: Rule) -> BoxFuture<'_, Result<()>>;

    /// What changed after a line of the feed, oldest first.
    fn changed(&self, after: i64, limit: usize) -> BoxFuture<'_, Result<Vec<Changed>>>;
}

/// Makes a change and answers what its rule says.
pub fn change<'a, T: Send + 'static>(
    records: &'a (impl Records + ?Sized),
    change: Change,
    rule: impl FnMut(&mut View<'_>) -> Result<T> + Send + 'static,
) -> BoxFuture<'a, Result<T>> {
    said(rule, |rule| records.change(change, rule))
}

/// Reads and answers what the rule says.
pub fn look<'a, T: Send + 'static>(
    records: &'a (impl Records + ?Sized),
    what: &'static str,
    rule: impl FnMut(&mut View<'_>) -> Result<T> + Send + 'static,
) -> BoxFuture<'a, Result<T>> {
    said(rule, |rule| records.look(what, rule))
}

/// Has a rule run, and answers what it said when it last ran.
fn said<'a, T: Send + 'static>(
    mut rule: impl FnMut(&mut View<'_>) -> Result<T> + Send + 'static,
    run: impl FnOnce(Rule) -> BoxFuture<'a, Result<()>>,
) -> BoxFuture<'a, Result<T>> {
    let slot = Arc::new(Mutex::new(None));
    let taken = slot.clone();
    let ran = run(Box::new(move |view: &mut View<'_>| {
        let said = rule(view)?;
        *slot.lock() = Some(said);
        Ok(())
    }));
    Box::pin(async move {
        ran.await?;
        let said = taken.lock().take();
        said.ok_or_else(|| Error::internal("the store ran no rule"))
    })
}
