//! The wiring: which services there are, what each is given, and how they start and stop.

use crate::admin::{self, Admin, Bearers, IdentityOptions, SelfService};
use crate::admin_token::AdminToken;
use crate::bootstrap::{check_key, furnish, oauth_key, recall_standing};
use crate::cluster::{Cluster, Facts, Presence, Sharing};
use crate::egress::{Beginnings, Egress, EgressTimings};
use crate::identities::Identities;
use crate::ingress::{Bots, Drops, Listeners, RecentTalk, RoutedAdmission};
use crate::keyring::Keyring;
use crate::media::Media;
use crate::notices::Notices;
use crate::readiness::Readiness;
use crate::refusal_log::RefusalLog;
use crate::registrar::Registrar;
use crate::relay::{self, DialLog, Ending, Others, Relay, Sessions, Subscriber};
use crate::ssrf_guard::{Guard, no_client};
use crate::supervise::Lifecycle;
use crate::telemetry::{Counter, Metrics};
use crate::upkeep::{Integrity, Notifier, Upkeep, Waker};
use angelia_core::connections::Lasting;
use angelia_core::error::{Error, Result};
use angelia_core::identity::new_gateway_limits::GatewayLimits;
use angelia_core::memory::{Memory, MemoryLimits};
use angelia_core::ports::{Blobs, Ports};
use angelia_platforms::webchat::{self, Guides, Hub, Webchat};
use angelia_platforms::{FileKeeper, Platform};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use axum::routing::get;
use ipnet::IpNet;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// How long sockets get to say goodbye when the server stops.
const GOODBYE: Duration = Duration::from_secs(4);
/// How long what only one node does may take to stop before others take it.
const HAND_OVER: Duration = Duration::from_secs(5);
/// How soon whoever is turned away by a node that has to catch up may come back.
const CATCH_UP: Duration = Duration::from_secs(1);
/// Where is decided by who is known here; the page of the web chat is the same for everybody.
const DECIDING: [&str; 3] = ["/chat/api/", "/relay/", "/oauth/"];
/// How often a server that stops looks whether calls have ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What an operator can set.
pub struct Options {
    /// Under which secrets rest.
    pub master_key: Arc<Keyring>,
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
    /// The longest turn of an agent: one that takes longer counts as over.
    pub turn_limit: Duration,
    /// How long agents may finish their turns when the server is about to stop.
    pub drain: Duration,
    /// Whether sources carry `is_bot` and `message_is_edit`.
    pub source_flags: bool,
    /// Who may prove a tenant.
    pub identity: IdentityOptions,
    /// The URL gateways and people reach this server at.
    pub public_url: String,
    /// Whether it speaks TLS itself, and no proxy in front of it.
    pub speaks_tls: bool,
    /// What the connector says of its own.
    pub notices: Notices,
    /// How much others may make the server hold.
    pub limits: Limits,
    /// How many gateways tenants make by themselves, and how fast.
    pub gateways: GatewayLimits,
    /// Whether other processes may use the same store.
    pub shared_store: bool,
    /// Whether it takes what only one of them does at a time: bots, and chores for all.
    pub takes_leases: bool,
    /// What this process is called among them: no other has that name, and none had before.
    pub node: String,
    /// Where the bytes of files rest; without it none are taken.
    pub blobs: Option<Arc<dyn Blobs>>,
    /// How many bytes of files a tenant may have.
    pub tenant_file_bytes: u64,
    /// Private ranges that agents may send files from.
    pub file_sources: Vec<IpNet>,
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

/// The parts that services share. Each takes those that it needs; none keeps this.
pub(crate) struct Parts {
    pub(crate) ports: Ports,
    /// This node among others.
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) life: Arc<Lifecycle>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) keys: Arc<Keyring>,
    pub(crate) bots: Arc<Bots>,
    pub(crate) identities: Arc<Identities>,
    pub(crate) sessions: Arc<Sessions>,
    /// Which agents are there, on whichever node.
    pub(crate) presence: Arc<Presence>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) wake: Arc<Waker>,
    /// Who was turned away lately.
    pub(crate) dials: Arc<DialLog>,
    pub(crate) refusal_log: Arc<RefusalLog>,
    /// Where messages wait for threads of their own.
    pub(crate) beginnings: Arc<Beginnings>,
}

/// The running server.
pub struct Server {
    parts: Parts,
    relay: Arc<Relay>,
    egress: Arc<Egress>,
    admin: Arc<Admin>,
    self_service: Arc<SelfService>,
    upkeep: Arc<Upkeep>,
    notifier: Arc<Notifier>,
    registrar: Arc<Registrar>,
    listeners: Listeners,
    /// Files, if there is a place for them.
    media: Option<Arc<Media>>,
    /// The web chat, if it is offered.
    webchat: Option<Router>,
    guides: Arc<Guides>,
    talk: Arc<RecentTalk>,
    /// Hears what comes over the bus for as long as there is a server.
    _subscriber: Arc<Subscriber>,
    /// How long agents may finish their turns.
    drain: Duration,
}

impl Server {
    /// Reads what the store knows and gets ready to serve.
    pub async fn new(ports: Ports, subscriber: &Arc<Subscriber>, options: Options) -> Result<Arc<Self>> {
        check_key(&*ports.records, &options.master_key).await?;
        let oauth_key = oauth_key(&*ports.records, &options.master_key.keys()).await?;
        let bearers = Arc::new(Bearers::new(&options.identity, oauth_key)?);
        furnish(&*ports.records).await?;
        if options.shared_store {
            options.admin_token.share(&*ports.records, &options.master_key).await?;
        }
        recall_standing(&*ports.records, &subscriber.sessions).await?;
        let parts = Parts::new(ports, subscriber, &options).await?;
        let (drops, integrity) = (Arc::<Drops>::default(), Arc::<Integrity>::default());
        let guides = Arc::<Guides>::default();
        let talk = RecentTalk::new(parts.identities.clone());
        let hint = options.notices.hint.clone();
        let admission = RoutedAdmission::new(&parts, drops.clone(), talk.clone(), hint);
        let media = options.blobs.clone().map(|blobs| Media::new(&parts, blobs, &options));
        let media = media.transpose()?;
        let files_of_tenant = media.is_some().then_some(options.tenant_file_bytes);
        let egress = Egress::new(&parts, media.clone(), options.egress, options.notices.clone());
        let relay = Relay::new(&parts, egress.clone(), media.clone(), &options);
        relay.hear_signs();
        let _ = subscriber.others.set(Others {
            wake: Arc::downgrade(&parts.wake),
            identities: Arc::downgrade(&parts.identities),
            egress: Arc::downgrade(&egress),
            cluster: Arc::downgrade(&parts.cluster),
            relay: Arc::downgrade(&relay),
        });
        parts.tell_of_itself();
        Ok(Arc::new(Self {
            relay,
            self_service: SelfService::new(&parts, bearers.clone(), options.gateways),
            upkeep: Upkeep::new(&parts, integrity.clone()),
            notifier: Notifier::new(&parts, egress.clone(), options.notices.clone()),
            registrar: Registrar::new(&parts),
            listeners: Listeners::new(&parts, admission.clone(), &options),
            webchat: options.webchat.then(|| parts.webchat(&options, admission, &guides, media.clone())),
            admin: Admin::new(
                &parts,
                options.admin_token,
                bearers,
                drops,
                integrity,
                (options.public_url, files_of_tenant),
            ),
            media,
            egress,
            guides,
            talk,
            _subscriber: subscriber.clone(),
            drain: options.drain,
            parts,
        }))
    }

    /// Starts what runs beside the sockets: unfinished actions, wakes, upkeep, bots.
    pub async fn start(self: &Arc<Self>) -> Result<()> {
        let Self { parts: Parts { life, wake, identities, cluster, .. }, upkeep, notifier, .. } = &**self;
        cluster.join().await?;
        life.supervise("cluster", cluster, Cluster::keep);
        if !cluster.is_shared() && upkeep.begin_run().await {
            life.supervise("check", upkeep, Upkeep::check);
        }
        life.supervise("clock", upkeep, Upkeep::watch_clock);
        self.egress.resume().await?;
        life.supervise("threads", &self.egress, Egress::open_threads);
        wake.begin().await?;
        life.supervise("wake", wake, Waker::run);
        life.supervise("identities", identities, Identities::keep_following);
        life.supervise("prune", upkeep, Upkeep::prune_now_and_then);
        life.supervise("tend", upkeep, Upkeep::tend);
        life.supervise("watch logs", &self.relay, Relay::watch_logs);
        life.supervise("watch rooms", &self.relay, Relay::watch_rooms);
        life.supervise("recent talk", &self.talk, RecentTalk::keep_forgetting);
        life.supervise("presence", &self.parts.presence, Presence::keep_looking);
        life.supervise("notices", notifier, Notifier::watch_waiting);
        life.supervise("losses", notifier, Notifier::watch_losses);
        life.supervise("unanswered", notifier, Notifier::watch_unanswered);
        life.supervise("commands", &self.registrar, Registrar::keep);
        life.supervise("keys", &self.admin, admin::follow_keys);
        if let Some(media) = &self.media {
            life.supervise("files", media, Media::keep_sweeping);
        }
        self.listeners.start();
        Ok(())
    }

    /// The routes people and gateways reach.
    pub fn public_router(self: &Arc<Self>) -> Router {
        let mut router = Router::new()
            .route("/livez", get(|| async { "ok\n" }))
            .route("/readyz", get(readyz))
            .with_state(self.clone())
            .merge(self.relay.clone().router())
            .merge(self.if_current(self.self_service.clone().router()));
        if let Some(media) = &self.media {
            router = router.merge(self.if_current(media.clone().router()));
        }
        if let Some(webchat) = &self.webchat {
            router = router.merge(self.if_current(webchat.clone()));
        }
        router.merge(self.listeners.webhooks())
    }

    /// Routes that decide by who is known here, and by routes and keys: closed while what is known
    /// here may not be what the others know.
    fn if_current(&self, routes: Router) -> Router {
        let cluster = self.parts.cluster.clone();
        routes.route_layer(middleware::from_fn(move |request: Request, next: Next| {
            let path = request.uri().path();
            let closed = !cluster.is_current() && DECIDING.iter().any(|begins| path.starts_with(begins));
            async move {
                if closed {
                    let why = "this node has to catch up with the others first";
                    let refusal = Error::unavailable(why).retry_in(CATCH_UP);
                    return admin::answer::<()>(StatusCode::OK, Err(refusal));
                }
                next.run(request).await
            }
        }))
    }

    /// The routes that the operator reaches.
    pub fn admin_router(&self) -> Router {
        admin::router(self.admin.clone())
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
        self.parts.metrics.count(Counter::Misdirected);
    }

    /// Lets agents finish what they are at before the server stops: every socket is closed
    /// with 1001 as soon as no turn is open on it, and none is let in or gets anything new. What
    /// agents send goes out as ever. Resolves when all sockets are gone, or time is over.
    ///
    /// Bots listen on and webhooks are answered: what comes now is in the log, for the next
    /// start. Refused it would be lost, or people told so: few providers post a second time, and
    /// a command of Discord has three seconds.
    pub async fn finish_turns(&self) {
        let Parts { life, sessions, cluster, .. } = &self.parts;
        life.leave();
        if cluster.is_shared() {
            // Others read the bots and send by them before any gateway has to dial again.
            cluster.hand_over(HAND_OVER).await;
            sessions.end_in_turn(Ending::WhenDone, self.drain / 2).await;
        } else {
            sessions.end_all(Ending::WhenDone);
        }
        let _ = tokio::time::timeout(self.drain, sessions.gone()).await;
    }

    /// Closes every socket with 1001 and waits until they are gone.
    pub async fn stop(&self) {
        let Parts { life, sessions, refusal_log, .. } = &self.parts;
        life.stop();
        sessions.end_all(Ending::Shutdown);
        // What they have received is durable, and they say how far that is.
        self.listeners.stop().await;
        let gone = async {
            life.ended().await;
            sessions.gone().await;
            while self.egress.is_calling() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let _ = tokio::time::timeout(GOODBYE, gone).await;
        refusal_log.close().await;
        if !self.parts.cluster.is_shared() {
            self.upkeep.end_run().await;
        }
        self.parts.cluster.leave().await;
    }
}

impl Parts {
    async fn new(ports: Ports, subscriber: &Subscriber, options: &Options) -> Result<Self> {
        let guard =
            Guard::new(options.wake_allow_http, options.wake_allow.clone()).map_err(|e| no_client(&e))?;
        let (sessions, hub) = (subscriber.sessions.clone(), subscriber.hub.clone());
        hub.bound(&options.limits.lasting);
        let mut bots: Vec<Arc<dyn Platform>> = Vec::new();
        if options.webchat {
            bots.push(Arc::new(Webchat::new(ports.clone(), hub.clone())));
        }
        bots.extend(options.platforms.iter().cloned());
        let (metrics, keys) = (Arc::<Metrics>::default(), options.master_key.clone());
        let shared = options.shared_store;
        let bus = subscriber.bus.clone();
        let told = shared.then(|| bus.clone());
        let records = ports.records.clone();
        let identities = Identities::read(records.clone(), keys.clone(), sessions.clone(), told).await?;
        let cluster = Cluster::new(
            records,
            ports.ledger.clone(),
            bus,
            options.node.clone(),
            Sharing { shared, takes: options.takes_leases },
        );
        cluster.follow_with(&identities);
        identities.watch_readers(hub.clone());
        if shared {
            hub.is_node(&options.node);
        }
        let log = ports.log.clone();
        let presence = Presence::new(log.clone(), sessions.clone(), cluster.clone());
        Ok(Self {
            life: Lifecycle::new(metrics.clone()),
            bots: Bots::new(bots),
            memory: Arc::new(Memory::new(options.limits.memory)),
            wake: Waker::new(
                guard,
                log,
                presence.clone(),
                cluster.clone(),
                identities.clone(),
                metrics.clone(),
            ),
            cluster,
            presence,
            refusal_log: RefusalLog::new(ports.records.clone(), metrics.clone()),
            beginnings: Arc::default(),
            dials: Arc::default(),
            ports,
            metrics,
            keys,
            identities,
            sessions,
            hub,
        })
    }

    /// Has this node tell the others of itself.
    fn tell_of_itself(&self) {
        let (sessions, keys, life) = (self.sessions.clone(), self.keys.clone(), self.life.clone());
        let (identities, store) = (Arc::downgrade(&self.identities), self.ports.upkeep.clone());
        let cluster = Arc::downgrade(&self.cluster);
        self.cluster.tell_of_itself(move || {
            let Some(cluster) = cluster.upgrade() else { return Value::Null };
            let facts = Facts {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                sockets: sessions.open() as u64,
                bus: cluster.bus().is_connected(),
                feed: identities.upgrade().map_or(0, |identities| identities.known_to()),
                ready: Readiness::of(&life, &*store, &cluster, &keys).is_ready(),
                key: keys.facts(cluster.node(), &cluster.seen().there),
            };
            serde_json::to_value(facts).unwrap_or_default()
        });
    }

    fn webchat(
        &self,
        options: &Options,
        admission: Arc<RoutedAdmission>,
        guides: &Arc<Guides>,
        media: Option<Arc<Media>>,
    ) -> Router {
        webchat::routes(webchat::Setup {
            ports: self.ports.clone(),
            hub: self.hub.clone(),
            admission,
            source_flags: options.source_flags,
            open_rooms: options.open_rooms.clone(),
            guides: guides.clone(),
            pace: options.webchat_pace,
            files: media.map(|media| media as Arc<dyn FileKeeper>),
        })
    }
}

async fn readyz(State(server): State<Arc<Server>>) -> impl IntoResponse {
    let Parts { life, ports, cluster, keys, .. } = &server.parts;
    let readiness = Readiness::of(life, &*ports.upkeep, cluster, keys);
    let status = if readiness.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, readiness.line())
}
