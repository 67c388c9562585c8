//! A gateway's end of the socket, by hand.

use crate::server::{Credentials, Server};
use angelia_contract::frame::{ConnectorFrame, GatewayFrame, Hello};
use angelia_contract::line::LineBuffer;
use angelia_contract::token;
use angelia_core::clock;
use futures_util::{SinkExt, StreamExt};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// The Rust half of the contract, which acts on interrupts.
pub(crate) const RUST_HALF: &str = "angelia-gateway/0.1.0";
/// A gateway of which nothing is known, so that it is given what comes.
pub(crate) const PLAIN: &str = "peer";

/// Largest line taken from a connector.
const MAX_LINE: usize = 16 * 1024 * 1024;
/// How long anything that must come may take.
const SOON: Duration = Duration::from_secs(20);

pub(crate) type Socket = WebSocketStream<TcpStream>;

/// One open socket.
pub(crate) struct Peer {
    pub(crate) socket: Socket,
    lines: LineBuffer,
    frames: VecDeque<ConnectorFrame>,
}

impl Peer {
    /// Dials, says hello and takes the descriptor.
    pub(crate) async fn greet(server: &Server, credentials: &Credentials, user_agent: &str) -> Self {
        let mut peer = Self::dial(server, credentials, user_agent, None).await.expect("the dial succeeds");
        peer.send(&GatewayFrame::Hello(Hello::default())).await;
        match peer.next().await {
            ConnectorFrame::Descriptor { .. } => peer,
            other => panic!("a hello was answered with {other:?}"),
        }
    }

    /// Dials; `kernel_buffer` makes the kernel keep little on our behalf.
    pub(crate) async fn dial(
        server: &Server,
        credentials: &Credentials,
        user_agent: &str,
        kernel_buffer: Option<u32>,
    ) -> Result<Self, Error> {
        let tcp = TcpSocket::new_v4()?;
        if let Some(size) = kernel_buffer {
            tcp.set_recv_buffer_size(size)?;
            tcp.set_send_buffer_size(size)?;
        }
        let (host, port) = server.address();
        let stream = tcp.connect((host.parse::<std::net::Ipv4Addr>().unwrap(), port).into()).await?;
        stream.set_nodelay(true)?;
        let mut request = format!("ws://{host}:{port}/relay").into_client_request()?;
        let now = clock::wall().seconds();
        let token = token::mint(&credentials.id, &credentials.secret, now, token::DEFAULT_TTL_SECONDS);
        let headers = request.headers_mut();
        headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        headers.insert("user-agent", user_agent.parse().unwrap());
        // Thousands of these live in one test process: keep them small.
        let small = WebSocketConfig::default().read_buffer_size(2 * 1024).write_buffer_size(0);
        let (socket, _) = client_async_with_config(request, stream, Some(small)).await?;
        Ok(Self { socket, lines: LineBuffer::new(MAX_LINE), frames: VecDeque::new() })
    }

    pub(crate) async fn send(&mut self, frame: &GatewayFrame) {
        self.socket.send(Message::Text(frame.to_line().into())).await.expect("the socket takes a frame");
    }

    pub(crate) async fn ack(&mut self, buffer_id: &str) {
        self.send(&GatewayFrame::InboundAck { buffer_id: buffer_id.to_owned() }).await;
    }

    /// The next frame; it must come.
    pub(crate) async fn next(&mut self) -> ConnectorFrame {
        match timeout(SOON, self.next_or_end()).await {
            Ok(Some(frame)) => frame,
            Ok(None) => panic!("the socket ended"),
            Err(_) => panic!("no frame within {SOON:?}"),
        }
    }

    /// The next frame, or `None` when the socket ends.
    pub(crate) async fn next_or_end(&mut self) -> Option<ConnectorFrame> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return Some(frame);
            }
            let message = self.socket.next().await?.ok()?;
            if !message.is_text() && !message.is_binary() {
                continue;
            }
            let data = message.into_data();
            for line in self.lines.push(&data) {
                let line = line.expect("lines of reasonable length");
                self.frames.push_back(ConnectorFrame::parse(&line).expect("the connector writes frames"));
            }
        }
    }

    /// Whether nothing at all comes for `time`.
    pub(crate) async fn is_silent_for(&mut self, time: Duration) -> bool {
        timeout(time, self.next_or_end()).await.is_err()
    }
}
