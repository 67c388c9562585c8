//! Work on this machine's disk, off the threads on which everything else waits for its turn, and by a
//! few hands only: two hundred files at once are no two hundred threads, and the database's syncs do
//! not wait behind all of theirs.

use angelia_core::error::{Error, Result};
use std::io;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Reads and writes at a time. Most of them end in the kernel's memory.
const HANDS: usize = 4;
/// Files at a time that wait until they are on the disk.
const SYNCS: usize = 2;

/// Who may use the disk.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    hands: Arc<Semaphore>,
    syncs: Arc<Semaphore>,
}

impl Default for Disk {
    fn default() -> Self {
        Self { hands: Arc::new(Semaphore::new(HANDS)), syncs: Arc::new(Semaphore::new(SYNCS)) }
    }
}

impl Disk {
    /// Reads or writes.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        act: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        in_turn(&self.hands, act).await.map_err(io::Error::other)?
    }

    /// Waits for the disk.
    pub(super) async fn sync<T: Send + 'static>(
        &self,
        act: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        in_turn(&self.syncs, act).await.map_err(io::Error::other)?
    }
}

/// The turn goes along: who does not wait for it any more has not ended what is being done.
async fn in_turn<T: Send + 'static>(
    turns: &Arc<Semaphore>,
    act: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let turn = turns.clone().acquire_owned().await.map_err(Error::defect)?;
    let done = tokio::task::spawn_blocking(move || {
        let done = act();
        drop(turn);
        done
    });
    done.await.map_err(Error::defect)
}
