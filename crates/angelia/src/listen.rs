//! Accepting connections, within bounds.

use crate::tls::Certificate;
use angelia_core::clock;
use angelia_core::error::{Error, Result};
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// Connections at the same time; beyond them new ones wait in the kernel.
const MAX_CONNECTIONS: usize = 50_000;
/// A TLS handshake must be complete within this time; whoever dawdles holds a slot.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// A request's headers must be complete within this time.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);
/// A request must be answered within this time; streams only have to begin.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Largest request head; an upgrade carries one token and a few headers.
const MAX_HEAD: usize = 16 * 1024;
/// After accept failed, usually for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Takes the address of a setting, or says why not.
pub(crate) async fn bind(address: SocketAddr, setting: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|e| {
        let next = match e.kind() {
            ErrorKind::PermissionDenied => "ports below 1024 need the right to bind them; take a higher one",
            _ => "is another server using it?",
        };
        Error::unavailable(format!("cannot listen on {address} ({setting}): {e}; {next}"))
    })
}

/// The address a listener really got.
pub(crate) fn address(listener: &TcpListener) -> Result<SocketAddr> {
    listener.local_addr().map_err(|e| Error::internal(e.to_string()))
}

/// Serves `router` for ever, over TLS where there is a certificate.
pub(crate) async fn serve(listener: TcpListener, router: Router, certificate: Option<Certificate>) {
    let router = router.layer(middleware::from_fn(answer_in_time));
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                let acceptor = certificate.as_ref().map(|it| it.acceptor(clock::mono()));
                tokio::spawn(async move {
                    connection(stream, acceptor, router).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, acceptor: Option<TlsAcceptor>, router: Router) {
    let _ = stream.set_nodelay(true);
    let Some(acceptor) = acceptor else { return speak(stream, router).await };
    // Who does not get through the handshake in time speaks something else, or nothing.
    if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_WITHIN, acceptor.accept(stream)).await {
        speak(stream, router).await;
    }
}

async fn speak(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN).max_buf_size(MAX_HEAD);
    let service = TowerToHyperService::new(router);
    // A peer that breaks off or talks nonsense is its own affair.
    let _ = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}

async fn answer_in_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(ANSWER_WITHIN, next.run(request)).await {
        Ok(response) => response,
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "this took too long; try again\n").into_response(),
    }
}
