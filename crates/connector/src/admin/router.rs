//! The admin API: the operator's hands, on `admin_listen` only.
//!
//! The command line uses the same routes, through the socket while a server
//! runs and in its own process when none does.

use super::{Bearers, api, other_nodes};
use crate::admin_token::AdminToken;
use crate::cluster::{Cluster, Presence};
use crate::identities::Identities;
use crate::ingress::{Bots, Drops};
use crate::keyring::Keyring;
use crate::refusal_log::RefusalLog;
use crate::relay::{DialLog, Sessions};
use crate::server::Parts;
use crate::supervise::Lifecycle;
use crate::telemetry::{BotReading, Counter, Gauges, Metrics, NodeGauges};
use crate::upkeep::{Integrity, Waker};
use angelia_core::clock;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::limit::SlidingWindow;
use angelia_core::memory::{ByteBudget, Memory};
use angelia_core::ports::Ports;
use angelia_platforms::webchat::Hub;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Wrong tokens answered in a minute, by one node; further ones are not looked at. The
/// right one always is. Several nodes answer as many times more: of a token of 256 bits
/// nobody guesses a thing that way.
const WRONG_TOKENS: usize = 10;
const WRONG_TOKENS_IN: Duration = Duration::from_secs(60);

angelia_contract::limits! {
    /// What a command and its answer take, out of the memory kept for operators; so all the admin listener's connections can ask at once. A longer body gets 413.
    pub const COMMAND: usize = 256 * 1024, bytes "a command to the admin API";
}

/// What commands read and change.
pub(crate) struct Admin {
    pub(super) ports: Ports,
    /// Who is known here.
    pub(super) identities: Arc<Identities>,
    /// Which sockets there are on this node.
    pub(super) sessions: Arc<Sessions>,
    /// Which agents are there, on whichever node.
    pub(super) presence: Arc<Presence>,
    pub(super) cluster: Arc<Cluster>,
    pub(super) bots: Arc<Bots>,
    /// Rooms of the web chat that people follow.
    pub(super) hub: Arc<Hub>,
    /// What reached nobody lately.
    pub(super) drops: Arc<Drops>,
    pub(super) wake: Arc<Waker>,
    /// Who was turned away lately.
    pub(super) dials: Arc<DialLog>,
    pub(super) keys: Arc<Keyring>,
    /// What the admin API asks for.
    pub(super) token: AdminToken,
    /// How many were turned away lately.
    wrong_tokens: Mutex<SlidingWindow>,
    /// Who may prove a tenant.
    pub(super) bearers: Arc<Bearers>,
    pub(super) refusal_log: Arc<RefusalLog>,
    pub(super) memory: Arc<Memory>,
    /// How much of files a tenant may have; `None` if none are kept.
    pub(super) files_of_tenant: Option<u64>,
    /// What a check of the database found.
    pub(super) integrity: Arc<Integrity>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) life: Arc<Lifecycle>,
    /// The URL gateways and people reach this server at.
    pub(super) public_url: String,
}

impl Admin {
    pub(crate) fn new(
        parts: &Parts,
        token: AdminToken,
        bearers: Arc<Bearers>,
        drops: Arc<Drops>,
        integrity: Arc<Integrity>,
        (public_url, files_of_tenant): (String, Option<u64>),
    ) -> Arc<Self> {
        let admin = Self {
            ports: parts.ports.clone(),
            identities: parts.identities.clone(),
            sessions: parts.sessions.clone(),
            presence: parts.presence.clone(),
            cluster: parts.cluster.clone(),
            bots: parts.bots.clone(),
            hub: parts.hub.clone(),
            drops,
            wake: parts.wake.clone(),
            dials: parts.dials.clone(),
            keys: parts.keys.clone(),
            token,
            wrong_tokens: Mutex::new(SlidingWindow::new(WRONG_TOKENS, WRONG_TOKENS_IN)),
            bearers,
            refusal_log: parts.refusal_log.clone(),
            memory: parts.memory.clone(),
            integrity,
            files_of_tenant,
            metrics: parts.metrics.clone(),
            life: parts.life.clone(),
            public_url,
        };
        other_nodes::answer_others(&admin);
        Arc::new(admin)
    }
}

/// The admin routes.
pub(crate) fn router(admin: Arc<Admin>) -> Router {
    let guarded = api::router()
        .layer(DefaultBodyLimit::max(COMMAND))
        .layer(middleware::from_fn_with_state(
            Everywhere::of(&admin.identities, &admin.cluster),
            know_everywhere,
        ))
        .layer(middleware::from_fn_with_state(admin.memory.operators().clone(), hold_memory))
        .layer(middleware::from_fn_with_state(admin.clone(), authenticate));
    let routes = Router::new().route("/metrics", get(metrics)).merge(guarded).with_state(admin);
    routes.layer(middleware::from_fn(no_store))
}

/// Answers with secrets in them are for whoever asked, and nobody keeps them on the way.
pub(crate) async fn no_store(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn authenticate(State(admin): State<Arc<Admin>>, request: Request, next: Next) -> Response {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = header.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    if admin.token.matches(token) {
        return next.run(request).await;
    }
    if admin.wrong_tokens.lock().take(clock::mono()).is_err() {
        admin.metrics.count(Counter::AccessRefused);
        return failure(&Error::new(Kind::TooMany, "too many wrong admin tokens; try again in a minute"));
    }
    let error =
        Error::new(Kind::Unauthorized, "wrong admin token; it is in the data directory, file admin-token");
    admin.refusal_log.refused_stranger("admin.enter", request.uri().path(), &error).await;
    failure(&error)
}

/// Counts what a command takes for as long as it runs. There is room for it even
/// when gateways hold all that they may.
async fn hold_memory(State(operators): State<Arc<ByteBudget>>, request: Request, next: Next) -> Response {
    match operators.hold(COMMAND) {
        Some(_held) => next.run(request).await,
        None => failure(&Error::new(Kind::Unavailable, "too many commands at once; try again")),
    }
}

/// Who has to know of a change before it is answered.
#[derive(Clone)]
pub(super) struct Everywhere {
    identities: Arc<Identities>,
    cluster: Arc<Cluster>,
}

impl Everywhere {
    pub(super) fn of(identities: &Arc<Identities>, cluster: &Arc<Cluster>) -> Self {
        Self { identities: identities.clone(), cluster: cluster.clone() }
    }
}

/// Answers a change when all nodes know of it: whoever made it may go on at any of them.
pub(super) async fn know_everywhere(
    State(Everywhere { identities, cluster }): State<Everywhere>,
    request: Request,
    next: Next,
) -> Response {
    let before = identities.known_to();
    let response = next.run(request).await;
    let after = identities.known_to();
    if after > before && response.status().is_success() {
        other_nodes::until_known(&cluster, after).await;
    }
    response
}

async fn metrics(State(admin): State<Arc<Admin>>) -> Response {
    let bots = admin.bots.all().iter().filter_map(|bot| {
        let health = bot.health()?;
        Some(BotReading { platform: bot.platform().to_owned(), bot: bot.id().to_owned(), health })
    });
    let bots: Vec<BotReading> = bots.collect();
    let gauges = Gauges {
        sockets: admin.sessions.open(),
        store_healthy: admin.ports.upkeep.healthy(),
        clock_leapt: admin.ports.upkeep.leap().is_some(),
        store_damaged: admin.integrity.damage().is_some(),
        disk: admin.ports.upkeep.disk().await.ok(),
        node: admin.cluster.is_shared().then(|| node_gauges(&admin.cluster)),
    };
    let text = admin.metrics.render(&gauges, &bots);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

fn node_gauges(cluster: &Cluster) -> NodeGauges {
    NodeGauges {
        node: cluster.node().to_owned(),
        current: cluster.is_current(),
        nodes: cluster.seen().there.len(),
        leases: cluster.leases_held(),
        beats_failed: cluster.failed_beats(),
        bus_connected: cluster.bus().is_connected(),
        bus: cluster.bus().stats(),
    }
}

pub(crate) fn answer<T: Serialize>(status: StatusCode, result: Result<T>) -> Response {
    match result {
        Ok(body) => (status, Json(body)).into_response(),
        Err(error) => failure(&error),
    }
}

pub(super) fn failure(error: &Error) -> Response {
    let status =
        StatusCode::from_u16(error.kind().http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(json!({ "error": error.to_string() }))).into_response();
    if let Some(wait) = error.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, retry_seconds(wait).into());
    }
    response
}

/// Whole seconds to wait; never none, which would be at once.
pub(super) fn retry_seconds(wait: Duration) -> u64 {
    wait.as_millis().div_ceil(1_000).max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::inbox::InstanceId;
    use angelia_core::memory::MemoryLimits;
    use axum::body::Body;
    use axum::routing::post;
    use tower::ServiceExt;

    #[tokio::test]
    async fn a_command_has_memory_while_gateways_hold_all_of_theirs() {
        let all = 3 * COMMAND;
        let limits = MemoryLimits { all, reserve: COMMAND, tenant: all, instance: all, socket: all };
        let memory = Memory::new(limits);
        let operators = memory.operators().clone();
        let routes = Router::new()
            .route("/", post(async |body: String| body))
            .layer(DefaultBodyLimit::max(COMMAND))
            .layer(middleware::from_fn_with_state(operators.clone(), hold_memory));
        let ask = async |length: usize| {
            let request = Request::post("/").body(Body::from("x".repeat(length))).unwrap();
            routes.clone().oneshot(request).await.unwrap().status().as_u16()
        };
        let gateway = memory.instance("acme", InstanceId(1));
        let greedy = gateway.hold(all - COMMAND).expect("all but the reserve");
        assert!(gateway.hold(1).is_none());
        assert_eq!(ask(COMMAND).await, 200, "the reserve is the operators'");
        assert_eq!(ask(COMMAND + 1).await, 413);
        let other = operators.hold(COMMAND).expect("another command");
        assert_eq!(ask(1).await, 503, "one after the other");
        drop((greedy, other));
        assert_eq!(ask(1).await, 200);
        assert_eq!(operators.held(), 0);
    }
}
