//! The self-service of gateways: how they enrol, declare what they want, and get tokens.

use super::{Bearers, TokenLimits, declare, enroll, provision, token};
use crate::admin::router::{Everywhere, know_everywhere, no_store};
use crate::cluster::Cluster;
use crate::identities::Identities;
use crate::keyring::Keyring;
use crate::refusal_log::RefusalLog;
use crate::server::Parts;
use crate::upkeep::Waker;
use angelia_core::clock;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::identity::GatewayRecord;
use angelia_core::identity::new_gateway_limits::{GatewayLimits, Making};
use angelia_core::limit::{SlidingWindow, SlidingWindowOf, WhenCrowded};
use angelia_core::limit_per_address::Address;
use angelia_core::ports::Ports;
use angelia_core::seal;
use angelia_core::secret::Secret;
use angelia_core::store::IdentityStore;
use axum::extract::ConnectInfo;
use axum::http::Extensions;
use axum::routing::post;
use axum::{Router, middleware};
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Gateways that enrol or provision at the same time. Others wait outside, so
/// that an operator's change is never behind more than these.
const AT_ONCE: usize = 4;
/// How long they wait; gateways give up after 15 s.
const PATIENCE: Duration = Duration::from_secs(10);
/// Changes of one gateway within [`CHANGES_IN`]: a start makes one for each of
/// its platforms at the most, and a crash loop starts every half minute.
/// Each node counts its own: a gateway that goes round them is bounded by their number, and what it
/// may have in all (its tenant's gateways) by the store.
const CHANGES: usize = 30;
const CHANGES_IN: Duration = Duration::from_secs(600);
/// Gateways whose changes are remembered. Beyond it the one that changed
/// something longest ago is forgotten.
const GATEWAYS: usize = 4_096;

/// What gateways and their owners ask for over plain HTTP.
pub(crate) struct SelfService {
    pub(super) ports: Ports,
    pub(super) identities: Arc<Identities>,
    pub(super) keys: Arc<Keyring>,
    pub(super) bearers: Arc<Bearers>,
    pub(super) wake: Arc<Waker>,
    pub(super) refusal_log: Arc<RefusalLog>,
    pub(super) pace: Pace,
    pub(super) token_limits: TokenLimits,
    /// Gateways that were made lately.
    pub(super) making: Mutex<Making>,
    /// Most living gateways that a tenant makes.
    pub(super) per_tenant: u64,
    turns: Semaphore,
    cluster: Arc<Cluster>,
}

impl SelfService {
    pub(crate) fn new(parts: &Parts, bearers: Arc<Bearers>, limits: GatewayLimits) -> Arc<Self> {
        Arc::new(Self {
            ports: parts.ports.clone(),
            identities: parts.identities.clone(),
            keys: parts.keys.clone(),
            bearers,
            wake: parts.wake.clone(),
            refusal_log: parts.refusal_log.clone(),
            pace: Pace::default(),
            token_limits: TokenLimits::default(),
            making: Mutex::new(Making::new(limits)),
            per_tenant: limits.per_tenant,
            turns: Semaphore::new(AT_ONCE),
            cluster: parts.cluster.clone(),
        })
    }

    /// Where it is asked.
    pub(crate) fn router(self: Arc<Self>) -> Router {
        Router::new()
            .route("/relay/enroll", post(enroll))
            .route("/relay/provision", post(provision))
            .route("/relay/policy", post(declare))
            .layer(middleware::from_fn_with_state(
                Everywhere::of(&self.identities, &self.cluster),
                know_everywhere,
            ))
            .route("/oauth/token", post(token))
            .layer(middleware::from_fn(no_store))
            .with_state(self)
    }

    /// Waits for a turn to enrol or provision.
    pub(super) async fn turn(&self) -> Result<SemaphorePermit<'_>> {
        let busy = || Error::unavailable("too many gateways enrol at the moment; try again");
        let turn = tokio::time::timeout(PATIENCE, self.turns.acquire()).await;
        turn.map_err(|_| busy())?.map_err(|_| busy())
    }

    /// The tenant's delivery key, made when it is first asked for; within a change.
    pub(super) async fn delivery_key(&self, tenant: &str) -> Result<Secret> {
        let bound_to = seal::delivery_key(tenant);
        let sealed = match self.ports.records.delivery_key(tenant).await? {
            Some(sealed) => sealed,
            None => {
                let made = self.keys.seal(&Secret::mint(), &bound_to)?;
                self.ports.records.keep_delivery_key(tenant, made.to_vec()).await?
            }
        };
        self.keys.open(&sealed, &bound_to)
    }
}

/// What gateways changed lately of what is kept of them, by tenant and gateway id. Each change is
/// a commit and a line of the audit log that stays for more than a year, and a gateway makes them
/// without anybody looking.
pub(super) struct Pace(Mutex<SlidingWindowOf<(String, String)>>);

impl Default for Pace {
    fn default() -> Self {
        let of_one = SlidingWindow::new(CHANGES, CHANGES_IN);
        Self(Mutex::new(SlidingWindowOf::new(GATEWAYS, WhenCrowded::ForgetOne, of_one)))
    }
}

impl Pace {
    /// Whether a gateway, or whoever enrolled it, may change something of it
    /// now; counts the change. Ask right before it is stored.
    pub(super) fn may_change(&self, record: &GatewayRecord) -> Result<()> {
        let (who, now) = ((record.tenant.clone(), record.gateway_id.clone()), clock::mono());
        let noted = self.0.lock().take(&who, now);
        noted.map_err(|room_at| {
            let minutes = room_at.since(now).as_secs().div_ceil(60).max(1);
            Error::new(
                Kind::TooMany,
                format!(
                    "this gateway changed its settings {CHANGES} times within {} minutes; \
                     try again in {minutes} min and send only what has changed",
                    CHANGES_IN.as_secs() / 60
                ),
            )
        })
    }
}

/// The address of a request's peer, where the listener knows it to be the caller's own.
pub(super) fn peer(of_request: &Extensions) -> Address {
    Address::of(of_request.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_known_where_the_listener_says_so() {
        let mut of_request = Extensions::new();
        assert_eq!(peer(&of_request), Address::Unknown);
        of_request.insert(ConnectInfo(SocketAddr::from(([192, 0, 2, 7], 80))));
        assert_eq!(peer(&of_request), Address::of(Some([192, 0, 2, 7].into())));
    }
}
