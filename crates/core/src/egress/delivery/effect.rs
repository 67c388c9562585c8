//! What a chat's queue wants done.

use super::{DeliveryId, Earlier, Reach};
use crate::ports::ActionOutcome;
use crate::vault::{Use, Way};
use std::time::Duration;

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
    /// Wait until a call may be made: [`Event::Leave`](super::Event::Leave).
    AskLeave {
        /// For which.
        id: DeliveryId,
        /// Whether the provider counts it with the messages of its chat.
        paced: bool,
    },
    /// Give leave back, or wait for it no longer: no call is made now.
    Release(DeliveryId),
    /// Open a capability for one call: [`Event::Opened`](super::Event::Opened).
    Open(DeliveryId, Use),
    /// Tell the ledger that a call is about to be made:
    /// [`Event::Begun`](super::Event::Begun).
    Begin(DeliveryId),
    /// Find out whether the sender may write there at this moment:
    /// [`Event::Authorized`](super::Event::Authorized), with nothing in between.
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
