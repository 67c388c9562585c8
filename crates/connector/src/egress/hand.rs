//! A delivery under way: what a platform that works on it asks, and tells how far it is.

use super::errand::Errand;
use crate::server::Server;
use angelia_contract::action::ActionResult;
use angelia_platforms::{Progress, Reach};
use futures_util::future::BoxFuture;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A provider call that a stopping server waits for.
pub(super) struct Calling<'a>(&'a Server);

impl<'a> Calling<'a> {
    pub(super) fn begin(server: &'a Server) -> Self {
        server.egress.under_way.fetch_add(1, Ordering::AcqRel);
        Self(server)
    }
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        self.0.egress.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a platform holds of us while it works on a delivery.
pub(super) struct Hand {
    server: Arc<Server>,
    errand: Arc<Errand>,
    first_part: OnceLock<String>,
    /// Whether the platform was told to make no further call.
    stopped: AtomicBool,
}

impl Hand {
    pub(super) fn new(server: Arc<Server>, errand: Arc<Errand>) -> Self {
        Self { server, errand, first_part: OnceLock::new(), stopped: AtomicBool::new(false) }
    }

    /// The first part, if the provider has it.
    pub(super) fn said_first(&self) -> Option<&String> {
        self.first_part.get()
    }

    /// Whether the platform was told to make no further call.
    pub(super) fn was_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

impl Progress for Hand {
    fn first_part(&self, message_id: &str) {
        let _ = self.first_part.set(message_id.to_owned());
        self.errand.reply.give(ActionResult::sent(message_id));
    }

    fn next_call(&self) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let paced = self.errand.paced(&self.server);
            let permit = self.errand.gate(&self.server).turn_for(&self.errand.origin.tenant, paced).await;
            // What is not known is not written to.
            let known = self.errand.recall(&self.server).await.is_ok();
            let allowed = known && self.still_allowed();
            if allowed {
                permit.made();
            }
            allowed
        })
    }

    fn pause(&self, reach: Reach, pause: Duration) {
        self.errand.pause(&self.server, reach, pause);
    }

    fn still_allowed(&self) -> bool {
        let allowed = self.errand.is_allowed(&self.server);
        if !allowed {
            self.stopped.store(true, Ordering::Release);
        }
        allowed
    }
}
