//! A gateway process that writes down what it sees on the wire.
//!
//! It speaks raw WebSocket, so that its log shows every frame the connector
//! wrote and not what a library made of them. One JSON object per line:
//! `inbound` when a frame came in, `ack` once its acknowledgement was written,
//! `send` and `result` around an answer. `socket` numbers the connections of
//! this process. Like the published gateways it acknowledges after it handled
//! a message, and handling here means: the line is in the log.
//!
//! ```text
//! log-agent --url URL… --id ID --secret SECRET --log FILE [--reply | --reply-when-asked] [--user-agent TEXT]
//! ```
//!
//! With several URLs, the nodes of a cluster, it dials them in turn. Asked is it by a message whose
//! first word ends with a question mark.

#![allow(clippy::print_stderr, reason = "its standard error is a log file of the test")]

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::Duration;

use angelia_contract::frame::{ConnectorFrame, GatewayFrame, Hello, Inbound};
use angelia_contract::line::LineBuffer;
use angelia_contract::token;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Pause before the next dial: short, because tests wait for it.
const REDIAL: Duration = Duration::from_millis(25);
/// Time for one dial; a connector that dies in the middle of it says nothing.
const DIAL: Duration = Duration::from_secs(5);
/// Largest line taken from a connector.
const MAX_LINE: usize = 16 * 1024 * 1024;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut agent = Agent::from_args(std::env::args().skip(1));
    loop {
        agent.socket += 1;
        match tokio::time::timeout(DIAL, agent.dial()).await {
            Ok(Ok(socket)) => {
                let ended = agent.serve(socket).await;
                eprintln!("socket {} ended: {ended:?}", agent.socket);
            }
            Ok(Err(error)) => eprintln!("dial {}: {error}", agent.socket),
            Err(_) => eprintln!("dial {}: no answer", agent.socket),
        }
        tokio::time::sleep(REDIAL).await;
    }
}

struct Agent {
    /// Where it dials, in turn.
    urls: Vec<String>,
    id: String,
    secret: String,
    user_agent: String,
    reply: Reply,
    log: File,
    socket: u64,
    sends: u64,
    /// Messages that got their answer: a redelivered one gets no second.
    answered: HashSet<String>,
}

/// Which messages get an answer.
#[derive(Clone, Copy)]
enum Reply {
    Never,
    WhenAsked,
    Always,
}

impl Reply {
    fn to(self, word: &str) -> bool {
        match self {
            Self::Never => false,
            Self::WhenAsked => word.ends_with('?'),
            Self::Always => true,
        }
    }
}

impl Agent {
    fn from_args(mut args: impl Iterator<Item = String>) -> Self {
        let (mut urls, mut id, mut secret, mut log) = (Vec::new(), None, None, None);
        // It ends no turn, and is not to be taken for a gateway that does.
        let mut user_agent = "log-agent".to_owned();
        let mut reply = Reply::Never;
        while let Some(arg) = args.next() {
            let mut value = || args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
            match arg.as_str() {
                "--url" => urls.push(value()),
                "--id" => id = Some(value()),
                "--secret" => secret = Some(value()),
                "--log" => log = Some(value()),
                "--user-agent" => user_agent = value(),
                "--reply" => reply = Reply::Always,
                "--reply-when-asked" => reply = Reply::WhenAsked,
                other => panic!("unknown argument {other}"),
            }
        }
        assert!(!urls.is_empty(), "--url is needed");
        let path = log.expect("--log is needed");
        let log = OpenOptions::new().create(true).append(true).open(&path);
        Self {
            urls,
            id: id.expect("--id is needed"),
            secret: secret.expect("--secret is needed"),
            user_agent,
            reply,
            log: log.unwrap_or_else(|error| panic!("cannot open {path}: {error}")),
            socket: 0,
            sends: 0,
            answered: HashSet::new(),
        }
    }

    async fn dial(&self) -> Result<Socket, Error> {
        let turn = usize::try_from(self.socket).unwrap_or_default() % self.urls.len();
        let target = format!("{}/relay", self.urls[turn].replacen("http", "ws", 1));
        let mut request = target.into_client_request()?;
        let token = token::mint(&self.id, &self.secret, unix_seconds(), token::DEFAULT_TTL_SECONDS);
        let headers = request.headers_mut();
        headers.insert("authorization", format!("Bearer {token}").parse().expect("a token is ASCII"));
        headers.insert("user-agent", self.user_agent.parse().expect("--user-agent is ASCII"));
        let (socket, _) = connect_async(request).await?;
        Ok(socket)
    }

    /// Serves one socket until it ends.
    async fn serve(&mut self, mut socket: Socket) -> Result<(), Error> {
        socket.send(text(GatewayFrame::Hello(Hello::default()).to_line())).await?;
        let mut lines = LineBuffer::new(MAX_LINE);
        while let Some(message) = socket.next().await {
            let message = message?;
            if !message.is_text() && !message.is_binary() {
                continue;
            }
            let data = message.into_data();
            let whole: Vec<Vec<u8>> = lines.push(&data).flatten().map(|line| line.into_owned()).collect();
            for line in whole {
                match ConnectorFrame::parse(&line) {
                    Ok(ConnectorFrame::Inbound(inbound)) => self.handle(&mut socket, &inbound).await?,
                    Ok(ConnectorFrame::OutboundResult { request_id, result }) => {
                        let result = serde_json::to_value(result).unwrap_or_default();
                        self.note("result", json!({ "request": request_id, "result": result }));
                    }
                    Ok(_) => {}
                    Err(error) => self.note("unreadable", json!({ "error": error.to_string() })),
                }
            }
        }
        Ok(())
    }

    async fn handle(&mut self, socket: &mut Socket, inbound: &Inbound) -> Result<(), Error> {
        let event = &inbound.event;
        let buffer_id = inbound.buffer_id.clone().unwrap_or_default();
        // The first word names the message; the rest is ballast.
        let word = event.text.split(' ').next().unwrap_or_default();
        let message_id = event.message_id.clone().unwrap_or_default();
        let what =
            json!({ "buffer": buffer_id, "chat": event.source.chat_id, "text": word, "message": message_id });
        self.note("inbound", what.clone());
        let ack = GatewayFrame::InboundAck { buffer_id };
        socket.send(text(ack.to_line())).await?;
        self.note("ack", what.clone());
        if self.reply.to(word) && self.answered.insert(message_id.clone()) {
            self.sends += 1;
            let request = format!("{}-{}", std::process::id(), self.sends);
            let action = json!({ "op": "send", "chat_id": event.source.chat_id, "content": format!("re:{word}"), "reply_to": message_id });
            let frame = json!({ "type": "outbound", "requestId": request, "action": action });
            self.note("send", json!({ "request": request, "text": word }));
            socket.send(text(format!("{frame}\n"))).await?;
        }
        Ok(())
    }

    /// Appends one line with a single write: a kill leaves it whole or out.
    fn note(&mut self, kind: &str, mut what: Value) {
        what["kind"] = kind.into();
        what["process"] = std::process::id().into();
        what["socket"] = self.socket.into();
        self.log.write_all(format!("{what}\n").as_bytes()).expect("the log can be written");
    }
}

fn text(line: String) -> Message {
    Message::Text(line.into())
}

#[allow(clippy::disallowed_methods, reason = "a process of its own, whose tokens need the real time")]
fn unix_seconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
