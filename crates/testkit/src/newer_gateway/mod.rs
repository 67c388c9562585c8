//! A stand-in for gateways newer than the published ones: hermes-agent from 0.20 on.
//!
//! They mark their turns, and they cannot bear a second text in one. This one
//! does the same, as it was seen of 0.20.5, so that a test need not install it:
//!
//! - one reader handles each frame to its end before it reads the next;
//! - an event is acknowledged, then its message gets a 👀, and the agent starts
//!   when the result of that is there. `typing` comes every 2 s. Behind the
//!   answer (`notify`, `reply_to`) 👀 is taken away, ✅ is set, each result is
//!   waited for, and only then the conversation is free;
//! - a text or a command for a conversation whose turn runs is answered with a
//!   notice, and the reader waits for the result of it, which nobody reads
//!   meanwhile: it is deaf for 30 s, and types every 3.5 s. Behind three of
//!   these its keepalive finds no pong and closes the socket with 1011;
//! - `interrupt_inbound` ends a turn in 0.2 s. What it had been given is given
//!   to the model again, together with the next text;
//! - while it waits for somebody it does not type. A press is acknowledged and
//!   answered at once; where no prompts are offered, an approval is asked for in
//!   words and given by a command. A text that comes meanwhile is lost. A
//!   question is a plain `send`, and the next text is the answer;
//! - `/stop` and `/new` in mid-turn end it, without a last mark, and make it deaf
//!   for 35 s;
//! - files that come with an event are fetched by the reader, before the event is acknowledged;
//!   one that its agent sends is uploaded, and then sent with its reference and no words;
//! - a message that comes again is dropped and acknowledged;
//! - where it streams, an answer grows as drafts, each waited for, and comes as a
//!   message behind them; without drafts, or once one is refused, as a first `send`
//!   with `expect_edits` that is edited every 100 ms, ` ▉` behind it until it is whole.
//!
//! The process outlives its sockets: turns go on while the line is broken, and
//! it dials again after a second. What it did is kept for tests to judge.

mod diary;
mod files;
mod gateway;
mod link;
mod reader;
mod rich;
mod settings;
#[cfg(test)]
mod tests;
mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use angelia_contract::frame::{GatewayFrame, Hello};
use angelia_contract::token;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, USER_AGENT};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

pub use diary::{End, Given, Turns};
pub use files::{DRAWING, Fetched};
pub use settings::{ASKS_BACK, DRAWS, NEEDS_APPROVAL, Settings, USES_EVERYTHING};

use crate::connector::Credentials;
use crate::process::eventually;
use crate::socket::now;
use files::Home;
use gateway::Gateway;
use link::Order;

/// What its WebSocket library calls itself.
const AGENT: &str = "Python/3.11 websockets/15.0.1";
/// Fixed pause: so long it waits before it dials again.
const REDIAL: Duration = Duration::from_secs(1);
/// How long a token is good.
const TOKEN_LIFE: u64 = 300;
/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// A running stand-in; it stops when dropped.
#[derive(Debug)]
pub struct NewerGateway {
    gateway: Arc<Gateway>,
    life: JoinHandle<()>,
}

impl NewerGateway {
    /// Dials and waits until it is described.
    ///
    /// # Panics
    ///
    /// When the connector does not let it in.
    pub async fn start(url: &str, credentials: &Credentials, settings: Settings) -> Self {
        let gateway = Arc::new(Gateway::new(settings));
        let _ = gateway.home.set(Home { url: url.to_owned(), credentials: credentials.clone() });
        let life = tokio::spawn(live(Arc::clone(&gateway), url.to_owned(), credentials.clone()));
        let this = Self { gateway, life };
        let described = || this.gateway.is_described().then_some(());
        eventually("a descriptor for a newer gateway", HANDSHAKE, described).await;
        this
    }

    /// Everything the model was given so far, in order.
    pub fn given(&self) -> Vec<Given> {
        self.gateway.diary.given()
    }

    /// The files it fetched, in order.
    pub fn fetched(&self) -> Vec<Fetched> {
        self.gateway.diary.all_fetched()
    }

    /// What was new to the model in a chat, line by line: texts may come joined.
    pub fn lines(&self, chat: &str) -> Vec<String> {
        let given = self.given().into_iter().filter(|given| given.chat == chat);
        given.flat_map(|given| given.text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    /// When the model was first given something that contains `text`.
    pub fn given_at(&self, text: &str) -> Option<Instant> {
        self.given().iter().find(|given| given.text.contains(text)).map(|given| given.at)
    }

    /// How long it was deaf, each time; nothing for a time that is not over.
    pub fn stalls(&self) -> Vec<Duration> {
        self.gateway.diary.stalls()
    }

    /// How its sockets ended.
    pub fn ends(&self) -> Vec<End> {
        self.gateway.diary.ends()
    }

    /// How many sockets it had.
    pub fn sockets(&self) -> usize {
        self.gateway.diary.sockets()
    }

    /// Messages that came a second time.
    pub fn repetitions(&self) -> usize {
        self.gateway.diary.repetitions()
    }

    /// Answers that could not be sent.
    pub fn lost_answers(&self) -> usize {
        self.gateway.diary.lost_answers()
    }

    /// How often it asked for an operation, and how often in vain.
    pub fn asked_for(&self, op: &str) -> (usize, usize) {
        self.gateway.diary.asked_for(op)
    }

    /// The turns of each conversation.
    pub fn turns(&self) -> BTreeMap<String, Turns> {
        self.gateway.diary.turns()
    }

    /// Waits until the model was given something that contains `text`.
    ///
    /// # Panics
    ///
    /// When it is not within `limit`.
    pub async fn wait_for_text(&self, text: &str, limit: Duration) -> Instant {
        eventually(&format!("{text:?} at the model"), limit, || self.given_at(text)).await
    }

    /// Waits until no turn is open.
    ///
    /// # Panics
    ///
    /// When one still is after `limit`.
    pub async fn wait_until_free(&self, limit: Duration) {
        let free = || self.turns().values().all(|turns| turns.begun == turns.ended).then_some(());
        eventually("the end of every turn", limit, free).await;
    }

    /// Nothing happened that people would have to wait for.
    ///
    /// # Panics
    ///
    /// When it was ever deaf, gave up a socket, lost an answer or had two turns in one
    /// conversation.
    pub fn assert_unharmed(&self) {
        assert!(self.stalls().is_empty(), "it was pushed into a running turn: deaf for {:?}", self.stalls());
        let broken = |end: &End| matches!(end, End::Keepalive | End::Closed(1011));
        assert!(!self.ends().iter().any(broken), "{:?}", self.ends());
        assert!(self.turns().values().all(|turns| turns.most_open == 1), "{:?}", self.turns());
        assert_eq!(self.lost_answers(), 0, "answers that found no socket");
    }

    /// Breaks its line without a word; it dials again.
    pub async fn cut(&self) {
        self.gateway.order(Order::Cut).await;
    }

    /// Announces that it goes idle, waits for the answer and leaves; it dials again. Whether
    /// the connector answered.
    pub async fn go_idle(&self) -> bool {
        self.gateway.go_idle().await
    }
}

impl Drop for NewerGateway {
    fn drop(&mut self) {
        self.life.abort();
    }
}

async fn live(gateway: Arc<Gateway>, url: String, credentials: Credentials) {
    loop {
        if let Some(socket) = dial(&url, &credentials).await {
            serve(&gateway, socket).await;
        }
        sleep(REDIAL).await;
    }
}

async fn dial(url: &str, credentials: &Credentials) -> Option<WebSocketStream<MaybeTlsStream<TcpStream>>> {
    let token = token::mint(&credentials.gateway_id, &credentials.secret, now(), TOKEN_LIFE);
    let mut request =
        format!("{}/relay", url.replacen("http", "ws", 1)).into_client_request().expect("a URL");
    let bearer = HeaderValue::from_str(&format!("Bearer {token}")).expect("a header");
    request.headers_mut().insert(AUTHORIZATION, bearer);
    request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(AGENT));
    connect_async(request).await.ok().map(|(socket, _)| socket)
}

/// One socket, from its hellos to its end.
async fn serve<S>(gateway: &Arc<Gateway>, socket: WebSocketStream<S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (link, carried) = link::link(socket);
    gateway.attach(link.orders);
    let carried = async {
        let end = carried.await;
        gateway.detach();
        gateway.diary.ended(end);
    };
    let read = async {
        for hello in hellos(&gateway.settings) {
            gateway.write(&GatewayFrame::Hello(hello)).await;
        }
        reader::read(gateway, link.messages).await;
    };
    tokio::join!(carried, read);
}

/// One for each platform; Discord's brings the commands along.
fn hellos(settings: &Settings) -> Vec<Hello> {
    let hello = |(platform, bot): &(String, String)| Hello {
        platform: platform.clone(),
        bot_id: bot.clone(),
        command_manifest: (platform == "discord").then(|| {
            let names = ["help", "new", "status", "stop"];
            names.map(|name| json!({ "name": name, "description": name })).to_vec()
        }),
    };
    settings.identities.iter().map(hello).collect()
}
