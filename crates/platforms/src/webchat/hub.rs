//! Live readers of rooms. What they miss they read from the store.

use angelia_core::store::Line;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast;

/// Events a slow reader may fall behind before it has to read the store again.
const BACKLOG: usize = 64;

/// Something that just happened in a room.
#[derive(Clone, Debug)]
pub(super) enum Happening {
    /// A line was written or edited.
    Line(Line),
    /// The agent is writing.
    Typing,
}

/// Rooms somebody is reading now.
#[derive(Debug, Default)]
pub struct Hub {
    rooms: Mutex<HashMap<String, broadcast::Sender<Happening>>>,
}

impl Hub {
    /// Tells the readers of a room about a line.
    pub fn line(&self, line: &Line) {
        self.tell(&line.room, || Happening::Line(line.clone()));
    }

    /// Tells the readers of a room that the agent is writing.
    pub(super) fn typing(&self, room: &str) {
        self.tell(room, || Happening::Typing);
    }

    /// Starts reading a room.
    pub(super) fn read(&self, room: &str) -> broadcast::Receiver<Happening> {
        let mut rooms = self.rooms();
        // Rooms nobody reads any more go when somebody starts to read.
        rooms.retain(|_, readers| readers.receiver_count() > 0);
        rooms.entry(room.to_owned()).or_insert_with(|| broadcast::Sender::new(BACKLOG)).subscribe()
    }

    /// How many are reading now.
    pub(super) fn readers(&self) -> usize {
        self.rooms().values().map(broadcast::Sender::receiver_count).sum()
    }

    fn tell(&self, room: &str, happening: impl FnOnce() -> Happening) {
        if let Some(readers) = self.rooms().get(room) {
            let _ = readers.send(happening());
        }
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<String, broadcast::Sender<Happening>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
