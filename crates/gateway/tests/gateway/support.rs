//! The connector's side of a test.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use angelia_contract::{
    Action, ActionResult, ConnectorFrame, Descriptor, Event, GatewayFrame, Inbound, LineBuffer, Outbound,
    Source,
};
use angelia_gateway::{Agent, Conversation, Gateway, GatewayBuilder, GatewayError, GatewayHandle};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

pub(crate) const SECRET: &str = "0123456789abcdef";

/// Long enough for everything that is bound to happen.
const PATIENCE: Duration = Duration::from_secs(400);

pub(crate) struct Server {
    listener: TcpListener,
}

/// One accepted socket.
pub(crate) struct Peer {
    pub(crate) ws: WebSocketStream<TcpStream>,
    pub(crate) path: String,
    pub(crate) bearer: String,
    lines: LineBuffer,
    frames: VecDeque<GatewayFrame>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self { listener }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.listener.local_addr().unwrap())
    }

    pub(crate) fn builder(&self) -> GatewayBuilder {
        Gateway::builder(self.url()).id("gw:1").secret(SECRET)
    }

    pub(crate) async fn accept_tcp(&self) -> TcpStream {
        let (stream, _) = timeout(PATIENCE, self.listener.accept()).await.unwrap().unwrap();
        // Nagle waits on the real clock, while the stopped one jumps ahead.
        stream.set_nodelay(true).unwrap();
        stream
    }

    // The type of the refusal is the library's.
    #[allow(clippy::result_large_err)]
    pub(crate) async fn accept(&self) -> Peer {
        let stream = self.accept_tcp().await;
        let (mut path, mut bearer) = (String::new(), String::new());
        let note = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
            path = request.uri().path().to_owned();
            let header = request.headers().get("authorization").unwrap();
            bearer = header.to_str().unwrap().to_owned();
            Ok(response)
        };
        let ws = accept_hdr_async(stream, note).await.unwrap();
        Peer { ws, path, bearer, lines: LineBuffer::new(1 << 24), frames: VecDeque::new() }
    }

    /// Accepts and completes the handshake of a gateway with one identity.
    pub(crate) async fn greet(&self) -> Peer {
        self.greet_as(descriptor("discord")).await
    }

    pub(crate) async fn greet_as(&self, descriptor: Descriptor) -> Peer {
        let mut peer = self.accept().await;
        assert!(matches!(peer.next().await, GatewayFrame::Hello(_)));
        peer.send(&ConnectorFrame::Descriptor { descriptor }).await;
        peer
    }

    /// Answers one dial with an HTTP status.
    pub(crate) async fn refuse(&self, status: &str, header: &str) {
        let mut stream = self.accept_tcp().await;
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut buffer = [0; 1024];
            let read = stream.read(&mut buffer).await.unwrap();
            request.extend_from_slice(&buffer[..read]);
        }
        let response = format!("HTTP/1.1 {status}\r\n{header}content-length: 0\r\n\r\n");
        stream.write_all(response.as_bytes()).await.unwrap();
    }
}

impl Peer {
    pub(crate) async fn send(&mut self, frame: &ConnectorFrame) {
        self.send_raw(&frame.to_line()).await;
    }

    pub(crate) async fn send_raw(&mut self, message: &str) {
        self.ws.send(Message::text(message)).await.unwrap();
    }

    pub(crate) async fn event(&mut self, event: Event, buffer_id: &str) {
        let inbound = Inbound {
            event,
            buffer_id: Some(buffer_id.to_owned()).filter(|id| !id.is_empty()),
            ..Inbound::default()
        };
        self.send(&ConnectorFrame::Inbound(inbound)).await;
    }

    /// The next frame; pings and pongs pass by.
    pub(crate) async fn next(&mut self) -> GatewayFrame {
        timeout(PATIENCE, self.read()).await.unwrap().unwrap()
    }

    /// The next frame; none if the socket was closed.
    pub(crate) async fn last(&mut self) -> Option<GatewayFrame> {
        timeout(PATIENCE, self.read()).await.unwrap()
    }

    /// None if the socket was closed.
    async fn read(&mut self) -> Option<GatewayFrame> {
        while self.frames.is_empty() {
            match self.ws.next().await?.ok()? {
                Message::Text(text) => {
                    assert!(text.ends_with('\n'), "every frame ends its line");
                    for line in self.lines.push(text.as_bytes()) {
                        let frame = GatewayFrame::parse(&line.unwrap()).unwrap();
                        self.frames.push_back(frame);
                    }
                }
                Message::Close(_) => return None,
                _ => {}
            }
        }
        self.frames.pop_front()
    }

    /// Asserts that nothing comes for a while.
    pub(crate) async fn silence(&mut self, span: Duration) {
        if let Ok(frame) = timeout(span, self.read()).await {
            panic!("expected nothing, got {frame:?}");
        }
    }

    pub(crate) async fn ack(&mut self) -> String {
        match self.next().await {
            GatewayFrame::InboundAck { buffer_id } => buffer_id,
            other => panic!("expected an ack, got {other:?}"),
        }
    }

    pub(crate) async fn outbound(&mut self) -> Outbound {
        match self.next().await {
            GatewayFrame::Outbound(outbound) => outbound,
            other => panic!("expected a call, got {other:?}"),
        }
    }

    pub(crate) async fn answer(&mut self, outbound: &Outbound, result: ActionResult) {
        let frame = ConnectorFrame::OutboundResult { request_id: outbound.request_id.clone(), result };
        self.send(&frame).await;
    }

    /// Takes the next call, answers it with `id`, and gives its text.
    pub(crate) async fn take_text(&mut self, id: &str) -> String {
        let outbound = self.outbound().await;
        self.answer(&outbound, ActionResult::sent(id)).await;
        match outbound.action {
            Action::Send { content, .. } => format!("send {content}"),
            Action::Edit { content, message_id, .. } => format!("edit {message_id} {content}"),
            other => panic!("expected a text, got {other:?}"),
        }
    }

    pub(crate) async fn interrupt(&mut self, session_key: &str, chat_id: &str) {
        let frame = ConnectorFrame::InterruptInbound {
            session_key: session_key.to_owned(),
            chat_id: chat_id.to_owned(),
        };
        self.send(&frame).await;
    }

    pub(crate) async fn close(mut self, code: u16, reason: &str) {
        let close = CloseFrame { code: code.into(), reason: reason.into() };
        self.ws.close(Some(close)).await.unwrap();
        while let Ok(Some(Ok(_))) = timeout(PATIENCE, self.ws.next()).await {}
    }

    /// Waits for the gateway to close, and gives its code.
    pub(crate) async fn closed(&mut self) -> u16 {
        loop {
            match timeout(PATIENCE, self.ws.next()).await.unwrap() {
                Some(Ok(Message::Close(Some(close)))) => return close.code.into(),
                Some(Ok(_)) => {}
                other => panic!("expected a close, got {other:?}"),
            }
        }
    }
}

pub(crate) fn descriptor(platform: &str) -> Descriptor {
    Descriptor {
        platform: platform.to_owned(),
        supports_edit: true,
        markdown_dialect: "discord".to_owned(),
        max_message_length: 2000,
        ..Descriptor::default()
    }
}

/// A message of user `user` in Discord channel `chat`.
pub(crate) fn message(chat: &str, user: &str, id: &str, text: &str) -> Event {
    Event {
        text: text.to_owned(),
        message_id: Some(id.to_owned()),
        source: Source {
            platform: "discord".to_owned(),
            chat_id: chat.to_owned(),
            chat_type: "group".to_owned(),
            user_id: Some(user.to_owned()),
            scope_id: Some("900".to_owned()),
            ..Source::default()
        },
        ..Event::default()
    }
}

pub(crate) type Running = JoinHandle<Result<(), GatewayError>>;

/// What must happen in the end, or the test is stuck.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap()
}

/// Runs a gateway with an agent.
pub(crate) fn run<A: Agent>(builder: GatewayBuilder, agent: A) -> (GatewayHandle, Running) {
    let gateway = builder.build().unwrap();
    (gateway.handle(), tokio::spawn(gateway.run(agent)))
}

/// Runs a gateway whose agent hands its turns to the test.
pub(crate) fn run_turns(
    builder: GatewayBuilder,
) -> (GatewayHandle, Running, mpsc::Receiver<(Event, Conversation)>) {
    let (turns, taken) = mpsc::channel(64);
    let agent = move |event: Event, conversation: Conversation| {
        let turns = turns.clone();
        async move { turns.send((event, conversation)).await.unwrap() }
    };
    let (handle, running) = run(builder, agent);
    (handle, running, taken)
}

/// Runs a gateway whose agent reports each text and then waits to be let on.
pub(crate) fn run_gated(
    builder: GatewayBuilder,
) -> (GatewayHandle, Running, mpsc::Receiver<String>, Arc<Semaphore>) {
    let (begun, texts) = mpsc::channel(64);
    let gate = Arc::new(Semaphore::new(0));
    let waiting = Arc::clone(&gate);
    let agent = move |event: Event, _: Conversation| {
        let (begun, gate) = (begun.clone(), Arc::clone(&waiting));
        async move {
            begun.send(event.text).await.unwrap();
            gate.acquire().await.unwrap().forget();
        }
    };
    let (handle, running) = run(builder, agent);
    (handle, running, texts, gate)
}

/// An agent that does nothing.
pub(crate) async fn deaf(_: Event, _: Conversation) {}
