//! Answers that take the place of "thinking…". Where one is to be seen is settled,
//! so a chat does not wait for one that takes long: a provider that is ill, or a
//! text it cannot take, would hold up everything that is said there after it.

use super::deliver;
use super::lanes::{Lane, Owed};
use crate::server::Server;
use angelia_core::vault::{CapabilityId, Use, Way};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::timeout;

/// The capabilities whose answers are under way.
#[derive(Default)]
pub(super) struct Aside(Mutex<HashSet<CapabilityId>>);

impl Aside {
    /// Whether the answer is under way behind which this one would be: said first,
    /// it would take the place and be written over.
    pub(super) fn is_before(&self, used: Use) -> bool {
        used.way == Way::Further && self.under_way().contains(&used.capability)
    }

    fn under_way(&self) -> MutexGuard<'_, HashSet<CapabilityId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Held while an answer is under way.
struct UnderWay(Arc<Aside>, CapabilityId);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way().remove(&self.1);
    }
}

/// Performs an action. What takes a place of its own is waited for a little and
/// then goes on by itself.
pub(super) async fn carry(server: &Arc<Server>, lane: &Lane, owed: Owed) {
    let Some(Use { way: Way::Original, capability }) = owed.uses else {
        return deliver::carry(server, lane, owed).await;
    };
    let aside = &server.egress.aside;
    aside.under_way().insert(capability);
    let under_way = UnderWay(aside.clone(), capability);
    let (server, lane, patience) = (server.clone(), lane.clone(), server.egress.timings.aside);
    let carrying = tokio::spawn(async move {
        deliver::carry(&server, &lane, owed).await;
        drop(under_way);
    });
    let _ = timeout(patience, carrying).await;
}
