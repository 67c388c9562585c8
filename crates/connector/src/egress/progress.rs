//! A provider call under way: what a platform that works on it asks, and tells how far it is.

use super::Egress;
use super::action::OutboundAction;
use super::chats::{FirstPart, Inbox};
use angelia_core::egress::delivery::DeliveryId;
use angelia_platforms::{Progress, Reach};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A provider call that a stopping server waits for, from the note that it is
/// made to the note of what came of it.
pub(super) struct InFlight(Arc<Egress>);

impl InFlight {
    pub(super) fn begin(egress: &Arc<Egress>) -> Self {
        egress.in_flight.fetch_add(1, Ordering::AcqRel);
        Self(egress.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a platform holds of us while it works on a delivery.
pub(super) struct DeliveryProgress {
    egress: Arc<Egress>,
    action: Arc<OutboundAction>,
    id: DeliveryId,
    /// The task of its chat.
    task: Arc<Inbox>,
    /// Whether the platform was told to make no further call.
    withdrawn: AtomicBool,
}

impl DeliveryProgress {
    pub(super) fn new(
        egress: Arc<Egress>,
        action: Arc<OutboundAction>,
        id: DeliveryId,
        task: Arc<Inbox>,
    ) -> Self {
        Self { egress, action, id, task, withdrawn: AtomicBool::new(false) }
    }

    /// Whether the platform was told to make no further call.
    pub(super) fn was_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Acquire)
    }
}

impl Progress for DeliveryProgress {
    fn first_part(&self, message_id: &str) {
        self.task.tell_first_part(FirstPart(self.id, message_id.to_owned()));
    }

    fn next_call(&self) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let paced = self.action.paced(&self.egress);
            let limit = self.action.rate_limit(&self.egress);
            let permit = limit.turn_for(&self.action.origin.tenant, paced).await;
            // What is not known is not written to.
            let known = self.action.recall(&self.egress).await.is_ok();
            let allowed = known && self.still_allowed();
            if allowed {
                permit.made();
            }
            allowed
        })
    }

    fn pause(&self, reach: Reach, pause: Duration) {
        self.action.pause(&self.egress, reach, pause);
    }

    fn still_allowed(&self) -> bool {
        let allowed = self.action.is_allowed(&self.egress);
        if !allowed {
            self.withdrawn.store(true, Ordering::Release);
        }
        allowed
    }
}
