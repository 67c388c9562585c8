//! What goes on beside everything else: dropping what is past its time, looking after the
//! disk and the clock, trying a store that failed, waking gateways, telling people.

mod notices;
mod wake;

pub(crate) use notices::Notifier;
pub(crate) use wake::Waker;

use crate::cluster::{Chore, Cluster};
use crate::identities::Identities;
use crate::refusal_log::RefusalLog;
use crate::server::Parts;
use crate::supervise::Lifecycle;
use crate::telemetry::{Counter, Metrics};
use angelia_core::clock::{self, Leap};
use angelia_core::error::Result;
use angelia_core::ports::{self, Pruned};
use angelia_core::store::Checked;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// How often the store is asked to drop what is past its time.
const PRUNE_EVERY: Duration = Duration::from_secs(600);
/// How often the disk is looked after.
const TEND_EVERY: Duration = Duration::from_secs(10);
/// How often a store that failed is tried again.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// How often it is looked whether the clock leapt: nothing costs less, and what
/// is written between a leap and the look at it is within what a leap forgives.
const WATCH_CLOCK_EVERY: Duration = Duration::from_secs(1);
/// How often the time is written down. At a start, that much may seem to be
/// time for which the server was off.
const KEEP_EVERY: Duration = Duration::from_secs(60);
/// How long a database is looked through: a read goes on for so long, and the
/// log cannot be emptied meanwhile. It is enough for some tens of gigabytes.
const CHECK_WITHIN: Duration = Duration::from_secs(300);
/// How long a server that stops waits for its last note: not for a broken disk.
const LAST_NOTE: Duration = Duration::from_secs(1);

/// What is known of the database since the start.
#[derive(Debug, Default)]
pub(crate) struct Integrity(Mutex<Option<Checked>>);

impl Integrity {
    /// What is wrong with it, if anything is.
    pub(crate) fn damage(&self) -> Option<String> {
        match &*self.0.lock() {
            Some(Checked::Damaged(what)) => Some(what.clone()),
            _ => None,
        }
    }

    fn found(&self, checked: Checked) {
        *self.0.lock() = Some(checked);
    }
}

/// Looks after the store. Its loops run until the server stops.
pub(crate) struct Upkeep {
    store: Arc<dyn ports::Upkeep>,
    cluster: Arc<Cluster>,
    identities: Arc<Identities>,
    refusal_log: Arc<RefusalLog>,
    metrics: Arc<Metrics>,
    integrity: Arc<Integrity>,
}

impl Upkeep {
    pub(crate) fn new(parts: &Parts, integrity: Arc<Integrity>) -> Arc<Self> {
        Arc::new(Self {
            store: parts.ports.upkeep.clone(),
            cluster: parts.cluster.clone(),
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
        let mut prune_at = clock::mono();
        loop {
            if !self.store.healthy() {
                let _ = self.store.probe().await;
            }
            self.refusal_log.tell().await;
            let now = clock::mono();
            if now >= prune_at && self.cluster.does(Chore::Upkeep) {
                prune_at = now + PRUNE_EVERY;
                // Each of its steps is a commit.
                let Some(pruned) = life.unless_stopped(self.prune()).await else { return };
                if let Err(error) = pruned {
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
            // Each of its steps is a commit.
            let tend =
                async { if self.cluster.does(Chore::Upkeep) { self.store.tend().await } else { Ok(()) } };
            let Some(tended) = life.unless_stopped(tend).await else { return };
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

    /// Notes that a server runs. Answers whether the one before it was killed.
    pub(crate) async fn begin_run(&self) -> bool {
        let begun = self.store.begin_run().await;
        begun.inspect_err(|error| tracing::warn!(%error, "the start could not be noted")).unwrap_or(false)
    }

    /// Notes that the server ended as it should.
    pub(crate) async fn end_run(&self) {
        if let Ok(Err(error)) = tokio::time::timeout(LAST_NOTE, self.store.end_run()).await {
            tracing::warn!(%error, "the end could not be noted: the next start checks the database");
        }
    }

    /// Watches the clock.
    pub(crate) async fn watch_clock(self: Arc<Self>, life: Arc<Lifecycle>) {
        let (mut known, mut keep_at) = (None, clock::mono() + KEEP_EVERY);
        loop {
            let leap = self.store.leap();
            match leap {
                _ if leap == known => {}
                Some(leap) => warn(leap),
                None => tracing::info!("the clock is trusted again"),
            }
            let now = clock::mono();
            if (leap != known || now >= keep_at) && self.keep_clock().await.is_ok() {
                keep_at = now + KEEP_EVERY;
            }
            known = leap;
            if !life.pause(WATCH_CLOCK_EVERY).await {
                return;
            }
        }
    }

    async fn keep_clock(&self) -> Result<()> {
        // Whether the store commits is told elsewhere.
        let kept = self.store.keep_clock().await;
        kept.inspect_err(|error| tracing::debug!(%error, "the time is not written down"))
    }

    /// Looks through the database beside everything else.
    pub(crate) async fn check(self: Arc<Self>, life: Arc<Lifecycle>) {
        tracing::info!("the server before this one did not end by itself; looking through the database");
        let Some(checked) = life.unless_stopped(self.store.quick_check(CHECK_WITHIN)).await else { return };
        match checked {
            Ok(Checked::Sound) => tracing::info!("the database is sound"),
            Ok(Checked::Unfinished) => {
                tracing::warn!(
                    "the database is too large to look through; try PRAGMA quick_check on a backup"
                );
            }
            Ok(Checked::Damaged(what)) => {
                tracing::error!(
                    what,
                    "the database is damaged: stop the server, keep the files, and restore a backup; \
                     see Restore in docs/operating.md"
                );
                self.integrity.found(Checked::Damaged(what));
            }
            Err(error) => tracing::warn!(%error, "the database could not be looked through"),
        }
    }
}

fn warn(leap: Leap) {
    tracing::warn!(
        leap = leap.words(),
        "the clock is not where it is expected; until it is, nothing is dropped for its age. If it is right now, \
         or the server was off for so long, say: angelia clock accept"
    );
}
