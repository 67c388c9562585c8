//! Bots on nodes that share a store: what is posted where a bot is not, and bots that come back.

use crate::admission::{Admission, Linking, Presence, Which};
use crate::ingress::{Ingress, Seal, Stop};
use crate::nodes::{Carried, Duty, Forwarded, Nodes};
use crate::overheard::{Deaf, Overheard};
use crate::platform::Platform;
use crate::wecom::crypto::{Key, encrypt};
use crate::wecom::verify::Keys;
use crate::{BotState, sms, telegram, wecom};
use angelia_core::admission::{Admitted, DropReason, Observed};
use angelia_core::audit::Actor;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::directory::BotKey;
use angelia_core::error::Result;
use angelia_core::inbox::{InstanceId, Quota, Seq};
use angelia_core::lease::of_bot;
use angelia_core::ports::{Leases, Ports, Term};
use angelia_core::seal::Sealed;
use angelia_core::secret::Secret;
use angelia_core::store::{IdentityStore, NewGateway, PageSize};
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::sqlite::Sqlite;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

const SOON: Duration = Duration::from_secs(20);

/// A provider that answers methods of Telegram's and WeCom's, and was asked for those.
#[derive(Clone, Default)]
struct Provider {
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    updates: Arc<Mutex<Vec<Value>>>,
}

impl Provider {
    async fn start() -> (Self, String) {
        // It brings the process a TLS provider.
        let _ = angelia_testkit::webchat::http_client();
        let provider = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new().fallback(answer).with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        (provider, url)
    }

    fn asked(&self, method: &str) -> Vec<Value> {
        self.asked.lock().iter().filter(|(name, _)| name == method).map(|(_, asked)| asked.clone()).collect()
    }

    fn says(&self, number: i64, text: &str) {
        self.updates.lock().push(update(number, text));
    }
}

fn update(number: i64, text: &str) -> Value {
    let person = json!({"id": 1001, "type": "private", "first_name": "Ann"});
    let message =
        json!({"message_id": number, "date": 1, "chat": person, "from": {"id": 1001}, "text": text});
    json!({"update_id": number, "message": message})
}

async fn answer(State(provider): State<Provider>, request: Request) -> Json<Value> {
    let method = request.uri().path().rsplit('/').next().unwrap().to_owned();
    let body = axum::body::to_bytes(request.into_body(), 100_000).await.unwrap();
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    provider.asked.lock().push((method.clone(), asked.clone()));
    let result = match method.as_str() {
        "getMe" => json!({"id": 77, "is_bot": true, "first_name": "Bot", "username": "angelia_bot"}),
        "getUpdates" => {
            sleep(Duration::from_millis(20)).await;
            let from = asked["offset"].as_i64().unwrap_or_default();
            let waiting = provider.updates.lock().clone();
            waiting.into_iter().filter(|update| update["update_id"].as_i64() >= Some(from)).collect()
        }
        "gettoken" => return Json(json!({"errcode": 0, "access_token": "t", "expires_in": 7200})),
        "get" => return Json(json!({"errcode": 0, "name": "app"})),
        _ => json!(true),
    };
    Json(json!({"ok": true, "result": result}))
}

/// Another node, which may have the bot and may answer.
#[derive(Default)]
struct Other {
    is_here: AtomicBool,
    answers: Mutex<Option<StatusCode>>,
    /// Whether nobody answers for long.
    hangs: AtomicBool,
    /// Path, headers and body of what was passed on.
    passed_on: Mutex<Vec<(String, usize, String)>>,
}

impl Nodes for Other {
    fn has(&self, _bot: &BotKey) -> bool {
        self.is_here.load(Ordering::SeqCst)
    }

    fn count(&self) -> usize {
        2
    }

    fn forward<'a>(
        &'a self,
        _bot: &'a BotKey,
        Carried { parts, headers, body }: Carried<'a>,
        _within: Duration,
    ) -> BoxFuture<'a, Option<Response>> {
        let headers = headers.iter().filter(|name| parts.headers.contains_key(**name)).count();
        let body = String::from_utf8_lossy(body).into_owned();
        self.passed_on.lock().push((parts.uri.path().to_owned(), headers, body));
        let (answer, hangs) = (*self.answers.lock(), self.hangs.load(Ordering::SeqCst));
        Box::pin(async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            answer.map(IntoResponse::into_response)
        })
    }

    fn duty(&self, _name: &str) -> Arc<dyn Duty> {
        unreachable!("nothing is shared out")
    }

    fn no_duty(&self, _name: &str) {}

    fn turn<'a>(&'a self, _name: &'a str, _span: Duration) -> BoxFuture<'a, Result<bool>> {
        unreachable!("nobody takes turns")
    }
}

struct World {
    ports: Ports,
    instance: InstanceId,
    other: Arc<Other>,
    provider: Provider,
    api_url: String,
    _folder: TempDir,
}

impl World {
    async fn new() -> Self {
        let (provider, api_url) = Provider::start().await;
        let folder = tempfile::tempdir().unwrap();
        let bus = Arc::new(LocalBus::default());
        let store = Sqlite::open(&folder.path().join("data"), Quota::default(), bus).unwrap();
        let ports = Ports::of(&Arc::new(store)).shared();
        ports.records.create_tenant("acme", None, &Actor::operator()).await.unwrap();
        let gateway = NewGateway {
            tenant: "acme".into(),
            gateway_id: "gw".into(),
            instance: None,
            sealed_secret: vec![7],
            wake_url: None,
            display_name: None,
            while_busy: None,
            shared_groups: false,
            subject: None,
            most: 10,
        };
        let instance = ports.records.create_gateway(gateway, &Actor::operator()).await.unwrap().instance;
        Self { ports, instance, other: Arc::default(), provider, api_url, _folder: folder }
    }

    fn ingress(&self, stop: Stop) -> Ingress {
        Ingress {
            ports: self.ports.clone(),
            admission: Arc::new(Door(self.instance)),
            seal: Arc::new(Plain),
            source_flags: false,
            public_url: "https://bots.example.com".into(),
            held: Arc::default(),
            under: Default::default(),
            nodes: Some(self.other.clone()),
            stop,
        }
    }

    fn telegram(&self, ingest: telegram::Ingest) -> Arc<telegram::Telegram> {
        let config = telegram::Config {
            id: "77".into(),
            name: "main".into(),
            token: Secret::new("77:secret"),
            api_url: Some(self.api_url.clone()),
            ingest,
            greeting: None,
            commands: Vec::new(),
            gateway_commands: crate::FromGateways::default(),
        };
        telegram::Telegram::new(config, self.ports.clone()).unwrap()
    }

    fn wecom(&self) -> Arc<wecom::Wecom> {
        let config = wecom::Config {
            corp_id: "ww1".into(),
            agent_id: "7".into(),
            name: "main".into(),
            secret: Secret::new("s"),
            callback_token: Secret::new("token"),
            encoding_aes_key: Secret::new(AES_KEY),
            api_url: Some(self.api_url.clone()),
        };
        wecom::Wecom::new(config, self.ports.clone()).unwrap()
    }

    /// Takes the lease of a bot, as another node's successor.
    async fn take(&self, bot: &dyn Platform, ingress: &Ingress) {
        let key = BotKey::new(bot.platform(), bot.id());
        let lease = self.ports.records.acquire(&of_bot(&key), "here", Term::Alone).await.unwrap().unwrap();
        ingress.held.took(&key, lease.token);
        self.other.is_here.store(true, Ordering::SeqCst);
    }

    async fn texts(&self) -> Vec<String> {
        let waiting = self.ports.log.load(self.instance, Seq(0), &[], PageSize::of(100)).await.unwrap();
        let text =
            |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()["text"].as_str().unwrap().to_owned();
        waiting.iter().map(|entry| text(&entry.body)).collect()
    }

    async fn until_texts(&self, expected: &[&str]) {
        let deadline = Instant::now() + SOON;
        while self.texts().await != expected {
            assert!(Instant::now() < deadline, "{:?}", self.texts().await);
            sleep(Duration::from_millis(10)).await;
        }
    }
}

const AES_KEY: &str = "hunter2hunter2hunter2hunter2hunter2hunter2h";

struct Plain;

impl Seal for Plain {
    fn seal(&self, text: &str, bound_to: &str) -> Result<Sealed> {
        Ok(format!("{bound_to}|{text}").into_bytes().into())
    }
}

/// Everything is acme's.
struct Door(InstanceId);

impl Admission for Door {
    fn decide(&self, _observed: Observed<'_>) -> Result<Admitted, DropReason> {
        Ok(Admitted::to("acme", self.0))
    }

    fn dropped(&self, _observed: Observed<'_>, _which: Which<'_>, _reason: DropReason) {}

    fn overheard(&self) -> &dyn Overheard {
        &Deaf
    }

    fn presence(&self, _observed: Observed<'_>) -> BoxFuture<'_, Option<Presence>> {
        Box::pin(async { None })
    }

    fn why_dropped(&self, _which: Which<'_>) -> Option<(DropReason, UnixMillis)> {
        None
    }

    fn link(&self, _typed: Linking) -> BoxFuture<'_, Result<String>> {
        Box::pin(async { Ok("linked".to_owned()) })
    }

    fn moved<'a>(&'a self, _bot: &'a BotKey, _from: &'a str, _to: &'a str) -> BoxFuture<'a, Result<()>> {
        unreachable!("nothing moves")
    }
}

async fn until_up(bot: &dyn Platform) {
    let deadline = Instant::now() + SOON;
    while bot.health().unwrap().state != BotState::Up {
        assert!(Instant::now() < deadline, "{:?}", bot.health());
        sleep(Duration::from_millis(10)).await;
    }
}

/// Has a bot listen while something is done.
async fn listening<P: Platform + 'static>(world: &World, bot: &Arc<P>, during: impl AsyncFnOnce(&Ingress)) {
    let (tell, stop) = Stop::new();
    let ingress = world.ingress(stop);
    world.take(&**bot, &ingress).await;
    let task = tokio::spawn(bot.clone().listen(ingress.clone()));
    during(&ingress).await;
    tell.send_replace(true);
    tokio::time::timeout(SOON, task).await.expect("it stops").unwrap();
}

#[tokio::test]
async fn a_telegram_bot_that_comes_back_goes_on_where_another_node_was() {
    let world = World::new().await;
    let (first, second) = (world.telegram(telegram::Ingest::Poll), world.telegram(telegram::Ingest::Poll));
    world.provider.says(5, "one");
    listening(&world, &first, async |_: &Ingress| {
        until_up(&*first).await;
        world.until_texts(&["one"]).await;
    })
    .await;
    world.provider.says(6, "two");
    listening(&world, &second, async |_: &Ingress| world.until_texts(&["one", "two"]).await).await;
    world.provider.says(7, "three");
    listening(&world, &first, async |_: &Ingress| world.until_texts(&["one", "two", "three"]).await).await;
    let asked = world.provider.asked("getUpdates");
    let offsets: Vec<_> = asked.iter().filter_map(|asked| asked["offset"].as_i64()).collect();
    assert!(offsets.is_sorted(), "nobody went back: {offsets:?}");
}

#[tokio::test]
async fn bots_on_two_nodes_know_each_others_posts_in_a_channel() {
    let world = World::new().await;
    let [one, other] = [0, 1].map(|_| world.telegram(telegram::Ingest::Poll));
    one.about_to_write("-100300", "news").await;
    one.about_to_write("-100300", "more news").await;
    one.about_to_write("-300", "in a group").await;
    telegram::forget_echoes();
    for text in ["news", "more news "] {
        assert!(other.is_echo("-100300", text).await.unwrap(), "{text}");
    }
    assert!(!other.is_echo("-100300", "somebody's own").await.unwrap());
    assert!(!other.is_echo("-100301", "news").await.unwrap(), "another channel");
    assert!(!other.is_echo("-300", "in a group").await.unwrap(), "there people have names");
}

fn posted(secret: Option<&str>, body: &Value) -> Request {
    let mut request = Request::builder().method("POST").uri("/webhooks/telegram/main");
    if let Some(secret) = secret {
        request = request.header("x-telegram-bot-api-secret-token", secret);
    }
    request.body(Body::from(body.to_string())).unwrap()
}

#[tokio::test]
async fn an_update_that_is_posted_at_another_node_reaches_the_bot() {
    let world = World::new().await;
    let bot = world.telegram(telegram::Ingest::Webhook);
    let ingress = world.ingress(Stop::new().1);
    let webhooks = bot.clone().webhooks(ingress.clone());
    let secret = telegram::webhook_secret_of("77:secret");
    let post = async |request: Request| webhooks.clone().oneshot(request).await.unwrap().status();

    assert_eq!(post(posted(None, &update(5, "x"))).await, StatusCode::UNAUTHORIZED);
    assert!(world.other.passed_on.lock().is_empty(), "what is a stranger's goes nowhere");
    assert_eq!(post(posted(Some(&secret), &update(5, "one"))).await, StatusCode::SERVICE_UNAVAILABLE);
    *world.other.answers.lock() = Some(StatusCode::OK);
    assert_eq!(post(posted(Some(&secret), &update(5, "one"))).await, StatusCode::OK);
    let passed_on = std::mem::take(&mut *world.other.passed_on.lock());
    let (path, headers, body) = &passed_on[1];
    assert_eq!((path.as_str(), *headers, body.contains("one")), ("/webhooks/telegram/main", 1, true));
    assert!(world.texts().await.is_empty(), "the other node took it");

    // Now this node has it, and another one passes something on.
    listening(&world, &bot, async |ingress: &Ingress| {
        until_up(&*bot).await;
        let webhooks = bot.clone().webhooks(ingress.clone());
        let post = async |request: Request| webhooks.clone().oneshot(request).await.unwrap().status();
        let mut passed_on = posted(Some(&secret), &update(6, "two"));
        passed_on.extensions_mut().insert(Forwarded);
        assert_eq!(post(passed_on).await, StatusCode::OK);
        assert_eq!(post(posted(Some(&secret), &update(7, "three"))).await, StatusCode::OK);
    })
    .await;
    assert_eq!(world.texts().await, ["two", "three"]);
    // It was passed on to a node that is gone, and then the bot came here.
    world.other.is_here.store(false, Ordering::SeqCst);
    world.other.hangs.store(true, Ordering::SeqCst);
    let waits = tokio::spawn(webhooks.clone().oneshot(posted(Some(&secret), &update(8, "four"))));
    while world.other.passed_on.lock().is_empty() {
        sleep(Duration::from_millis(5)).await;
    }
    world.other.is_here.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    // This one has not taken up the lease: but it does not wait for the other one any more.
    assert_eq!(waits.await.unwrap().unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(begun.elapsed() < Duration::from_secs(4));
    world.other.passed_on.lock().clear();
    // A bot that takes over knows the last one, which may be posted again.
    let next = world.telegram(telegram::Ingest::Webhook);
    listening(&world, &next, async |ingress: &Ingress| {
        until_up(&*next).await;
        let webhooks = next.clone().webhooks(ingress.clone());
        let again = posted(Some(&secret), &update(7, "it was changed since"));
        assert_eq!(webhooks.oneshot(again).await.unwrap().status(), StatusCode::OK);
    })
    .await;
    assert_eq!(world.texts().await, ["two", "three"]);
    assert!(world.other.passed_on.lock().is_empty(), "nothing goes round");
    assert_eq!(world.provider.asked("setWebhook").len(), 2, "once for each that has the bot");
}

/// A callback of WeCom's with a text.
fn callback(id: u64, text: &str) -> Request {
    let keys =
        Keys { token: Secret::new("token"), key: Key::parse(AES_KEY).unwrap(), corp_id: "ww1".to_owned() };
    let plain = format!(
        "<xml><FromUserName>ann</FromUserName><MsgType>text</MsgType><Content>{text}</Content>\
         <MsgId>{id}</MsgId><AgentID>7</AgentID></xml>"
    );
    let encrypted = encrypt(&keys.key, [7; 16], plain.as_bytes(), "ww1");
    let timestamp = clock::wall().seconds().to_string();
    let signature = keys.signature(&timestamp, "n", &encrypted);
    let uri = format!("/webhooks/wecom/main?msg_signature={signature}&timestamp={timestamp}&nonce=n");
    let body = format!("<xml><Encrypt>{encrypted}</Encrypt></xml>");
    Request::builder().method("POST").uri(uri).body(Body::from(body)).unwrap()
}

#[tokio::test]
async fn what_wecom_posts_is_taken_without_its_node_but_for_codes() {
    let world = World::new().await;
    let app = world.wecom();
    let webhooks = app.clone().webhooks(world.ingress(Stop::new().1));
    let post = async |request: Request| webhooks.clone().oneshot(request).await.unwrap().status();
    assert_eq!(post(callback(1, "one")).await, StatusCode::OK);
    assert_eq!(post(callback(1, "one")).await, StatusCode::OK, "it is posted again");
    assert_eq!(world.texts().await, ["one"]);
    assert_eq!(post(callback(2, "/link c0de")).await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(world.other.passed_on.lock().len(), 3, "the other one was asked before");
    *world.other.answers.lock() = Some(StatusCode::OK);
    assert_eq!(post(callback(3, "three")).await, StatusCode::OK);
    assert_eq!(world.texts().await, ["one"], "the other node took it");
    assert!(world.provider.asked("gettoken").is_empty(), "who has the bot fetches its token");
}

#[tokio::test]
async fn a_wecom_app_that_comes_back_is_well() {
    let world = World::new().await;
    let app = world.wecom();
    for _ in 0..2 {
        listening(&world, &app, async |_: &Ingress| until_up(&*app).await).await;
        app.account().unwrap().is_elsewhere(true);
        assert_eq!(app.health().unwrap().state, BotState::Elsewhere);
        app.account().unwrap().is_elsewhere(false);
        assert_eq!(app.health().unwrap().state, BotState::Starting);
    }
}

#[tokio::test]
async fn a_text_message_waits_for_the_node_that_has_the_number() {
    let world = World::new().await;
    let config = sms::Config {
        id: "+15550100".into(),
        name: "main".into(),
        account_sid: "AC0123456789abcdef0123456789abcdef".into(),
        auth_token: Secret::new("hunter2"),
        signing_key: None,
        api_url: Some(world.api_url.clone()),
    };
    let bot = sms::Sms::new(config, world.ports.clone()).unwrap();
    let webhooks = bot.webhooks(world.ingress(Stop::new().1));
    let post = async |path: &str| {
        let body = "MessageSid=SM1&From=%2B15550199&To=%2B15550100&Body=hello&MessageStatus=sent";
        let url = format!("https://bots.example.com{path}");
        let signature = sms::verify::signature_of(&Secret::new("hunter2"), &url, body);
        let request = Request::builder().method("POST").uri(path).header("x-twilio-signature", signature);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        webhooks.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap().status()
    };
    assert_eq!(post("/webhooks/sms/main").await, StatusCode::SERVICE_UNAVAILABLE, "Twilio's list has it");
    assert_eq!(post("/webhooks/sms/main/status").await, StatusCode::NO_CONTENT, "a receipt comes once");
    *world.other.answers.lock() = Some(StatusCode::ACCEPTED);
    assert_eq!(post("/webhooks/sms/main").await, StatusCode::ACCEPTED);
    let passed_on = world.other.passed_on.lock();
    assert!(
        passed_on.iter().all(|(_, headers, body)| *headers == 2 && body.contains("SM1")),
        "{passed_on:?}"
    );
}
