//! The engines of a single node.

use angelia_core::ports::{Bus, Hint, Listener};
use std::sync::{Arc, PoisonError, RwLock};

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
        let listeners = self.0.read().unwrap_or_else(PoisonError::into_inner);
        // The last one gets the hint itself: mostly there is one.
        let Some((last, others)) = listeners.split_last() else { return };
        others.iter().for_each(|listener| listener(hint.clone()));
        last(hint);
    }

    fn subscribe(&self, listener: Listener) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(listener);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::inbox::{InstanceId, Seq};
    use std::sync::Mutex;

    #[test]
    fn whoever_listens_is_told_in_order() {
        let bus = LocalBus::default();
        let gone = |seq| Hint::Removed { instance: InstanceId(1), seqs: vec![Seq(seq)] };
        bus.publish(gone(1));
        let heard = [(); 2].map(|()| Arc::<Mutex<Vec<i64>>>::default());
        for one in heard.clone() {
            bus.subscribe(Arc::new(move |hint| {
                let Hint::Removed { seqs, .. } = hint else { return };
                one.lock().unwrap().extend(seqs.iter().map(|seq| seq.0));
            }));
        }
        bus.publish(gone(2));
        bus.publish(gone(3));
        for one in heard {
            assert_eq!(*one.lock().unwrap(), [2, 3]);
        }
    }
}
