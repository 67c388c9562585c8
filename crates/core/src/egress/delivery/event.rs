//! The delivery machine's input and output: what a chat's queue is told, and what it wants done.

use super::{Earlier, Outcome, Reach};
use crate::egress::{Dedupe, Remark, Target};
use crate::ports::ActionOutcome;
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
    /// What its chat hears if nobody knows whether it arrived; `None`: nothing.
    pub in_doubt: Option<Remark>,
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

/// What is known of an action that an earlier process left, or another node accepted for this one,
/// before its text is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// What it changes, if it is an edit.
    pub edits: Option<Edited>,
    /// Whether it was asked for as a `follow_up`.
    pub follow_up: bool,
    /// What it answers with.
    pub claimed: Claimed,
    /// What its chat hears if nobody knows whether it arrived.
    pub in_doubt: Option<Remark>,
    /// Whether it is what is said of a message in doubt.
    pub remark: bool,
    /// Whether it may be what ended earlier processes: not even its text is read.
    pub suspect: bool,
    /// Whether the ledger says that its provider was being called.
    pub sending: bool,
    /// How long ago its provider was first called, at most; `None` if that is not written down.
    pub begun: Option<Duration>,
    /// How much is left of the time it is tried for.
    pub left: Duration,
    /// Whether nobody worked on it before: another node accepted it for this one.
    pub untouched: bool,
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

/// The permission to make one call: a turn of the bot's, and room among the refusals of the tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
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
    /// An earlier process left these, or another node accepted them for this one, oldest first.
    Adopted(Vec<(DeliveryId, Left)>),
    /// The ledger has all of the last [`Effect::Accept`](super::Effect::Accept), in its order.
    Accepted(Vec<Claimed>),
    /// It has none of them, for this reason.
    NotAccepted(String),
    /// The text of an adopted action was looked for.
    Read(DeliveryId, Text),
    /// Permission for a call was asked for.
    Permission(DeliveryId, Permission),
    /// The capability was looked for.
    Opened(DeliveryId, Opened),
    /// The ledger was told that a call is about to be made.
    Begun(DeliveryId, Begun),
    /// Whether its sender may write there, as things stand now.
    Authorized(DeliveryId, bool),
    /// Nothing may be called just now, whoever asks: this node does not know whether the bot is its own.
    NotNow(DeliveryId),
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
    /// Another node goes on with these, and answers whoever asked.
    GivenUp(Vec<DeliveryId>),
    /// The ledger was told that nobody knows whether one arrived, and has what is said of that.
    Remarked {
        /// The one in doubt.
        id: DeliveryId,
        /// What is said of it.
        remark: DeliveryId,
        /// What has to be known of that.
        asked: Asked,
    },
    /// Time passed.
    Time,
    /// The server stops: nothing is begun any more.
    Stopping,
}

/// What whoever asked for an action is told. Gateways act upon the difference:
/// what was never sent is sent again, what perhaps was is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionAnswer {
    /// It was done; of an overtaken edit, a newer one is.
    Sent {
        /// The message.
        message_id: String,
    },
    /// There is nothing to do: that the agent writes is seen already.
    Shown,
    /// Not done, and another attempt will not help.
    Failed(String),
    /// Certainly never written, and will not be.
    NeverSent(String),
    /// Perhaps written.
    PerhapsSent(String),
    /// The target is not the sender's.
    Declined,
}

/// What operators see counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// An edit whose place a newer one took.
    Superseded,
    /// An action of which nobody knows whether it was sent.
    Ambiguous,
    /// An action whose time was over.
    Expired,
    /// An action whose sender may not write there.
    Declined,
}

/// Something is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Write these into the ledger, all or none:
    /// [`Event::Accepted`](super::Event::Accepted) or
    /// [`Event::NotAccepted`](super::Event::NotAccepted).
    Accept(Vec<DeliveryId>),
    /// Read the text of an adopted action: [`Event::Read`](super::Event::Read).
    Read(DeliveryId),
    /// Wait until a call may be made: [`Event::Permission`](super::Event::Permission).
    AskPermission {
        /// For which.
        id: DeliveryId,
        /// Whether the provider counts it with the messages of its chat.
        paced: bool,
    },
    /// Give the permission back, or wait for it no longer: no call is made now.
    Release(DeliveryId),
    /// Open a capability for one call: [`Event::Opened`](super::Event::Opened).
    Open(DeliveryId, Use),
    /// Tell the ledger that a call is about to be made:
    /// [`Event::Begun`](super::Event::Begun).
    Begin(DeliveryId),
    /// Find out whether the sender may write there at this moment:
    /// [`Event::Authorized`](super::Event::Authorized) or
    /// [`Event::NotNow`](super::Event::NotNow), with nothing in between.
    Authorize(DeliveryId),
    /// Call the provider: [`Event::Called`](super::Event::Called).
    Call {
        /// For which.
        id: DeliveryId,
        /// How it answers; `None` for a message of its own.
        way: Option<Way>,
        /// What earlier calls may have left there.
        earlier: Earlier,
        /// How long to wait for the provider.
        within: Duration,
    },
    /// Spare the provider what it would refuse as well.
    Pause {
        /// Because of which.
        id: DeliveryId,
        /// What has to wait.
        reach: Reach,
        /// For how long.
        after: Duration,
    },
    /// Tell the ledger that the provider has nothing of it:
    /// [`Event::Postponed`](super::Event::Postponed).
    Postpone(DeliveryId),
    /// Tell the ledger how these ended: [`Event::Finished`](super::Event::Finished),
    /// [`Event::Disowned`](super::Event::Disowned), or some the one and some the other.
    Finish(Vec<(DeliveryId, ActionOutcome)>),
    /// Tell the ledger that nobody knows whether one arrived and, in the same commit, write
    /// down what is said of that: [`Event::Remarked`](super::Event::Remarked), or as for
    /// [`Effect::Finish`] if there is nothing to say any more.
    LeaveOpen {
        /// Which.
        id: DeliveryId,
        /// How it ended.
        outcome: ActionOutcome,
        /// What is said of it.
        remark: Remark,
    },
    /// Answer whoever asked, if anybody still waits.
    Answer(DeliveryId, ActionAnswer),
    /// Show that the agent writes: [`Event::TypingShown`](super::Event::TypingShown).
    ShowTyping(DeliveryId),
    /// Count something.
    Count(Counted),
    /// Nothing more comes of it: forget it.
    Ended {
        /// Which.
        id: DeliveryId,
        /// Whether the ledger could not be told how it ended, for as long as that was tried.
        untold: bool,
    },
}
