//! Everything the server holds, and how it starts and stops.

use crate::edge::{Guard, Waker};
use crate::egress::{self, Lanes};
use crate::manage::Roster;
use crate::relay::{self, Registry, Standing};
use crate::telemetry::Metrics;
use angelia_contract::descriptor::Descriptor;
use angelia_core::admission::{Admitted, Allow, DropReason, Observed, Route};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::inbox::{Entry, InstanceId, Seq};
use angelia_core::seal::MasterKey;
use angelia_core::secret::Secret;
use angelia_core::store::{Announce, Line, Store};
use angelia_platforms::webchat::{self, Hub, Webchat};
use angelia_platforms::{Admit, Platform};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use ipnet::IpNet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// The tenant of whoever runs angelia for themselves; exists from the start.
pub(crate) const DEFAULT_TENANT: &str = "default";
/// The text sealed under the master key, so that a wrong key is recognised at start.
const KEY_CHECK: &str = "key_check";
/// Whether the first route was made; an operator who removes it means it.
const FURNISHED: &str = "furnished";
/// How often the store is asked to drop what is past its time.
const PRUNE_EVERY: Duration = Duration::from_secs(600);
/// How often a store that failed is tried again.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// How long sockets get to say goodbye when the server stops.
const GOODBYE: Duration = Duration::from_secs(4);

/// What an operator can set.
pub struct Options {
    /// Under which secrets rest.
    pub master_key: MasterKey,
    /// What the admin API asks for.
    pub admin_token: Secret,
    /// Whether wake URLs may be plain http.
    pub wake_allow_http: bool,
    /// Ranges exempt from the SSRF guard.
    pub wake_allow: Vec<IpNet>,
    /// Whether the web chat is offered.
    pub webchat: bool,
    /// Whether sources carry `is_bot` and `message_is_edit`.
    pub source_flags: bool,
    /// The URL gateways and people reach this server at.
    pub public_url: String,
}

/// The running server.
pub struct Server {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) wake: Waker,
    pub(crate) options: Options,
    /// Held while the store and what is in memory of it change together.
    pub(crate) changing: tokio::sync::Mutex<()>,
    hub: Arc<Hub>,
    platforms: Vec<Arc<dyn Platform>>,
    stopping: AtomicBool,
    stopped: Notify,
}

/// Takes commits from the store to whoever waits for them. Made before the
/// store, which needs it, and bound to the server after.
#[derive(Default)]
pub struct Announcer {
    registry: Arc<Registry>,
    hub: Arc<Hub>,
    server: OnceLock<Weak<Server>>,
}

impl Announce for Announcer {
    fn appended(&self, instance: InstanceId, entry: Entry, ahead: bool) {
        let live = self.registry.append(instance, entry, ahead);
        if !live && let Some(server) = self.server.get().and_then(Weak::upgrade) {
            server.wake.waits(instance);
        }
    }

    fn removed(&self, instance: InstanceId, seqs: &[Seq]) {
        self.registry.remove(instance, seqs);
    }

    fn line(&self, line: &Line) {
        self.hub.line(line);
    }
}

struct Doorkeeper {
    roster: Arc<Roster>,
    metrics: Arc<Metrics>,
}

impl Admit for Doorkeeper {
    fn admit(&self, observed: Observed<'_>) -> Result<Admitted, DropReason> {
        let decision = self.roster.admit(observed);
        if let Err(reason) = &decision {
            self.metrics.dropped(*reason);
        }
        decision
    }
}

impl Server {
    /// Reads what the store knows and gets ready to serve.
    pub async fn new(store: Arc<dyn Store>, announcer: &Announcer, options: Options) -> Result<Arc<Self>> {
        check_key(&*store, &options.master_key).await?;
        let guard = Guard::new(options.wake_allow_http, options.wake_allow.clone())
            .map_err(|e| Error::internal(format!("the HTTP client could not be made: {e}")))?;
        let mut platforms: Vec<Arc<dyn Platform>> = Vec::new();
        if options.webchat {
            platforms.push(Arc::new(Webchat::new(store.clone(), announcer.hub.clone())));
        }
        let server = Arc::new(Self {
            store,
            registry: announcer.registry.clone(),
            roster: Arc::default(),
            metrics: Arc::default(),
            lanes: Arc::default(),
            wake: Waker::new(guard),
            options,
            changing: tokio::sync::Mutex::default(),
            hub: announcer.hub.clone(),
            platforms,
            stopping: AtomicBool::new(false),
            stopped: Notify::new(),
        });
        server.read_roster().await?;
        let _ = announcer.server.set(Arc::downgrade(&server));
        Ok(server)
    }

    /// Starts what runs beside the sockets: unfinished actions, wakes, upkeep.
    pub async fn start(self: &Arc<Self>) -> Result<()> {
        egress::resume(self).await?;
        for instance in self.store.waiting() {
            self.wake.waits(instance);
        }
        tokio::spawn(Waker::run(self.clone()));
        tokio::spawn(upkeep(self.clone()));
        Ok(())
    }

    /// The routes people and gateways reach.
    pub fn public_router(self: &Arc<Self>) -> Router {
        let mut router = Router::new()
            .route("/relay", get(relay::upgrade))
            .route("/livez", get(|| async { "ok\n" }))
            .route("/readyz", get(readyz))
            .with_state(self.clone());
        if self.options.webchat {
            let doorkeeper = Doorkeeper { roster: self.roster.clone(), metrics: self.metrics.clone() };
            let (store, hub) = (self.store.clone(), self.hub.clone());
            router =
                router.merge(webchat::routes(store, hub, Arc::new(doorkeeper), self.options.source_flags));
        }
        router
    }

    /// Closes every socket with 1001 and waits until they are gone.
    pub async fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.stopped.notify_waiters();
        self.registry.shut_down();
        let gone = async {
            while self.registry.open() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(GOODBYE, gone).await;
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

    pub(crate) fn descriptors(&self) -> Vec<Descriptor> {
        self.platforms.iter().map(|platform| platform.descriptor()).collect()
    }

    async fn read_roster(&self) -> Result<()> {
        for stored in self.store.gateways().await? {
            self.roster.put(stored, &self.options.master_key)?;
        }
        for instance in self.store.instances().await? {
            if instance.is_default {
                self.roster.set_default(instance.tenant, instance.instance);
            }
            let standing = Standing { habit: instance.habit, idle: instance.idle };
            self.registry.remember(instance.instance, standing);
        }
        let mut routes = self.store.routes().await?;
        if self.store.note(FURNISHED).await?.is_none() {
            let everywhere = web_chat_for_everybody()?;
            match self.store.add_route(everywhere.clone()).await {
                Ok(()) => routes.push(everywhere),
                // A start that was cut short had made it already.
                Err(error) if error.kind() == Kind::Conflict => {}
                Err(error) => return Err(error),
            }
            self.store.set_note(FURNISHED, vec![1]).await?;
        }
        self.roster.set_routes(routes);
        Ok(())
    }
}

/// The first route: rooms of the web chat belong to the default tenant until
/// an operator says otherwise. Everybody who was invited may speak there.
fn web_chat_for_everybody() -> Result<Route> {
    Ok(Route {
        place: "webchat:*".parse()?,
        bot: None,
        tenant: DEFAULT_TENANT.into(),
        instance: None,
        allow: Allow::Any,
        free: true,
    })
}

/// Refuses to go on with a key that does not open what is stored.
async fn check_key(store: &dyn Store, key: &MasterKey) -> Result<()> {
    match store.note(KEY_CHECK).await? {
        Some(sealed) => key.open(&sealed, KEY_CHECK).map(drop),
        None => store.set_note(KEY_CHECK, key.seal(&Secret::new(KEY_CHECK), KEY_CHECK)?).await,
    }
}

async fn readyz(State(server): State<Arc<Server>>) -> impl IntoResponse {
    if server.is_stopping() {
        (StatusCode::SERVICE_UNAVAILABLE, "stopping\n")
    } else if server.store.healthy() {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the store cannot commit: is the disk full?\n")
    }
}

/// Prunes now and then, and tries a failed store until it works again.
async fn upkeep(server: Arc<Server>) {
    let mut prune_at = angelia_core::clock::mono();
    loop {
        if !server.store.healthy() {
            let _ = server.store.probe().await;
        }
        let now = angelia_core::clock::mono();
        if now >= prune_at {
            prune_at = now + PRUNE_EVERY;
            if let Err(error) = server.store.prune().await {
                tracing::warn!(%error, "what is past its time could not be dropped");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PROBE_EVERY) => {}
            () = server.stopped() => return,
        }
    }
}
