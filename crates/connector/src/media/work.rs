//! Sealing, opening and hashing keep a processor busy. They are done off the threads on which everything
//! else waits for its turn, and on half of the processors at the most: of two hundred files every one
//! would otherwise be in front of somebody's next message.

use angelia_core::error::{Error, Result};
use std::sync::Arc;
use std::thread::available_parallelism;
use tokio::sync::Semaphore;

/// What is shorter is done where it is: that takes as long as handing it over.
pub(super) const SHORT: usize = 4 * 1024;

/// Who may keep a processor busy.
#[derive(Clone, Debug)]
pub(super) struct Work(Arc<Semaphore>);

impl Default for Work {
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Semaphore::new(processors.div_ceil(2))))
    }
}

impl Work {
    /// Does what takes a while for so many bytes.
    pub(super) async fn on<T: Send + 'static>(
        &self,
        bytes: usize,
        act: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        if bytes < SHORT {
            return Ok(act());
        }
        let turn = self.0.clone().acquire_owned().await.map_err(Error::defect)?;
        let done = tokio::task::spawn_blocking(move || {
            let done = act();
            drop(turn);
            done
        });
        done.await.map_err(Error::defect)
    }
}
