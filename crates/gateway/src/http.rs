//! One HTTP request to the connector, with the token that its socket is opened with.
//!
//! Nobody else is ever asked: the token would open the socket to whoever it is sent to.

use std::sync::Arc;
use std::time::Duration;

use angelia_contract::token;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::http::request::Builder;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::builder::Settings;
use crate::clock;
use crate::dial::AGENT;
use crate::error::FileError;

/// Time for TCP and TLS together.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// A file is on its way to a store, or comes out of one, before the answer begins.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// As much of a refusal as is read.
const REFUSAL_BYTES: usize = 4096;

/// What a request sends.
pub(crate) type Body = UnsyncBoxBody<Bytes, FileError>;

/// A request for a path below that of uploads, with everything but its body.
pub(crate) fn request(settings: &Settings, path: &str) -> Result<Builder, FileError> {
    let url = format!("{}{path}", settings.target.media());
    let uri: Uri = url.parse().map_err(|_| FileError::Elsewhere)?;
    let host = uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
    let now = clock::unix_seconds();
    let token = token::mint(&settings.id, &settings.secret, now, token::DEFAULT_TTL_SECONDS);
    let mut bearer = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| FileError::Refused { status: 401, error: None })?;
    bearer.set_sensitive(true);
    Ok(Request::builder().uri(uri).header(HOST, host).header(AUTHORIZATION, bearer).header(USER_AGENT, AGENT))
}

/// Sends a request and waits for the head of its answer. What is no success is an error.
pub(crate) async fn send(
    settings: &Settings,
    request: Request<Body>,
    within: Duration,
) -> Result<Response<Incoming>, FileError> {
    let mut sender =
        timeout(OPEN_TIMEOUT, open(settings, request.uri())).await.map_err(|_| FileError::TimedOut)??;
    let (mut parts, body) = request.into_parts();
    // To a server itself only the path is said.
    parts.uri = parts.uri.path_and_query().map(|path| path.clone().into()).unwrap_or_default();
    let answering = sender.send_request(Request::from_parts(parts, body));
    let answer = timeout(ANSWER_TIMEOUT + within, answering).await.map_err(|_| FileError::TimedOut)?;
    let answer = answer.map_err(|error| FileError::BrokeOff(Arc::new(error)))?;
    match answer.status() {
        status if status.is_success() => Ok(answer),
        StatusCode::NOT_FOUND => Err(FileError::Gone),
        StatusCode::PAYLOAD_TOO_LARGE => Err(FileError::TooLarge),
        status => Err(refused(status, answer).await),
    }
}

async fn refused(status: StatusCode, answer: Response<Incoming>) -> FileError {
    let header = answer.headers().get(RETRY_AFTER);
    let seconds: Option<u64> = header.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let read = timeout(OPEN_TIMEOUT, Limited::new(answer.into_body(), REFUSAL_BYTES).collect()).await;
    let body = read.ok().and_then(Result::ok).map(|read| read.to_bytes()).unwrap_or_default();
    let said: Option<Value> = serde_json::from_slice(&body).ok();
    let error = said.and_then(|said| Some(said.get("error")?.as_str()?.to_owned()));
    if status == StatusCode::SERVICE_UNAVAILABLE || status == StatusCode::TOO_MANY_REQUESTS {
        return FileError::Busy { retry_after: seconds.map(Duration::from_secs), error };
    }
    FileError::Refused { status: status.as_u16(), error }
}

async fn open(settings: &Settings, uri: &Uri) -> Result<SendRequest<Body>, FileError> {
    let unreachable = |error: std::io::Error| FileError::Unreachable(Arc::new(error));
    let secure = uri.scheme_str() == Some("https");
    let host = uri.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let stream = TcpStream::connect((bare, port)).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    if !secure {
        return talk(stream).await;
    }
    let name = ServerName::try_from(bare.to_owned()).map_err(|_| FileError::Elsewhere)?;
    let tls =
        TlsConnector::from(Arc::clone(&settings.tls)).connect(name, stream).await.map_err(unreachable)?;
    talk(tls).await
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<SendRequest<Body>, FileError> {
    let opened = handshake(TokioIo::new(stream)).await;
    let (sender, connection) = opened.map_err(|error| FileError::BrokeOff(Arc::new(error)))?;
    // It ends with its only request, or with whoever waits for the answer.
    tokio::spawn(connection);
    Ok(sender)
}
