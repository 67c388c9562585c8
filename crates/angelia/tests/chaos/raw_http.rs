//! HTTP by hand: requests as bytes, responses as far as they must be told apart.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// A connection on which requests are pipelined.
pub(crate) struct RawHttp {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl RawHttp {
    pub(crate) async fn connect(address: (&str, u16)) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server accepts");
        stream.set_nodelay(true).expect("a socket option");
        Self { stream, unread: Vec::new() }
    }

    /// The same, of which the kernel keeps little: what is not read stays with the server.
    pub(crate) async fn connect_small(address: (&str, u16)) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4 * 1024).expect("a socket option");
        let address = (address.0.parse::<std::net::Ipv4Addr>().expect("an address"), address.1);
        let stream = socket.connect(address.into()).await.expect("the server accepts");
        Self { stream, unread: Vec::new() }
    }

    /// The status of the next response, of which no more is read than that takes.
    pub(crate) async fn head(&mut self) -> Option<u16> {
        while self.unread.len() < 12 {
            self.more().await?;
        }
        String::from_utf8_lossy(&self.unread[9..12]).parse().ok()
    }

    /// Writes everything; `false` if the server ended the connection.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// The status of the next response; `None` when the connection ended.
    pub(crate) async fn status(&mut self) -> Option<u16> {
        let head_end = loop {
            if let Some(at) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            self.more().await?;
        };
        let head = String::from_utf8_lossy(&self.unread[..head_end]).to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok());
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        while self.unread.len() < head_end + length {
            self.more().await?;
        }
        self.unread.drain(..head_end + length);
        Some(status.unwrap_or_else(|| panic!("a response without a status: {head}")))
    }

    async fn more(&mut self) -> Option<()> {
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk).await {
            Ok(0) | Err(_) => None,
            Ok(count) => {
                self.unread.extend_from_slice(&chunk[..count]);
                Some(())
            }
        }
    }
}
