//! How writes wait for a connection: in the line of their owner, one after the other, and
//! owner by owner. Whoever writes much waits behind its own, and nobody else does.
//!
//! What is hot is done for many at once: a few at a time take whatever waits.

use super::hot::HotWrite;
use crate::store::engine::Owner;
use crate::store::room::{Place, Room};
use angelia_core::ports::BoxFuture;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use tokio::sync::Notify;

angelia_contract::limits! {
    /// Enough to share the round trip and the commit, few enough to answer soon.
    const BATCH: usize = 512, count "writes in one commit in PostgreSQL";
    /// Whoever comes next waits for no more than one of them.
    const BATCH_BYTES: usize = 1024 * 1024, bytes "in one commit in PostgreSQL, but for a single write that is larger";
}

/// A write that takes a transaction of its own.
pub(super) type ColdWrite = BoxFuture<'static, ()>;

/// A write that waits.
pub(super) enum Write {
    /// One of many that are done together.
    Hot(HotWrite),
    /// One that is done alone.
    Cold(ColdWrite),
}

struct Queued {
    write: Write,
    bytes: usize,
    /// Held until it is done.
    place: Place,
}

#[derive(Default)]
struct Line {
    waiting: VecDeque<Queued>,
    busy: bool,
}

#[derive(Default)]
struct State {
    lines: HashMap<Owner, Line>,
    /// Owners whose turn it is, by what comes first in their line.
    hot: VecDeque<Owner>,
    cold: VecDeque<Owner>,
    /// The server's own and operators': in nobody's line.
    free: VecDeque<Queued>,
    /// Whether one of those was taken last: then it is somebody's turn.
    free_was_last: bool,
}

/// Everybody's line.
#[derive(Default)]
pub(super) struct Lines {
    state: Mutex<State>,
    hot: Notify,
    cold: Notify,
    room: Room,
}

/// Writes that are done together, and whose they are.
pub(super) struct Batch {
    pub(super) writes: Vec<HotWrite>,
    owners: Vec<Owner>,
    _places: Vec<Place>,
}

/// A write that is done alone, and whose it is.
pub(super) struct Single {
    pub(super) write: ColdWrite,
    owner: Option<Owner>,
    _place: Place,
}

impl Lines {
    /// Puts a write in line once there is room for it.
    pub(super) async fn push(&self, owner: Owner, bytes: usize, write: Write) {
        let Some(place) = self.room.enter(&owner, bytes).await else { return };
        let queued = Queued { write, bytes, place };
        let mut state = self.state.lock();
        let nobodys = matches!(owner, Owner::Operator | Owner::Upkeep | Owner::Server);
        if nobodys && matches!(queued.write, Write::Cold(_)) {
            if owner == Owner::Operator {
                state.free.push_front(queued)
            } else {
                state.free.push_back(queued)
            }
            drop(state);
            return self.cold.notify_one();
        }
        let line = state.lines.entry(owner.clone()).or_default();
        line.waiting.push_back(queued);
        if line.waiting.len() == 1 && !line.busy {
            state.its_turn(owner);
        }
        drop(state);
        self.wake();
    }

    /// Waits for writes that are done together.
    pub(super) async fn batch(&self) -> Batch {
        loop {
            let heard = self.hot.notified();
            let batch = self.state.lock().batch();
            if let Some(batch) = batch {
                // Whoever else is free takes what is left.
                self.wake();
                return batch;
            }
            heard.await;
        }
    }

    /// Waits for a write that is done alone.
    pub(super) async fn single(&self) -> Single {
        loop {
            let heard = self.cold.notified();
            let single = self.state.lock().single();
            if let Some(single) = single {
                self.wake();
                return single;
            }
            heard.await;
        }
    }

    /// A batch is done: its owners have their turn again.
    pub(super) fn done(&self, owners: impl IntoIterator<Item = Owner>) {
        let mut state = self.state.lock();
        for owner in owners {
            let Some(line) = state.lines.get_mut(&owner) else { continue };
            line.busy = false;
            if line.waiting.is_empty() {
                state.lines.remove(&owner);
            } else {
                state.its_turn(owner);
            }
        }
        drop(state);
        self.wake();
    }

    fn wake(&self) {
        let (hot, cold) = {
            let state = self.state.lock();
            (!state.hot.is_empty(), !state.cold.is_empty() || !state.free.is_empty())
        };
        if hot {
            self.hot.notify_one();
        }
        if cold {
            self.cold.notify_one();
        }
    }
}

impl Batch {
    /// What is to be done, and who has their turn again after that.
    pub(super) fn take(self) -> (Vec<HotWrite>, Vec<Owner>, Vec<Place>) {
        (self.writes, self.owners, self._places)
    }
}

impl Single {
    /// What is to be done, and who has their turn again after that.
    pub(super) fn take(self) -> (ColdWrite, Option<Owner>, Place) {
        (self.write, self.owner, self._place)
    }
}

impl State {
    /// It is an owner's turn, for what comes first in its line.
    fn its_turn(&mut self, owner: Owner) {
        let hot = self.lines.get(&owner).and_then(|line| line.waiting.front());
        match hot.map(|queued| &queued.write) {
            Some(Write::Hot(_)) => self.hot.push_back(owner),
            Some(Write::Cold(_)) => self.cold.push_back(owner),
            None => {}
        }
    }

    /// One of each owner in turn, as far as it is hot, until there are enough.
    fn batch(&mut self) -> Option<Batch> {
        let mut batch = Batch { writes: Vec::new(), owners: Vec::new(), _places: Vec::new() };
        let (mut bytes, mut turns) = (0, std::mem::take(&mut self.hot));
        while let Some(owner) = turns.pop_front() {
            if batch.writes.len() >= BATCH || (bytes >= BATCH_BYTES && !batch.writes.is_empty()) {
                turns.push_front(owner);
                break;
            }
            let Some(line) = self.lines.get_mut(&owner) else { continue };
            if !line.busy {
                line.busy = true;
                batch.owners.push(owner.clone());
            }
            if let Some(Queued { write: Write::Hot(write), bytes: size, place }) = line.waiting.pop_front() {
                bytes += size;
                batch.writes.push(write);
                batch._places.push(place);
            }
            if matches!(line.waiting.front(), Some(Queued { write: Write::Hot(_), .. })) {
                turns.push_back(owner);
            }
        }
        // Who is busy has their turn again when the batch is done.
        turns.retain(|owner| self.lines.get(owner).is_some_and(|line| !line.busy));
        self.hot = turns;
        (!batch.writes.is_empty()).then_some(batch)
    }

    fn single(&mut self) -> Option<Single> {
        let waits = !self.cold.is_empty();
        if !(self.free_was_last && waits)
            && let Some(Queued { write: Write::Cold(write), place, .. }) = self.free.pop_front()
        {
            self.free_was_last = true;
            return Some(Single { write, owner: None, _place: place });
        }
        self.free_was_last = false;
        let owner = self.cold.pop_front()?;
        let line = self.lines.get_mut(&owner)?;
        line.busy = true;
        match line.waiting.pop_front() {
            Some(Queued { write: Write::Cold(write), place, .. }) => {
                Some(Single { write, owner: Some(owner), _place: place })
            }
            _ => None,
        }
    }
}
