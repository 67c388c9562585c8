//! A gateway's end of the relay socket, as light as it can be: what the generator spends, the
//! server does not get. Of a frame it reads four fields and skips the rest.

use crate::receipts::{Fault, Receipts};
use crate::stage::Room;
use angelia_contract::frame::GatewayFrame;
use angelia_contract::line::LineBuffer;
use angelia_contract::token;
use angelia_testkit::socket::now;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// Largest line taken from the server.
const MAX_LINE: usize = 1024 * 1024;
/// What the kernel is asked for at once; a frame has some hundred bytes.
const BUFFER: usize = 4 * 1024;

/// A socket that is served by a task of its own, until this is dropped.
#[derive(Debug)]
pub(crate) struct Gateway {
    asks: mpsc::Sender<Ask>,
}

/// An action, and who waits for its result.
#[derive(Debug)]
struct Ask {
    line: String,
    begun: Instant,
    done: oneshot::Sender<()>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(rename = "bufferId", default)]
    buffer_id: Option<String>,
    #[serde(borrow, default)]
    event: Option<Event<'a>>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Outcome {
    #[serde(default)]
    success: bool,
}

impl Gateway {
    /// Dials, says hello, and serves the socket from the descriptor on.
    pub(crate) async fn connect(url: &str, room: &Room, receipts: Arc<Receipts>) -> Result<Self, Fault> {
        let broken =
            |error: Error| Fault::Broken(format!("{} is not let in: {error}", room.gateway.gateway_id));
        let mut socket = dial(url, room).await.map_err(broken)?;
        let hello = json!({ "type": "hello", "platform": "webchat", "botId": "webchat" });
        socket.send(Message::text(format!("{hello}\n"))).await.map_err(broken)?;
        socket.next().await.unwrap_or(Err(Error::ConnectionClosed)).map_err(broken)?;
        let (asks, asked) = mpsc::channel(1);
        let serving = Serving {
            id: room.gateway.gateway_id.clone(),
            socket,
            lines: LineBuffer::new(MAX_LINE),
            awaited: 0,
            asking: None,
            receipts,
        };
        tokio::spawn(serving.serve(asked));
        Ok(Self { asks })
    }

    /// Sends an action and waits for its result.
    pub(crate) async fn ask(&self, line: String, begun: Instant) -> Result<(), Fault> {
        let (done, result) = oneshot::channel();
        let gone = || Fault::Broken("a gateway's socket ended".to_owned());
        self.asks.send(Ask { line, begun, done }).await.map_err(|_| gone())?;
        result.await.map_err(|_| gone())
    }
}

async fn dial(url: &str, room: &Room) -> Result<WebSocketStream<TcpStream>, Error> {
    let address = url.trim_start_matches("http://");
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut request = format!("ws://{address}/relay").into_client_request()?;
    let token =
        token::mint(&room.gateway.gateway_id, &room.gateway.secret, now(), token::DEFAULT_TTL_SECONDS);
    request.headers_mut().insert("authorization", format!("Bearer {token}").parse()?);
    let small = WebSocketConfig::default().read_buffer_size(BUFFER).write_buffer_size(BUFFER);
    Ok(client_async_with_config(request, stream, Some(small)).await?.0)
}

/// The task behind a [`Gateway`].
struct Serving {
    id: String,
    socket: WebSocketStream<TcpStream>,
    lines: LineBuffer,
    /// The number of the room's next message.
    awaited: u64,
    asking: Option<Ask>,
    receipts: Arc<Receipts>,
}

impl Serving {
    async fn serve(mut self, mut asked: mpsc::Receiver<Ask>) {
        loop {
            let served = tokio::select! {
                message = self.socket.next() => match message {
                    Some(Ok(message)) => self.hear(message).await,
                    Some(Err(error)) => Err(error),
                    None => Err(Error::ConnectionClosed),
                },
                ask = asked.recv() => match ask {
                    Some(ask) => self.ask(ask).await,
                    None => return,
                },
            };
            if let Err(error) = served {
                self.receipts.fault(Fault::Broken(format!("the socket of {} ended: {error}", self.id)));
                return;
            }
        }
    }

    async fn ask(&mut self, mut ask: Ask) -> Result<(), Error> {
        let line = std::mem::take(&mut ask.line);
        self.asking = Some(ask);
        self.socket.send(Message::text(line)).await
    }

    /// Takes the frames of a message; what they are answered with goes out in one piece.
    async fn hear(&mut self, message: Message) -> Result<(), Error> {
        // Pings are answered by the library.
        if !message.is_text() {
            return self.socket.flush().await;
        }
        let data = message.into_data();
        let mut acks = String::new();
        let lines: Vec<_> = self.lines.push(&data).flatten().collect();
        for line in &lines {
            match serde_json::from_slice(line) {
                Ok(frame) => self.take(frame, &mut acks),
                Err(error) => self.receipts.fault(Fault::Broken(format!("{}: {error}", self.id))),
            }
        }
        if acks.is_empty() { Ok(()) } else { self.socket.send(Message::text(acks)).await }
    }

    fn take(&mut self, frame: Frame<'_>, acks: &mut String) {
        match (&*frame.kind, frame.event, frame.buffer_id) {
            ("inbound", Some(event), Some(buffer_id)) => {
                self.arrived(&event.text);
                acks.push_str(&GatewayFrame::InboundAck { buffer_id }.to_line());
            }
            ("outbound_result", ..) => self.done(frame.result),
            _ => {}
        }
    }

    /// A post arrived: its text begins with its number in the room, and when it was posted.
    fn arrived(&mut self, text: &str) {
        let mut words = text.split(' ').map(str::parse);
        let (Some(Ok(got)), Some(Ok(stamp))) = (words.next(), words.next()) else {
            return self.receipts.fault(Fault::Broken(format!("{} got {text:?}", self.id)));
        };
        if got != self.awaited {
            let gateway = self.id.clone();
            return self.receipts.fault(Fault::Order { gateway, awaited: self.awaited, got });
        }
        self.awaited += 1;
        self.receipts.arrived_since(stamp);
    }

    fn done(&mut self, result: Option<&RawValue>) {
        let result = result.map_or("nothing", RawValue::get);
        if !serde_json::from_str(result).is_ok_and(|outcome: Outcome| outcome.success) {
            self.receipts.fault(Fault::Send(result.to_owned()));
        }
        if let Some(ask) = self.asking.take() {
            self.receipts.arrived(ask.begun);
            let _ = ask.done.send(());
        }
    }
}
