//! Rooms of the web chat that somebody reads on this node: what nobody told of is looked for.

use super::{LOOK_EVERY, LOOK_WITHOUT_BUS, Relay};
use crate::supervise::Lifecycle;
use angelia_core::clock;
use std::sync::Arc;

/// Rooms looked at in one read, each by an index.
const AT_ONCE: usize = 100;

impl Relay {
    /// Tells readers how far their rooms are: when something may have been missed, and again and
    /// again while nothing comes over the bus. Who has seen less reads the store.
    pub(crate) async fn watch_rooms(self: Arc<Self>, life: Arc<Lifecycle>) {
        let mut looked = clock::mono();
        let mut failed = false;
        loop {
            let missed = tokio::time::timeout(LOOK_WITHOUT_BUS, self.hub.may_have_missed());
            if life.unless_stopped(missed).await.is_none() {
                return;
            }
            self.hub.forget_gone(|node| self.cluster.is_there(node));
            let may_miss = failed || !self.cluster.hears_all();
            let now = clock::mono();
            let is_time = now.since(looked) >= if may_miss { LOOK_WITHOUT_BUS } else { LOOK_EVERY };
            if is_time {
                looked = now;
            }
            let rooms = self.hub.to_look_at(is_time);
            // Those that could not be looked at are looked at with all the others.
            failed = !self.look_at_rooms(&rooms).await || failed && !is_time;
        }
    }

    /// `false` if not all of them could be looked at.
    async fn look_at_rooms(&self, rooms: &[String]) -> bool {
        let mut all = true;
        for some in rooms.chunks(AT_ONCE) {
            match self.ports.lines.reached(some.to_vec()).await {
                Ok(reached) => {
                    for (room, reached) in some.iter().zip(reached) {
                        self.hub.reached(room, reached);
                    }
                }
                Err(_) => all = false,
            }
        }
        all
    }
}
