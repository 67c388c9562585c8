//! The socket every gateway dials: its upgrade, its session, and which sessions there are.

mod gateway_log;
mod handshake;
mod interrupt;
mod mailbox;
mod outgoing;
mod pending;
mod session;
mod sessions;
mod takeover;
mod told;
mod upgrade;
mod watch_rooms;
mod websocket;

pub(crate) use gateway_log::DialLog;
pub use mailbox::Subscriber;
pub(crate) use mailbox::{Answer, Ending, Mailbox, Others};
pub(crate) use session::ACK_LIMITS;
pub(crate) use session::LIMITS as SESSION_LIMITS;
pub(crate) use sessions::{Sessions, Standing};
pub(crate) use upgrade::{Caller, identify};
pub(crate) use upgrade::{LIMITS as UPGRADE_LIMITS, SOCKETS_PER_GATEWAY};

use crate::cluster::Cluster;
use crate::egress::Egress;
use crate::identities::Identities;
use crate::ingress::Bots;
use crate::media::Media;
use crate::refusal_log::RefusalLog;
use crate::server::{Options, Parts};
use crate::supervise::Lifecycle;
use crate::telemetry::Metrics;
use crate::upkeep::Waker;
use angelia_contract::descriptor::Descriptor;
use angelia_core::clock;
use angelia_core::identity::GatewayRecord;
use angelia_core::limit::LogThrottle;
use angelia_core::media::FileId;
use angelia_core::memory::Memory;
use angelia_core::once::Heard;
use angelia_core::ports::Ports;
use angelia_core::ports::log::LogState;
use angelia_platforms::webchat::Hub;
use axum::Router;
use axum::routing::get;
use hashlink::LruCache;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;
use upgrade::Places;

/// How often the logs of live sockets are looked at. On one node hints come by a call and
/// none gets lost; this is for what nobody thought of.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// The same while nothing comes over the bus.
const LOOK_WITHOUT_BUS: Duration = Duration::from_millis(800);
/// The operation that takes a place for files.
const SEND_MEDIA: &str = "send_media";
/// Logs looked at in one read.
const AT_ONCE: usize = 500;

/// What sockets work with.
pub(crate) struct Relay {
    ports: Ports,
    /// Who else is there.
    cluster: Arc<Cluster>,
    /// Interrupts that other nodes were told of, and those that they told of lately.
    interrupts_said: AtomicU64,
    interrupts_heard: Mutex<Heard>,
    sessions: Arc<Sessions>,
    /// Who reads the web chat just now.
    hub: Arc<Hub>,
    places: Arc<Places>,
    sockets_per_gateway: usize,
    identities: Arc<Identities>,
    bots: Arc<Bots>,
    /// Where actions go.
    egress: Arc<Egress>,
    /// Files, if there is a place for them.
    media: Option<Arc<Media>>,
    /// Files of which it was told that they are missing.
    missing_told: Mutex<LruCache<FileId, ()>>,
    /// The address of this server, and whether it speaks TLS itself.
    public_url: String,
    speaks_tls: bool,
    wake: Arc<Waker>,
    /// Who was turned away lately.
    dials: Arc<DialLog>,
    memory: Arc<Memory>,
    memory_warning: Mutex<LogThrottle>,
    refusal_log: Arc<RefusalLog>,
    metrics: Arc<Metrics>,
    life: Arc<Lifecycle>,
    /// Sockets that are about to drain their instances.
    claiming: Arc<AtomicUsize>,
    /// The longest turn: one that takes longer counts as over.
    turn_limit: Duration,
    /// How long turns may go on once the server is about to stop.
    drain: Duration,
}

impl Relay {
    pub(crate) fn new(
        parts: &Parts,
        egress: Arc<Egress>,
        media: Option<Arc<Media>>,
        options: &Options,
    ) -> Arc<Self> {
        let limits = &options.limits;
        Arc::new(Self {
            ports: parts.ports.clone(),
            cluster: parts.cluster.clone(),
            interrupts_said: AtomicU64::new(0),
            interrupts_heard: Mutex::default(),
            sessions: parts.sessions.clone(),
            hub: parts.hub.clone(),
            places: Places::new(limits.lasting),
            sockets_per_gateway: limits.sockets_per_gateway,
            identities: parts.identities.clone(),
            bots: parts.bots.clone(),
            egress,
            media,
            missing_told: told::nobody_told(),
            dials: parts.dials.clone(),
            public_url: options.public_url.clone(),
            speaks_tls: options.speaks_tls,
            wake: parts.wake.clone(),
            memory: parts.memory.clone(),
            memory_warning: Mutex::default(),
            refusal_log: parts.refusal_log.clone(),
            metrics: parts.metrics.clone(),
            life: parts.life.clone(),
            claiming: Arc::default(),
            turn_limit: options.turn_limit,
            drain: options.drain,
        })
    }

    /// Where gateways dial.
    pub(crate) fn router(self: Arc<Self>) -> Router {
        Router::new().route("/relay", get(upgrade::upgrade)).with_state(self)
    }

    /// What gateways are told of the bots. Where no files are kept, none can be sent.
    fn descriptors(&self) -> Vec<Descriptor> {
        let mut descriptors = self.bots.descriptors();
        if self.media.is_none() {
            descriptors.iter_mut().for_each(|it| it.supported_ops.retain(|op| op != SEND_MEDIA));
        }
        descriptors
    }

    /// Tells live sockets how far their logs are, again and again, and who drains them: finds
    /// what a hint that never came would have told.
    pub(crate) async fn watch_logs(self: Arc<Self>, life: Arc<Lifecycle>) {
        let (mut looked, mut failed) = (clock::mono(), false);
        loop {
            let missed = tokio::time::timeout(LOOK_WITHOUT_BUS, self.sessions.may_have_missed());
            if life.unless_stopped(missed).await.is_none() {
                return;
            }
            let may_miss = failed || !self.cluster.hears_all();
            let every = if may_miss { LOOK_WITHOUT_BUS } else { LOOK_EVERY };
            let is_time = clock::mono().since(looked) >= every;
            if is_time {
                looked = clock::mono();
            }
            let mut all = true;
            for some in self.sessions.to_look_at(is_time).chunks(AT_ONCE) {
                let Ok(states) = self.ports.log.states(some.to_vec()).await else {
                    all = false;
                    continue;
                };
                for LogState { instance, mark, epoch, .. } in states {
                    self.sessions.claimed_elsewhere(instance, epoch);
                    self.sessions.tell(instance, mark);
                }
            }
            // Those that could not be looked at are looked at with all the others.
            failed = !all || failed && !is_time;
        }
    }

    /// Tells whose gateway is refused for want of memory; the log, now and then.
    fn warn_of_memory(&self, record: &GatewayRecord) {
        let mut warning = self.memory_warning.lock();
        if let Some(times) = warning.note(clock::mono()) {
            tracing::warn!(
                tenant = %record.tenant, gateway = %record.gateway_id, times,
                held = self.memory.held_by(&record.tenant), of = self.memory.of_tenant(),
                "a gateway is refused because too much is held for it; angelia status says for whom, \
                 angelia gateway revoke ends it"
            );
        }
    }
}
