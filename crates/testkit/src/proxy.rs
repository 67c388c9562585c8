//! A TCP proxy on loopback whose connections a test can cut, stall and delay.
//!
//! It stands between a node and its PostgreSQL or Redis, so that one node loses
//! them while the others do not.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet};

/// Connections at one time: a node opens a few dozen.
const MAX_CONNECTIONS: usize = 256;

/// Bytes of one direction that are on their way at a time.
const CHUNK: usize = 16 * 1024;

/// How the way through is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Way {
    /// Nobody gets through, and who was through is not any more.
    cut: bool,
    /// Connections stay, and nothing moves on them.
    stalled: bool,
    /// Every piece comes so much later.
    delay: Duration,
    /// Grows when what is open has to end.
    breaks: u64,
}

/// A proxy; it ends with everything it carries when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    way: watch::Sender<Way>,
    accepting: AbortHandle,
}

impl Proxy {
    /// Starts one in front of a port of this machine. It runs in the test's own runtime.
    ///
    /// # Panics
    ///
    /// When it cannot listen.
    pub async fn start(target: u16) -> Self {
        Self::start_from(Ipv4Addr::LOCALHOST, target).await
    }

    /// The same, and whoever listens there sees this address of the loopback network.
    ///
    /// # Panics
    ///
    /// When it cannot listen.
    pub async fn start_from(source: Ipv4Addr, target: u16) -> Self {
        // A port of its own choice is no trouble: it is never given up while the proxy is there.
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port for a proxy");
        let port = listener.local_addr().expect("the proxy's address").port();
        let (way, told) = watch::channel(Way::default());
        let accepting = tokio::spawn(accept(listener, (source, target), told)).abort_handle();
        Self { port, way, accepting }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends every connection and lets none through.
    pub fn cut(&self) {
        self.way.send_modify(|way| (way.cut, way.breaks) = (true, way.breaks + 1));
    }

    /// Ends every connection; new ones are let through.
    pub fn break_connections(&self) {
        self.way.send_modify(|way| way.breaks += 1);
    }

    /// Keeps connections open and moves nothing, as a cable that was pulled.
    pub fn stall(&self) {
        self.way.send_modify(|way| way.stalled = true);
    }

    /// Has every piece come later, in both directions.
    pub fn delay(&self, by: Duration) {
        self.way.send_modify(|way| way.delay = by);
    }

    /// Lets everything through again, at once.
    pub fn heal(&self) {
        self.way.send_modify(|way| *way = Way { breaks: way.breaks, ..Way::default() });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Carries what comes to a port, as from an address.
async fn accept(listener: TcpListener, target: (Ipv4Addr, u16), way: watch::Receiver<Way>) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // Those that are open end with this task.
    let mut open = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while open.try_join_next().is_some() {}
        let Ok(seat) = room.clone().try_acquire_owned() else { continue };
        if way.borrow().cut {
            continue;
        }
        let way = way.clone();
        open.spawn(async move {
            let _ = carry(client, target, way).await;
            drop(seat);
        });
    }
}

async fn carry(
    client: TcpStream,
    (source, target): (Ipv4Addr, u16),
    way: watch::Receiver<Way>,
) -> io::Result<()> {
    let server = TcpSocket::new_v4()?;
    server.bind((source, 0).into())?;
    let server = server.connect((Ipv4Addr::LOCALHOST, target).into()).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let broken = way.borrow().breaks;
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let mut ended = way.clone();
    tokio::select! {
        result = pump(from_client, to_server, way.clone()) => result,
        result = pump(from_server, to_client, way) => result,
        // The sender goes with the proxy, and so does this.
        _ = ended.wait_for(|way| way.cut || way.breaks != broken) => Ok(()),
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut way: watch::Receiver<Way>,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = from.read(&mut chunk).await?;
        if count == 0 {
            return Ok(());
        }
        let delay = way.borrow().delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if way.wait_for(|way| !way.stalled).await.is_err() {
            return Ok(());
        }
        to.write_all(&chunk[..count]).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{Instant, timeout};

    const SOON: Duration = Duration::from_secs(10);

    /// Says back whatever it hears.
    async fn echo() -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.into_split();
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                });
            }
        });
        port
    }

    async fn hears_back(stream: &mut TcpStream) -> bool {
        let mut byte = [0];
        stream.write_all(b"x").await.is_ok() && matches!(stream.read(&mut byte).await, Ok(1))
    }

    #[tokio::test]
    async fn what_is_cut_ends_and_comes_back() {
        let proxy = Proxy::start(echo().await).await;
        let dial = || TcpStream::connect(("127.0.0.1", proxy.port()));
        let mut stream = dial().await.unwrap();
        assert!(hears_back(&mut stream).await);
        proxy.cut();
        assert!(!timeout(SOON, hears_back(&mut stream)).await.unwrap());
        assert!(!timeout(SOON, hears_back(&mut dial().await.unwrap())).await.unwrap());
        proxy.heal();
        let mut stream = dial().await.unwrap();
        assert!(timeout(SOON, hears_back(&mut stream)).await.unwrap());
        proxy.break_connections();
        assert!(!timeout(SOON, hears_back(&mut stream)).await.unwrap());
        assert!(timeout(SOON, hears_back(&mut dial().await.unwrap())).await.unwrap());
    }

    #[tokio::test]
    async fn what_is_delayed_or_stalled_comes_later() {
        let proxy = Proxy::start(echo().await).await;
        let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        assert!(hears_back(&mut stream).await);
        proxy.delay(Duration::from_millis(60));
        let began = Instant::now();
        assert!(hears_back(&mut stream).await);
        assert!(began.elapsed() >= Duration::from_millis(120), "there and back");
        proxy.delay(Duration::ZERO);
        proxy.stall();
        assert!(timeout(Duration::from_millis(200), hears_back(&mut stream)).await.is_err());
        proxy.heal();
        let mut byte = [0];
        assert_eq!(timeout(SOON, stream.read(&mut byte)).await.unwrap().unwrap(), 1);
    }
}
