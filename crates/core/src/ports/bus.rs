//! The bus: tells servers of what was committed, here or elsewhere.
//!
//! It may lose, double and reorder everything at any time. A hint says how far a log
//! is and brings the entry along as a gift; whoever misses one reads the store, at the
//! next hint or at the next look (decision 0002).

use crate::inbox::{Entry, InstanceId, Mark, Seq};
use crate::store::Line;
use std::sync::Arc;

/// What a log hint tells of its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintKind {
    /// It is at the end of the queue.
    Appended,
    /// It is ahead of all the others.
    Ahead,
    /// It is a dead letter that is ahead again, under the number it had.
    Redriven,
}

/// Something that was committed.
#[derive(Clone, Debug)]
pub enum Hint {
    /// An entry came, and the log of its instance is there now.
    Log {
        /// The instance.
        instance: InstanceId,
        /// How far its log is.
        mark: Mark,
        /// The entry.
        entry: Entry,
        /// Where it is in the queue.
        kind: HintKind,
    },
    /// Entries left an inbox other than by settling.
    Removed {
        /// The instance.
        instance: InstanceId,
        /// Which.
        seqs: Vec<Seq>,
    },
    /// What a waiting entry says was replaced.
    Revised {
        /// The instance.
        instance: InstanceId,
        /// The entry as it is now.
        entry: Entry,
    },
    /// A web-chat line was written or changed.
    Line(Line),
}

/// Who is told. On the thread that publishes: it must not wait.
pub type Listener = Arc<dyn Fn(Hint) + Send + Sync>;

/// Where hints go.
pub trait Bus: Send + Sync {
    /// Tells everybody, if it can. Engines publish in the order of their commits.
    fn publish(&self, hint: Hint);

    /// Has somebody told from now on.
    fn subscribe(&self, listener: Listener);
}
