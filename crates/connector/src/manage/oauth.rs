//! `POST /oauth/token`: the built-in token endpoint, client credentials only.

use super::bearer::TOKEN_FOR;
use super::enroll::read_body;
use crate::server::Server;
use angelia_core::audit::Actor;
use angelia_core::error::{Error, Kind};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use serde_json::json;
use std::sync::Arc;

/// Largest form. Whoever sends it is proven by it, so it has to be read first.
const MAX_FORM: usize = 4 * 1024;

/// What a client sends, in the form or, for its credentials, in the header.
#[derive(Default)]
struct Ask {
    grant_type: String,
    client_id: String,
    client_secret: String,
}

pub(crate) async fn token(State(server): State<Arc<Server>>, request: Request) -> Response {
    let Some(builtin) = server.bearers.builtin() else {
        return refuse(StatusCode::NOT_FOUND, "invalid_request", "this connector has no token endpoint");
    };
    let (head, body) = request.into_parts();
    let Ok(body) = read_body(body, MAX_FORM).await else {
        return refuse(StatusCode::BAD_REQUEST, "invalid_request", "the form is too large");
    };
    let ask = read(&head.headers, &body);
    if ask.grant_type != "client_credentials" {
        let why = "only grant_type=client_credentials is served";
        return refuse(StatusCode::BAD_REQUEST, "unsupported_grant_type", why);
    }
    match builtin.issue(&server, &ask.client_id, &ask.client_secret).await {
        Ok(Some(token)) => {
            let grant = json!({
                "access_token": token.expose(),
                "token_type": "Bearer",
                "expires_in": TOKEN_FOR.as_secs(),
            });
            (StatusCode::OK, [(CACHE_CONTROL, "no-store")], Json(grant)).into_response()
        }
        Ok(None) => {
            let error = Error::new(Kind::Unauthorized, "unknown client, or wrong secret");
            server.refused(&Actor::stranger(), "client.token", "", &ask.client_id, &error).await;
            let why = "unknown client id, wrong secret, or the client was revoked";
            refuse(StatusCode::UNAUTHORIZED, "invalid_client", why)
        }
        Err(error) => super::admin::failure(&error),
    }
}

fn read(headers: &HeaderMap, body: &[u8]) -> Ask {
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

/// Refusals have the form the standard gives them.
fn refuse(status: StatusCode, error: &str, why: &str) -> Response {
    (status, [(CACHE_CONTROL, "no-store")], Json(json!({ "error": error, "error_description": why })))
        .into_response()
}
