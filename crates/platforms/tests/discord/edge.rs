//! A bot that is posted to, over a real store, and an API that notes its calls.

use super::world::{Door, Gate, Hand, Plain, store_in};
use angelia_contract::action::Action;
use angelia_core::clock;
use angelia_core::egress::Target;
use angelia_core::inbox::{Entry, EntryKind, InstanceId, Interaction, Rendering, Seq};
use angelia_core::ports::Ports;
use angelia_core::secret::Secret;
use angelia_core::store::{ActionId, PageSize, VaultStore};
use angelia_core::vault::Capability;
use angelia_platforms::discord::{Config, Discord};
use angelia_platforms::{
    Answer, Delivery, Earlier, FromGateways, Ingress, Outcome, Platform, Stop, default_commands,
};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Request, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use ed25519_dalek::{Signer, SigningKey};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tower::ServiceExt;

pub(crate) const BOT: &str = "77";
/// What nobody but Discord may see again.
pub(crate) const TOKEN: &str = "c4nary-aW50ZXJhY3Rpb246OTAw";

/// One call of the bot's.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) what: String,
    pub(crate) by_bot: bool,
    pub(crate) body: Value,
}

/// Answers as Discord does, unless it was told otherwise for the next calls.
#[derive(Default)]
pub(crate) struct Api {
    pub(crate) made: Mutex<Vec<Made>>,
    pub(crate) next: Mutex<VecDeque<(u16, Value)>>,
    ids: AtomicU64,
}

impl Api {
    async fn start() -> (Arc<Self>, String) {
        let api = Arc::new(Self::default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(called).with_state(api.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (api, url)
    }

    /// What was called, without the version.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.made.lock().unwrap().iter().map(|made| made.what.clone()).collect()
    }

    pub(crate) fn answer_next(&self, status: u16, body: Value) {
        self.next.lock().unwrap().push_back((status, body));
    }
}

async fn called(
    State(api): State<Arc<Api>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.to_string().replace("/api/v10/", "");
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let what = format!("{method} {path}");
    let by_bot = headers.contains_key("authorization");
    api.made.lock().unwrap().push(Made { what: what.clone(), by_bot, body: body.clone() });
    if let Some((status, body)) = api.next.lock().unwrap().pop_front() {
        return (StatusCode::from_u16(status).unwrap(), Json(body)).into_response();
    }
    let answer = match what.as_str() {
        "GET applications/@me" => json!({"id": "78", "flags": 1 << 18}),
        "GET applications/78/commands" => json!([{"id": "1", "type": 1, "name": "ask", "description": "d"}]),
        "GET channels/111" => json!({"id": "111", "type": 0, "guild_id": "900", "name": "general"}),
        "PUT applications/78/commands" => body,
        _ => {
            let id = (5_000 + api.ids.fetch_add(1, Ordering::SeqCst)).to_string();
            json!({"id": id, "content": body["content"]})
        }
    };
    Json(answer).into_response()
}

pub(crate) struct Edge {
    pub(crate) api: Arc<Api>,
    pub(crate) ports: Ports,
    pub(crate) door: Arc<Door>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) seal: Arc<Plain>,
    pub(crate) bot: Arc<Discord>,
    instance: InstanceId,
    router: Router,
    key: SigningKey,
    folder: TempDir,
}

impl Edge {
    pub(crate) async fn new() -> Self {
        // The client wants a TLS provider even for addresses without TLS.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let gate = Arc::new(Gate::default());
        let (ports, instance) = store_in(folder.path(), gate.bus()).await;
        let (api, url) = Api::start().await;
        let key = SigningKey::from_bytes(&[9; 32]);
        let config = Config {
            id: BOT.into(),
            name: "main".into(),
            token: Secret::new("bot-token"),
            api_url: Some(url),
            gateway_url: None,
            public_key: Some(hex(key.verifying_key().as_bytes())),
            interactions: Rendering::Event,
            commands: default_commands(),
            gateway_commands: FromGateways::default(),
        };
        let bot = Discord::new(config, ports.clone()).unwrap();
        let door = Arc::new(Door::new(instance));
        let seal = Arc::new(Plain::default());
        let ingress = Ingress {
            ports: ports.clone(),
            admission: door.clone(),
            seal: seal.clone(),
            source_flags: false,
            public_url: "http://127.0.0.1".into(),
            held: Arc::default(),
            under: Default::default(),
            nodes: None,
            stop: Stop::new().1,
        };
        let router = bot.clone().webhooks(ingress);
        Self { api, ports, door, gate, seal, bot, instance, router, key, folder }
    }

    /// Posts an interaction as Discord does.
    pub(crate) async fn post(&self, body: &Value) -> Value {
        let (status, answer) = self.post_raw(&body.to_string(), |_| {}).await;
        assert_eq!(status, StatusCode::OK);
        answer
    }

    /// The same; answers what status it gets.
    pub(crate) async fn status_of(&self, body: &Value) -> StatusCode {
        self.post_raw(&body.to_string(), |_| {}).await.0
    }

    /// Posts something signed, and then changed.
    pub(crate) async fn post_raw(
        &self,
        body: &str,
        change: impl FnOnce(&mut Request<Body>),
    ) -> (StatusCode, Value) {
        let time = clock::wall().seconds().to_string();
        let signature = self.key.sign(format!("{time}{body}").as_bytes());
        let mut request = Request::post("/webhooks/discord/main")
            .header("x-signature-ed25519", hex(&signature.to_bytes()))
            .header("x-signature-timestamp", time)
            .body(Body::from(body.to_owned()))
            .unwrap();
        change(&mut request);
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let answer = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        if status.is_success() {
            assert_eq!(headers["content-type"], "application/json");
        }
        (status, serde_json::from_slice(&answer).unwrap_or_default())
    }

    /// What waits in the inbox.
    pub(crate) async fn entries(&self) -> Vec<(Entry, Interaction)> {
        let mut entries =
            self.ports.log.load(self.instance, Seq(0), &[], PageSize::of(100)).await.unwrap().page.items;
        entries.extend(self.ahead().await);
        entries.sort_by_key(|entry| entry.seq);
        let read = |entry: Entry| {
            assert_eq!(entry.kind, EntryKind::Interaction);
            let interaction = Interaction::read(&entry.body).unwrap();
            (entry, interaction)
        };
        entries.into_iter().map(read).collect()
    }

    /// What goes ahead of it.
    pub(crate) async fn ahead(&self) -> Vec<Entry> {
        self.ports.log.load_ahead(self.instance, PageSize::of(100)).await.unwrap().page.items
    }

    pub(crate) async fn capabilities(&self) -> Vec<Capability> {
        self.ports.records.capabilities(self.instance, clock::wall()).await.unwrap()
    }

    /// Everything the store has written, as bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let files = std::fs::read_dir(self.folder.path().join("data")).unwrap();
        files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap_or_default()).collect()
    }

    pub(crate) async fn deliver(&self, id: i64, action: Action, answer: Option<Answer>) -> Outcome {
        self.deliver_after(Earlier::Nothing, id, action, answer).await
    }

    pub(crate) async fn deliver_after(
        &self,
        earlier: Earlier,
        id: i64,
        action: Action,
        answer: Option<Answer>,
    ) -> Outcome {
        let (target, progress) = (Target::chat("111"), Arc::new(Hand::default()));
        self.bot
            .deliver(Delivery {
                id: ActionId(id),
                received_at: clock::wall(),
                target,
                action,
                answer,
                file: None,
                earlier,
                progress,
            })
            .await
    }

    pub(crate) fn count(&self, what: &str) -> u64 {
        self.bot.health().unwrap().counts.get(what).copied().unwrap_or_default()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A command in a channel of a guild.
pub(crate) fn command(id: &str, data: Value) -> Value {
    json!({
        "id": id, "type": 2, "application_id": BOT, "token": TOKEN, "version": 1,
        "channel_id": "111", "guild_id": "900", "context": 0,
        "channel": {"id": "111", "type": 0, "guild_id": "900", "name": "general", "parent_id": "300"},
        "member": {"nick": "Annie", "user": {"id": "42", "username": "ann", "global_name": "Ann"}},
        "data": data,
    })
}

/// What a person is told at once; nobody else sees it.
pub(crate) fn words(answer: &Value) -> &str {
    assert_eq!((&answer["type"], &answer["data"]["flags"]), (&json!(4), &json!(64)), "{answer}");
    answer["data"]["content"].as_str().unwrap()
}
