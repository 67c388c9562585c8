//! `GET /relay`: who may open a socket.
//!
//! A close code is only seen after a 101, and gateways take 4401 for good. So
//! everything that refuses is an HTTP status, which every gateway retries, and
//! only a real revocation is let in to be told (docs/decisions/0001).

use super::Relay;
use super::mailbox::Mailbox;
use super::session::{PeerProfile, Session};
use super::websocket::{self, Message, Upgrade, WebSocket};
use crate::identities::Snapshot;
use crate::telemetry::Counter;
use angelia_contract::{close, token};
use angelia_core::clock;
use angelia_core::connections::{Lasting, NoPlace, RelayPlaces};
use angelia_core::error::{Error, Kind};
use angelia_core::identity::{self, GatewayRecord, judge_upgrade};
use angelia_core::problems::TurnedAway;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, RETRY_AFTER, USER_AGENT};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use serde_json::json;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

angelia_contract::limits! {
    /// One that serves, one that replaces it, and what a dying network leaves behind. Further ones are told to come back. Set by `limits.sockets_per_gateway`.
    pub const SOCKETS_PER_GATEWAY: usize = 4, count "relay sockets of one gateway";
}
/// A revoked gateway that dials again and again is slowed down by this much a dial.
const REVOKED_HOLD: Duration = Duration::from_secs(3);
/// The Rust half of the contract, which acts on interrupts.
const RUST_HALF: &str = "angelia-gateway/";
/// The library of every published gateway, behind the Python it runs on.
const PUBLISHED: (&str, &str) = ("Python/3.", " websockets/");

/// Where a gateway may say how it wants files, and the answer of one that fetches none.
const FILES_AS: &str = "angelia-files";
const LINKS: &str = "links";
/// Where a proxy says how it was asked.
const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// Handles the upgrade.
pub(crate) async fn upgrade(State(relay): State<Arc<Relay>>, mut request: Request) -> Response {
    let socket = match websocket::accept(&mut request) {
        Ok(socket) => socket,
        Err(refusal) => return refusal,
    };
    let headers = request.headers();
    if relay.life.is_leaving() {
        return unavailable("the connector is restarting", 1);
    }
    if !relay.cluster.is_current() {
        return unavailable("this node has to catch up with the others first", 1);
    }
    let caller = identify(&relay.identities.now(), headers);
    match caller {
        Caller::Gateway(record) => admit(relay, record, headers, socket),
        Caller::Revoked(record) => {
            relay.metrics.count(Counter::UpgradesRevoked);
            relay.log_turned_away(TurnedAway::Revoked, &record.gateway_id, Some(&record), None);
            let error = Error::new(Kind::Forbidden, "revoked");
            relay.refusal_log.refused_gateway(&record, "gateway.dial", &error).await;
            // It is held for a while, and so takes one of its tenant's places.
            match relay.places.take(&record.tenant) {
                Ok(place) => socket.serve(|socket| turn_away(socket, place)),
                Err(none) => no_place(&relay, none),
            }
        }
        Caller::Unknown(Stranger { why, record, clock_off }) => {
            relay.metrics.count(Counter::UpgradesRefused);
            relay.log_turned_away(why, &claimed(headers), record.as_deref(), clock_off);
            let error = "unknown gateway id, wrong secret or expired token; \
                         check GATEWAY_RELAY_ID, GATEWAY_RELAY_SECRET and the clock";
            let error = Error::new(Kind::Unauthorized, error);
            relay.refusal_log.refused_stranger("gateway.dial", &claimed(headers), &error).await;
            (StatusCode::UNAUTHORIZED, Json(json!({ "error": error.to_string() }))).into_response()
        }
    }
}

/// The gateway id a token names, proven or not.
fn claimed(headers: &HeaderMap) -> String {
    let token = bearer(headers).and_then(|text| token::parse(text).ok());
    token.map(|token| token.gateway_id().to_owned()).unwrap_or_default()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ").map(str::trim)
}

/// Who signed a token.
pub(crate) enum Caller {
    /// A gateway that may come in.
    Gateway(Arc<GatewayRecord>),
    /// One that was revoked.
    Revoked(Arc<GatewayRecord>),
    /// Nobody we know.
    Unknown(Stranger),
}

/// Somebody who has proven nothing.
pub(crate) struct Stranger {
    /// Why, for the operator.
    why: TurnedAway,
    /// The gateway it may be.
    record: Option<Arc<GatewayRecord>>,
    clock_off: Option<i64>,
}

/// Finds the gateway whose secret signed a request's upgrade token.
pub(crate) fn identify(known: &Snapshot, headers: &HeaderMap) -> Caller {
    let Some(token) = bearer(headers).and_then(|text| token::parse(text).ok()) else {
        return Caller::Unknown(Stranger { why: TurnedAway::NoToken, record: None, clock_off: None });
    };
    let records = known.gateways(token.gateway_id());
    match judge_upgrade(&records, &token, clock::wall()) {
        identity::UpgradeVerdict::Admit(index) => Caller::Gateway(records[index].clone()),
        identity::UpgradeVerdict::Revoked(index) => Caller::Revoked(records[index].clone()),
        identity::UpgradeVerdict::Refuse(identity::Unproven { why, record, clock_off }) => {
            let record = record.map(|index| records[index].clone());
            Caller::Unknown(Stranger { why, record, clock_off })
        }
    }
}

fn admit(relay: Arc<Relay>, record: Arc<GatewayRecord>, headers: &HeaderMap, socket: Upgrade) -> Response {
    if let Some(left) = relay.sessions.barred(record.instance, clock::mono()) {
        relay.metrics.count(Counter::UpgradesBarred);
        relay.log_turned_away(TurnedAway::TwoProcesses, &record.gateway_id, Some(&record), None);
        return unavailable("two processes are using this gateway id", left.as_secs().max(1));
    }
    if let Some(seconds) = relay.crowded_for() {
        relay.metrics.count(Counter::UpgradesCrowded);
        relay.log_turned_away(TurnedAway::Herd, "", None, None);
        return unavailable("many gateways come to this node at once; come back in a moment", seconds);
    }
    let place = match relay.places.take(&record.tenant) {
        Ok(place) => place,
        Err(none) => {
            relay.log_turned_away(TurnedAway::TooManySockets, &record.gateway_id, Some(&record), None);
            return no_place(&relay, none);
        }
    };
    let mailbox = Arc::<Mailbox>::default();
    let most = relay.sockets_per_gateway;
    let Some(seat) = relay.sessions.enter(record.clone(), mailbox.clone(), most) else {
        relay.metrics.count(Counter::UpgradesCrowded);
        relay.log_turned_away(TurnedAway::TooManySockets, &record.gateway_id, Some(&record), None);
        return unavailable("this gateway has too many connections already; close some of them", 5);
    };
    relay.metrics.count(Counter::Upgrades);
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let rust_half = agent.starts_with(RUST_HALF);
    let published = is_published(agent);
    let wants_links = headers.get(FILES_AS).is_some_and(|value| value == LINKS);
    let profile = PeerProfile {
        interrupts: rust_half,
        parks: !rust_half,
        loses_forwards: published,
        published,
        reads_replies: !published,
        fetches: !published && !wants_links,
        wants_links,
    };
    let dialled = dialled(headers, &relay.public_url, relay.speaks_tls);
    let session = Box::new(Session::new(relay, record, profile, dialled.into(), mailbox, seat));
    socket.serve(move |socket| async move {
        session.run(socket).await;
        drop(place);
    })
}

/// The address that a gateway dialled, as scheme and host. Files are referred to below it: it is the
/// one that the gateway can reach, and sends its token to.
fn dialled(headers: &HeaderMap, public_url: &str, speaks_tls: bool) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_plain = |host: &&str| host.parse::<Authority>().is_ok_and(|host| !host.as_str().contains('@'));
    let Some(host) = text(HOST.as_str()).filter(is_plain) else {
        return public_url.trim_end_matches('/').to_owned();
    };
    let forwarded = text(FORWARDED_PROTO).map(|proto| proto.split(',').next().unwrap_or_default().trim());
    let own = Url::parse(public_url).ok();
    let is_own = own.as_ref().is_some_and(|url| url.scheme() == "https" && url.authority() == host);
    let scheme = match forwarded {
        Some(proto) if proto.eq_ignore_ascii_case("https") => "https",
        Some(proto) if proto.eq_ignore_ascii_case("http") => "http",
        _ if speaks_tls || is_own => "https",
        _ => "http",
    };
    format!("{scheme}://{host}")
}

/// What a gateway is told for which there is no connection left.
fn no_place(relay: &Relay, none: NoPlace) -> Response {
    relay.metrics.count(Counter::UpgradesCrowded);
    match none {
        NoPlace::Full => unavailable("too many gateways are connected", 30),
        NoPlace::TenantFull => {
            unavailable("this tenant's gateways have too many connections already; close some of them", 30)
        }
    }
}

/// Whether this is how published gateways dial: `Python/3.11 websockets/15.0.1`.
fn is_published(agent: &str) -> bool {
    let (python, library) = PUBLISHED;
    let version = agent.strip_prefix(python).and_then(|rest| rest.split_once(library));
    version.is_some_and(|(minor, _)| minor.bytes().all(|byte| byte.is_ascii_digit()))
}

async fn turn_away(mut socket: WebSocket, _place: Slot) {
    tokio::time::sleep(REVOKED_HOLD).await;
    socket.write(Message::Close(close::UNAUTHORIZED, close::REASON_UNAUTHORIZED));
    let _ = tokio::time::timeout(REVOKED_HOLD, poll_fn(|cx| socket.poll_flush(cx))).await;
}

fn unavailable(why: &str, seconds: u64) -> Response {
    let retry = [(RETRY_AFTER, seconds.to_string())];
    (StatusCode::SERVICE_UNAVAILABLE, retry, Json(json!({ "error": why }))).into_response()
}

/// Places for relay sockets among the connections there are: who has taken how many.
#[derive(Debug)]
pub(super) struct Places {
    most: Lasting,
    taken: Mutex<RelayPlaces>,
}

/// One place. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    places: Arc<Places>,
    tenant: String,
}

impl Places {
    pub(super) fn new(most: Lasting) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// Takes a place for a socket of a tenant.
    pub(super) fn take(self: &Arc<Self>, tenant: &str) -> Result<Slot, NoPlace> {
        self.taken.lock().take(tenant, &self.most)?;
        Ok(Slot { places: self.clone(), tenant: tenant.to_owned() })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.places.taken.lock().leave(&self.tenant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_below_the_address_that_was_dialled() {
        let base = |pairs: &[(&str, &str)], tls| {
            let pairs = pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            dialled(&pairs.collect::<HeaderMap>(), "https://relay.example/", tls)
        };
        assert_eq!(base(&[("host", "10.0.0.7:8765")], false), "http://10.0.0.7:8765");
        assert_eq!(base(&[("host", "10.0.0.7:8765")], true), "https://10.0.0.7:8765");
        assert_eq!(base(&[("host", "relay.example")], false), "https://relay.example");
        assert_eq!(
            base(&[("host", "in.example"), ("x-forwarded-proto", "https")], false),
            "https://in.example"
        );
        assert_eq!(
            base(&[("host", "in.example"), ("x-forwarded-proto", "http, https")], true),
            "http://in.example"
        );
        for odd in ["a b", "a/b", "u:p@h", "h?x", ""] {
            assert_eq!(base(&[("host", odd)], false), "https://relay.example", "{odd}");
        }
    }

    #[test]
    fn published_gateways_are_told_by_their_library() {
        for agent in
            ["Python/3.11 websockets/15.0.1", "Python/3.9 websockets/13.1", "Python/3.14 websockets/16"]
        {
            assert!(is_published(agent), "{agent}");
        }
        for agent in [
            "",
            "angelia-gateway/0.1",
            "Python/3.11 aiohttp/3.9",
            "websockets/15",
            "test",
            "Python/3.x websockets/1",
        ] {
            assert!(!is_published(agent), "{agent}");
        }
    }
}
