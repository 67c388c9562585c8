//! Which agents are there, on whichever node their sockets are.

use super::Cluster;
use crate::relay::Sessions;
use crate::supervise::Lifecycle;
use angelia_core::clock::{self, Mono};
use angelia_core::error::Result;
use angelia_core::inbox::InstanceId;
use angelia_core::ports::log::{Log, LogState};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Instances looked at in one read.
const AT_ONCE: usize = 500;
/// How often it is looked again at those that somebody asks for: as often as they ask.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// For how long it is looked at one after somebody asked.
const ASKED_LATELY: Duration = Duration::from_secs(5);

/// Which agents are there.
pub(crate) struct Presence {
    log: Arc<dyn Log>,
    sessions: Arc<Sessions>,
    cluster: Arc<Cluster>,
    /// Those that somebody asked for lately and that are not here, for thousands who look.
    lately: Mutex<HashMap<InstanceId, Lately>>,
}

/// What was last seen of an instance.
#[derive(Clone, Copy)]
struct Lately {
    is_there: bool,
    asked: Mono,
}

impl Presence {
    pub(crate) fn new(log: Arc<dyn Log>, sessions: Arc<Sessions>, cluster: Arc<Cluster>) -> Arc<Self> {
        Arc::new(Self { log, sessions, cluster, lately: Mutex::default() })
    }

    /// Whether an instance has a live socket on this node.
    pub(crate) fn is_here(&self, instance: InstanceId) -> bool {
        self.sessions.is_live(instance)
    }

    /// Which of these instances have a live socket, on whichever node.
    pub(crate) async fn of(&self, instances: &[InstanceId]) -> Result<HashSet<InstanceId>> {
        let (mut there, others): (HashSet<_>, Vec<_>) = {
            let (here, others): (Vec<_>, Vec<_>) =
                instances.iter().copied().partition(|instance| self.is_here(*instance));
            (here.into_iter().collect(), others)
        };
        if self.cluster.is_shared() {
            let is_live =
                |state: &LogState| state.node.as_deref().is_some_and(|node| self.cluster.is_there(node));
            for some in others.chunks(AT_ONCE) {
                let states = self.log.states(some.to_vec()).await?;
                there.extend(states.into_iter().filter(is_live).map(|state| state.instance));
            }
        }
        Ok(there)
    }

    /// Whether an instance has a live socket, on whichever node, as of a second ago. Asked again
    /// and again it costs no read of its own. One that cannot be looked at counts as away.
    pub(crate) async fn lately(&self, instance: InstanceId) -> bool {
        if self.is_here(instance) || !self.cluster.is_shared() {
            return self.is_here(instance);
        }
        let asked = clock::mono();
        if let Some(seen) = self.lately.lock().get_mut(&instance) {
            seen.asked = asked;
            return seen.is_there;
        }
        let Ok(there) = self.of(&[instance]).await else { return false };
        let is_there = there.contains(&instance);
        self.lately.lock().insert(instance, Lately { is_there, asked });
        is_there
    }

    /// Looks at those that somebody asks for, until the server stops.
    pub(crate) async fn keep_looking(self: Arc<Self>, life: Arc<Lifecycle>) {
        while self.cluster.is_shared() && life.pause(LOOK_EVERY).await {
            let now = clock::mono();
            let asked: Vec<_> = {
                let mut lately = self.lately.lock();
                lately.retain(|_, seen| now.since(seen.asked) < ASKED_LATELY);
                lately.keys().copied().collect()
            };
            // What cannot be looked at now stays as it was seen.
            let Ok(there) = self.of(&asked).await else { continue };
            let looked_at: HashSet<_> = asked.into_iter().collect();
            for (instance, seen) in &mut *self.lately.lock() {
                // Who was asked for meanwhile was looked at then.
                if looked_at.contains(instance) {
                    seen.is_there = there.contains(instance);
                }
            }
        }
    }
}
