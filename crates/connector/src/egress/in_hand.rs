//! What a chat's task holds for an action for as long as it is in the queue.

use super::Egress;
use super::action::OutboundAction;
use super::outbox::ActingAs;
use super::perform::{CallPermit, InFlight};
use angelia_contract::action::ActionResult;
use angelia_core::inbox::InstanceId;
use angelia_core::ports::{ActionId, StoredAction};
use angelia_platforms::Answer;
use futures_util::future::AbortHandle;
use std::sync::Arc;

/// What is held for an action for as long as it is in the queue.
#[derive(Default)]
pub(super) struct InHand {
    /// Nothing yet of one that is only in the ledger.
    pub(super) action: Option<Arc<OutboundAction>>,
    /// As it was found in the ledger, until its text is read.
    pub(super) stored: Option<Box<StoredAction>>,
    /// Its number in the ledger.
    pub(super) number: Option<ActionId>,
    /// As whom the ledger is spoken to.
    pub(super) under: ActingAs,
    /// Whose it is, if whoever waits for its answer may be on another node.
    pub(super) asked_by: Option<InstanceId>,
    pub(super) waiting: Option<Wait>,
    pub(super) permit: Option<CallPermit>,
    /// What its next call answers with.
    pub(super) answer: Option<Answer>,
    pub(super) in_flight: Option<InFlight>,
}

impl InHand {
    pub(super) fn of(action: Arc<OutboundAction>) -> Self {
        Self { action: Some(action), ..Self::default() }
    }

    /// Answers whoever waits, here or on another node.
    pub(super) fn give(&self, egress: &Egress, result: &ActionResult) {
        if let (Some(instance), Some(number)) = (self.asked_by, self.number) {
            egress.tell_done(number, instance, result);
        } else if let Some(action) = &self.action {
            action.reply.give(result.clone());
        }
    }

    /// It ends here: whoever still waits is answered by the node that goes on with it.
    pub(super) fn hand_on(&self, egress: &Egress) {
        if let (Some(action), Some(number)) = (&self.action, self.number)
            && egress.cluster.is_shared()
        {
            egress.elsewhere.expect(number, action);
        }
    }

    /// No call is made now.
    pub(super) fn give_leave_back(&mut self) {
        (self.permit, self.waiting) = (None, None);
    }
}

/// A wait for permission; over when it is dropped.
pub(super) struct Wait(pub(super) AbortHandle);

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.abort();
    }
}
