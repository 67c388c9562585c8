//! The usual beginning: WeCom, a connector with an app there, an agent.

use super::telegram_stage::binary;
use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::socket::{Next, Socket};
use angelia_testkit::wecom::FakeWecom;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long something may take on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// Secrets that are easily found where they must not be.
const SECRET: &str = "hunter2-secret-of-the-app";
const TOKEN: &str = "hunter2Token";

/// WeCom, a connector and a gateway of the tenant `acme`.
pub(crate) struct Stage {
    pub(crate) wecom: FakeWecom,
    pub(crate) connector: Connector,
    pub(crate) gateway: Credentials,
    pub(crate) folder: PathBuf,
}

impl Stage {
    /// With an app called `main` that Ann and Bob see, and no route.
    pub(crate) async fn new(story: &str) -> Self {
        Self::with(story, "").await
    }

    /// The same with more lines of the connector's configuration.
    pub(crate) async fn with(story: &str, lines: &str) -> Self {
        angelia_connector::ssrf_guard::install_tls_provider();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("wecom-stage-{story}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let wecom = FakeWecom::start(&folder, &["--secret", SECRET, "--token", TOKEN]).await;
        let lines = format!("{lines}{}", bot(&wecom, &folder));
        let connector = Connector::start_with(binary(), &folder, &lines).await;
        let gateway = connector.gateway("acme", "gw-acme").await;
        let stage = Self { wecom, connector, gateway, folder };
        let tried = stage.wecom.callback(&stage.hook()).await;
        assert_eq!((&tried["status"], &tried["body"]), (&json!(200), &tried["expected"]), "{tried}");
        assert_eq!(tried["content_type"], "text/plain");
        for person in ["Ann", "bob"] {
            stage.wecom.person(person).await;
        }
        stage
    }

    /// Where the app calls back to.
    pub(crate) fn hook(&self) -> String {
        format!("{}/webhooks/wecom/main", self.connector.url())
    }

    /// Gives a place to a tenant.
    pub(crate) async fn route(&self, tenant: &str, place: &str, more: &[&str]) {
        let made =
            self.connector.command(&[&["route", "add", "--tenant", tenant], more, &[place]].concat()).await;
        assert_eq!(made["place"], place, "{made}");
    }

    /// The agent comes.
    pub(crate) async fn join(&self, gateway: &Credentials) -> Socket {
        let mut socket = Socket::dial(&self.connector.url(), gateway).await.expect("let in");
        socket.hello("wecom", &self.wecom.id()).await;
        let descriptor = socket.frame().await;
        assert_eq!(descriptor["descriptor"]["platform"], "wecom", "{descriptor}");
        socket
    }

    /// How the app is, as `bot list` says.
    pub(crate) async fn bot(&self) -> Value {
        let listed = self.connector.command(&["bot", "list"]).await;
        let found = listed["bots"].as_array().unwrap().iter().find(|bot| bot["platform"] == "wecom");
        found.unwrap_or_else(|| panic!("no WeCom app in {listed}")).clone()
    }

    /// How often something was counted.
    pub(crate) async fn counted(&self, what: &str) -> u64 {
        self.bot().await["health"]["counts"][what].as_u64().unwrap_or_default()
    }

    /// What the server logged.
    pub(crate) fn log(&self) -> String {
        self.connector.whole_log()
    }

    /// What every test ends with: nothing panicked, and no secret is in the log.
    pub(crate) async fn close(&self) {
        let log = self.log();
        assert!(!log.contains("panicked"), "see {}", self.folder.display());
        for secret in ["hunter2", self.wecom.aes_key(), "access_token="] {
            assert!(!log.contains(secret), "{secret} is in {}", self.folder.display());
        }
    }
}

fn bot(wecom: &FakeWecom, folder: &Path) -> String {
    let secret = |name: &str, text: &str| {
        let file = folder.join(name);
        std::fs::write(&file, text).unwrap();
        format!("{name} = {{ file = {file:?} }}\n")
    };
    // At the chattiest level, so that nothing can be in the log at any.
    format!(
        "[log]\nlevel = \"trace\"\n[[bots]]\nplatform = \"wecom\"\nname = \"main\"\nid = {:?}\napi_url = {:?}\n{}{}{}",
        wecom.id(),
        wecom.url(),
        secret("secret", wecom.secret()),
        secret("callback_token", wecom.token()),
        secret("encoding_aes_key", wecom.aes_key()),
    )
}

/// The next message an agent gets, acknowledged.
pub(crate) async fn heard(socket: &mut Socket) -> Value {
    let frame = match socket.next(SOON).await {
        Next::Frame(frame) => frame,
        other => panic!("awaited a message, got {other:?}"),
    };
    assert_eq!(frame["type"], "inbound", "{frame}");
    assert!(!frame.to_string().contains("hunter2"), "a credential: {frame}");
    socket.ack(&frame).await;
    frame["event"].clone()
}

/// The text of the next message an agent gets.
pub(crate) async fn heard_text(socket: &mut Socket) -> String {
    heard(socket).await["text"].as_str().unwrap().to_owned()
}

/// Writes to somebody.
pub(crate) async fn send(socket: &mut Socket, user: &str, text: &str) -> Value {
    socket.ask(json!({ "op": "send", "chat_id": user, "content": text })).await
}

/// Nothing comes any more.
pub(crate) async fn quiet(socket: &mut Socket) {
    assert_eq!(socket.next(Duration::from_millis(200)).await, Next::Silence);
}
