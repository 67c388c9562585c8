//! What is past its time goes: files nobody used for a day, uploads that were broken off, and objects
//! that a crash left without a row.

use super::Media;
use crate::supervise::Lifecycle;
use angelia_core::clock;
use angelia_core::error::Result;
use angelia_core::media::{MediaStore, ORPHAN_AFTER};
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked. After a start that is done at once.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
/// Objects looked at in one step.
const STEP: usize = 200;

impl Media {
    /// Sweeps now and then.
    pub(crate) async fn keep_sweeping(self: Arc<Self>, life: Arc<Lifecycle>) {
        loop {
            let Some(swept) = life.unless_stopped(self.sweep()).await else { return };
            match swept {
                Ok(0) => {}
                Ok(gone) => tracing::info!(gone, "files that are past their time were removed"),
                Err(error) => tracing::warn!(%error, "files that are past their time could not be removed"),
            }
            if !life.pause(SWEEP_EVERY).await {
                return;
            }
        }
    }

    /// Removes what is past its time; answers how many objects that were.
    pub(super) async fn sweep(&self) -> Result<u64> {
        let mut gone = 0;
        loop {
            let expired = self.ports.records.expire_files().await?;
            for blob in &expired.blobs {
                self.blobs.remove(blob).await?;
                gone += 1;
            }
            if !expired.more {
                break;
            }
        }
        let then = clock::wall().before(ORPHAN_AFTER);
        gone += self.blobs.sweep(then).await?;
        let mut after = None;
        loop {
            let some = self.blobs.list(after.as_ref(), STEP).await?;
            let Some(last) = some.last() else { return Ok(gone) };
            after = Some(last.blob.clone());
            let old = some.into_iter().filter(|listing| listing.at < then).map(|listing| listing.blob);
            for blob in self.ports.records.unknown_blobs(old.collect()).await? {
                self.blobs.remove(&blob).await?;
                gone += 1;
            }
        }
    }
}
