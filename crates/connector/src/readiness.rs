//! Whether this node takes messages in, and what is not as it should be although it does.

use crate::cluster::Cluster;
use crate::keyring::Keyring;
use crate::supervise::Lifecycle;
use angelia_core::ports::Upkeep;

/// What a node without a bus is worth.
pub(crate) const NO_BUS: &str = "no bus: what happens on one node is seen on the others within a second, not at \
                                 once; is Redis there, and is bus.url right?";

/// How ready this node is.
pub(crate) struct Readiness {
    /// Why it takes nothing in, if so.
    pub(crate) refusal: Option<&'static str>,
    /// What is not as it should be.
    pub(crate) degraded: Vec<String>,
}

impl Readiness {
    pub(crate) fn of(life: &Lifecycle, store: &dyn Upkeep, cluster: &Cluster, keys: &Keyring) -> Self {
        let refusal = if life.is_leaving() {
            Some("stopping")
        } else if !store.healthy() && cluster.is_shared() {
            Some("the database cannot commit: is it there? See: angelia status")
        } else if !store.healthy() {
            Some("the store cannot commit: is the disk full? See: angelia status")
        } else if !cluster.is_current() {
            Some("catching up: this node stood still, or did not reach the database, for longer than a lease")
        } else {
            None
        };
        let no_bus = cluster.is_shared() && !cluster.bus().is_connected();
        let no_bus = no_bus.then(|| NO_BUS.to_owned());
        Self { refusal, degraded: no_bus.into_iter().chain(keys.trouble()).collect() }
    }

    /// Whether messages are taken in.
    pub(crate) fn is_ready(&self) -> bool {
        self.refusal.is_none()
    }

    /// In one line, for `/readyz`.
    pub(crate) fn line(&self) -> String {
        match self.refusal {
            Some(refusal) => format!("{refusal}\n"),
            None if self.degraded.is_empty() => "ready\n".to_owned(),
            None => format!("ready, but degraded: {}\n", self.degraded.join("; ")),
        }
    }
}
