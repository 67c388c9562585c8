//! Dialling the connector: TCP, TLS and the WebSocket upgrade with its token.

use std::sync::Arc;
use std::time::Duration;

use angelia_contract::token;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Error as WsError;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, RETRY_AFTER, USER_AGENT};
use tokio_tungstenite::tungstenite::http::{HeaderValue, Request, Response};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config};

use crate::builder::Settings;
use crate::clock;
use crate::error::BuildError;

/// Time for TCP, TLS and the upgrade together.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest message, and largest line, taken from a connector. They keep to
/// 1 MiB per message, but a line may span several.
pub(crate) const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// As what it introduces itself; connectors tell by it what it can do.
pub(crate) const AGENT: &str = concat!("angelia-gateway/", env!("CARGO_PKG_VERSION"));

/// An open relay socket.
pub(crate) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Why a dial led to nothing. All of these are worth another one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// The server answered with another status than 101.
    #[error("the connector answered with status {status}")]
    Status { status: u16, retry_after: Option<Duration> },
    #[error("the connector could not be reached: {0}")]
    Failed(#[source] Box<WsError>),
    #[error("the connector did not answer in time")]
    TimedOut,
}

/// TLS that trusts the public roots and those given here.
///
/// The provider is named for this configuration alone, so that neither a
/// process-wide default nor another crate's choice matters.
pub(crate) fn tls_config(extra_roots: &[Vec<u8>]) -> Result<ClientConfig, BuildError> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    for der in extra_roots {
        roots.add(CertificateDer::from_slice(der).into_owned()).map_err(|_| BuildError::BadCertificate)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| BuildError::Tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

/// Dials once, with a token of its own.
pub(crate) async fn dial(settings: &Settings) -> Result<Socket, DialError> {
    let request = request(settings).map_err(|error| DialError::Failed(Box::new(error)))?;
    let limits =
        WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
    let tls = Connector::Rustls(Arc::clone(&settings.tls));
    // Frames are small and wait for answers: Nagle would only delay them.
    let opening = connect_async_tls_with_config(request, Some(limits), true, Some(tls));
    match tokio::time::timeout(OPEN_TIMEOUT, opening).await {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(WsError::Http(response))) => Err(refused(&response)),
        Ok(Err(error)) => Err(DialError::Failed(Box::new(error))),
        Err(_) => Err(DialError::TimedOut),
    }
}

fn request(settings: &Settings) -> Result<Request<()>, WsError> {
    let mut request = settings.target.as_str().into_client_request()?;
    let ttl = token::DEFAULT_TTL_SECONDS;
    let token = token::mint(&settings.id, &settings.secret, clock::unix_seconds(), ttl);
    let mut bearer =
        HeaderValue::try_from(format!("Bearer {token}")).map_err(|e| WsError::HttpFormat(e.into()))?;
    bearer.set_sensitive(true);
    let headers = request.headers_mut();
    headers.insert(AUTHORIZATION, bearer);
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    Ok(request)
}

fn refused<B>(response: &Response<B>) -> DialError {
    // The header's other form, a date, is not worth a parser here.
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .map(Duration::from_secs);
    DialError::Status { status: response.status().as_u16(), retry_after }
}
