//! A bus that is joined after the store was opened: what proves who speaks on it is kept there,
//! and the store publishes from its first commit on. Until then it is one within the process.

use crate::local_bus::LocalBus;
use angelia_core::ports::{Bus, BusStats, Hint, Listener, Topic};
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

/// A bus that is joined later, or never.
#[derive(Default)]
pub struct LateBus {
    local: LocalBus,
    joined: OnceLock<Arc<dyn Bus>>,
    /// Who listens, for the bus that is joined.
    listeners: Mutex<Vec<Listener>>,
}

impl LateBus {
    /// Everything goes over this one from now on. Only the first one counts.
    pub fn join(&self, bus: Arc<dyn Bus>) {
        let listeners = self.listeners.lock();
        if self.joined.get().is_none() {
            listeners.iter().for_each(|listener| bus.subscribe(listener.clone()));
            let _ = self.joined.set(bus);
        }
    }
}

impl Bus for LateBus {
    fn publish(&self, hint: Hint) {
        match self.joined.get() {
            Some(bus) => bus.publish(hint),
            None => self.local.publish(hint),
        }
    }

    fn subscribe(&self, listener: Listener) {
        let mut listeners = self.listeners.lock();
        match self.joined.get() {
            Some(bus) => bus.subscribe(listener),
            None => {
                self.local.subscribe(listener.clone());
                listeners.push(listener);
            }
        }
    }

    fn follow(&self, topic: Topic) {
        if let Some(bus) = self.joined.get() {
            bus.follow(topic);
        }
    }

    fn unfollow(&self, topic: &Topic) {
        if let Some(bus) = self.joined.get() {
            bus.unfollow(topic);
        }
    }

    fn is_connected(&self) -> bool {
        self.joined.get().is_none_or(|bus| bus.is_connected())
    }

    fn stats(&self) -> Option<BusStats> {
        self.joined.get().and_then(|bus| bus.stats())
    }
}
