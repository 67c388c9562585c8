//! The self-service of gateways: how they enrol, declare what they want, and get tokens.

use super::{Bearers, Pace, TokenLimits, declare, enroll, provision, token};
use crate::admin::router::no_store;
use crate::identities::Identities;
use crate::keyring::Keyring;
use crate::refusal_log::RefusalLog;
use crate::server::Parts;
use crate::upkeep::Waker;
use angelia_core::error::{Error, Result};
use angelia_core::identity::new_gateway_limits::{GatewayLimits, Making};
use angelia_core::ports::Ports;
use angelia_core::seal;
use angelia_core::secret::Secret;
use angelia_core::store::IdentityStore;
use axum::routing::post;
use axum::{Router, middleware};
use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Gateways that enrol or provision at the same time. Others wait outside, so
/// that an operator's change is never behind more than these.
const AT_ONCE: usize = 4;
/// How long they wait; gateways give up after 15 s.
const PATIENCE: Duration = Duration::from_secs(10);

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
        })
    }

    /// Where it is asked.
    pub(crate) fn router(self: Arc<Self>) -> Router {
        Router::new()
            .route("/relay/enroll", post(enroll))
            .route("/relay/provision", post(provision))
            .route("/relay/policy", post(declare))
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

    /// Makes a change of who is known here, as [`Identities::change`] does.
    pub(super) async fn change<T, F>(self: &Arc<Self>, change: impl FnOnce(Arc<Self>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.identities.change(change(self.clone())).await
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
