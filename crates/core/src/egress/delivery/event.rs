//! What a chat's queue is told.

use super::Outcome;
use crate::egress::{Dedupe, Target};
use crate::vault::{Use, Way};
use std::time::Duration;

/// The number of an action in the queue of its chat. Later ones are higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId(pub u64);

/// What has to be known of an action that arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What it changes, if it is an edit.
    pub edits: Option<Edited>,
    /// Whether it was asked for as a `follow_up`, which nothing takes the place of.
    pub follow_up: bool,
    /// Whether its provider recognises it, given twice.
    pub repeats: Repeats,
}

/// A message that is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// Which.
    pub message_id: String,
    /// Where it is.
    pub target: Target,
}

/// Whether a provider recognises an action given twice, by how it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// As a message of its own.
    pub message: Dedupe,
    /// In the place of what somebody sees meanwhile.
    pub original: Dedupe,
    /// Behind that.
    pub further: Dedupe,
}

impl Repeats {
    /// The same, however it answers.
    pub fn always(dedupe: Dedupe) -> Self {
        Self { message: dedupe, original: dedupe, further: dedupe }
    }

    /// For this way to answer; `None` for a message of its own.
    pub fn by(self, way: Option<Way>) -> Dedupe {
        match way {
            None => self.message,
            Some(Way::Original) => self.original,
            Some(Way::Further) => self.further,
        }
    }
}

/// What an accepted action may answer with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    /// The capability, and how it uses it.
    pub uses: Option<Use>,
    /// How long that capability lasts.
    pub lasts: Option<Duration>,
}

/// What is known of an action that an earlier process left, before its text is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// What it changes, if it is an edit.
    pub edits: Option<Edited>,
    /// Whether it was asked for as a `follow_up`.
    pub follow_up: bool,
    /// What it answers with.
    pub claimed: Claimed,
    /// Whether the ledger says that its provider was being called.
    pub sending: bool,
    /// How long ago its provider was first called, at most; `None` if that is not written down.
    pub begun: Option<Duration>,
    /// How much is left of the time it is tried for.
    pub left: Duration,
}

/// The text of an action that an earlier process left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// It is there.
    Read(Repeats),
    /// It means nothing.
    Unreadable,
    /// It ended meanwhile, or the next start finds it again.
    Gone,
}

/// Whether a call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Yes: the bot has a call, and the chat is known.
    Granted,
    /// No: too many calls of the tenant were refused.
    Denied,
    /// The store does not tell where the chat is.
    StoreFails,
}

/// What an action answers with, when its call is about to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// The capability is at hand.
    Live,
    /// Its time is over, or it is gone.
    Over,
    /// The store does not tell.
    StoreFails,
}

/// Whether the ledger says that the provider is being called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It does.
    Ours,
    /// It does not: the action has ended, or somebody else works on it.
    NotOurs,
    /// The store does not commit.
    StoreFails,
}

/// Something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Gateways ask for actions that they may ask for, in this order.
    Arrived(Vec<(DeliveryId, Asked)>),
    /// A gateway wants it shown that it writes.
    TypingAsked(DeliveryId),
    /// That is over.
    TypingShown(DeliveryId),
    /// An earlier process left these, oldest first.
    Adopted(Vec<(DeliveryId, Left)>),
    /// The ledger has all of the last [`Effect::Accept`](super::Effect::Accept), in its order.
    Accepted(Vec<Claimed>),
    /// It has none of them, for this reason.
    NotAccepted(String),
    /// The text of an adopted action was looked for.
    Read(DeliveryId, Text),
    /// Leave for a call was asked for.
    Leave(DeliveryId, Leave),
    /// The capability was looked for.
    Opened(DeliveryId, Opened),
    /// The ledger was told that a call is about to be made.
    Begun(DeliveryId, Begun),
    /// Whether its sender may write there, as things stand now.
    Authorized(DeliveryId, bool),
    /// The provider has the first part.
    FirstPart(DeliveryId, String),
    /// The call is over.
    Called {
        /// Which.
        id: DeliveryId,
        /// What came of it.
        outcome: Outcome,
        /// Whether the platform was told to make no further call.
        withdrawn: bool,
    },
    /// The ledger was told that nothing was written, and knows it or not.
    Postponed(DeliveryId),
    /// The ledger was told how these ended.
    Finished {
        /// Which.
        ids: Vec<DeliveryId>,
        /// Whether it knows.
        durable: bool,
    },
    /// The ledger was told how these ended, and does not listen: somebody else works on them.
    Disowned(Vec<DeliveryId>),
    /// Time passed.
    Time,
    /// The server stops: nothing is begun any more.
    Stopping,
}
