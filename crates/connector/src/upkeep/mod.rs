//! What goes on beside everything else: dropping what is past its time, looking after the
//! disk and the clock, trying a store that failed, waking gateways, telling people.

mod clock;
mod notices;
mod wake;

pub(crate) use clock::Integrity;
pub(crate) use notices::Notifier;
pub use notices::{Away, Notices};
pub(crate) use wake::Waker;

use crate::identities::Identities;
use crate::refusal_log::RefusalLog;
use crate::server::Parts;
use crate::supervise::Lifecycle;
use crate::telemetry::{Counter, Metrics};
use angelia_core::error::Result;
use angelia_core::ports::{self, Pruned};
use std::sync::Arc;
use std::time::Duration;

/// How often the store is asked to drop what is past its time.
const PRUNE_EVERY: Duration = Duration::from_secs(600);
/// How often the disk is looked after.
const TEND_EVERY: Duration = Duration::from_secs(10);
/// How often a store that failed is tried again.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// Looks after the store. Its loops run until the server stops.
pub(crate) struct Upkeep {
    store: Arc<dyn ports::Upkeep>,
    identities: Arc<Identities>,
    refusal_log: Arc<RefusalLog>,
    metrics: Arc<Metrics>,
    integrity: Arc<Integrity>,
}

impl Upkeep {
    pub(crate) fn new(parts: &Parts, integrity: Arc<Integrity>) -> Arc<Self> {
        Arc::new(Self {
            store: parts.ports.upkeep.clone(),
            identities: parts.identities.clone(),
            refusal_log: parts.refusal_log.clone(),
            metrics: parts.metrics.clone(),
            integrity,
        })
    }

    /// Drops what is past its time, in the store and in memory.
    async fn prune(&self) -> Result<()> {
        // What is dropped is dropped by a time that the next start knows.
        self.store.keep_clock().await?;
        let Pruned { overaged, .. } = self.store.prune().await?;
        self.metrics.add(Counter::Overaged, overaged);
        if overaged > 0 {
            tracing::warn!(
                count = overaged,
                "messages that waited longer than inbox.max_age were dropped; angelia inbox list says whose"
            );
        }
        self.identities.follow().await
    }

    /// Prunes now and then, and tries a failed store until it works again.
    pub(crate) async fn prune_now_and_then(self: Arc<Self>, life: Arc<Lifecycle>) {
        let mut prune_at = angelia_core::clock::mono();
        loop {
            if !self.store.healthy() {
                let _ = self.store.probe().await;
            }
            self.refusal_log.tell().await;
            let now = angelia_core::clock::mono();
            if now >= prune_at {
                prune_at = now + PRUNE_EVERY;
                if let Err(error) = self.prune().await {
                    tracing::warn!(%error, "what is past its time could not be dropped");
                }
            }
            if !life.pause(PROBE_EVERY).await {
                return;
            }
        }
    }

    /// Looks after the disk, beside the rest: deleting a large tenant takes a while.
    pub(crate) async fn tend(self: Arc<Self>, life: Arc<Lifecycle>) {
        let mut was_well = true;
        loop {
            let tended = self.store.tend().await;
            if let Err(error) = &tended
                && was_well
            {
                tracing::warn!(%error, "the disk could not be looked after; trying again");
            }
            was_well = tended.is_ok();
            let pause = if self.store.healthy() { TEND_EVERY } else { PROBE_EVERY };
            if !life.pause(pause).await {
                return;
            }
        }
    }
}
