//! The usual beginning: Twilio, a connector with a number there, an agent.

use angelia_engines::inspect::Inspect;
use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::process::free_port;
use angelia_testkit::socket::{Next, Socket};
use angelia_testkit::twilio::{ACCOUNT, AUTH_TOKEN, Emulate, NUMBER};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long something may take on a busy machine.
pub(super) const SOON: Duration = Duration::from_secs(30);
/// How long nothing may come that must not come.
pub(super) const QUIET: Duration = Duration::from_millis(300);

/// Twilio, a connector and a gateway of the tenant `acme`.
pub(super) struct Stage {
    pub(super) twilio: Emulate,
    pub(super) connector: Connector,
    pub(super) gateway: Credentials,
    pub(super) folder: PathBuf,
}

impl Stage {
    /// With a number and no route.
    pub(super) async fn new(story: &str) -> Self {
        Self::with(story, "").await
    }

    /// The same with more lines of the connector's configuration.
    pub(super) async fn with(story: &str, lines: &str) -> Self {
        let (folder, port) = begin(story);
        let twilio = Emulate::start(&folder, &format!("http://127.0.0.1:{port}/webhooks/sms/main")).await;
        let api_url = twilio.url();
        Self::around(twilio, folder, port, lines, (&api_url, None)).await
    }

    /// The same, with something in front of Twilio's API.
    pub(super) async fn behind(story: &str, front: impl AsyncFnOnce(&str) -> String) -> Self {
        let (folder, port) = begin(story);
        let twilio = Emulate::start(&folder, &format!("http://127.0.0.1:{port}/webhooks/sms/main")).await;
        let api_url = front(&twilio.url()).await;
        Self::around(twilio, folder, port, "", (&api_url, None)).await
    }

    /// The same, for a connector that others know by another address. What people write is posted by the
    /// test, signed for that.
    pub(super) async fn known_as(story: &str, public_url: &str) -> Self {
        let (folder, port) = begin(story);
        let twilio = Emulate::start(&folder, &format!("{public_url}/webhooks/sms/main")).await;
        let api_url = twilio.url();
        Self::around(twilio, folder, port, "", (&api_url, Some(public_url))).await
    }

    async fn around(
        twilio: Emulate,
        folder: PathBuf,
        port: u16,
        more: &str,
        (api_url, public_url): (&str, Option<&str>),
    ) -> Self {
        let token = folder.join("token");
        std::fs::write(&token, AUTH_TOKEN).unwrap();
        // At the chattiest level, so that nothing can be in the log at any.
        let lines = format!(
            "{more}[log]\nlevel = \"trace\"\n[[bots]]\nplatform = \"sms\"\nid = {NUMBER:?}\nname = \"main\"\naccount_sid = {ACCOUNT:?}\n\
             auth_token = {{ file = {token:?} }}\napi_url = {api_url:?}\n"
        );
        let known = public_url.map(|url| ("ANGELIA_SERVER__PUBLIC_URL", url));
        let binary = Path::new(env!("CARGO_BIN_EXE_angelia"));
        let connector = Connector::start_as(binary, &folder, port, &lines, known.as_slice()).await;
        let gateway = connector.gateway("acme", "gw-acme").await;
        let stage = Self { twilio, connector, gateway, folder };
        stage.until_heard().await;
        stage
    }

    /// Waits until the connector has looked at Twilio's list: only what comes
    /// after that is no history.
    pub(super) async fn until_heard(&self) {
        let deadline = tokio::time::Instant::now() + SOON;
        while self.bot().await["health"]["state"] != "up" {
            assert!(tokio::time::Instant::now() < deadline, "the number is not up: {}", self.bot().await);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(super) async fn bot(&self) -> Value {
        let listed = self.connector.command(&["bot", "list"]).await;
        listed["bots"].as_array().unwrap().iter().find(|bot| bot["platform"] == "sms").unwrap().clone()
    }

    /// Gives a place to `acme`, whoever writes there.
    pub(super) async fn route(&self, place: &str) {
        self.connector.command(&["route", "add", "--tenant", "acme", "--allow", "any", place]).await;
    }

    /// The agent comes.
    pub(super) async fn join(&self) -> Socket {
        self.join_as(&self.gateway).await
    }

    pub(super) async fn join_as(&self, gateway: &Credentials) -> Socket {
        let mut socket = Socket::dial(&self.connector.url(), gateway).await.expect("let in");
        socket.hello("sms", NUMBER).await;
        let descriptor = socket.frame().await;
        assert_eq!(descriptor["type"], "descriptor", "{descriptor}");
        assert_eq!(descriptor["descriptor"]["max_message_length"], 1600, "{descriptor}");
        socket
    }

    /// Where Twilio posts messages.
    pub(super) fn hook(&self) -> String {
        format!("{}/webhooks/sms/main", self.connector.url())
    }

    /// The server's database, past the server.
    pub(super) fn disk(&self) -> Inspect {
        Inspect::of(&self.folder.join("data"))
    }

    pub(super) async fn explain(&self, message: &str) -> Value {
        self.connector.command(&["explain", message]).await
    }

    /// What the server logged.
    pub(super) fn log(&self) -> String {
        self.connector.whole_log()
    }

    /// What every test ends with: nothing panicked, and neither the token nor
    /// anybody's number is in the log.
    pub(super) fn close(&self) {
        let log = self.log();
        for bad in ["panicked", "hunter2", "+1555019", "%2B1555019"] {
            assert!(!log.contains(bad), "{bad} in {}", self.folder.display());
        }
    }
}

/// An empty folder, and a port.
fn begin(story: &str) -> (PathBuf, u16) {
    angelia_connector::ssrf_guard::install_tls_provider();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sms-stage-{story}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    (folder, free_port())
}

/// The next message an agent gets, acknowledged.
pub(super) async fn heard(socket: &mut Socket) -> Value {
    let frame = match socket.next(SOON).await {
        Next::Frame(frame) => frame,
        other => panic!("awaited a message, got {other:?}"),
    };
    assert_eq!(frame["type"], "inbound", "{frame}");
    assert!(!frame.to_string().contains("hunter2"), "a credential: {frame}");
    socket.ack(&frame).await;
    frame["event"].clone()
}

/// Answers where an event came from, as gateways do.
pub(super) async fn answer(socket: &mut Socket, event: &Value, text: &str) -> Value {
    let chat_id = &event["source"]["chat_id"];
    let reply_to = &event["message_id"];
    socket.ask(json!({ "op": "send", "chat_id": chat_id, "content": text, "reply_to": reply_to })).await
}
