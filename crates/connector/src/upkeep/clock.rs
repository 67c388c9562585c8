//! Watching the clock and, after a server that was killed, the database.

use super::Upkeep;
use crate::supervise::Lifecycle;
use angelia_core::clock::{self, Leap};
use angelia_core::error::Result;
use angelia_core::store::Checked;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether the clock leapt: nothing costs less, and what
/// is written between a leap and the look at it is within what a leap forgives.
const LOOK_EVERY: Duration = Duration::from_secs(1);
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

impl Upkeep {
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
            if !life.pause(LOOK_EVERY).await {
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
    pub(crate) async fn check(self: Arc<Self>, _: Arc<Lifecycle>) {
        tracing::info!("the server before this one did not end by itself; looking through the database");
        match self.store.quick_check(CHECK_WITHIN).await {
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
