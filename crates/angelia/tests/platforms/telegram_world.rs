//! A server with one Telegram bot, one tenant and its gateway, a plain socket.

use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::socket::{Next, Socket};
use angelia_testkit::telegram::{FakeTelegram, Options};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// How long something may take on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// How long nothing has to happen to count as silence.
pub(crate) const QUIET: Duration = Duration::from_millis(700);

pub(crate) struct World {
    pub(crate) telegram: FakeTelegram,
    pub(crate) connector: Connector,
    pub(crate) gateway: Credentials,
}

pub(crate) fn unlimited() -> Options {
    Options { limits: Some(json!({ "enabled": false })), ..Options::default() }
}

fn folder(story: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("telegram-{story}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

impl World {
    /// A server whose bot polls a stand-in.
    pub(crate) async fn new(story: &str, options: &Options) -> Self {
        Self::with(story, options, "").await
    }

    /// The same, with more lines in the bot's configuration.
    pub(crate) async fn with(story: &str, options: &Options, lines: &str) -> Self {
        angelia_connector::ssrf_guard::install_tls_provider();
        let folder = folder(story);
        let telegram = FakeTelegram::start(&folder, options).await;
        let token = folder.join("token");
        std::fs::write(&token, telegram.token()).unwrap();
        let config = format!(
            "[[bots]]\nplatform = \"telegram\"\nid = \"{}\"\nname = \"main\"\ntoken = {{ file = {:?} }}\n\
             api_url = {:?}\n{lines}",
            telegram.bot_id(),
            token.display().to_string(),
            telegram.url()
        );
        let binary = Path::new(env!("CARGO_BIN_EXE_angelia"));
        let connector = Connector::start_with(binary, &folder, &config).await;
        let gateway = connector.gateway("acme", "gw").await;
        Self { telegram, connector, gateway }
    }

    /// Gives a place to the tenant.
    pub(crate) async fn route(&self, chat: i64, more: &[&str]) {
        let place = format!("telegram:{chat}");
        let added = [&["route", "add", "--tenant", "acme", "--allow", "any"], more, &[&place]].concat();
        self.connector.command(&added).await;
    }

    /// The gateway's socket.
    pub(crate) async fn join(&self) -> Socket {
        let mut socket = Socket::dial(&self.connector.url(), &self.gateway).await.expect("let in");
        socket.hello("telegram", &self.telegram.bot_id().to_string()).await;
        let descriptor = socket.frame().await;
        assert_eq!(descriptor["descriptor"]["len_unit"], "utf16", "{descriptor}");
        socket
    }

    /// How the bot is.
    pub(crate) async fn health(&self) -> Value {
        let listed = self.connector.command(&["bot", "list"]).await;
        let bots = listed["bots"].as_array().unwrap();
        let bot = bots.iter().find(|bot| bot["platform"] == "telegram");
        bot.unwrap_or_else(|| panic!("no bot in {listed}"))["health"].clone()
    }

    /// Waits until the bot is as wanted.
    pub(crate) async fn until_health(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + SOON;
        loop {
            let health = self.health().await;
            if wanted(&health) {
                return health;
            }
            assert!(Instant::now() < deadline, "{what}: {health:#}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Everything the server wrote so far.
    pub(crate) fn log(&mut self) -> String {
        self.connector.log_text()
    }
}

/// The next event, acknowledged.
pub(crate) async fn take(socket: &mut Socket) -> Value {
    let frame = match socket.next(SOON).await {
        Next::Frame(frame) => frame,
        other => panic!("awaited a message, got {other:?}"),
    };
    assert_eq!(frame["type"], "inbound", "{frame}");
    socket.ack(&frame).await;
    frame["event"].clone()
}

/// Sends and expects that it was; answers the message's id.
pub(crate) async fn send(socket: &mut Socket, chat: i64, content: &str, more: Value) -> String {
    let mut action = json!({ "op": "send", "chat_id": chat.to_string(), "content": content, "metadata": {} });
    action.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    let result = socket.ask(action).await;
    assert_eq!(result["success"], true, "{result}");
    result["message_id"].as_str().unwrap().to_owned()
}
