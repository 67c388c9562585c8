//! A connector between the stand-in for Discord and agents, and the operator's hands.

use std::path::{Path, PathBuf};
use std::time::Duration;

use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::discord::{FakeDiscord, Guild};
use angelia_testkit::process::{Process, output};
use angelia_testkit::socket::Socket;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

/// How long something may take that happens at once on an idle machine.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// How often a state is read while it is waited for.
const POLL: Duration = Duration::from_millis(50);

/// One guild with one channel, one person, and the tenant `acme` that has both.
pub(crate) struct Stage {
    pub(crate) discord: FakeDiscord,
    pub(crate) connector: Connector,
    pub(crate) acme: Credentials,
    pub(crate) guild: Guild,
    pub(crate) quay: String,
    pub(crate) ann: String,
    folder: TempDir,
}

pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_angelia"))
}

impl Stage {
    pub(crate) async fn new(options: Value) -> Self {
        Self::with(options, "").await
    }

    /// The same with more lines of the connector's configuration.
    pub(crate) async fn with(options: Value, lines: &str) -> Self {
        Self::built(options, lines, |_| String::new(), &[]).await
    }

    /// The same with more lines of the bot's own, and environment variables.
    pub(crate) async fn built(
        options: Value,
        lines: &str,
        of_bot: impl FnOnce(&FakeDiscord) -> String,
        variables: &[(&str, &str)],
    ) -> Self {
        angelia_connector::ssrf_guard::install_tls_provider();
        let folder = tempfile::tempdir().unwrap();
        let discord = FakeDiscord::start(folder.path(), &options).await;
        let guild = discord.guild("Harbour").await;
        let quay = json!({ "guild": guild.id, "name": "quay", "topic": "ships" });
        let quay = discord.make("channel", quay).await;
        let ann = discord.make("user", json!({ "name": "ann", "global_name": "Ann" })).await;
        let bot = bot(folder.path(), &discord, discord.token());
        let lines = format!("{lines}\n{bot}{}", of_bot(&discord));
        let connector = Connector::start_as(binary(), folder.path(), low_port(), &lines, variables).await;
        let acme = connector.gateway("acme", "gw-acme").await;
        let stage = Self { discord, connector, acme, guild, quay, ann, folder };
        stage.route("acme", &["--allow", "any"], &format!("discord:{}", stage.guild.id)).await;
        stage.route("acme", &[], &format!("discord:dm:{}", stage.ann)).await;
        stage
    }

    /// The same, once the bot listens.
    pub(crate) async fn listening(options: Value) -> Self {
        let stage = Self::new(options).await;
        stage.until_session().await;
        stage
    }

    /// Waits until the bot has a session with a connection.
    pub(crate) async fn until_session(&self) {
        self.discord.until_state(SOON, |state| session(state).is_some()).await;
    }

    /// Waits until everything the bot was told of is taken in and reported.
    pub(crate) async fn until_reported(&self) {
        let is_reported =
            |state: &Value| session(state).is_some_and(|session| session["reported"] == session["seq"]);
        self.discord.until_state(SOON, is_reported).await;
    }

    pub(crate) async fn route(&self, tenant: &str, args: &[&str], place: &str) {
        let all = [&["route", "add", "--tenant", tenant], args, &[place]].concat();
        self.connector.command(&all).await;
    }

    /// An agent of `acme` on the wire.
    pub(crate) async fn agent(&self) -> Agent {
        self.agent_of(&self.acme).await
    }

    pub(crate) async fn agent_of(&self, credentials: &Credentials) -> Agent {
        let mut socket = Socket::dial(&self.connector.url(), credentials).await.expect("let in");
        socket.hello("discord", self.discord.bot_id()).await;
        let descriptor = socket.frame().await["descriptor"].clone();
        assert_eq!(descriptor["max_message_length"], 2000, "{descriptor}");
        let ops = json!([
            "send",
            "edit",
            "typing",
            "follow_up",
            "get_chat_info",
            "react",
            "prompt",
            "delete",
            "thread_create",
            "thread_rename"
        ]);
        // Nodes that share a store keep files only where they share a bucket.
        let mut offered = descriptor["supported_ops"].as_array().unwrap().clone();
        offered.retain(|op| op != "send_media");
        assert_eq!((&json!(offered), &descriptor["pii_safe"]), (&ops, &json!(false)));
        Agent { socket }
    }

    /// Runs a command of the binary: its exit code, its output, its errors.
    pub(crate) async fn angelia(&self, args: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(binary());
        command.arg("--config").arg(self.config()).args(args);
        let done = output(&args.join(" "), command, SOON).await;
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (done.status.code().unwrap_or(-1), text(done.stdout), text(done.stderr))
    }

    /// What `angelia explain` tells of a message, once it knows of a drop.
    pub(crate) async fn drop_of(&self, message: &str) -> Value {
        let deadline = Instant::now() + SOON;
        loop {
            let (_, told, _) = self.angelia(&["explain", message, "--json"]).await;
            let story: Value = serde_json::from_str(&told).unwrap_or_default();
            if story["drops"][0].is_object() {
                return story["drops"][0].clone();
            }
            assert!(Instant::now() < deadline, "nobody dropped {message}: {told}");
            sleep(POLL).await;
        }
    }

    /// The bot's line of `bot list`.
    pub(crate) async fn bot(&self) -> Value {
        let listed = self.connector.command(&["bot", "list"]).await;
        let bots = listed["bots"].as_array().cloned().unwrap_or_default();
        let own = bots.into_iter().find(|bot| bot["id"] == self.discord.bot_id());
        own.unwrap_or_else(|| panic!("no bot in {listed}"))
    }

    /// Waits until the bot's line satisfies `enough`.
    pub(crate) async fn until_bot(&self, enough: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + SOON;
        loop {
            let bot = self.bot().await;
            if enough(&bot) {
                return bot;
            }
            assert!(Instant::now() < deadline, "not within {SOON:?}: {bot:#}");
            sleep(POLL).await;
        }
    }

    /// Waits until so many entries wait for agents.
    pub(crate) async fn until_waiting(&self, count: u64) {
        let deadline = Instant::now() + SOON;
        loop {
            let listed = self.connector.command(&["inbox", "list"]).await;
            let inboxes = listed["inboxes"].as_array().into_iter().flatten();
            let waiting: u64 = inboxes.filter_map(|inbox| inbox["waiting"].as_u64()).sum();
            if waiting == count {
                return;
            }
            assert!(Instant::now() < deadline, "{waiting} entries wait, not {count}: {listed}");
            sleep(POLL).await;
        }
    }

    /// Stops the connector as an init system does.
    pub(crate) async fn stop(&mut self) {
        let status = self.connector.stop(Duration::from_secs(15)).await;
        assert!(status.success(), "{status}");
    }

    /// A process of the connector over the same data, without waiting for it.
    pub(crate) fn spawn(&self) -> Process {
        let mut command = Command::new(binary());
        command.arg("--config").arg(self.config()).arg("serve");
        Process::spawn("angelia", command, self.folder.path().join("angelia.log"))
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("angelia.toml")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Everything all runs of the connector wrote.
    pub(crate) fn log(&self) -> String {
        self.connector.whole_log()
    }

    /// The calls of a kind after number `since`.
    pub(crate) async fn calls(&self, since: u64, method: &str, ending: &str) -> usize {
        let calls = self.discord.requests(since).await;
        calls.iter().filter(|call| call.method == method && call.path.ends_with(ending)).count()
    }

    /// The number of the last call.
    pub(crate) async fn last_call(&self) -> u64 {
        self.discord.count("/rest/requests").await
    }
}

/// The session that has a connection; others may be left from before.
fn session(state: &Value) -> Option<&Value> {
    let sessions = state["gateway"]["sessions"].as_array()?;
    sessions.iter().find(|session| session["connected"] == true)
}

/// The lines that configure the bot of a stand-in.
pub(crate) fn bot(folder: &Path, discord: &FakeDiscord, token: &str) -> String {
    let path = folder.join("token");
    std::fs::write(&path, token).unwrap();
    format!(
        "[[bots]]\nplatform = \"discord\"\nid = \"{}\"\ntoken = {{ file = {path:?} }}\n\
         api_url = \"{}\"\ngateway_url = \"{}\"\n",
        discord.bot_id(),
        discord.url(),
        discord.gateway_url()
    )
}

/// A port below those that clients are given: a restarted server has to find it free.
fn low_port() -> u16 {
    use std::sync::atomic::{AtomicU16, Ordering};
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let spread = u16::try_from(std::process::id() % 89).unwrap() * 100;
    loop {
        let port = 10_000 + (spread + NEXT.fetch_add(1, Ordering::Relaxed)) % 9_000;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// An agent's socket.
pub(crate) struct Agent {
    pub(crate) socket: Socket,
}

impl Agent {
    /// The next event, acknowledged.
    pub(crate) async fn take(&mut self) -> Value {
        let frame = self.frame().await;
        assert_eq!(frame["type"], "inbound", "{frame}");
        self.socket.ack(&frame).await;
        frame["event"].clone()
    }

    /// The next event, which has to say this.
    pub(crate) async fn takes(&mut self, text: &str) -> Value {
        let event = self.take().await;
        assert_eq!(event["text"], text, "{event:#}");
        event
    }

    /// Asks for something and waits for what came of it.
    pub(crate) async fn ask(&mut self, action: Value) -> Value {
        self.socket.send(&json!({ "type": "outbound", "requestId": "r", "action": action })).await;
        let answer = self.frame().await;
        assert_eq!(answer["type"], "outbound_result", "{answer}");
        answer["result"].clone()
    }

    pub(crate) async fn send(&mut self, chat: &str, content: &str) -> Value {
        self.ask(json!({ "op": "send", "chat_id": chat, "content": content })).await
    }

    /// Sends something that has to arrive; its message's id.
    pub(crate) async fn sends(&mut self, chat: &str, content: &str) -> String {
        let result = self.send(chat, content).await;
        assert_eq!(result["success"], true, "{result}");
        result["message_id"].as_str().unwrap().to_owned()
    }

    async fn frame(&mut self) -> Value {
        use angelia_testkit::socket::Next;
        match self.socket.next(SOON).await {
            Next::Frame(frame) => frame,
            other => panic!("awaited a frame, got {other:?}"),
        }
    }
}
