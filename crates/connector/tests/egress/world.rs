//! A server in this process, with a scripted provider and a gateway's socket.

use super::platform::Scripted;
use super::slow_ledger::SlowLedger;
use angelia_connector::{
    EgressTimings, IdentityOptions, KeyKeeper, Keyring, Limits, Notices, Options, Server, Subscriber,
    ssrf_guard,
};
use angelia_core::admission::{Allow, Route, RouteOptions};
use angelia_core::audit::Actor;
use angelia_core::error::Result;
use angelia_core::identity::new_gateway_limits::GatewayLimits;
use angelia_core::inbox::Quota;
use angelia_core::ports::{Bus, Ports};
use angelia_core::seal::MasterKey;
use angelia_core::secret::Secret;
use angelia_core::store::IdentityStore;
use angelia_engines::inspect::{Inspect, SeenAction, StoppedCommits};
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::sqlite::Sqlite;
use angelia_testkit::connector::Credentials;
use angelia_testkit::socket::{Next, Socket};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;

/// How long an awaited thing may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long is waited for something that must not come.
pub(crate) const A_WHILE: Duration = Duration::from_millis(300);
pub(crate) const ADMIN_TOKEN: &str = "the admin token of this test";

pub(crate) const QUICK: EgressTimings = EgressTimings {
    queued_for: Duration::from_secs(30),
    again: Duration::from_millis(50),
    aside: Duration::from_millis(300),
};

pub(crate) struct World {
    pub(crate) platform: Arc<Scripted>,
    pub(crate) server: Arc<Server>,
    pub(crate) store: Arc<Sqlite>,
    pub(crate) url: String,
    admin: String,
    /// The disk, past the store.
    pub(crate) disk: Inspect,
    http: reqwest::Client,
    _folder: Option<TempDir>,
}

/// One of several servers over a store, or the only one.
pub(crate) struct Node {
    pub(crate) name: &'static str,
    pub(crate) shared: bool,
    pub(crate) timings: EgressTimings,
    pub(crate) notices: Notices,
    pub(crate) drain: Duration,
    /// How late its ledger tells what it accepted.
    pub(crate) told_after: Duration,
}

impl World {
    pub(crate) async fn new(platform: Arc<Scripted>) -> Self {
        Self::with(platform, QUICK).await
    }

    pub(crate) async fn with(platform: Arc<Scripted>, timings: EgressTimings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut world = Self::open(folder.path(), platform, timings).await;
        world._folder = Some(folder);
        world
    }

    /// One in which agents have so long to finish when it is asked to stop.
    pub(crate) async fn draining(platform: Arc<Scripted>, drain: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut world = Self::open_as(folder.path(), platform, QUICK, Notices::default(), drain).await;
        world._folder = Some(folder);
        world
    }

    /// A server over what is in `folder`; the place `fake:*` is the tenant `acme`'s.
    pub(crate) async fn open(folder: &Path, platform: Arc<Scripted>, timings: EgressTimings) -> Self {
        Self::open_with(folder, platform, timings, Notices::default()).await
    }

    /// The same, where an operator wants this said.
    pub(crate) async fn open_with(
        folder: &Path,
        platform: Arc<Scripted>,
        timings: EgressTimings,
        notices: Notices,
    ) -> Self {
        Self::open_as(folder, platform, timings, notices, Duration::ZERO).await
    }

    async fn open_as(
        folder: &Path,
        platform: Arc<Scripted>,
        timings: EgressTimings,
        notices: Notices,
        drain: Duration,
    ) -> Self {
        let bus: Arc<dyn Bus> = Arc::new(LocalBus::default());
        let subscriber = Subscriber::on(&bus);
        let store = Arc::new(Sqlite::open(folder, Quota::default(), bus).unwrap());
        let node = Node { name: "test", shared: false, timings, notices, drain, told_after: Duration::ZERO };
        Self::over(folder, &store, &subscriber, platform, node).await
    }

    /// A server over a store that is open, heard by `subscriber`.
    pub(crate) async fn over(
        folder: &Path,
        store: &Arc<Sqlite>,
        subscriber: &Arc<Subscriber>,
        platform: Arc<Scripted>,
        node: Node,
    ) -> Self {
        ssrf_guard::install_tls_provider();
        let Node { name, shared, timings, notices, drain, told_after } = node;
        let store = store.clone();
        let everywhere = Route {
            place: "fake:*".parse().unwrap(),
            bot: None,
            tenant: "acme".into(),
            instance: None,
            allow: Allow::Any,
            free: true,
            while_busy: None,
            options: RouteOptions::default(),
        };
        // Made by the first start only: a test may have taken it away.
        if store.gateways().await.unwrap().is_empty() && store.routes().await.unwrap().is_empty() {
            store.create_tenant("acme", None, &Actor::server()).await.unwrap();
            store.create_tenant("other", None, &Actor::server()).await.unwrap();
            store.add_route(everywhere, &Actor::server()).await.unwrap();
        }
        let disk = Inspect::of(folder);
        let _ = platform.disk.set(disk.clone());
        let options = Options {
            open_rooms: Vec::new(),
            webchat_pace: angelia_core::limit::Rate::a_minute(100_000, 100_000),
            master_key: Keyring::new(master_key(), Box::new(InMemory)),
            admin_token: Secret::new(ADMIN_TOKEN).into(),
            wake_allow_http: false,
            wake_allow: Vec::new(),
            file_sources: Vec::new(),
            webchat: true,
            platforms: vec![platform.clone()],
            egress: timings,
            turn_limit: Duration::from_secs(3_600),
            drain,
            source_flags: false,
            identity: IdentityOptions::default(),
            speaks_tls: false,
            public_url: "http://127.0.0.1".into(),
            notices,
            limits: Limits::default(),
            gateways: GatewayLimits::default(),
            shared_store: shared,
            takes_leases: true,
            node: name.into(),
            blobs: None,
            tenant_file_bytes: angelia_core::media::TENANT_BYTES,
        };
        let mut ports = Ports::of(&store);
        if !told_after.is_zero() {
            ports.ledger = Arc::new(SlowLedger(ports.ledger, told_after));
        }
        let server = Server::new(ports, subscriber, options).await.unwrap();
        server.start().await.unwrap();
        let url = serve(server.public_router()).await;
        let admin = serve(server.admin_router()).await;
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { platform, server, store, url, admin, disk, http, _folder: None }
    }

    /// Asks the admin API.
    pub(crate) async fn admin(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.admin_answer(path, body).await;
        assert!((200..300).contains(&status), "{path}: {answer}");
        answer
    }

    /// The same, for what may be refused.
    pub(crate) async fn admin_answer(&self, path: &str, body: Value) -> (u16, Value) {
        let url = format!("{}/admin/{path}", self.admin);
        let answer = self.http.post(url).bearer_auth(ADMIN_TOKEN).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Looks at something through the admin API.
    pub(crate) async fn look(&self, path: &str) -> Value {
        let url = format!("{}/admin/{path}", self.admin);
        self.http.get(url).bearer_auth(ADMIN_TOKEN).send().await.unwrap().json().await.unwrap()
    }

    pub(crate) async fn gateway(&self, tenant: &str, id: &str) -> Credentials {
        let made = self.admin("gateways", json!({ "tenant": tenant, "gateway_id": id })).await;
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        Credentials { gateway_id: text("gateway_id"), secret: text("secret") }
    }

    /// The gateway `gw` of the tenant `acme`, connected.
    pub(crate) async fn agent(&self) -> Agent {
        let credentials = self.gateway("acme", "gw").await;
        self.join(&credentials).await
    }

    pub(crate) async fn join(&self, credentials: &Credentials) -> Agent {
        Agent {
            socket: Socket::join(&self.url, credentials).await,
            answers: HashMap::new(),
            pushed: Vec::new(),
        }
    }

    /// Waits until the server says so of itself.
    pub(crate) async fn until_ready_says(&self, expected: &str) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let answer = self.http.get(format!("{}/readyz", self.url)).send().await.unwrap();
            let said = answer.text().await.unwrap();
            if said == expected {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "it says {said:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What the ledger says on disk, oldest first.
    pub(crate) fn ledger(&self) -> Vec<SeenAction> {
        self.disk.actions()
    }

    pub(crate) fn states(&self) -> Vec<String> {
        self.ledger().into_iter().map(|action| action.state.as_str().to_owned()).collect()
    }

    pub(crate) async fn until_states(&self, expected: &[&str]) {
        until(|| self.states() == expected, || format!("the ledger says {:?}", self.ledger())).await;
    }

    pub(crate) async fn until_texts(&self, expected: &[&str]) {
        let platform = &self.platform;
        until(|| platform.texts() == expected, || format!("{:?} were called", platform.texts())).await;
    }

    /// Nothing commits until it is dropped.
    pub(crate) fn stop_commits(&self) -> StoppedCommits {
        self.disk.stop_commits()
    }
}

/// Makes new keys, and keeps them nowhere.
pub(crate) struct InMemory;

impl KeyKeeper for InMemory {
    fn next(&self, _file: Option<&Path>) -> Result<MasterKey> {
        Ok(MasterKey::mint())
    }

    fn stage(&self, _next: &MasterKey) -> Result<()> {
        Ok(())
    }

    fn adopt(&self) -> Result<Option<String>> {
        Ok(None)
    }
}

/// The key that everything is sealed with at first.
pub(crate) fn master_key() -> MasterKey {
    MasterKey::from_hex(&"07".repeat(32)).unwrap()
}

pub(crate) async fn serve(router: axum::Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

/// Waits until something is so.
pub(crate) async fn until(mut holds: impl FnMut() -> bool, otherwise: impl Fn() -> String) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "{}", otherwise());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A gateway's socket, with requests under way.
pub(crate) struct Agent {
    socket: Socket,
    answers: HashMap<String, Value>,
    /// What it was given to read.
    pub(crate) pushed: Vec<Value>,
}

pub(crate) fn send(chat: &str, text: &str) -> Value {
    json!({"op": "send", "chat_id": chat, "content": text, "reply_to": null, "metadata": {}})
}

pub(crate) fn edit(chat: &str, message: &str, text: &str) -> Value {
    json!({"op": "edit", "chat_id": chat, "message_id": message, "content": text, "metadata": {}})
}

impl Agent {
    /// Asks for an action under `id`.
    pub(crate) async fn ask(&mut self, id: &str, action: Value) {
        self.socket.send(&json!({"type": "outbound", "requestId": id, "action": action})).await;
    }

    /// The answer to `id`.
    pub(crate) async fn answer(&mut self, id: &str) -> Value {
        loop {
            if let Some(answer) = self.answers.remove(id) {
                return answer;
            }
            let frame = self.socket.frame().await;
            self.take(frame);
        }
    }

    /// The answer to an action.
    pub(crate) async fn asked(&mut self, action: Value) -> Value {
        self.ask("r", action).await;
        self.answer("r").await
    }

    /// Whether `id` is without an answer, for a while.
    pub(crate) async fn waits_for(&mut self, id: &str) -> bool {
        while let Next::Frame(frame) = self.socket.next(A_WHILE).await {
            self.take(frame);
        }
        !self.answers.contains_key(id)
    }

    /// What comes next on its socket.
    pub(crate) async fn next(&mut self) -> Next {
        self.socket.next(PATIENCE).await
    }

    pub(crate) async fn close(self) {
        self.socket.close().await;
    }

    fn take(&mut self, frame: Value) {
        if frame.get("bufferId").is_some() {
            return self.pushed.push(frame);
        }
        assert_eq!(frame["type"], "outbound_result", "{frame}");
        let id = frame["requestId"].as_str().unwrap().to_owned();
        let second = self.answers.insert(id, frame["result"].clone());
        assert_eq!(second, None, "answered twice");
    }
}

/// The text of a failure.
pub(crate) fn error(answer: &Value) -> &str {
    assert_eq!(answer["success"], false, "{answer}");
    answer["error"].as_str().unwrap()
}
