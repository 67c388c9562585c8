//! Whether a request asks for a WebSocket, and the answer that opens it.

use super::WebSocket;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::OnUpgrade;
use std::future::Future;
use tungstenite::handshake::derive_accept_key;

/// A request that may become a WebSocket.
pub(in crate::relay) struct Upgrade {
    key: HeaderValue,
    on_upgrade: OnUpgrade,
}

/// Reads a request for a WebSocket; a response that says what is wrong with any other.
#[expect(clippy::result_large_err, reason = "the answer is ready to be returned")]
pub(in crate::relay) fn accept(request: &mut Request) -> Result<Upgrade, Response> {
    let refuse = |status: StatusCode, why: &str| Err((status, format!("{why}\n")).into_response());
    if request.method() != Method::GET {
        return refuse(StatusCode::METHOD_NOT_ALLOWED, "a WebSocket is asked for with GET");
    }
    let headers = request.headers();
    if !has_token(headers, &CONNECTION, "upgrade") || !has_token(headers, &UPGRADE, "websocket") {
        return refuse(StatusCode::UPGRADE_REQUIRED, "agents dial this address with a WebSocket");
    }
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return refuse(StatusCode::BAD_REQUEST, "only version 13 of the WebSocket protocol is spoken here");
    }
    let Some(key) = headers.get(SEC_WEBSOCKET_KEY).cloned() else {
        return refuse(StatusCode::BAD_REQUEST, "the header Sec-WebSocket-Key is missing");
    };
    match request.extensions_mut().remove::<OnUpgrade>() {
        Some(on_upgrade) => Ok(Upgrade { key, on_upgrade }),
        None => refuse(StatusCode::UPGRADE_REQUIRED, "this connection cannot become a WebSocket"),
    }
}

impl Upgrade {
    /// Answers 101, and serves the socket once the answer is written.
    pub(in crate::relay) fn serve<F>(self, serve: impl FnOnce(WebSocket) -> F + Send + 'static) -> Response
    where
        F: Future<Output = ()> + Send,
    {
        let Self { key, on_upgrade } = self;
        tokio::spawn(async move {
            // Whoever hangs up before the answer is written was never here.
            if let Ok(upgraded) = on_upgrade.await {
                serve(WebSocket::new(upgraded)).await;
            }
        });
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        if let Ok(accepted) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) {
            headers.insert(SEC_WEBSOCKET_ACCEPT, accepted);
        }
        response
    }
}

/// Whether a header that lists tokens has this one.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|item| item.trim().eq_ignore_ascii_case(token))
}
