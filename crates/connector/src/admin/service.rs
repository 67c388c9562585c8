//! The admin service: what the operator's hands reach.

use super::{AdminToken, Bearers, Keyring};
use crate::identities::Identities;
use crate::ingress::{Bots, Drops};
use crate::refusal_log::RefusalLog;
use crate::relay::Sessions;
use crate::server::Parts;
use crate::supervise::Lifecycle;
use crate::telemetry::Metrics;
use crate::upkeep::{Integrity, Waker};
use angelia_core::memory::Memory;
use angelia_core::ports::Ports;
use angelia_platforms::webchat::Hub;
use std::sync::Arc;

/// What commands read and change.
pub(crate) struct Admin {
    pub(super) ports: Ports,
    /// Who is known here.
    pub(super) identities: Arc<Identities>,
    /// Which sockets there are.
    pub(super) sessions: Arc<Sessions>,
    pub(super) bots: Arc<Bots>,
    /// Rooms of the web chat that people follow.
    pub(super) hub: Arc<Hub>,
    /// What reached nobody lately.
    pub(super) drops: Arc<Drops>,
    pub(super) wake: Arc<Waker>,
    pub(super) keys: Arc<Keyring>,
    /// What the admin API asks for.
    pub(super) token: AdminToken,
    /// Who may prove a tenant.
    pub(super) bearers: Arc<Bearers>,
    pub(super) refusal_log: Arc<RefusalLog>,
    pub(super) memory: Arc<Memory>,
    /// What a check of the database found.
    pub(super) integrity: Arc<Integrity>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) life: Arc<Lifecycle>,
    /// The URL gateways and people reach this server at.
    pub(super) public_url: String,
}

/// What the admin service has beside the parts that services share.
pub(crate) struct AdminParts {
    pub(crate) token: AdminToken,
    pub(crate) bearers: Arc<Bearers>,
    pub(crate) drops: Arc<Drops>,
    pub(crate) integrity: Arc<Integrity>,
    pub(crate) public_url: String,
}

impl Admin {
    pub(crate) fn new(parts: &Parts, own: AdminParts) -> Arc<Self> {
        let AdminParts { token, bearers, drops, integrity, public_url } = own;
        Arc::new(Self {
            ports: parts.ports.clone(),
            identities: parts.identities.clone(),
            sessions: parts.sessions.clone(),
            bots: parts.bots.clone(),
            hub: parts.hub.clone(),
            drops,
            wake: parts.wake.clone(),
            keys: parts.keys.clone(),
            token,
            bearers,
            refusal_log: parts.refusal_log.clone(),
            memory: parts.memory.clone(),
            integrity,
            metrics: parts.metrics.clone(),
            life: parts.life.clone(),
            public_url,
        })
    }
}
