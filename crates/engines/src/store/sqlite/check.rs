//! Looking through the whole database, beside everything else.

use super::open_for_reading;
use angelia_core::error::{Error, Result};
use angelia_core::store::Checked;
use rusqlite::{ErrorCode, InterruptHandle};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Ends a query when nobody waits for it any more, also before it began.
struct Interrupt {
    handle: InterruptHandle,
    given_up: Arc<AtomicBool>,
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Release);
        self.handle.interrupt();
    }
}

pub(super) async fn quick_check(path: PathBuf, within: Duration) -> Result<Checked> {
    let broke = |_| Error::internal("the check of the database broke off");
    let opened = tokio::task::spawn_blocking(move || open_for_reading(&path)).await.map_err(broke)?;
    let connection = match opened {
        Ok(connection) => connection,
        Err(error) => return Ok(Checked::Damaged(error.to_string())),
    };
    let given_up = Arc::new(AtomicBool::new(false));
    let interrupt = Interrupt { handle: connection.get_interrupt_handle(), given_up: given_up.clone() };
    let mut check = tokio::task::spawn_blocking(move || {
        if given_up.load(Ordering::Acquire) {
            Ok(None)
        } else {
            connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)).map(Some)
        }
    });
    let found = match tokio::time::timeout(within, &mut check).await {
        Ok(found) => found,
        Err(_) => {
            drop(interrupt);
            check.await
        }
    };
    Ok(match found.map_err(broke)? {
        Ok(None) => Checked::Unfinished,
        Ok(Some(word)) if word == "ok" => Checked::Sound,
        Ok(Some(fault)) => Checked::Damaged(fault),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            Checked::Unfinished
        }
        Err(error) => Checked::Damaged(error.to_string()),
    })
}
