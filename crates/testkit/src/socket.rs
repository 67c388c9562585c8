//! A gateway by hand: every frame is written and read as it is on the wire.

use angelia_contract::line::LineBuffer;
use angelia_contract::token;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, USER_AGENT};
use tokio_tungstenite::tungstenite::http::{HeaderMap, HeaderValue};
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::connector::Credentials;

/// How long an awaited frame may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// One socket, as a gateway holds it.
pub struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    lines: LineBuffer,
    frames: VecDeque<Value>,
    /// Sizes of the messages that came.
    pub message_sizes: Vec<usize>,
}

/// A refused upgrade.
#[derive(Debug)]
pub struct Refused {
    /// The HTTP status.
    pub status: u16,
    /// The answer's headers.
    pub headers: HeaderMap,
}

/// Fetches a file as a gateway does: with the token that it dials with.
pub async fn fetch_file(url: &str, credentials: &Credentials) -> reqwest::Response {
    let token = token::mint(&credentials.gateway_id, &credentials.secret, now(), 60);
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    http.get(url).bearer_auth(token).send().await.expect("an answer")
}

/// Sends a file as a gateway does; answers the reference to it.
pub async fn upload_file(
    url: &str,
    credentials: &Credentials,
    (name, media_type): (&str, &str),
    bytes: &'static [u8],
) -> String {
    let token = token::mint(&credentials.gateway_id, &credentials.secret, now(), 60);
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let ask = http.post(format!("{url}/relay/media")).bearer_auth(token).body(bytes);
    let ask = ask.header("Content-Type", media_type).header("X-Media-Filename", name);
    let answer: Value = ask.send().await.expect("an answer").json().await.expect("JSON");
    let id = answer["id"].as_str().unwrap_or_else(|| panic!("no id: {answer}"));
    format!("{url}/relay/media/{id}")
}

/// What came next on a socket.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// A frame.
    Frame(Value),
    /// A close frame with this code and reason.
    Closed(u16, String),
    /// The connection ended without one.
    Gone,
    /// Nothing, in the given time.
    Silence,
}

/// The wall clock in whole seconds, as tokens count.
#[allow(clippy::disallowed_methods, reason = "a gateway has its own clock")]
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

impl Socket {
    /// Dials with a fresh token.
    pub async fn dial(url: &str, credentials: &Credentials) -> Result<Self, Refused> {
        let token = token::mint(&credentials.gateway_id, &credentials.secret, now(), 300);
        Self::dial_with(url, Some(&format!("Bearer {token}")), "test").await
    }

    /// Dials with this `Authorization` and `User-Agent`.
    pub async fn dial_with(url: &str, authorization: Option<&str>, agent: &str) -> Result<Self, Refused> {
        let url = format!("{}/relay", url.replacen("http", "ws", 1));
        let mut request = url.into_client_request().expect("a URL");
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_str(agent).expect("an agent"));
        if let Some(value) = authorization {
            let value = HeaderValue::from_str(value).expect("a header");
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        match tokio_tungstenite::connect_async(request).await {
            Ok((stream, _)) => Ok(Self {
                stream,
                lines: LineBuffer::new(64 * 1024 * 1024),
                frames: VecDeque::new(),
                message_sizes: Vec::new(),
            }),
            Err(Error::Http(response)) => {
                Err(Refused { status: response.status().as_u16(), headers: response.headers().clone() })
            }
            Err(other) => panic!("the upgrade failed: {other}"),
        }
    }

    /// Dials, says hello for the web chat and reads the descriptor.
    ///
    /// # Panics
    ///
    /// When the server does not let it in.
    pub async fn join(url: &str, credentials: &Credentials) -> Self {
        let mut socket = Self::dial(url, credentials).await.expect("let in");
        socket.hello("webchat", "webchat").await;
        let descriptor = socket.frame().await;
        assert_eq!(descriptor["type"], "descriptor");
        socket
    }

    /// Says hello.
    pub async fn hello(&mut self, platform: &str, bot: &str) {
        self.send(&json!({"type": "hello", "platform": platform, "botId": bot})).await;
    }

    /// Acknowledges a frame.
    pub async fn ack(&mut self, frame: &Value) {
        self.send(&json!({"type": "inbound_ack", "bufferId": frame["bufferId"]})).await;
    }

    /// Asks for an action and reads its result.
    pub async fn ask(&mut self, action: Value) -> Value {
        self.send(&json!({"type": "outbound", "requestId": "r", "action": action})).await;
        let answer = self.frame().await;
        assert_eq!(answer["type"], "outbound_result", "{answer}");
        answer["result"].clone()
    }

    /// Writes one frame; a closed socket is no error here.
    pub async fn send(&mut self, frame: &Value) {
        self.send_text(format!("{frame}\n")).await;
    }

    /// Writes a text message as it is.
    pub async fn send_text(&mut self, text: String) {
        let _ = self.stream.send(Message::text(text)).await;
    }

    /// Sends a close frame and waits for the answer, so that everything said before it was heard:
    /// a server that writes to a socket already gone loses what it had not read yet.
    pub async fn close(mut self) {
        let _ = self.stream.close(None).await;
        let answered = async { while let Some(Ok(_)) = self.stream.next().await {} };
        let _ = tokio::time::timeout(Duration::from_secs(5), answered).await;
    }

    /// The next frame.
    ///
    /// # Panics
    ///
    /// When something else comes, or nothing.
    pub async fn frame(&mut self) -> Value {
        match self.next(PATIENCE).await {
            Next::Frame(frame) => frame,
            other => panic!("awaited a frame, got {other:?}"),
        }
    }

    /// The next `inbound` frame's text; acknowledges it.
    ///
    /// # Panics
    ///
    /// When something else comes, or nothing.
    pub async fn take_text(&mut self) -> String {
        let frame = self.frame().await;
        assert_eq!(frame["type"], "inbound", "{frame}");
        self.ack(&frame).await;
        frame["event"]["text"].as_str().expect("a text").to_owned()
    }

    /// Whatever comes within `limit`.
    pub async fn next(&mut self, limit: Duration) -> Next {
        let deadline = tokio::time::Instant::now() + limit;
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return Next::Frame(frame);
            }
            match tokio::time::timeout_at(deadline, self.stream.next()).await {
                Err(_) => return Next::Silence,
                Ok(Some(Ok(Message::Text(text)))) => {
                    self.message_sizes.push(text.len());
                    for line in self.lines.push(text.as_bytes()) {
                        let line = line.expect("a line within bounds");
                        self.frames.push_back(serde_json::from_slice(&line).expect("a JSON line"));
                    }
                }
                Ok(Some(Ok(Message::Close(Some(frame))))) => {
                    // The library's answer to the close has to be written.
                    let _ = self.stream.flush().await;
                    return Next::Closed(frame.code.into(), frame.reason.to_string());
                }
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(_)) | None) => return Next::Gone,
            }
        }
    }
}
