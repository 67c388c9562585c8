//! `POST /oauth/token`: the built-in token endpoint, client credentials only.

use super::bearer::TOKEN_FOR;
use super::enroll::read_body;
use super::router::retry_seconds;
use super::self_service::{SelfService, peer};
use angelia_core::clock::{self, Mono};
use angelia_core::error::{Error, Kind};
use angelia_core::limit::{GcraOf, Rate};
use angelia_core::limit_per_address::{LimitPerAddress, Shares};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

angelia_contract::limits! {
    /// Whoever sends it is proven by it, so it has to be read first. Larger ones are refused with 400.
    const MAX_FORM: usize = 4 * 1024, bytes "of a request to /oauth/token";
    /// Each is a look into the database. Beyond it callers get 429 and when to try again.
    const TOKENS: usize = 3_000, count "requests a minute to /oauth/token";
    /// A large fleet behind one address, each asking a few times at its start. Beyond it that address waits, and
    /// nobody else.
    const TOKENS_PER_ADDRESS: usize = 600, count "of them, from one address";
    /// So that a crowd of strangers does not keep those out who were good within a day.
    const TOKENS_KEPT: usize = 1_500, count "of them, kept for addresses that were good before";
    /// A fleet that starts together. Beyond it the client gets 429: a token is good for an hour, so whoever asks
    /// so often throws them away.
    const TOKENS_OF_CLIENT: u32 = 300, count "tokens of one client at once";
    /// Far more than anybody needs who keeps them.
    const TOKENS_OF_CLIENT_PER_MINUTE: u32 = 60, count "tokens of one client in a minute after that";
    /// Beyond it the client that has rested longest is forgotten.
    const PACED_CLIENTS: usize = 4_096, count "clients whose tokens are remembered";
}

/// How often tokens are asked for. Each node counts its own: what it guards is the work of that
/// node, and nobody guesses a secret of 256 bits, however many nodes they ask.
pub(crate) struct TokenLimits {
    asked: Mutex<LimitPerAddress>,
    given: Mutex<GcraOf<String>>,
}

impl Default for TokenLimits {
    fn default() -> Self {
        let span = Duration::from_secs(60);
        let shares = Shares { all: TOKENS, span, each: TOKENS_PER_ADDRESS, kept: TOKENS_KEPT };
        Self {
            asked: Mutex::new(LimitPerAddress::new(shares)),
            given: Mutex::new(GcraOf::new(PACED_CLIENTS)),
        }
    }
}

impl TokenLimits {
    /// Takes a token for a client that is proven, or says how long to wait.
    fn take(&self, client: &str, now: Mono) -> Result<(), Duration> {
        let pace = Rate::a_minute(TOKENS_OF_CLIENT_PER_MINUTE, TOKENS_OF_CLIENT);
        self.given.lock().take(client, pace, now)
    }
}

/// What a client sends, in the form or, for its credentials, in the header.
#[derive(Default)]
pub(super) struct Ask {
    grant_type: String,
    pub(super) client_id: String,
    pub(super) client_secret: String,
}

pub(crate) async fn token(State(service): State<Arc<SelfService>>, request: Request) -> Response {
    let Some(builtin) = service.bearers.builtin() else {
        return refuse(StatusCode::NOT_FOUND, "invalid_request", "this connector has no token endpoint");
    };
    let (head, body) = request.into_parts();
    let (from, now) = (peer(&head.extensions), clock::mono());
    if let Err(room_at) = service.token_limits.asked.lock().take(from, now) {
        return too_many("too many tokens are asked for", room_at.since(now));
    }
    let Ok(body) = read_body(body, MAX_FORM).await else {
        return refuse(StatusCode::BAD_REQUEST, "invalid_request", "the form is too large");
    };
    let ask = read(&head.headers, &body);
    if ask.grant_type != "client_credentials" {
        let why = "only grant_type=client_credentials is served";
        return refuse(StatusCode::BAD_REQUEST, "unsupported_grant_type", why);
    }
    match builtin.issue(&*service.ports.records, &ask.client_id, &ask.client_secret).await {
        Ok(Some(token)) => {
            service.token_limits.asked.lock().note_good(from, clock::mono());
            if let Err(wait) = service.token_limits.take(&ask.client_id, clock::mono()) {
                return too_many(
                    "this client asks for tokens too often; keep the one it has for an hour",
                    wait,
                );
            }
            let grant = json!({
                "access_token": token.expose(),
                "token_type": "Bearer",
                "expires_in": TOKEN_FOR.as_secs(),
            });
            (StatusCode::OK, Json(grant)).into_response()
        }
        Ok(None) => {
            let error = Error::new(Kind::Unauthorized, "unknown client, or wrong secret");
            service.refusal_log.refused_stranger("client.token", &ask.client_id, &error).await;
            let why = "unknown client id, wrong secret, or the client was revoked";
            refuse(StatusCode::UNAUTHORIZED, "invalid_client", why)
        }
        Err(error) => super::router::failure(&error),
    }
}

pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Ask {
    let mut ask = Ask::default();
    for (name, value) in url::form_urlencoded::parse(body) {
        match name.as_ref() {
            "grant_type" => ask.grant_type = value.into_owned(),
            "client_id" => ask.client_id = value.into_owned(),
            "client_secret" => ask.client_secret = value.into_owned(),
            _ => {}
        }
    }
    if let Some((id, secret)) = basic(headers) {
        (ask.client_id, ask.client_secret) = (id, secret);
    }
    ask
}

/// Credentials in an `Authorization: Basic` header, each part form-encoded.
fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Basic ")?;
    let text = base64::engine::general_purpose::STANDARD.decode(header.trim()).ok()?;
    let text = String::from_utf8(text).ok()?;
    let (id, secret) = text.split_once(':')?;
    let plain = |part: &str| {
        let pair = format!("x={part}");
        url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned())
    };
    Some((plain(id)?, plain(secret)?))
}

fn too_many(why: &str, wait: Duration) -> Response {
    let seconds = retry_seconds(wait);
    let why = format!("{why}; try again in {seconds} s");
    let mut response = refuse(StatusCode::TOO_MANY_REQUESTS, "temporarily_unavailable", &why);
    response.headers_mut().insert(RETRY_AFTER, seconds.into());
    response
}

/// Refusals have the form the standard gives them.
fn refuse(status: StatusCode, error: &str, why: &str) -> Response {
    (status, Json(json!({ "error": error, "error_description": why }))).into_response()
}
