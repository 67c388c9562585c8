//! Accepting connections, within bounds.
//!
//! A connection has a place for as long as its socket is open. When all places
//! are taken, a new connection gets the place of the one that deserves it least:
//! `angelia_core::connections` says which that is, and how long whoever does not
//! read, or does not ask, is waited for. docs/decisions/0022 says why.

mod connection;
mod misdirected;
mod pipelining;
mod requests;
mod stream;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use misdirected::Misdirected;

use crate::tls::Certificate;
use angelia_core::allowed_hosts::Hosts;
use angelia_core::clock::{self, Mono};
use angelia_core::connections::{HANDSHAKE_WITHIN, HEAD_WITHIN, MAX_HEAD, known};
use angelia_core::error::{Error, Result};
use angelia_core::limit::LogThrottle;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use requests::Visit;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use stream::Stream;
use table::Table;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;

/// After accept failed, usually for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// Connections that the kernel keeps until they are accepted. Whoever comes when
/// there are more tries again only after a second.
const BACKLOG: u32 = 4_096;

/// Takes the address of a setting, or says why not.
pub(crate) async fn bind(address: SocketAddr, setting: &str) -> Result<TcpListener> {
    open(address).map_err(|e| {
        let next = match e.kind() {
            ErrorKind::PermissionDenied => "ports below 1024 need the right to bind them; take a higher one",
            _ => "is another server using it?",
        };
        Error::unavailable(format!("cannot listen on {address} ({setting}): {e}; {next}")).caused_by(e)
    })
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // So that a restarted server gets its port at once. On Windows it would let two have it.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The address a listener really got.
pub(crate) fn address(listener: &TcpListener) -> Result<SocketAddr> {
    listener.local_addr().map_err(Error::defect)
}

/// What a listener serves, and to whom.
pub(crate) struct Door {
    pub(crate) router: Router,
    /// TLS, where there is one.
    pub(crate) certificate: Option<Certificate>,
    /// The names it goes by.
    pub(crate) hosts: Hosts,
    /// What becomes of who asks for another one.
    pub(crate) misdirected: Misdirected,
    /// Whether peers' addresses are a proxy's.
    pub(crate) behind_proxy: bool,
    /// Most connections.
    pub(crate) places: usize,
    /// Most connections from one address.
    pub(crate) per_address: usize,
}

/// Serves for ever.
pub(crate) async fn serve(listener: TcpListener, door: Door) {
    serve_by(listener, door, clock::mono).await;
}

async fn serve_by(listener: TcpListener, door: Door, now: fn() -> Mono) {
    let table = Table::new(door.places, door.per_address);
    tokio::spawn(table.clone().sweep(now));
    let (hosts, misdirected) = (Arc::new(door.hosts), Arc::new(door.misdirected));
    let mut failed = LogThrottle::default();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let peer = known(peer, door.behind_proxy);
                // Nobody would hear why it was refused; a socket that is closed says enough.
                let Some(place) = table.place(peer).await else { continue };
                let visit = Visit {
                    router: door.router.clone(),
                    connection: place.connection().clone(),
                    ahead: table.ahead.clone(),
                    hosts: hosts.clone(),
                    misdirected: misdirected.clone(),
                    here: stream.local_addr().map_or(IpAddr::from([0; 4]), |here| here.ip()),
                    peer,
                };
                let _ = stream.set_nodelay(true);
                let acceptor = door.certificate.as_ref().map(|it| it.acceptor(clock::mono()));
                tokio::spawn(connection(Stream::new(stream, place), acceptor, visit));
            }
            Err(error) => {
                if let Some(times) = failed.note(clock::mono()) {
                    tracing::warn!(%error, times, "connections could not be accepted");
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Serves a connection until it ends, is ended, or goes on as a relay socket.
async fn connection(stream: Stream<TcpStream>, acceptor: Option<TlsAcceptor>, visit: Visit) {
    let connection = visit.connection.clone();
    let served = async {
        let Some(acceptor) = acceptor else { return speak(stream, visit).await };
        if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_WITHIN, acceptor.accept(stream)).await {
            speak(stream, visit).await;
        }
    };
    tokio::select! {
        () = served => {}
        () = connection.ended() => {}
    }
}

async fn speak(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, visit: Visit) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(MAX_HEAD);
    // A peer that breaks off or talks nonsense is its own affair.
    let _ = http.serve_connection(TokioIo::new(stream), visit).with_upgrades().await;
}
