//! A stand-in, a store, and a bot between them that can be stopped, killed and started.

use angelia_contract::action::Action;
use angelia_contract::event::Event;
use angelia_core::admission::{
    Admitted, Allow, DropReason, Known, Observed, Policy, Route, RouteOptions, Routes, admit,
};
use angelia_core::audit::Actor;
use angelia_core::clock::UnixMillis;
use angelia_core::commands::{Command, Elsewhere, plan, wanted};
use angelia_core::directory::BotKey;
use angelia_core::egress::Target;
use angelia_core::error::{Error, Result};
use angelia_core::inbox::{InstanceId, Quota, Rendering, Seq};
use angelia_core::ports::Hint;
use angelia_core::ports::Ports;
use angelia_core::seal::Sealed;
use angelia_core::secret::Secret;
use angelia_core::store::{ActionId, Cursor, IdentityStore, Intake, NewGateway, PageSize, StreamStore};
use angelia_engines::inspect::Inspect;
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::sqlite::Sqlite;
use angelia_platforms::discord::{Config, Discord};
use angelia_platforms::{
    Admission, Deaf, Delivery, Earlier, FromGateways, Ingress, Linking, Outcome, Overheard, Platform,
    Presence, Progress, Reach, Seal, Stop, Which, default_commands,
};
use angelia_testkit::discord::FakeDiscord;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// Long enough for whatever should happen soon on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(30);

pub(crate) struct World {
    pub(crate) fake: FakeDiscord,
    pub(crate) ports: Ports,
    pub(crate) instance: InstanceId,
    pub(crate) door: Arc<Door>,
    pub(crate) gate: Arc<Gate>,
    /// What actions under way asked others to wait for.
    pub(crate) pauses: Pauses,
    running: Option<Running>,
    folder: TempDir,
}

type Pauses = Arc<Mutex<Vec<(Reach, Duration)>>>;

/// A store in a folder, with one tenant and its one instance.
pub(crate) async fn store_in(folder: &Path, bus: Arc<LocalBus>) -> (Ports, InstanceId) {
    let ports = Ports::of(&Arc::new(Sqlite::open(&folder.join("data"), Quota::default(), bus).unwrap()));
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
    (ports, instance)
}

struct Running {
    discord: Arc<Discord>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// A store's announcer that can keep its thread from going on.
#[derive(Default)]
pub(crate) struct Gate {
    shut: AtomicBool,
    pub(crate) holds: AtomicBool,
}

impl Gate {
    pub(crate) fn shut(&self, shut: bool) {
        self.shut.store(shut, Ordering::SeqCst);
    }
}

impl Gate {
    /// A bus whose publishers it keeps.
    pub(crate) fn bus(self: &Arc<Self>) -> Arc<LocalBus> {
        let gate = self.clone();
        LocalBus::to(move |hint| {
            while matches!(hint, Hint::Log { .. }) && gate.shut.load(Ordering::SeqCst) {
                gate.holds.store(true, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(5));
            }
        })
    }
}

impl World {
    /// A stand-in with these options and a bot that is not started yet.
    pub(crate) async fn new(options: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fake = FakeDiscord::start(folder.path(), &options).await;
        let gate = Arc::new(Gate::default());
        let (ports, instance) = store_in(folder.path(), gate.bus()).await;
        let door = Arc::new(Door::new(instance));
        Self { fake, ports, instance, door, gate, pauses: Arc::default(), running: None, folder }
    }

    /// The same with the bot started and heard from.
    pub(crate) async fn started(options: Value) -> Self {
        let mut world = Self::new(options).await;
        world.start();
        world.until("the bot hears", |world| world.count("identifies") == 1).await;
        world
    }

    pub(crate) fn config(&self) -> Config {
        Config {
            id: self.fake.bot_id().to_owned(),
            name: "main".into(),
            token: Secret::new(self.fake.token()),
            api_url: Some(self.fake.url().to_owned()),
            gateway_url: Some(self.fake.gateway_url().to_owned()),
            public_key: None,
            interactions: Rendering::Auto,
            commands: default_commands(),
            gateway_commands: FromGateways::default(),
        }
    }

    pub(crate) fn start(&mut self) {
        self.start_with(self.config());
    }

    pub(crate) fn start_with(&mut self, config: Config) {
        let discord = Discord::new(config, self.ports.clone()).unwrap();
        let (stop, stopped) = Stop::new();
        let task = tokio::spawn(discord.clone().listen(self.ingress(stopped)));
        self.running = Some(Running { discord, stop, task });
    }

    pub(crate) fn ingress(&self, stop: Stop) -> Ingress {
        Ingress {
            ports: self.ports.clone(),
            admission: self.door.clone(),
            seal: Arc::new(Plain::default()),
            source_flags: false,
            public_url: "http://127.0.0.1".into(),
            held: Arc::default(),
            under: Default::default(),
            nodes: None,
            stop,
        }
    }

    /// Lets the bot be posted to; answers where.
    pub(crate) async fn serve_webhooks(&self) -> String {
        let router = self.bot().webhooks(self.ingress(Stop::new().1));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    /// Has the same bot listen again that was stopped.
    pub(crate) fn listen_again(&mut self, discord: Arc<Discord>) {
        let (stop, stopped) = Stop::new();
        let task = tokio::spawn(discord.clone().listen(self.ingress(stopped)));
        self.running = Some(Running { discord, stop, task });
    }

    /// Stops the bot as a server that ends does.
    pub(crate) async fn stop(&mut self) {
        let Running { stop, task, .. } = self.running.take().unwrap();
        stop.send_replace(true);
        tokio::time::timeout(SOON, task).await.expect("it stops").unwrap();
    }

    /// Ends the bot in the middle of whatever it does.
    pub(crate) async fn kill(&mut self) {
        let Running { task, .. } = self.running.take().unwrap();
        task.abort();
        let _ = task.await;
    }

    /// The disk, past the store.
    pub(crate) fn disk(&self) -> Inspect {
        Inspect::of(&self.folder.path().join("data"))
    }

    /// Where the bot is in its one shard, as the store keeps it.
    pub(crate) async fn position(&self) -> Value {
        serde_json::from_str(&self.cursor().await.position).unwrap()
    }

    /// Lets a stopped bot be elsewhere in its shard.
    pub(crate) async fn set_position(&self, position: &Value) {
        let cursor = Cursor { position: position.to_string(), ..self.cursor().await };
        let intake = Intake { cursor: Some(cursor), ..Intake::default() };
        self.ports.ingest.take_in(&self.key(), None, vec![intake]).await.unwrap();
    }

    async fn cursor(&self) -> Cursor {
        let mut shards = self.ports.records.cursors(&self.key()).await.unwrap();
        shards.retain(|cursor| cursor.stream.starts_with("shard:"));
        assert_eq!(shards.len(), 1, "{shards:?}");
        shards.remove(0)
    }

    /// Has Discord show the configured commands.
    pub(crate) async fn push_commands(&self) {
        push_commands(&*self.bot()).await;
    }

    pub(crate) fn bot(&self) -> Arc<Discord> {
        self.running.as_ref().unwrap().discord.clone()
    }

    pub(crate) fn key(&self) -> BotKey {
        BotKey::new("discord", self.fake.bot_id())
    }

    /// One of the bot's own counts.
    pub(crate) fn count(&self, what: &str) -> u64 {
        self.bot().health().unwrap().counts.get(what).copied().unwrap_or_default()
    }

    pub(crate) async fn until(&self, what: &str, mut enough: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + SOON;
        while !enough(self) {
            assert!(Instant::now() < deadline, "not in time: {what}; {:?}", self.bot().health());
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Everything in the inbox.
    pub(crate) async fn events(&self) -> Vec<Event> {
        let entries = self.ports.log.load(self.instance, Seq(0), &[], PageSize::of(10_000)).await.unwrap();
        entries.iter().map(|entry| serde_json::from_slice(&entry.body).unwrap()).collect()
    }

    pub(crate) async fn until_events(&self, count: usize) -> Vec<Event> {
        let deadline = Instant::now() + SOON;
        loop {
            let events = self.events().await;
            if events.len() >= count {
                assert_eq!(events.len(), count, "{:?}", texts(&events));
                return events;
            }
            let health = self.bot().health();
            assert!(Instant::now() < deadline, "{} of {count} came; {health:?}", events.len());
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until at least so many came.
    pub(crate) async fn until_at_least(&self, count: usize) {
        let deadline = Instant::now() + SOON;
        while self.events().await.len() < count {
            assert!(Instant::now() < deadline, "less than {count} came; {:?}", self.bot().health());
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Gives the bot an action; answers what came of it.
    pub(crate) async fn deliver(&self, id: i64, target: Target, action: Action) -> Outcome {
        self.deliver_by(&self.bot(), id, target, action).await
    }

    /// The same with another bot.
    pub(crate) async fn deliver_by(&self, bot: &Discord, id: i64, target: Target, action: Action) -> Outcome {
        let progress = Arc::new(Hand(self.pauses.clone()));
        let delivery = Delivery {
            id: ActionId(id),
            received_at: angelia_core::clock::wall(),
            target,
            action,
            answer: None,
            file: None,
            earlier: Earlier::Nothing,
            progress,
        };
        bot.deliver(delivery).await
    }
}

pub(crate) fn texts(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.text.as_str()).collect()
}

pub(crate) fn send(chat_id: &str, content: &str, reply_to: Option<&str>) -> Action {
    Action::Send {
        chat_id: chat_id.into(),
        content: content.into(),
        reply_to: reply_to.map(str::to_owned),
        metadata: Default::default(),
    }
}

pub(crate) fn edit(chat_id: &str, message_id: &str, content: &str) -> Action {
    Action::Edit {
        chat_id: chat_id.into(),
        message_id: message_id.into(),
        content: content.into(),
        metadata: Default::default(),
    }
}

/// Lets every further call through.
#[derive(Default)]
pub(crate) struct Hand(Pauses);

impl Progress for Hand {
    fn first_part(&self, _message_id: &str) {}

    fn next_call(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { true })
    }

    fn pause(&self, reach: Reach, pause: Duration) {
        self.0.lock().unwrap().push((reach, pause));
    }

    fn still_allowed(&self) -> bool {
        true
    }
}

#[derive(Default)]
pub(crate) struct Plain {
    /// Whether nothing can be sealed at the moment.
    pub(crate) held: AtomicBool,
}

impl Seal for Plain {
    fn seal(&self, text: &str, bound_to: &str) -> Result<Sealed> {
        if self.held.load(Ordering::Relaxed) {
            return Err(Error::unavailable("the key is being changed"));
        }
        Ok(format!("{bound_to}|{text}").into_bytes().into())
    }
}

/// Everything in one place, at first all of Discord, is acme's, whose one instance gets it.
pub(crate) struct Door {
    instance: InstanceId,
    pub(crate) place: Mutex<String>,
    pub(crate) dropped: Mutex<Vec<(String, DropReason)>>,
    pub(crate) linked: Mutex<Vec<Linking>>,
}

impl Door {
    pub(crate) fn new(instance: InstanceId) -> Self {
        let place = Mutex::new("discord:*".into());
        Self { instance, place, dropped: Mutex::default(), linked: Mutex::default() }
    }
}

impl Known for &Door {
    fn fronting(&self, _tenant: &str, _platform: &str, _bot: &str) -> Vec<InstanceId> {
        vec![self.instance]
    }

    fn default_instance(&self, _tenant: &str) -> Option<InstanceId> {
        Some(self.instance)
    }

    fn takes_messages(&self, _instance: InstanceId) -> bool {
        true
    }

    fn policy(&self, _instance: InstanceId, _platform: &str) -> Policy {
        Policy::default()
    }
}

impl Admission for Door {
    fn decide(&self, observed: Observed<'_>) -> Result<Admitted, DropReason> {
        let route = Route {
            place: self.place.lock().unwrap().parse().unwrap(),
            bot: None,
            tenant: "acme".into(),
            instance: None,
            allow: Allow::Any,
            free: false,
            while_busy: None,
            options: RouteOptions::default(),
        };
        admit(&Routes::new(vec![route]), &self, observed)
    }

    fn dropped(&self, _observed: Observed<'_>, which: Which<'_>, reason: DropReason) {
        self.dropped.lock().unwrap().push((which.message_id.to_owned(), reason));
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

    fn link(&self, typed: Linking) -> BoxFuture<'_, Result<String>> {
        let answer = format!("{} administrator: {}", typed.place, typed.administrator);
        self.linked.lock().unwrap().push(typed);
        Box::pin(async { Ok(answer) })
    }

    fn moved<'a>(&'a self, _bot: &'a BotKey, _from: &'a str, _to: &'a str) -> BoxFuture<'a, Result<()>> {
        unreachable!("nothing moves on Discord")
    }
}

/// Has the provider of a bot show the configured commands and no others; what it shows then.
pub(crate) async fn push_commands(bot: &dyn Platform) -> Vec<Command> {
    let commands = bot.commands().unwrap();
    let wanted = wanted(&commands.own, &[], &commands.rules);
    let shown = bot.shown_commands().await.unwrap();
    let plan = plan(wanted, &shown, &[], Elsewhere::Go, &commands.rules);
    bot.register_commands(&plan).await.unwrap();
    plan.wanted()
}
