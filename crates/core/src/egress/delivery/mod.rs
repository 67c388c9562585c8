//! The delivery machine: what becomes of the actions of one chat, decided
//! without a clock, a disk or a network.
//!
//! A [`ChatQueue`] is told what happened ([`Event`]) and when, and says what is
//! to be done ([`Effect`]). Whoever drives it does that and tells what came of
//! it: a task of the connector, or a test that crashes it at any moment. The
//! laws are in `law`, as tables (docs/decisions/0011 and 0030).

mod action;
mod attempt;
mod event;
mod law;
mod queue;

#[cfg(test)]
mod fence_tests;
#[cfg(test)]
mod law_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod queue_tests;
#[cfg(test)]
mod remark_tests;
#[cfg(test)]
mod simulated_tests;

pub use event::{ActionAnswer, Asked, Begun, Claimed, Counted, DeliveryId, Edited, Effect, Event};
pub use event::{Left, Opened, Permission, Repeats, Text};
pub use law::{OUT_OF_TIME, answer_of};
pub use queue::{ChatQueue, LIMITS, MAX_WAITING};

use super::QUEUED_FOR;
use std::time::Duration;

/// How long and how often actions are tried. The default is meant for
/// everybody; tests have less time.
#[derive(Clone, Copy, Debug)]
pub struct EgressTimings {
    /// How long an accepted action is tried for.
    pub queued_for: Duration,
    /// The pause after a store that did not commit, and the first one after a
    /// provider whose answer is not known.
    pub again: Duration,
    /// How long a chat waits for an answer that takes a place of its own.
    pub aside: Duration,
}

impl Default for EgressTimings {
    fn default() -> Self {
        Self { queued_for: QUEUED_FOR, again: Duration::from_secs(1), aside: Duration::from_secs(10) }
    }
}

/// What came of giving an action to the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The provider has it.
    Sent {
        /// The message; of several, the first.
        message_id: String,
        /// Whether the platform finished the action in the ledger already, in
        /// one commit with the message.
        recorded: bool,
    },
    /// The provider will not take it.
    Refused {
        /// Why, for the gateway and the ledger; without any text of the message.
        why: String,
    },
    /// It was certainly not written: a rate limit, no connection. To be tried again.
    Later {
        /// Not before this much time has passed.
        after: Duration,
        /// What has to wait for it.
        reach: Reach,
        /// Why, for the ledger.
        why: String,
    },
    /// It may have been written.
    Unknown {
        /// Why, for the gateway and the ledger.
        why: String,
    },
    /// It may have been written, or a part of it, and giving it once more could double that.
    Open {
        /// Why, for the gateway and the ledger.
        why: String,
    },
}

/// What a provider's "not now" is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This action.
    Action,
    /// Everything for this chat.
    Chat,
    /// Everything this bot does.
    Bot,
}

/// What earlier calls for an action may have left at the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Earlier {
    /// Nothing.
    #[default]
    Nothing,
    /// All of it, or as much as the platform told of.
    Perhaps,
    /// Any of it: a process that ended in the middle had begun so long ago.
    CutOff(Duration),
}
