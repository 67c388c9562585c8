//! Everything the server holds, and how it starts and stops.

use crate::admin::{self, AdminToken, Bearers, Identity, Keyring, Pace, RefusalLog, TokenLimits};
use crate::bootstrap::{check_key, oauth_key};
use crate::clockwork::{self, Integrity};
use crate::edge::{Guard, Waker, no_client};
use crate::egress::{self, Egress, EgressTimings};
use crate::identities::{Front, Identities};
use crate::ingress::{Drops, Listeners, RoutedAdmission};
use crate::losses;
use crate::notices::{self, Hints, Notices};
use crate::places::Places;
use crate::relay::{self, Hint, Sessions};
use crate::supervise::supervise;
use crate::telemetry::{Counter, Metrics};
use crate::unanswered;
use crate::upkeep;
use angelia_contract::descriptor::Descriptor;
use angelia_core::connections::Lasting;
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Result};
use angelia_core::identity::GatewayRecord;
use angelia_core::identity::making::{GatewayLimits, Making};
use angelia_core::inbox::InstanceId;
use angelia_core::limit::LogThrottle;
use angelia_core::memory::{Memory, MemoryLimits};
use angelia_core::ports::{self as bus, Bus, Ports};
use angelia_core::seal::{self, Sealed};
use angelia_core::secret::Secret;
use angelia_core::store::{AccessStore, IdentityStore, StoredGateway};
use angelia_platforms::Platform;
use angelia_platforms::webchat::{self, Guides, Hub, Webchat};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::middleware;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use ipnet::IpNet;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The tenant of whoever runs angelia for themselves; exists from the start.
pub(crate) const DEFAULT_TENANT: &str = "default";
/// Gateways that enrol or provision at the same time. Others wait outside, so
/// that an operator's change is never behind more than these.
const SELF_SERVICE: usize = 4;
/// How long they wait; gateways give up after 15 s.
const SELF_SERVICE_PATIENCE: Duration = Duration::from_secs(10);
/// How long sockets get to say goodbye when the server stops.
const GOODBYE: Duration = Duration::from_secs(4);

/// What an operator can set.
pub struct Options {
    /// Under which secrets rest.
    pub master_key: Keyring,
    /// What the admin API asks for.
    pub admin_token: AdminToken,
    /// Whether wake URLs may be plain http.
    pub wake_allow_http: bool,
    /// Ranges exempt from the SSRF guard.
    pub wake_allow: Vec<IpNet>,
    /// Whether the web chat is offered.
    pub webchat: bool,
    /// Rooms of the web chat that anybody may enter.
    pub open_rooms: Vec<String>,
    /// How fast one person may post, edit and stop in the web chat.
    pub webchat_pace: angelia_core::limit::Rate,
    /// Further bots to write to.
    pub platforms: Vec<Arc<dyn Platform>>,
    /// How long and how often actions are tried.
    pub egress: EgressTimings,
    /// Whether sources carry `is_bot` and `message_is_edit`.
    pub source_flags: bool,
    /// Who may prove a tenant.
    pub identity: Identity,
    /// The URL gateways and people reach this server at.
    pub public_url: String,
    /// What the connector says of its own.
    pub notices: Notices,
    /// How much others may make the server hold.
    pub limits: Limits,
    /// How many gateways tenants make by themselves, and how fast.
    pub gateways: GatewayLimits,
}

/// How much others may make the server hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// In memory.
    pub memory: MemoryLimits,
    /// Relay sockets of one gateway at a time.
    pub sockets_per_gateway: usize,
    /// Connections that may be event streams and relay sockets.
    pub lasting: Lasting,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: MemoryLimits::default(),
            sockets_per_gateway: relay::SOCKETS_PER_GATEWAY,
            lasting: Lasting::default(),
        }
    }
}

/// The running server.
pub struct Server {
    pub(crate) ports: Ports,
    /// What this process is called among those that drain instances.
    pub(crate) node: String,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) places: Arc<Places>,
    pub(crate) identities: Arc<Identities>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) egress: Egress,
    pub(crate) memory: Memory,
    memory_warning: Mutex<LogThrottle>,
    pub(crate) wake: Waker,
    pub(crate) options: Options,
    pub(crate) bearers: Bearers,
    pub(crate) refusals: RefusalLog,
    self_service: Arc<Semaphore>,
    pub(crate) pace: Pace,
    /// Gateways that were made by self-service lately.
    pub(crate) making: Mutex<Making>,
    pub(crate) token_limits: TokenLimits,
    /// What reached nobody lately.
    pub(crate) drops: Drops,
    /// Held while the store and what is in memory of it change together.
    pub(crate) changing: tokio::sync::Mutex<()>,
    hub: Arc<Hub>,
    guides: Arc<Guides>,
    platforms: Vec<Arc<dyn Platform>>,
    pub(crate) listeners: Listeners,
    pub(crate) hints: Hints,
    /// What a check of the database found.
    pub(crate) integrity: Integrity,
    stopping: AtomicBool,
    stopped: Notify,
}

/// Listens on the bus and takes what it hears to whoever waits for it. Made before
/// the store, which publishes, and bound to the server after.
#[derive(Default)]
pub struct Subscriber {
    sessions: Arc<Sessions>,
    hub: Arc<Hub>,
    server: OnceLock<Weak<Server>>,
}

impl Subscriber {
    /// One that listens on `bus`.
    pub fn on(bus: &dyn Bus) -> Arc<Self> {
        let subscriber = Arc::<Self>::default();
        let listening = subscriber.clone();
        bus.subscribe(Arc::new(move |hint| listening.hear(hint)));
        subscriber
    }

    fn hear(&self, hint: bus::Hint) {
        match hint {
            bus::Hint::Log { instance, mark, entry, kind } => {
                let live = self.sessions.hint(instance, Hint { mark, entry, kind });
                if !live && let Some(server) = self.server.get().and_then(Weak::upgrade) {
                    server.wake.waits(instance);
                }
            }
            bus::Hint::Removed { instance, seqs } => self.sessions.remove(instance, &seqs),
            bus::Hint::Revised { instance, entry } => self.sessions.revise(instance, entry),
            bus::Hint::Line(line) => self.hub.line(&line),
        }
    }
}

impl Server {
    /// Reads what the store knows and gets ready to serve.
    pub async fn new(ports: Ports, subscriber: &Subscriber, options: Options) -> Result<Arc<Self>> {
        check_key(&*ports.records, &options.master_key).await?;
        let guard =
            Guard::new(options.wake_allow_http, options.wake_allow.clone()).map_err(|e| no_client(&e))?;
        let oauth_key = oauth_key(&*ports.records, &options.master_key.keys()).await?;
        let bearers = Bearers::new(&options.identity, oauth_key)?;
        let mut platforms: Vec<Arc<dyn Platform>> = Vec::new();
        if options.webchat {
            platforms.push(Arc::new(Webchat::new(ports.clone(), subscriber.hub.clone())));
        }
        platforms.extend(options.platforms.iter().cloned());
        subscriber.hub.bound(&options.limits.lasting);
        let ledger = ports.ledger.clone();
        let server = Arc::new(Self {
            ports,
            node: node_name(),
            sessions: subscriber.sessions.clone(),
            places: Places::new(options.limits.lasting),
            identities: Arc::default(),
            metrics: Arc::default(),
            egress: Egress::new(ledger, &platforms, options.egress),
            memory: Memory::new(options.limits.memory),
            memory_warning: Mutex::default(),
            wake: Waker::new(guard),
            bearers,
            refusals: RefusalLog::default(),
            self_service: Arc::new(Semaphore::new(SELF_SERVICE)),
            pace: Pace::default(),
            making: Mutex::new(Making::new(options.gateways)),
            token_limits: TokenLimits::default(),
            drops: Drops::default(),
            options,
            changing: tokio::sync::Mutex::default(),
            hub: subscriber.hub.clone(),
            guides: Arc::default(),
            platforms,
            listeners: Listeners::default(),
            hints: Hints::default(),
            integrity: Integrity::default(),
            stopping: AtomicBool::new(false),
            stopped: Notify::new(),
        });
        server.read_roster().await?;
        let _ = subscriber.server.set(Arc::downgrade(&server));
        Ok(server)
    }

    /// Starts what runs beside the sockets: unfinished actions, wakes, upkeep, bots.
    pub async fn start(self: &Arc<Self>) -> Result<()> {
        clockwork::begin(self).await;
        egress::resume(self).await?;
        for instance in self.ports.log.waiting().await? {
            self.wake.waits(instance);
        }
        supervise(self, "wake", Waker::run);
        supervise(self, "prune", upkeep::prune_now_and_then);
        supervise(self, "tend", upkeep::tend);
        supervise(self, "watch logs", relay::watch_logs);
        supervise(self, "notices", notices::watch);
        supervise(self, "losses", losses::watch);
        supervise(self, "unanswered", unanswered::watch);
        supervise(self, "key change", admin::resume_key_change);
        self.listeners.start(self).await;
        Ok(())
    }

    /// The routes people and gateways reach.
    pub fn public_router(self: &Arc<Self>) -> Router {
        let mut router = Router::new()
            .route("/relay", get(relay::upgrade))
            .merge(self.identity_router())
            .route("/livez", get(|| async { "ok\n" }))
            .route("/readyz", get(readyz))
            .with_state(self.clone());
        if self.options.webchat {
            router = router.merge(webchat::routes(webchat::Setup {
                ports: self.ports.clone(),
                hub: self.hub.clone(),
                admission: Arc::new(RoutedAdmission::new(self.clone())),
                source_flags: self.options.source_flags,
                open_rooms: self.options.open_rooms.clone(),
                guides: self.guides.clone(),
                pace: self.options.webchat_pace,
            }));
        }
        let ingress = self.ingress();
        for platform in &self.platforms {
            router = router.merge(platform.clone().webhooks(ingress.clone()));
        }
        router
    }

    /// Shows lines to paste in a room of the web chat, to whoever wants to bring
    /// their agent there. Everybody in the room can read them.
    pub fn guide_room(&self, room: &str, lines: Vec<String>) {
        self.guides.show(room, lines);
    }

    /// The command that tells of a message in a terminal, for the page to show
    /// before the id. It may name paths: for a server that one person runs for themselves.
    pub fn guide_explain(&self, command: String) {
        self.guides.explain_by(command);
    }

    /// Counts a request that asked for another host.
    pub fn note_misdirected(&self) {
        self.metrics.count(Counter::Misdirected);
    }

    /// Closes every socket with 1001 and waits until they are gone.
    pub async fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.stopped.notify_waiters();
        self.sessions.shut_down();
        // What they have received is durable, and they say how far that is.
        self.listeners.stop().await;
        let gone = async {
            while self.sessions.open() > 0 || self.egress.is_calling() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(GOODBYE, gone).await;
        self.close_refusals().await;
        clockwork::end(self).await;
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Resolves when the server stops.
    pub(crate) async fn stopped(&self) {
        let told = self.stopped.notified();
        if !self.is_stopping() {
            told.await;
        }
    }

    pub(crate) fn platforms(&self) -> &[Arc<dyn Platform>] {
        &self.platforms
    }

    /// The position of a bot among the platforms, if it is configured.
    pub(crate) fn position(&self, bot: &BotKey) -> Option<usize> {
        let named = |it: &Arc<dyn Platform>| *it.platform() == *bot.platform && *it.id() == *bot.bot;
        self.platforms.iter().position(named)
    }

    pub(crate) fn descriptors(&self) -> Vec<Descriptor> {
        self.platforms.iter().map(|platform| platform.descriptor()).collect()
    }

    /// What gateways and their owners ask for over plain HTTP.
    fn identity_router(&self) -> Router<Arc<Self>> {
        Router::new()
            .route("/relay/enroll", post(admin::enroll))
            .route("/relay/provision", post(admin::provision))
            .route("/relay/policy", post(admin::declare))
            .route("/oauth/token", post(admin::token))
            .layer(middleware::from_fn(admin::router::no_store))
    }

    /// Runs a change of the store and of what is in memory of it to its end, even
    /// if its caller hangs up in between: what is committed must be known here.
    /// One change at a time.
    pub(crate) async fn change<T, F>(self: &Arc<Self>, change: impl FnOnce(Arc<Self>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (server, change) = (self.clone(), change(self.clone()));
        let task = tokio::spawn(async move {
            let _turn = server.changing.lock().await;
            change.await
        });
        task.await.unwrap_or_else(|_| Err(Error::internal("the change broke off")))
    }

    /// Waits for a turn to enrol or provision.
    pub(crate) async fn self_service(&self) -> Result<OwnedSemaphorePermit> {
        let busy = || Error::unavailable("too many gateways enrol at the moment; try again");
        let turn =
            tokio::time::timeout(SELF_SERVICE_PATIENCE, self.self_service.clone().acquire_owned()).await;
        turn.map_err(|_| busy())?.map_err(|_| busy())
    }

    /// Tells whose gateway is refused for want of memory; the log, now and then.
    pub(crate) fn warn_of_memory(&self, record: &GatewayRecord) {
        let mut warning = self.memory_warning.lock();
        if let Some(times) = warning.note(angelia_core::clock::mono()) {
            tracing::warn!(
                tenant = %record.tenant, gateway = %record.gateway_id, times,
                held = self.memory.held_by(&record.tenant), of = self.memory.of_tenant(),
                "a gateway is refused because too much is held for it; angelia status says for whom, \
                 angelia gateway revoke ends it"
            );
        }
    }

    /// Ends what people follow of rooms that are gone.
    pub(crate) fn close_rooms(&self, rooms: &[String]) {
        self.hub.close(rooms);
    }

    /// Seals a secret for the row `bound_to` describes. Keep what is answered until it is
    /// stored: a change of the master key waits for it.
    pub(crate) fn seal(&self, secret: &Secret, bound_to: &str) -> Result<Sealed> {
        self.options.master_key.seal(secret, bound_to)
    }

    /// Lets a stored gateway's record count from now on.
    pub(crate) async fn take_in(&self, stored: StoredGateway) -> Result<Arc<GatewayRecord>> {
        let record = self.identities.put(stored, &self.options.master_key.keys());
        self.identities
            .set_default(&record.tenant, self.ports.records.default_instance(&record.tenant).await?);
        Ok(record)
    }

    /// Keeps which bots an instance answers for, if that is new.
    pub(crate) async fn keep_fronts(&self, instance: InstanceId, fronts: BTreeSet<Front>) -> Result<()> {
        let before = self.identities.fronts(instance);
        if before == fronts {
            return Ok(());
        }
        // It counts from now on, not from the commit on: the next message may be here already.
        self.identities.set_fronts(instance, fronts.clone());
        let kept = self.ports.records.set_fronts(instance, fronts.into_iter().collect()).await;
        kept.inspect_err(|_| self.identities.set_fronts(instance, before))
    }

    /// The tenant's delivery key, made when it is first asked for. Hold `changing`.
    pub(crate) async fn delivery_key(&self, tenant: &str) -> Result<Secret> {
        let bound_to = seal::delivery_key(tenant);
        let sealed = match self.ports.records.delivery_key(tenant).await? {
            Some(sealed) => sealed,
            None => {
                let made = self.seal(&Secret::mint(), &bound_to)?;
                self.ports.records.keep_delivery_key(tenant, made.to_vec()).await?
            }
        };
        self.options.master_key.open(&sealed, &bound_to)
    }
}

/// A name that no other process has.
fn node_name() -> String {
    Secret::mint().expose().chars().take(16).collect()
}

async fn readyz(State(server): State<Arc<Server>>) -> impl IntoResponse {
    if server.is_stopping() {
        (StatusCode::SERVICE_UNAVAILABLE, "stopping\n")
    } else if server.ports.upkeep.healthy() {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the store cannot commit: is the disk full? See: angelia status\n")
    }
}
