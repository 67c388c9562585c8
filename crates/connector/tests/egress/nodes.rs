//! Two nodes over one store: what people of the web chat see on the other one, interrupts,
//! who is there, and two processes that use one gateway id on both.

use super::world::{ADMIN_TOKEN, InMemory, master_key, serve};
use angelia_connector::{
    EgressTimings, IdentityOptions, Keyring, Limits, Notices, Options, Server, Subscriber, ssrf_guard,
};
use angelia_core::clock::UnixMillis;
use angelia_core::identity::new_gateway_limits::GatewayLimits;
use angelia_core::inbox::{Epoch, InstanceId, Quota};
use angelia_core::ports::log::Log as _;
use angelia_core::ports::{Bus, Control, Hint, Ports, Said};
use angelia_core::secret::Secret;
use angelia_engines::deaf_bus::DeafBus;
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::sqlite::Sqlite;
use angelia_testkit::connector::Credentials;
use angelia_testkit::socket::{Next, Socket};
use angelia_testkit::webchat::{Person, http_client};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::Instant;

/// How long an awaited thing may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it takes without a bus to see what another node did.
const WITHOUT_BUS: Duration = Duration::from_millis(2_500);
const KEY: &str = "agent:main:relay:dm:web-dm:ann";

struct Node {
    url: String,
    admin: String,
    server: Arc<Server>,
}

struct Pair {
    a: Node,
    b: Node,
    bus: Arc<dyn Bus>,
    store: Arc<Sqlite>,
    /// The bus knows them for as long as somebody has them.
    _subscribers: [Arc<Subscriber>; 2],
    _folder: TempDir,
}

impl Node {
    async fn start(name: &str, store: &Arc<Sqlite>, subscriber: &Arc<Subscriber>) -> Self {
        let options = Options {
            open_rooms: Vec::new(),
            webchat_pace: angelia_core::limit::Rate::a_minute(100_000, 100_000),
            master_key: Keyring::new(master_key(), Box::new(InMemory)),
            admin_token: Secret::new(ADMIN_TOKEN).into(),
            wake_allow_http: false,
            wake_allow: Vec::new(),
            file_sources: Vec::new(),
            webchat: true,
            platforms: Vec::new(),
            egress: EgressTimings::default(),
            turn_limit: Duration::from_secs(3_600),
            drain: Duration::ZERO,
            source_flags: false,
            identity: IdentityOptions::default(),
            speaks_tls: false,
            public_url: "http://127.0.0.1".into(),
            notices: Notices::default(),
            limits: Limits::default(),
            gateways: GatewayLimits::default(),
            shared_store: true,
            takes_leases: true,
            node: name.into(),
            blobs: None,
            tenant_file_bytes: angelia_core::media::TENANT_BYTES,
        };
        let server = Server::new(Ports::of(store), subscriber, options).await.unwrap();
        server.start().await.unwrap();
        let url = serve(server.public_router()).await;
        let admin = serve(server.admin_router()).await;
        Self { url, admin, server }
    }

    async fn admin(&self, path: &str, body: Value) -> Value {
        let url = format!("{}/admin/{path}", self.admin);
        let answer = http_client().post(url).bearer_auth(ADMIN_TOKEN).json(&body).send().await.unwrap();
        let (status, answer) = (answer.status(), answer.json::<Value>().await.unwrap());
        assert!(status.is_success(), "{path}: {answer}");
        answer
    }

    async fn look(&self, path: &str) -> Value {
        let url = format!("{}/admin/{path}", self.admin);
        http_client().get(url).bearer_auth(ADMIN_TOKEN).send().await.unwrap().json().await.unwrap()
    }

    async fn gateway(&self, id: &str) -> Credentials {
        let made = self.admin("gateways", json!({ "gateway_id": id })).await;
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        Credentials { gateway_id: text("gateway_id"), secret: text("secret") }
    }

    /// Dials as soon as the node knows the gateway.
    async fn join(&self, credentials: &Credentials) -> Socket {
        let deadline = Instant::now() + PATIENCE;
        while Socket::dial(&self.url, credentials).await.is_err() {
            assert!(Instant::now() < deadline, "let in");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Socket::join(&self.url, credentials).await
    }

    /// Invites ann to her room; answers her key.
    async fn invite(&self) -> String {
        let invited = self.admin("webchat/invites", json!({ "user": "ann" })).await;
        invited["key"].as_str().unwrap().to_owned()
    }

    fn person(&self, key: &str) -> Person {
        Person::enter(&self.url, "dm:ann", "ann", key)
    }

    /// Whether the page says that the agent is there.
    async fn sees_agent(&self, key: &str) -> bool {
        let me =
            http_client().get(format!("{}/chat/api/me", self.url)).bearer_auth(key).send().await.unwrap();
        me.json::<Value>().await.unwrap()["agent"]["connected"] == true
    }

    async fn counter(&self, name: &str) -> u64 {
        let all = http_client().get(format!("{}/metrics", self.admin)).bearer_auth(ADMIN_TOKEN);
        let all = all.send().await.unwrap().text().await.unwrap();
        let line = all.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or_default()
    }
}

impl Pair {
    async fn new() -> Self {
        let bus: Arc<dyn Bus> = Arc::new(LocalBus::default());
        Self::on(bus.clone(), bus).await
    }

    /// Nodes that do not hear each other. The store speaks to the first.
    async fn deaf() -> Self {
        Self::on(Arc::new(DeafBus::default()), Arc::new(DeafBus::default())).await
    }

    async fn on(a: Arc<dyn Bus>, b: Arc<dyn Bus>) -> Self {
        ssrf_guard::install_tls_provider();
        let folder = tempfile::tempdir().unwrap();
        let subscribers = [&a, &b].map(Subscriber::on);
        let store = Arc::new(Sqlite::open(folder.path(), Quota::default(), a.clone()).unwrap());
        let a_node = Node::start("a", &store, &subscribers[0]).await;
        let b_node = Node::start("b", &store, &subscribers[1]).await;
        Self { a: a_node, b: b_node, bus: a, store, _subscribers: subscribers, _folder: folder }
    }

    async fn stop(self) {
        tokio::join!(self.a.server.stop(), self.b.server.stop());
    }
}

/// Waits until something is so; answers how long it took.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    began.elapsed()
}

fn texts(person: &Person) -> Vec<String> {
    let lines = person.events().into_iter().filter(|event| event.kind == "message");
    lines.map(|event| event.text).collect()
}

/// Lines, on a node that hears or does not.
async fn lines_reach_readers_elsewhere(pair: &Pair, within: Duration) {
    let key = pair.a.invite().await;
    let (here, there) = (pair.a.person(&key), pair.b.person(&key));
    here.say("from a").await;
    let took = until("a line of a", async || texts(&there) == ["from a"]).await;
    assert!(took < within, "{took:?}");
    there.say("from b").await;
    until("a line of b", async || texts(&here).len() == 2).await;
    drop(there);
    for text in ["three", "four"] {
        here.say(text).await;
    }
    let mut last_seen = event_stream(&pair.b, &key, "2").await;
    let shown = read_until(&mut last_seen, "four").await;
    let ids: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert_eq!(ids, ["3", "4"], "after the last one that was seen: {shown}");
    here.say("five").await;
    let shown = read_until(&mut last_seen, "five").await;
    assert!(shown.contains("id: 5"), "{shown}");

    pair.a.admin("webchat/revoke", json!({ "user": "ann" })).await;
    let ends = async { while let Some(Ok(_)) = last_seen.next().await {} };
    tokio::time::timeout(within, ends).await.expect("nobody reads on whose key is void");
}

type Bytes = std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>;

async fn event_stream(node: &Node, key: &str, last: &str) -> Bytes {
    let events = http_client().get(format!("{}/chat/api/rooms/dm:ann/events", node.url));
    let events = events.bearer_auth(key).header("Last-Event-ID", last).send().await.unwrap();
    assert!(events.status().is_success());
    Box::pin(events.bytes_stream())
}

async fn read_until(stream: &mut Bytes, text: &str) -> String {
    let mut shown = String::new();
    let read = async {
        while !shown.contains(text) {
            shown.push_str(&String::from_utf8_lossy(&stream.next().await.unwrap().unwrap()));
        }
    };
    tokio::time::timeout(PATIENCE, read).await.unwrap();
    shown
}

#[tokio::test]
async fn lines_and_void_keys_reach_readers_on_another_node() {
    let pair = Pair::new().await;
    lines_reach_readers_elsewhere(&pair, Duration::from_millis(700)).await;
    pair.stop().await;
}

#[tokio::test]
async fn lines_and_void_keys_reach_them_without_a_bus() {
    let pair = Pair::deaf().await;
    lines_reach_readers_elsewhere(&pair, WITHOUT_BUS).await;
    pair.stop().await;
}

#[tokio::test]
async fn whoever_looks_sees_an_agent_that_is_on_another_node() {
    let pair = Pair::deaf().await;
    let agent = pair.a.gateway("gw").await;
    let key = pair.a.invite().await;
    assert!(!pair.b.sees_agent(&key).await);
    let socket = pair.a.join(&agent).await;
    until("people see it", async || pair.b.sees_agent(&key).await).await;
    let connected = async |node: &Node| {
        let one = node.admin("gateways/gw/show", json!({})).await["connected"] == true;
        let listed = node.look("gateways").await["gateways"][0]["connected"] == true;
        let status = node.look("status").await["gateways"][0]["connected"] == true;
        [one, listed, status]
    };
    assert_eq!((connected(&pair.a).await, connected(&pair.b).await), ([true; 3], [true; 3]));
    socket.close().await;
    until("people see that it went", async || !pair.b.sees_agent(&key).await).await;
    assert_eq!((connected(&pair.a).await, connected(&pair.b).await), ([false; 3], [false; 3]));
    pair.stop().await;
}

/// An interrupt of a gateway on one node for a turn on the other; answers how long it took.
async fn interrupted(pair: &Pair) -> (Socket, Socket, Duration) {
    let (one, two) = (pair.a.gateway("one").await, pair.a.gateway("two").await);
    let mut works = pair.a.join(&one).await;
    let key = pair.a.invite().await;
    pair.a.person(&key).say("a turn").await;
    assert_eq!(works.take_text().await, "a turn");
    let mut asks = pair.b.join(&two).await;
    let began = Instant::now();
    asks.send(&json!({"type": "interrupt", "session_key": KEY, "reason": null})).await;
    let frame = works.frame().await;
    assert_eq!(frame, json!({"type": "interrupt_inbound", "session_key": KEY, "chat_id": "web-dm:ann"}));
    let took = began.elapsed();
    let once = works.next(Duration::from_millis(1_500)).await;
    assert_eq!(once, Next::Silence, "by the bus and by the signs of life, and once");
    assert_eq!(pair.b.counter("angelia_relay_interrupts_unresolved_total").await, 0);
    (works, asks, took)
}

#[tokio::test]
async fn an_interrupt_finds_its_turn_on_another_node_and_said_again_it_ends_none() {
    let pair = Pair::new().await;
    let (mut works, mut asks, took) = interrupted(&pair).await;
    assert!(took < Duration::from_millis(500), "{took:?}");
    let [now, long_ago] = [0, 60_000].map(|ago| UnixMillis(angelia_core::clock::wall().0 - ago));
    let state = pair.store.states(vec![InstanceId(1), InstanceId(2), InstanceId(3)]).await.unwrap();
    let state = state.into_iter().find(|state| state.node.as_deref() == Some("a")).unwrap();
    let said = |number, at, epoch| {
        Hint::Control(Control::Interrupt {
            instance: state.instance,
            epoch,
            session_key: KEY.into(),
            chat_id: "web-dm:ann".into(),
            said: Said { node: "b".into(), number, at },
        })
    };
    pair.bus.publish(said(77, long_ago, state.epoch));
    pair.bus.publish(said(78, now, Epoch(state.epoch.0 + 1)));
    let nothing = works.next(Duration::from_millis(300)).await;
    assert_eq!(nothing, Next::Silence, "an old one, and one for a socket that came after");
    pair.bus.publish(said(79, now, state.epoch));
    pair.bus.publish(said(79, now, state.epoch));
    assert_eq!(works.frame().await["type"], "interrupt_inbound");
    assert_eq!(works.next(Duration::from_millis(300)).await, Next::Silence, "said twice");

    works.close().await;
    asks.send(&json!({"type": "interrupt", "session_key": KEY, "reason": null})).await;
    let unresolved = async || pair.b.counter("angelia_relay_interrupts_unresolved_total").await == 1;
    until("nobody works on it", unresolved).await;
    pair.stop().await;
}

#[tokio::test]
async fn an_interrupt_arrives_without_a_bus() {
    let pair = Pair::deaf().await;
    let (.., took) = interrupted(&pair).await;
    assert!(took < WITHOUT_BUS, "{took:?}");
    pair.stop().await;
}

/// Two processes that take each other's socket on two nodes, until both nodes turn them away.
async fn flap(pair: &Pair) {
    let gateway = pair.a.gateway("gw").await;
    until("b knows it", async || pair.b.look("gateways").await["gateways"][0].is_object()).await;
    let mut socket = pair.a.join(&gateway).await;
    let mut taken = 0;
    let refused = loop {
        taken += 1;
        assert!(taken < 12, "they are never seen");
        let node = if taken % 2 == 0 { &pair.a } else { &pair.b };
        let mut next = match Socket::dial(&node.url, &gateway).await {
            Ok(next) => next,
            Err(refused) => break refused,
        };
        next.hello("webchat", "webchat").await;
        loop {
            match socket.next(PATIENCE).await {
                Next::Frame(_) => {}
                Next::Closed(code, _) => break assert_eq!(code, 1001),
                other => panic!("{other:?}"),
            }
        }
        // A process that lives answers the close.
        socket.send(&json!({"type": "going_idle"})).await;
        socket.close().await;
        // Fixed pause: what one replaced says after its close is heard for a second.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        socket = next;
    };
    assert_eq!(refused.status, 503);
    assert!(taken <= 5, "three on both nodes together are too many, not on each: {taken}");
    for node in [&pair.a, &pair.b] {
        until("both nodes turn them away", async || Socket::dial(&node.url, &gateway).await.is_err()).await;
    }
    drop(socket);
}

#[tokio::test]
async fn two_processes_with_one_id_are_seen_on_whichever_nodes() {
    let pair = Pair::new().await;
    flap(&pair).await;
    pair.stop().await;
}

#[tokio::test]
async fn two_processes_with_one_id_are_seen_without_a_bus() {
    let pair = Pair::deaf().await;
    flap(&pair).await;
    pair.stop().await;
}
