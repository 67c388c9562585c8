//! Waking gateways that sleep while something waits for them.

use crate::cluster::{Chore, Cluster, Presence};
use crate::identities::Identities;
use crate::ssrf_guard::{Guard, GuardError};
use crate::supervise::Lifecycle;
use crate::telemetry::{Counter, Metrics};
use angelia_core::clock::{self, Mono};
use angelia_core::error::Result;
use angelia_core::inbox::{InstanceId, WakeSchedule};
use angelia_core::ports::log::Log;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};

/// Pokes under way at the same time.
const MAX_POKES: usize = 16;
/// How long to rest when nothing is scheduled.
const REST: Duration = Duration::from_secs(3_600);

/// How often it is looked for what other nodes appended.
const LOOK_FOR_OTHERS: Duration = Duration::from_secs(1);
/// When the store is asked again for whom something waits.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// Who has to be woken, and when next.
pub(crate) struct Waker {
    guard: Guard,
    log: Arc<dyn Log>,
    presence: Arc<Presence>,
    cluster: Arc<Cluster>,
    identities: Arc<Identities>,
    metrics: Arc<Metrics>,
    sleepers: Mutex<HashMap<InstanceId, WakeSchedule>>,
    changed: Notify,
    pokes: Semaphore,
}

impl Waker {
    pub(crate) fn new(
        guard: Guard,
        log: Arc<dyn Log>,
        presence: Arc<Presence>,
        cluster: Arc<Cluster>,
        identities: Arc<Identities>,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        Arc::new(Self {
            guard,
            log,
            presence,
            cluster,
            identities,
            metrics,
            sleepers: Mutex::default(),
            changed: Notify::new(),
            pokes: Semaphore::new(MAX_POKES),
        })
    }

    /// Whether a URL could be called at all, or why not.
    pub(crate) fn could_call(&self, url: &str) -> Result<(), &'static str> {
        self.guard.could_reach(url)
    }

    /// Something waits, or may wait, for an instance that has no socket.
    pub(crate) fn waits(&self, instance: InstanceId) {
        self.waits_quietly(instance);
        self.changed.notify_one();
    }

    fn waits_quietly(&self, instance: InstanceId) {
        self.sleepers.lock().entry(instance).or_insert_with(|| WakeSchedule::start(clock::mono()));
    }

    /// The wake URL changed: what was tried with the old one counts for nothing.
    pub(crate) fn start_over(&self, instance: InstanceId) {
        self.sleepers.lock().remove(&instance);
        self.waits(instance);
    }

    /// Remembers for whom something waited when the server started.
    pub(crate) async fn begin(&self) -> Result<()> {
        self.log.waiting().await?.into_iter().for_each(|instance| self.waits(instance));
        Ok(())
    }

    /// Pokes whoever is due, until the server is about to stop: it would let nobody in.
    pub(crate) async fn run(self: Arc<Self>, life: Arc<Lifecycle>) {
        loop {
            let rest = if self.cluster.does(Chore::Wake) {
                self.look().await
            } else {
                // Whoever does it looks for itself.
                self.sleepers.lock().clear();
                LOOK_FOR_OTHERS
            };
            // Something changed, or it is time.
            let due = async { drop(tokio::time::timeout(rest, self.changed.notified()).await) };
            if life.unless_leaving(due).await.is_none() {
                return;
            }
        }
    }

    /// Pokes whoever is due; answers how long to rest.
    async fn look(self: &Arc<Self>) -> Duration {
        let shared = self.cluster.is_shared();
        if self.sleepers.lock().is_empty() && !shared {
            return REST;
        }
        let looked = async || -> Result<(HashSet<InstanceId>, HashSet<InstanceId>)> {
            let waiting = self.log.waiting().await?;
            if shared {
                // What other nodes appended is not heard of here.
                let new = |instance: &InstanceId| !self.sleepers.lock().contains_key(instance);
                waiting.iter().copied().filter(new).for_each(|instance| self.waits_quietly(instance));
            }
            let sleepers: Vec<InstanceId> = self.sleepers.lock().keys().copied().collect();
            Ok((waiting.into_iter().collect(), self.presence.of(&sleepers).await?))
        };
        match looked().await {
            Ok((waiting, there)) => {
                let rest = self.poke_due(&waiting, &there, clock::mono());
                if shared { rest.min(LOOK_FOR_OTHERS) } else { rest }
            }
            Err(_) => ASK_AGAIN,
        }
    }

    /// Starts the pokes that are due; answers how long to rest.
    fn poke_due(
        self: &Arc<Self>,
        waiting: &HashSet<InstanceId>,
        there: &HashSet<InstanceId>,
        now: Mono,
    ) -> Duration {
        let mut rest = REST;
        let known = self.identities.now();
        self.sleepers.lock().retain(|instance, schedule| {
            let awake = there.contains(instance) || !waiting.contains(instance);
            let record = known.serving(*instance).filter(|record| record.revoked_at.is_none());
            let url = record.as_ref().and_then(|record| record.wake_url.clone());
            let (Some(record), Some(url), false) = (record, url, awake) else { return false };
            // One that is given up stays so until its gateway was here again.
            let Some(due) = schedule.next() else { return true };
            if due <= now {
                schedule.poked(now);
                tracing::info!(
                    event = "wake_sent", tenant = %record.tenant, gateway = %record.gateway_id,
                    "messages wait for a gateway that is away: its wake URL is requested"
                );
                self.poke(url);
            }
            rest = rest.min(schedule.next().map_or(REST, |next| next.since(now)));
            true
        });
        rest
    }

    fn poke(self: &Arc<Self>, url: String) {
        let waker = self.clone();
        tokio::spawn(async move {
            let Ok(_permit) = waker.pokes.acquire().await else { return };
            waker.metrics.count(Counter::Wakes);
            if let Err(error @ GuardError::Refused(_)) = waker.guard.poke(&url).await {
                waker.metrics.count(Counter::WakesRefused);
                tracing::warn!(%error, "a wake URL was not requested; see [wake] in the configuration");
            }
        });
    }
}
