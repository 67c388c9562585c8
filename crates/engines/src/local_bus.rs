//! The bus of a single node: a function call.

use angelia_core::ports::{Bus, Hint, Listener};
use parking_lot::RwLock;
use std::sync::Arc;

/// A bus within the process: it loses nothing and keeps the order, which nobody relies on.
#[derive(Default)]
pub struct LocalBus(RwLock<Vec<Listener>>);

impl LocalBus {
    /// A bus on which one listens.
    pub fn to(listener: impl Fn(Hint) + Send + Sync + 'static) -> Arc<Self> {
        let bus = Arc::new(Self::default());
        bus.subscribe(Arc::new(listener));
        bus
    }
}

impl Bus for LocalBus {
    fn publish(&self, hint: Hint) {
        // Whoever is told may publish: it must not queue behind somebody who wants to listen.
        let listeners = self.0.read_recursive();
        // The last one gets the hint itself: mostly there is one.
        let Some((last, others)) = listeners.split_last() else { return };
        others.iter().for_each(|listener| listener(hint.clone()));
        last(hint);
    }

    fn subscribe(&self, listener: Listener) {
        self.0.write().push(listener);
    }

    // There is no other node: everything is heard, and nothing is missed.
}
