//! Files that gateways send and fetch by hand: hundreds at once, and hardly any work for whoever does.

use crate::server::{Credentials, Server};
use angelia_contract::token;
use angelia_core::clock;
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::sleep;

/// What is written and read at a time.
const BLOCK: usize = 64 * 1024;
/// What every block begins with: whose it is, and where it belongs.
const STAMP: usize = 16;
/// Longer than any test runs.
const TOKEN_LASTS: u64 = 3_600;

/// A file like no other: every block of it says which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TestFile {
    pub(crate) number: u64,
    pub(crate) size: u64,
}

impl TestFile {
    /// Its bytes from a place that is the beginning of a block.
    fn block(self, at: u64, into: &mut [u8; BLOCK]) -> &[u8] {
        into[..8].copy_from_slice(&self.number.to_be_bytes());
        into[8..STAMP].copy_from_slice(&at.to_be_bytes());
        let length = usize::try_from(self.size - at).unwrap_or(BLOCK).min(BLOCK);
        &into[..length]
    }

    fn blocks(self) -> impl Iterator<Item = u64> {
        (0..self.size).step_by(BLOCK)
    }
}

/// What a block is before it is stamped.
fn blank() -> Box<[u8; BLOCK]> {
    let mut block = Box::new([0; BLOCK]);
    for (at, byte) in block.iter_mut().enumerate() {
        *byte = u8::try_from(at * 31 % 251).unwrap();
    }
    block
}

/// Somebody who sends files and fetches them, at the server or at a sink.
#[derive(Clone)]
pub(crate) struct Carrier {
    to: SocketAddr,
    bearer: String,
    /// Files of which every byte was sent.
    pub(crate) sent: Arc<AtomicU64>,
}

/// How fast a file is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    AsItComes,
    /// Little is asked of the kernel, and after each block nothing is for so long.
    Slowly(Duration),
}

impl Carrier {
    pub(crate) fn of(server: &Server, gateway: &Credentials) -> Self {
        let (host, port) = server.address();
        let bearer = token::mint(&gateway.id, &gateway.secret, clock::wall().seconds(), TOKEN_LASTS);
        Self { to: SocketAddr::new(host.parse().unwrap(), port), bearer, sent: Arc::default() }
    }

    /// The same, who takes somebody else for the server.
    pub(crate) fn to(&self, other: SocketAddr) -> Self {
        Self { to: other, sent: Arc::default(), ..self.clone() }
    }

    /// Sends a file; its id, unless the server goes meanwhile. What it answers has to be 200.
    pub(crate) async fn send(&self, file: TestFile) -> Option<String> {
        let mut stream = TcpStream::connect(self.to).await.ok()?;
        let head = format!(
            "POST /relay/media HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            self.bearer, file.size
        );
        stream.write_all(head.as_bytes()).await.ok()?;
        let mut block = blank();
        for at in file.blocks() {
            let bytes = file.block(at, &mut block);
            stream.write_all(bytes).await.ok()?;
        }
        self.sent.fetch_add(1, Ordering::Relaxed);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.ok()?;
        let answer = String::from_utf8(answer).expect("words");
        let (head, body) = answer.split_once("\r\n\r\n")?;
        assert!(head.starts_with("HTTP/1.1 200 "), "{file:?}: {answer}");
        let told: Value = serde_json::from_str(body).ok()?;
        assert_eq!(told["size"], file.size, "{told}");
        Some(told["id"].as_str().expect("an id").to_owned())
    }

    /// Asks for a file; what it is answered with, and where the bytes come.
    async fn ask(&self, id: &str, kernel_buffer: Option<u32>) -> io::Result<(u16, BufReader<TcpStream>)> {
        let socket = TcpSocket::new_v4()?;
        if let Some(size) = kernel_buffer {
            socket.set_recv_buffer_size(size)?;
        }
        let mut stream = socket.connect(self.to).await?;
        let head = format!(
            "GET /relay/media/{id} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
             connection: close\r\n\r\n",
            self.bearer
        );
        stream.write_all(head.as_bytes()).await?;
        let mut stream = BufReader::with_capacity(4 * 1024, stream);
        let (mut status, mut line) = (0, String::new());
        while stream.read_line(&mut line).await? > 2 {
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest[..3].parse().expect("a status");
            }
            line.clear();
        }
        Ok((status, stream))
    }

    /// Fetches a file, which has to come whole, and must be this one.
    pub(crate) async fn fetch(&self, id: &str, file: TestFile, pace: Pace) {
        let kernel_buffer = matches!(pace, Pace::Slowly(_)).then_some(16 * 1024);
        let (status, mut stream) = self.ask(id, kernel_buffer).await.expect("an answer");
        assert_eq!(status, 200, "{file:?}");
        let (mut block, mut come) = (blank(), vec![0; BLOCK]);
        for at in file.blocks() {
            let wanted = file.block(at, &mut block);
            let come = &mut come[..wanted.len()];
            stream
                .read_exact(come)
                .await
                .unwrap_or_else(|error| panic!("{file:?} broke off at {at}: {error}"));
            assert!(come == wanted, "{file:?} is another one at {at}");
            if let Pace::Slowly(pause) = pace {
                sleep(pause).await;
            }
        }
        assert_eq!(stream.read(&mut come).await.expect("the end"), 0, "{file:?} goes on");
    }
}

/// Somebody who takes files as the server does, and throws them away.
pub(crate) async fn sink() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(swallow(stream));
        }
    });
    address
}

async fn swallow(stream: TcpStream) -> io::Result<()> {
    let (mut stream, mut size, mut line) = (BufReader::new(stream), 0, String::new());
    while stream.read_line(&mut line).await? > 2 {
        if let Some(length) = line.strip_prefix("content-length: ") {
            size = length.trim().parse().expect("a length");
        }
        line.clear();
    }
    let mut left: u64 = size;
    let mut block = vec![0; BLOCK];
    while left > 0 {
        left = left.saturating_sub(stream.read(&mut block).await? as u64);
    }
    let told = format!("{{\"id\":\"{}\",\"size\":{size}}}", "0".repeat(32));
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{told}", told.len());
    stream.get_mut().write_all(answer.as_bytes()).await
}
