//! The inbox, the durable and ordered buffer of one instance: what may be pushed, and when
//! an entry has settled. A `bufferId` is an entry's number there.
//!
//! | Question | File |
//! |---|---|
//! | What is buffered, and who gives way when it is full? | `quota.rs`, `refusal.rs` |
//! | How is it written, claimed and settled? | [`Log`](crate::ports::log::Log) |
//! | What is pushed next? | `backlog.rs` |
//! | What is in flight, acknowledged, pushed again? | `window.rs`, `ack_habit.rs` |
//! | When is an entry given up, or forgotten? | `retention.rs` |
//! | When is a gateway woken? | `wake.rs` |

mod ack_habit;
mod backlog;
mod cancellable_write;
mod interaction;
pub mod outcome;
mod quota;
pub mod refusal;
mod retention;
mod revisions;
mod wake;
mod window;

pub use ack_habit::AckHabit;
pub use backlog::{Backlog, LIMITS as BACKLOG_LIMITS, PAGE, PAGE_MEMORY, size};
pub use cancellable_write::CancellableWrite;
pub use interaction::{Interaction, Rendering, Request};
pub use quota::{Held, LIMITS, Quota, TENANT_DISK, Usage, WhenFull};
pub use retention::{CONVERSATION_REFRESH, CONVERSATIONS_FOR, GAPS_FOR, SEEN_FOR, TURNS_FOR, is_dead};
pub use revisions::Revisions;
pub use wake::{WAKE_FIRST_DELAY, WAKE_GIVE_UP, WAKE_LONGEST_DELAY, WakeSchedule};
pub use window::{
    FrameKind, MAX_AWAITING_ACK, MAX_IN_FLIGHT_BYTES, MAX_UNSETTLED, Permit, Settled, SettledBy, Window,
    WindowEnd,
};

use crate::turns::WhileBusy;
use crate::words::words;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The place of an entry in the log of its instance; also its `bufferId` on the
/// wire. Numbers count up by one within an instance and say nothing of others.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Seq(pub i64);

impl Seq {
    /// The `bufferId` under which the entry goes over the wire.
    pub fn buffer_id(self) -> String {
        format!("b{}", self.0)
    }

    /// Reads a `bufferId` back; anything we never wrote is `None`.
    pub fn from_buffer_id(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('b')?;
        let canonical = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
        canonical.then(|| digits.parse().ok().map(Seq)).flatten()
    }
}

/// How often an instance was claimed: of two that drain it the higher one may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub i64);

/// Where the log of an instance is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mark {
    /// The last number that was given.
    pub tail: Seq,
    /// How often dead letters were put back in line: those keep their numbers.
    pub redrives: u64,
}

impl Mark {
    /// What both tell: of two that come in any order neither takes anything back.
    #[must_use]
    pub fn newest(self, other: Self) -> Self {
        Self { tail: self.tail.max(other.tail), redrives: self.redrives.max(other.redrives) }
    }
}

/// The store's own number of an instance; unique over all tenants.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct InstanceId(pub i64);

words! {
    /// What an entry holds, in neutral form; the socket decides how it is rendered.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum EntryKind {
        /// A normalized event.
        Message = "message",
        /// A typed `/stop`: an interrupt for peers that act on one, else its event.
        Stop = "stop",
        /// A command or a press, an [`Interaction`].
        Interaction = "interaction",
    }
}

/// One waiting entry, as the store hands it to a socket.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its place in the log.
    pub seq: Seq,
    /// What the body is.
    pub kind: EntryKind,
    /// The platform of the bot that received it.
    pub platform: Arc<str>,
    /// The bot that received it.
    pub bot: Arc<str>,
    /// The chat it came from.
    pub chat_id: Arc<str>,
    /// The conversation key a gateway would build for it.
    pub session_key: Arc<str>,
    /// The event, serialized once when it was received, or changed by its author.
    pub body: Bytes,
    /// How often it was changed: of two copies the one with the higher number counts.
    pub revision: u32,
    /// What its route said, when it was received, becomes of it while the agent is busy.
    pub while_busy: Option<WhileBusy>,
}

impl Entry {
    /// The revision of an entry that took up others: it goes as it is, whatever its author changes.
    pub const FINAL: u32 = u32::MAX;

    /// Whether it does not change any more.
    pub fn is_final(&self) -> bool {
        self.revision == Self::FINAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_buffer_ids_are_read() {
        assert_eq!(Seq::from_buffer_id(&Seq(42).buffer_id()), Some(Seq(42)));
        for foreign in ["", "b", "42", "b-1", "b+1", "b042", "b0", "b99999999999999999999", "b4 2"] {
            assert_eq!(Seq::from_buffer_id(foreign), None, "{foreign}");
        }
    }
}
