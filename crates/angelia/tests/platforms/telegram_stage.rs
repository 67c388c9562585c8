//! The usual beginning: Telegram, a connector with a bot there, an agent.

use angelia_contract::session_key::{KeyOptions, Rules, session_key};
use angelia_contract::source::Source;
use angelia_contract::token;
use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::process::output;
use angelia_testkit::socket::{Next, Socket, now};
use angelia_testkit::telegram::{FakeTelegram, Options};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

/// How long something may take on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// How often something is looked at while waiting for it.
pub(crate) const POLL: Duration = Duration::from_millis(50);
/// A token whose secret part is easily found where it must not be.
const TOKEN: &str = "4242424242:hunter2-hunter2-hunter2-hunter2-hunt";

pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_angelia"))
}

/// An empty folder for a test; it stays, so that a failure can be read about.
pub(crate) fn folder(story: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("telegram-stage-{story}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// No limits: the tests of other things need not wait for them.
pub(crate) fn unlimited() -> Options {
    let limits = Some(json!({ "enabled": false }));
    Options { token: Some(TOKEN.into()), limits, ..Options::default() }
}

/// The lines of the configuration that make a bot of it.
pub(crate) fn bot(telegram: &FakeTelegram, folder: &Path, more: &str) -> String {
    let token = folder.join("token");
    std::fs::write(&token, telegram.token()).unwrap();
    format!(
        "[[bots]]\nplatform = \"telegram\"\nid = \"{}\"\ntoken = {{ file = {token:?} }}\napi_url = {:?}\n{more}\n",
        telegram.bot_id(),
        telegram.url(),
    )
}

/// Telegram, a connector and a gateway of the tenant `acme`.
pub(crate) struct Stage {
    pub(crate) telegram: FakeTelegram,
    pub(crate) connector: Connector,
    pub(crate) gateway: Credentials,
    pub(crate) folder: PathBuf,
}

impl Stage {
    /// With a bot that polls, and no route.
    pub(crate) async fn new(story: &str) -> Self {
        Self::with(story, &unlimited(), "", "").await
    }

    /// The same, with `more` lines for the bot and `lines` before it.
    pub(crate) async fn with(story: &str, options: &Options, more: &str, lines: &str) -> Self {
        let folder = folder(story);
        let telegram = FakeTelegram::start(&folder, options).await;
        Self::around(telegram, folder, more, lines).await
    }

    /// Around what has begun already.
    pub(crate) async fn around(telegram: FakeTelegram, folder: PathBuf, more: &str, lines: &str) -> Self {
        angelia_connector::ssrf_guard::install_tls_provider();
        let lines = format!("{lines}\n{}", bot(&telegram, &folder, more));
        let connector = Connector::start_with(binary(), &folder, &lines).await;
        let gateway = connector.gateway("acme", "gw-acme").await;
        Self { telegram, connector, gateway, folder }
    }

    /// Gives a place to a tenant.
    pub(crate) async fn route(&self, tenant: &str, place: impl std::fmt::Display, more: &[&str]) {
        let place = format!("telegram:{place}");
        let args = [&["route", "add", "--tenant", tenant], more, &[&place]].concat();
        let made = self.connector.command(&args).await;
        assert_eq!(made["place"], place.as_str(), "{made}");
    }

    /// Gives every chat to `acme`, whoever writes there.
    pub(crate) async fn route_all(&self) {
        self.route("acme", "*", &["--allow", "any"]).await;
    }

    pub(crate) async fn route_of(&self, chat: i64) -> Option<Value> {
        let routes = self.connector.command(&["route", "list"]).await;
        let place = format!("telegram:{chat}");
        routes["routes"].as_array().unwrap().iter().find(|route| route["place"] == place.as_str()).cloned()
    }

    /// The agent comes.
    pub(crate) async fn join(&self) -> Socket {
        self.join_as(&self.gateway).await
    }

    pub(crate) async fn join_as(&self, gateway: &Credentials) -> Socket {
        let mut socket = Socket::dial(&self.connector.url(), gateway).await.expect("let in");
        socket.hello("telegram", &self.telegram.bot_id().to_string()).await;
        let descriptor = socket.frame().await;
        assert_eq!(descriptor["type"], "descriptor", "{descriptor}");
        socket
    }

    /// The same of a gateway as published up to 0.19.0, which fetches nothing.
    pub(crate) async fn join_as_older(&self) -> Socket {
        let Credentials { gateway_id, secret } = &self.gateway;
        let bearer = format!("Bearer {}", token::mint(gateway_id, secret, now(), 300));
        let agent = "Python/3.11 websockets/15.0.1";
        let mut socket =
            Socket::dial_with(&self.connector.url(), Some(&bearer), agent).await.expect("let in");
        socket.hello("telegram", &self.telegram.bot_id().to_string()).await;
        assert_eq!(socket.frame().await["type"], "descriptor");
        socket
    }

    /// The text, addressed to the bot.
    pub(crate) fn to_bot(&self, text: &str) -> String {
        format!("@{} {text}", self.telegram.username())
    }

    /// A command of the binary, whatever its end.
    pub(crate) async fn run(&self, args: &[&str]) -> Output {
        run(&self.folder, args).await
    }

    /// How the bot is, as `bot list` says.
    pub(crate) async fn bot(&self) -> Value {
        let listed = self.connector.command(&["bot", "list"]).await;
        let found = listed["bots"].as_array().unwrap().iter().find(|bot| bot["platform"] == "telegram");
        found.unwrap_or_else(|| panic!("no Telegram bot in {listed}")).clone()
    }

    /// Waits until the bot is in this state; answers how it is then.
    pub(crate) async fn until_bot(&self, state: &str) -> Value {
        let deadline = Instant::now() + SOON;
        loop {
            let health = self.bot().await["health"].clone();
            if health["state"] == state {
                return health;
            }
            assert!(Instant::now() < deadline, "the bot is not {state}: {health}");
            sleep(POLL).await;
        }
    }

    /// Waits until a question for updates is open at Telegram, which the next thing said ends.
    pub(crate) async fn until_asking(&self) {
        // A bot that is not up yet asks for answers at once.
        self.until_bot("up").await;
        let open = |state: &Value| state["polling"] == true;
        self.telegram.wait_for_state("an open question", SOON, open).await;
    }

    /// Waits until everything that was said is confirmed at Telegram, so committed here.
    pub(crate) async fn until_heard(&self) {
        let all = |state: &Value| state["pending"] == 0;
        self.telegram.wait_for_state("everything confirmed", SOON, all).await;
    }

    /// Messages that wait for agents.
    pub(crate) async fn waiting(&self) -> u64 {
        let inboxes = self.connector.command(&["inbox", "list"]).await;
        inboxes["inboxes"].as_array().unwrap().iter().map(|inbox| inbox["waiting"].as_u64().unwrap()).sum()
    }

    /// What every test ends with: all that crossed the wire was as Telegram's,
    /// nothing panicked, and the token is nowhere in the log.
    pub(crate) async fn close(&self) {
        self.telegram.assert_no_violations().await;
        let log = self.connector.whole_log();
        assert!(!log.contains("panicked"), "see {}", self.folder.display());
        assert!(!log.contains("hunter2"), "the token is in {}", self.folder.display());
    }
}

/// A command of the binary over the configuration in a folder.
pub(crate) async fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("--config").arg(folder.join("angelia.toml")).args(args);
    output(&args.join(" "), command, SOON).await
}

/// The next message an agent gets, acknowledged. The token is never in it, nor
/// anything that leads to a file.
pub(crate) async fn heard(socket: &mut Socket) -> Value {
    let frame = match socket.next(SOON).await {
        Next::Frame(frame) => frame,
        other => panic!("awaited a message, got {other:?}"),
    };
    assert_eq!(frame["type"], "inbound", "{frame}");
    let text = frame.to_string();
    assert!(!text.contains("hunter2") && !text.contains("AgAC"), "a credential: {text}");
    socket.ack(&frame).await;
    frame["event"].clone()
}

/// Where an event says it is from: text, type of chat, chat, thread.
pub(crate) fn whence(event: &Value) -> (&str, &str, &str, Option<&str>) {
    let source = &event["source"];
    let text = |value: &'static str| source[value].as_str().unwrap_or_default();
    (
        event["text"].as_str().unwrap_or_default(),
        text("chat_type"),
        text("chat_id"),
        source["thread_id"].as_str(),
    )
}

/// The key under which gateways file it.
pub(crate) fn key(event: &Value) -> String {
    let source: Source = serde_json::from_value(event["source"].clone()).unwrap();
    session_key(&source, &KeyOptions::default(), Rules::Published)
}

/// Answers where an event came from, as gateways do; returns the message's id.
pub(crate) async fn answer(socket: &mut Socket, event: &Value, text: &str) -> i64 {
    let source = &event["source"];
    let mut action = json!({ "op": "send", "chat_id": source["chat_id"], "content": text });
    action["reply_to"] = event["message_id"].clone();
    if !source["thread_id"].is_null() {
        action["metadata"] = json!({ "thread_id": source["thread_id"] });
    }
    sent(&socket.ask(action).await)
}

/// The id of a message that was sent.
pub(crate) fn sent(result: &Value) -> i64 {
    let id = result["message_id"].as_str().and_then(|id| id.parse().ok());
    id.filter(|_| result["success"] == true).unwrap_or_else(|| panic!("not sent: {result}"))
}

/// Telegram's own words for "too many".
pub(crate) fn too_many(seconds: u64) -> Value {
    json!({
        "ok": false, "error_code": 429, "description": format!("Too Many Requests: retry after {seconds}"),
        "parameters": { "retry_after": seconds }
    })
}
