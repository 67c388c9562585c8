//! What asks the process to stop: SIGTERM, or Ctrl-C in its terminal.

use angelia_core::error::{Error, Result};
use std::io;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals to stop. None is missed from the moment they are listened to.
pub(crate) struct StopSignals {
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    interrupt: Signal,
}

impl StopSignals {
    /// Listens to them.
    pub(crate) fn listen() -> Result<Self> {
        #[cfg(unix)]
        let hear = |kind| signal(kind).map_err(unheard);
        Ok(Self {
            #[cfg(unix)]
            terminate: hear(SignalKind::terminate())?,
            #[cfg(unix)]
            interrupt: hear(SignalKind::interrupt())?,
        })
    }

    /// Resolves when the process is asked to stop, or once more.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> Result<()> {
        tokio::select! {
            _ = self.terminate.recv() => Ok(()),
            _ = self.interrupt.recv() => Ok(()),
        }
    }

    /// Resolves when the process is asked to stop, or once more.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> Result<()> {
        tokio::signal::ctrl_c().await.map_err(unheard)
    }
}

/// Signals that cannot be heard: a server that nobody could stop in good order.
pub(crate) fn unheard(error: io::Error) -> Error {
    Error::internal(format!("signals cannot be heard: {error}")).caused_by(error)
}
