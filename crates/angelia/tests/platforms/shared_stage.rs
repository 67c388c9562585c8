//! A server between stand-ins and agents, and what the stand-ins saw of it.

use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::discord::FakeDiscord;
use angelia_testkit::socket::Socket;
use angelia_testkit::telegram::FakeTelegram;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// How long anything may take that is no figure of a test.
pub(super) const SOON: Duration = Duration::from_secs(60);

/// A server with the bots of its stand-ins.
pub(super) struct Stage {
    pub(super) connector: Connector,
    _folder: TempDir,
}

impl Stage {
    /// Starts a server with these bots, see [`discord_bot`] and [`telegram_bot`],
    /// which want a folder for their tokens.
    pub(super) async fn new(bots: impl FnOnce(&Path) -> String) -> Self {
        angelia_connector::ssrf_guard::install_tls_provider();
        let folder = tempfile::tempdir().unwrap();
        let lines = bots(folder.path());
        let binary = Path::new(env!("CARGO_BIN_EXE_angelia"));
        let connector = Connector::start_with(binary, folder.path(), &lines).await;
        Self { connector, _folder: folder }
    }

    /// An agent of a tenant that is connected and said hello for a bot.
    pub(super) async fn agent(&self, tenant: &str, gateway: &str, platform: &str, bot: &str) -> Socket {
        let credentials: Credentials = self.connector.gateway(tenant, gateway).await;
        let mut socket = Socket::dial(&self.connector.url(), &credentials).await.unwrap();
        socket.hello(platform, bot).await;
        assert_eq!(socket.frame().await["type"], "descriptor");
        socket
    }

    /// Gives a place to a tenant, for everybody and everything that is said there.
    pub(super) async fn route(&self, tenant: &str, gateway: Option<&str>, place: &str) {
        let mut args = vec!["route", "add", "--tenant", tenant, "--allow", "any", "--free", place];
        args.extend(gateway.iter().flat_map(|id| ["--gateway", *id]));
        self.connector.command(&args).await;
    }

    pub(super) async fn unroute(&self, place: &str) {
        self.connector.command(&["route", "remove", place]).await;
    }
}

/// A bot's block of configuration; its token lies in a file of `folder`.
pub(super) fn discord_bot(folder: &Path, name: &str, discord: &FakeDiscord) -> String {
    let token = token_file(folder, name, discord.token());
    format!(
        "[[bots]]\nplatform = \"discord\"\nid = {:?}\nname = {name:?}\ntoken = {{ file = {token:?} }}\n\
         api_url = {:?}\ngateway_url = {:?}\n",
        discord.bot_id(),
        discord.url(),
        discord.gateway_url()
    )
}

/// The same on Telegram.
pub(super) fn telegram_bot(folder: &Path, name: &str, telegram: &FakeTelegram) -> String {
    let token = token_file(folder, name, telegram.token());
    format!(
        "[[bots]]\nplatform = \"telegram\"\nid = \"{}\"\nname = {name:?}\ntoken = {{ file = {token:?} }}\n\
         api_url = {:?}\n",
        telegram.bot_id(),
        telegram.url()
    )
}

fn token_file(folder: &Path, name: &str, token: &str) -> String {
    let path = folder.join(format!("{name}.token"));
    std::fs::write(&path, token).unwrap();
    path.display().to_string()
}

/// Waits until the server hears a Discord; what is said before that is not for it.
pub(super) async fn hears(discord: &FakeDiscord) {
    let listens = |state: &Value| state["gateway"]["sessions"].as_array().is_some_and(|all| !all.is_empty());
    discord.until_state(SOON, listens).await;
}

/// An `outbound` frame.
pub(super) fn outbound(request: &str, action: &Value) -> Value {
    json!({ "type": "outbound", "requestId": request, "action": action })
}

/// One request that a stand-in got.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) platform: &'static str,
    /// When it came, in seconds since 1970.
    pub(super) at: f64,
    pub(super) kind: Kind,
    /// The chat it names; a Discord thread is one of its own.
    pub(super) chat: String,
    /// All that it names besides.
    pub(super) others: Vec<String>,
    pub(super) text: Option<String>,
    pub(super) status: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Send,
    Edit,
    Typing,
    /// Asks where a chat is.
    LookUp,
    Other,
}

/// What Discord was asked about channels, after request number `since`.
pub(super) async fn discord_calls(discord: &FakeDiscord, since: u64) -> Vec<Call> {
    let requests = discord.requests(since).await.into_iter();
    let calls = requests.filter_map(|request| {
        let chat = request.channel.clone()?;
        let path: Vec<&str> = request.path.trim_matches('/').split('/').collect();
        let kind = match (request.method.as_str(), &path[2..]) {
            ("POST", ["messages"]) => Kind::Send,
            ("PATCH", ["messages", _]) => Kind::Edit,
            ("POST", ["typing"]) => Kind::Typing,
            ("GET", []) => Kind::LookUp,
            _ => Kind::Other,
        };
        let others = request.ids.iter().filter(|id| **id != chat).cloned().collect();
        let status = request.status.unwrap_or_default();
        Some(Call { platform: "discord", at: request.at, kind, chat, others, text: request.content, status })
    });
    calls.collect()
}

/// What Telegram was asked about chats, after the first `since` requests.
pub(super) async fn telegram_calls(telegram: &FakeTelegram, since: usize) -> Vec<Call> {
    let log = telegram.log().await.into_iter().skip(since);
    let calls = log.filter_map(|entry| {
        let named: Vec<String> =
            entry["chats"].as_array()?.iter().map(|chat| chat.to_string().trim_matches('"').into()).collect();
        let (chat, others) = named.split_first()?;
        let kind = match entry["method"].as_str().unwrap().to_ascii_lowercase().as_str() {
            "sendmessage" => Kind::Send,
            "editmessagetext" => Kind::Edit,
            "sendchataction" => Kind::Typing,
            "getchat" => Kind::LookUp,
            _ => Kind::Other,
        };
        Some(Call {
            platform: "telegram",
            at: entry["at"].as_f64().unwrap(),
            kind,
            chat: chat.clone(),
            others: others.iter().filter(|other| *other != chat).cloned().collect(),
            text: entry["text"].as_str().map(str::to_owned),
            status: entry["status"].as_u64().unwrap_or_default(),
        })
    });
    calls.collect()
}
