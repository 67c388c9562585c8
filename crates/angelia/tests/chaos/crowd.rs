//! Thousands of connections of somebody who means no good.

use futures_util::future::join_all;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use tokio::time::{Instant, interval, timeout};

/// Connections opened at a time, every so often: five hundred a second.
const AT_A_TIME: usize = 10;
const EVERY: Duration = Duration::from_millis(20);
/// Connections that are given more to do at a time.
const FED: usize = 100;

/// What the connections are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Requests without end, whose answers nobody reads.
    Unread,
    /// Nothing at all.
    Silent,
    /// A head that is never complete.
    HalfHead,
    /// A body that is never complete.
    HalfBody,
    /// One request, and no more.
    Once,
}

impl Kind {
    fn words(self) -> Vec<u8> {
        let ask = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes();
        match self {
            // The first is answered without a body: such answers need no flush to be followed by others.
            Self::Unread => [ask("/"), ask("/livez"), ask("/nowhere")].concat().repeat(300),
            Self::Silent => Vec::new(),
            Self::Once => ask("/livez"),
            Self::HalfHead => b"GET /livez HTTP/1.1\r\nhost: local".to_vec(),
            Self::HalfBody => {
                b"POST /oauth/token HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\ngrant".to_vec()
            }
        }
    }
}

/// The connections, open until they are dropped.
#[derive(Default)]
pub(crate) struct Crowd {
    open: Vec<TcpStream>,
    pub(crate) opened: usize,
    pub(crate) refused: usize,
    pub(crate) ended: usize,
}

impl Crowd {
    /// Opens connections at a steady pace for so long, and gives those that take
    /// more something to do.
    pub(crate) async fn besiege(address: SocketAddr, kind: Kind, lasting: Duration) -> Self {
        let (mut crowd, words) = (Self::default(), kind.words());
        let mut pace = interval(EVERY);
        let over = Instant::now() + lasting;
        let mut turn = 0;
        while Instant::now() < over {
            pace.tick().await;
            let connects = (0..AT_A_TIME)
                .map(|_| timeout(Duration::from_secs(2), tokio::net::TcpStream::connect(address)));
            for connected in join_all(connects).await {
                crowd.opened += 1;
                match connected {
                    Ok(Ok(stream)) => crowd.open.push(stream.into_std().expect("a plain socket")),
                    _ => crowd.refused += 1,
                }
            }
            crowd.feed(&mut turn, &words, kind);
        }
        crowd
    }

    /// Writes to the newest ones, and for the unread also to some of the others in turn.
    fn feed(&mut self, turn: &mut usize, words: &[u8], kind: Kind) {
        let newest = self.open.len().saturating_sub(AT_A_TIME);
        let mut dead = Vec::new();
        let mut give = |index: usize, mut stream: &TcpStream| match stream.write(words) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => dead.push(index),
            _ => {}
        };
        for (index, stream) in self.open.iter().enumerate().skip(newest) {
            give(index, stream);
        }
        if kind == Kind::Unread && newest > 0 {
            for _ in 0..FED.min(newest) {
                *turn = (*turn + 1) % newest;
                give(*turn, &self.open[*turn]);
            }
        }
        dead.sort_unstable();
        dead.dedup();
        self.ended += dead.len();
        for index in dead.into_iter().rev() {
            self.open.swap_remove(index);
        }
    }
}

/// Somebody who takes everything and answers nothing: what a crowd costs the
/// machine without a server.
pub(crate) async fn sink() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move { tokio::io::copy(&mut stream, &mut tokio::io::sink()).await });
        }
    });
    address
}
