//! The bus of a node among others that has none to hear them by: what it says itself it hears, and
//! everything else it looks for.

use crate::local_bus::LocalBus;
use angelia_core::ports::{Bus, Hint, Listener};

/// A bus on which nobody else is heard.
#[derive(Default)]
pub struct DeafBus(LocalBus);

impl Bus for DeafBus {
    fn publish(&self, hint: Hint) {
        self.0.publish(hint);
    }

    fn subscribe(&self, listener: Listener) {
        self.0.subscribe(listener);
    }

    fn is_connected(&self) -> bool {
        false
    }
}
