//! A provider call under way: what a platform that works on it asks, and tells how far it is.

use super::action::OutboundAction;
use super::chats::{FirstPart, Inbox};
use crate::server::Server;
use angelia_core::egress::delivery::DeliveryId;
use angelia_platforms::{Progress, Reach};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A provider call that a stopping server waits for, from the note that it is
/// made to the note of what came of it.
pub(super) struct InFlight(Arc<Server>);

impl InFlight {
    pub(super) fn begin(server: &Arc<Server>) -> Self {
        server.egress.in_flight.fetch_add(1, Ordering::AcqRel);
        Self(server.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.egress.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a platform holds of us while it works on a delivery.
pub(super) struct DeliveryProgress {
    server: Arc<Server>,
    action: Arc<OutboundAction>,
    id: DeliveryId,
    /// The task of its chat.
    task: Arc<Inbox>,
    /// Whether the platform was told to make no further call.
    withdrawn: AtomicBool,
}

impl DeliveryProgress {
    pub(super) fn new(
        server: Arc<Server>,
        action: Arc<OutboundAction>,
        id: DeliveryId,
        task: Arc<Inbox>,
    ) -> Self {
        Self { server, action, id, task, withdrawn: AtomicBool::new(false) }
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
            let paced = self.action.paced(&self.server);
            let limit = self.action.rate_limit(&self.server);
            let permit = limit.turn_for(&self.action.origin.tenant, paced).await;
            // What is not known is not written to.
            let known = self.action.recall(&self.server).await.is_ok();
            let allowed = known && self.still_allowed();
            if allowed {
                permit.made();
            }
            allowed
        })
    }

    fn pause(&self, reach: Reach, pause: Duration) {
        self.action.pause(&self.server, reach, pause);
    }

    fn still_allowed(&self) -> bool {
        let allowed = self.action.is_allowed(&self.server);
        if !allowed {
            self.withdrawn.store(true, Ordering::Release);
        }
        allowed
    }
}
