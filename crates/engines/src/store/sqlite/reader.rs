//! Reads beside the writer: WAL lets them go on while it commits.

use super::{failed, open_for_reading};
use angelia_core::error::{Error, Result};
use angelia_core::store::Later;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// Connections kept open between reads; more are opened under load and closed after.
const KEPT: usize = 2;

/// Reads at the same time; each costs a thread and a connection.
const AT_ONCE: usize = 8;

/// A small set of read-only connections.
pub(super) struct Readers {
    path: PathBuf,
    turns: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, turns: Arc::new(Semaphore::new(AT_ONCE)), idle: Arc::default() }
    }

    /// The file that is read.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs one read off the async threads.
    pub(super) fn read<T: Send + 'static>(
        &self,
        what: &'static str,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Later<'_, T> {
        let (path, idle, turns) = (self.path.clone(), self.idle.clone(), self.turns.clone());
        Box::pin(async move {
            let turn = turns.acquire_owned().await;
            let run = move || -> Result<T> {
                let _turn = turn;
                let kept = idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
                let connection = match kept {
                    Some(connection) => connection,
                    None => open_for_reading(&path)?,
                };
                let answer = query(&connection).map_err(|e| failed(what, &e));
                let mut idle = idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if idle.len() < KEPT {
                    idle.push(connection);
                }
                answer
            };
            tokio::task::spawn_blocking(run)
                .await
                .map_err(|_| Error::unavailable(format!("the store could not {what}: shutting down")))?
        })
    }
}
