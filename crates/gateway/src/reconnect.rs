//! Staying connected: when a socket is dialed again, and which close codes end that.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use angelia_contract::close;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::agent::Agent;
use crate::backoff::Backoff;
use crate::builder::GatewayBuilder;
use crate::calls::random;
use crate::connection::{Link, Want};
use crate::dial::{DialError, dial};
use crate::dispatch::{Dispatcher, Turns as _};
use crate::error::GatewayError;
use crate::handle::GatewayHandle;
use crate::session::{self, Ended, Remains};
use crate::shared::{Shared, count};

/// A gateway that is ready to run.
pub struct Gateway {
    shared: Arc<Shared>,
    // Dropped with the gateway or with the future that runs it.
    _over: Over,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("id", &self.shared.settings.id)
            .field("target", &self.shared.settings.target)
            .finish_non_exhaustive()
    }
}

/// Ends every call and every wait once nobody runs the gateway any more.
struct Over(Arc<Shared>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.link.send_if_modified(|link| {
            let running = !matches!(link, Link::Over { .. });
            if running {
                *link = Link::Over { acked: false };
            }
            running
        });
        self.0.calls.lose_all();
    }
}

impl Gateway {
    /// Starts with the URL of a connector: its base, or that of its socket.
    pub fn builder(url: impl Into<String>) -> GatewayBuilder {
        GatewayBuilder::new(url)
    }

    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { _over: Over(Arc::clone(&shared)), shared }
    }

    /// A way to speak through this gateway from anywhere.
    pub fn handle(&self) -> GatewayHandle {
        GatewayHandle { shared: Arc::clone(&self.shared) }
    }

    /// Connects and stays connected, handing every event to `agent`.
    ///
    /// Dials again after every loss and every refusal, with growing and
    /// spread-out waits. Ends with `Ok` after
    /// [`shutdown`](GatewayHandle::shutdown), and with
    /// [`GatewayError::Revoked`] when the connector closes with 4401 although
    /// it had accepted this gateway before; 4401 before any handshake, or with
    /// the reason `expired`, is a refusal like any other. Dropping the future
    /// ends everything at once.
    pub async fn run<A: Agent>(self, agent: A) -> Result<(), GatewayError> {
        let shared = &*self.shared;
        let mut want = shared.want.subscribe();
        let mut dispatcher = Dispatcher::new(agent, Arc::clone(&self.shared));
        let turns = dispatcher.turns();
        let mut backoff = Backoff::default();
        let mut accepted_before = false;
        // Whether turns had their time to end already.
        let mut graced = false;
        // Whether the last quiet was confirmed; without a connection there
        // was nothing to confirm.
        let mut acked = true;
        loop {
            let wanted = *want.borrow_and_update();
            match wanted {
                Want::Stop => {
                    if !graced {
                        turns.drain(true);
                        turns.ended(shared.settings.grace).await;
                    }
                    shared.link.send_replace(Link::Over { acked });
                    return Ok(());
                }
                Want::Idle => {
                    rest(shared, &mut want, acked).await;
                    acked = true;
                    graced = false;
                    continue;
                }
                Want::Run => {}
            }
            count(&shared.counters.dials);
            let dialed = tokio::select! {
                dialed = dial(&shared.settings) => dialed,
                _ = want.wait_for(|want| *want != Want::Run) => continue,
            };
            let asked = match dialed {
                Ok(socket) => {
                    let remains = session::run(socket, shared, &mut dispatcher, want.clone()).await;
                    if remains.greeted {
                        accepted_before = true;
                        backoff.reset();
                    }
                    if is_revocation(&remains, accepted_before) {
                        tracing::error!("the connector revoked this gateway's credential");
                        return Err(GatewayError::Revoked);
                    }
                    if *want.borrow() != Want::Run {
                        acked = remains.idle_acked;
                        graced = remains.ended == Ended::Quiet;
                        continue;
                    }
                    if remains.ended == Ended::Quiet {
                        continue;
                    }
                    tracing::info!(ended = ?remains.ended, "disconnected");
                    None
                }
                Err(error) => refusal(&error),
            };
            let wait = backoff.next(random(), asked);
            tracing::debug!(?wait, "dialing again soon");
            tokio::select! {
                () = sleep(wait) => {}
                _ = want.wait_for(|want| *want != Want::Run) => {}
            }
        }
    }
}

/// Stays away until the owner wants something else.
async fn rest(shared: &Shared, want: &mut watch::Receiver<Want>, acked: bool) {
    shared.link.send_replace(Link::Idle { acked });
    let _ = want.wait_for(|want| *want != Want::Idle).await;
    shared.link.send_replace(Link::Down);
}

fn is_revocation(remains: &Remains, accepted_before: bool) -> bool {
    let Ended::Closed { code, reason } = &remains.ended else {
        return false;
    };
    accepted_before && *code == Some(close::UNAUTHORIZED) && reason != close::REASON_EXPIRED
}

/// Logs why a dial failed, and gives the wait the server asked for.
fn refusal(error: &DialError) -> Option<Duration> {
    tracing::warn!(%error, "the dial failed");
    match error {
        DialError::Status { retry_after, .. } => *retry_after,
        _ => None,
    }
}
