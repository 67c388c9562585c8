//! The limit on refused calls: tenants whose calls are refused again and again
//! make none for a while, because refusals get a bot banned for all.

use angelia_core::clock;
use angelia_core::egress::{Decision, Refusals};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use tokio::sync::Notify;

/// Stops tenants whose calls are refused again and again.
#[derive(Default)]
pub(super) struct RefusalLimit {
    refusals: Mutex<Refusals>,
    /// A call is over: others may be let through.
    over: Notify,
}

/// Leave for one call that may be refused.
pub(super) struct Slot {
    limit: Arc<RefusalLimit>,
    tenant: String,
    refused: bool,
}

impl Slot {
    /// The call is over.
    pub(super) fn over(mut self, refused: bool) {
        self.refused = refused;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.limit.refusals().done(&self.tenant, self.refused, clock::mono());
        self.limit.over.notify_waiters();
    }
}

impl RefusalLimit {
    /// Waits for leave to call; `None` if too many of the tenant's calls were refused.
    pub(super) async fn slot(self: &Arc<Self>, tenant: &str) -> Option<Slot> {
        loop {
            let mut over = std::pin::pin!(self.over.notified());
            over.as_mut().enable();
            match self.ask(tenant) {
                Decision::Go => return Some(self.taken(tenant)),
                Decision::No => return None,
                Decision::Wait => over.await,
            }
        }
    }

    /// The same, for what is not worth waiting for.
    pub(super) fn slot_at_once(self: &Arc<Self>, tenant: &str) -> Option<Slot> {
        (self.ask(tenant) == Decision::Go).then(|| self.taken(tenant))
    }

    fn ask(&self, tenant: &str) -> Decision {
        self.refusals().ask(tenant, clock::mono())
    }

    fn taken(self: &Arc<Self>, tenant: &str) -> Slot {
        Slot { limit: self.clone(), tenant: tenant.to_owned(), refused: false }
    }

    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock()
    }
}
