//! A number between a store and a Twilio that answers as it is told.

mod memory;
mod read_back;
mod sends;

use super::take::Took;
use super::{Config, NAME, Sms};
use crate::admission::{Admission, Linking, Presence, Which};
use crate::ingress::{Ingress, Seal, Stop};
use crate::overheard::{Deaf, Overheard};
use crate::platform::{Delivery, Outcome, Platform, Progress, Reach};
use angelia_contract::action::Action;
use angelia_contract::event::Event;
use angelia_core::admission::{Admitted, DropReason, Observed};
use angelia_core::audit::Actor;
use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::egress::Target;
use angelia_core::error::Result;
use angelia_core::inbox::{InstanceId, Quota, Seq};
use angelia_core::ports::Ports;
use angelia_core::seal::Sealed;
use angelia_core::secret::Secret;
use angelia_core::store::{ActionId, IdentityStore, NewGateway, PageSize};
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::sqlite::Sqlite;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const OWN: &str = "+15550100";
const ANN: &str = "+15550199";
const ACCOUNT: &str = "AC0123456789abcdef0123456789abcdef";

/// One request that Twilio got.
#[derive(Clone, Debug)]
struct Asked {
    /// Method, path and query.
    what: String,
    headers: HeaderMap,
    body: String,
}

/// A Twilio: what it was asked, and what it answers next.
#[derive(Clone, Default)]
struct Twilio {
    asked: Arc<Mutex<Vec<Asked>>>,
    answers: Arc<Mutex<VecDeque<Response>>>,
}

impl Twilio {
    fn answers(&self, status: u16, body: impl ToString) {
        self.answers_with(status, &[], body);
    }

    fn answers_with(&self, status: u16, headers: &[(&str, &str)], body: impl ToString) {
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        self.answers.lock().push_back(response.body(Body::from(body.to_string())).unwrap());
    }

    fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock())
    }
}

async fn serve(State(twilio): State<Twilio>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1024 * 1024).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let what = format!("{} {}", parts.method, parts.uri);
    twilio.asked.lock().push(Asked { what, headers: parts.headers, body });
    let next = twilio.answers.lock().pop_front();
    next.unwrap_or_else(|| {
        Response::builder()
            .status(StatusCode::IM_A_TEAPOT)
            .body(Body::from("no answer was prepared"))
            .unwrap()
    })
}

struct World {
    twilio: Twilio,
    sms: Arc<Sms>,
    ingress: Ingress,
    door: Arc<Door>,
    folder: TempDir,
}

impl World {
    async fn new() -> Self {
        Self::with(Quota::default()).await
    }

    async fn with(quota: Quota) -> Self {
        let twilio = Twilio::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api_url = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new().fallback(serve).with_state(twilio.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self::at_with(twilio, &api_url, quota).await
    }

    async fn at(twilio: Twilio, api_url: &str) -> Self {
        Self::at_with(twilio, api_url, Quota::default()).await
    }

    async fn at_with(twilio: Twilio, api_url: &str, quota: Quota) -> Self {
        // It brings the process a TLS provider.
        let _ = angelia_testkit::webchat::http_client();
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let ports = Ports::of(&Arc::new(Sqlite::open(&data, quota, Arc::new(LocalBus::default())).unwrap()));
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
        let door = Arc::new(Door { instance, open: Mutex::new(true), dropped: Mutex::default() });
        let (_, stop) = Stop::new();
        let ingress = Ingress {
            ports: ports.clone(),
            admission: door.clone(),
            seal: Arc::new(Plain),
            source_flags: false,
            public_url: "https://bots.example.com".into(),
            held: Arc::default(),
            under: Default::default(),
            nodes: None,
            stop,
        };
        let config = Config {
            id: OWN.into(),
            name: "main".into(),
            account_sid: ACCOUNT.into(),
            auth_token: Secret::new("hunter2"),
            signing_key: None,
            api_url: Some(api_url.into()),
        };
        let sms = Sms::new(config, ports).unwrap();
        let _ = sms.clone().webhooks(ingress.clone());
        Self { twilio, sms, ingress, door, folder }
    }

    async fn send(&self, text: &str) -> Outcome {
        let action = Action::Send {
            chat_id: ANN.into(),
            content: text.into(),
            reply_to: None,
            metadata: Default::default(),
        };
        let delivery = Delivery {
            id: ActionId(1),
            received_at: angelia_core::clock::wall(),
            target: Target::chat(ANN),
            action,
            answer: None,
            file: None,
            earlier: crate::platform::Earlier::Nothing,
            progress: Arc::new(Hand),
        };
        self.sms.deliver(delivery).await
    }

    /// Everything in the inbox.
    async fn events(&self) -> Vec<Event> {
        let entries =
            self.ingress.ports.log.load(self.door.instance, Seq(0), &[], PageSize::of(10_000)).await.unwrap();
        entries.iter().map(|entry| serde_json::from_slice(&entry.body).unwrap()).collect()
    }

    async fn texts(&self) -> Vec<String> {
        self.events().await.into_iter().map(|event| event.text).collect()
    }

    fn count(&self, what: &str) -> u64 {
        self.sms.health().unwrap().counts.get(what).copied().unwrap_or_default()
    }
}

struct Plain;

impl Seal for Plain {
    fn seal(&self, text: &str, bound_to: &str) -> Result<Sealed> {
        Ok(format!("{bound_to}|{text}").into_bytes().into())
    }
}

/// Lets every further call through.
struct Hand;

impl Progress for Hand {
    fn first_part(&self, _message_id: &str) {}

    fn next_call(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { true })
    }

    fn pause(&self, _reach: Reach, _pause: Duration) {}

    fn still_allowed(&self) -> bool {
        true
    }
}

/// Everything is acme's as long as the door is open.
struct Door {
    instance: InstanceId,
    open: Mutex<bool>,
    dropped: Mutex<Vec<(String, DropReason)>>,
}

impl Admission for Door {
    fn decide(&self, observed: Observed<'_>) -> Result<Admitted, DropReason> {
        assert_eq!((observed.platform, observed.bot, observed.private), (NAME, OWN, true));
        assert_eq!(observed.places, [&format!("{OWN}/{}", observed.author), OWN, "*"]);
        if *self.open.lock() { Ok(Admitted::to("acme", self.instance)) } else { Err(DropReason::NoRoute) }
    }

    fn dropped(&self, _observed: Observed<'_>, which: Which<'_>, reason: DropReason) {
        self.dropped.lock().push((which.message_id.to_owned(), reason));
    }

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
        unreachable!("numbers do not move")
    }
}
