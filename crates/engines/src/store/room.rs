//! Room in line: how much may wait to be written, for each owner and in all, in number and in bytes.

use super::engine::Owner;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

angelia_contract::limits! {
    /// What waits for the disk in memory; callers beyond it wait to get in line.
    const QUEUED: usize = 32 * 1024 * 1024, bytes "in writes that wait for the disk";
    /// A quarter of it: one tenant's writes wait behind its own.
    pub(super) const QUEUED_BY_ONE: usize = 8 * 1024 * 1024, bytes "in writes of one tenant or instance that wait for the disk";
}

/// What a write takes besides its bytes: so small ones are bounded in number too.
pub(super) const EACH: usize = 4 * 1024;
/// Semaphores count in these.
const UNIT: usize = 1024;

/// The room there is.
pub(super) struct Room {
    all: Arc<Semaphore>,
    each: Mutex<HashMap<Owner, Weak<Semaphore>>>,
}

/// A place in line; its room is free again when it goes.
pub(super) struct Place {
    _own: OwnedSemaphorePermit,
    /// What it takes of what all have; an operator has nothing of it.
    _all: Option<OwnedSemaphorePermit>,
}

impl Default for Room {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(QUEUED / UNIT)), each: Mutex::default() }
    }
}

impl Room {
    /// Waits until there is room for a write of so many bytes; `None` if nobody writes any more.
    pub(super) async fn enter(&self, owner: &Owner, bytes: usize) -> Option<Place> {
        let units = u32::try_from((bytes + EACH).min(QUEUED_BY_ONE) / UNIT).unwrap_or(u32::MAX);
        let own = self.of(owner).acquire_many_owned(units).await.ok()?;
        let all = match owner {
            Owner::Operator => None,
            _ => Some(self.all.clone().acquire_many_owned(units).await.ok()?),
        };
        Some(Place { _own: own, _all: all })
    }

    /// Of how many owners it knows.
    #[cfg(test)]
    pub(super) fn owners(&self) -> usize {
        self.each.lock().len()
    }

    /// Lets nobody wait any more.
    pub(super) fn close(&self) {
        self.all.close();
        let each = self.each.lock();
        each.values().filter_map(Weak::upgrade).for_each(|room| room.close());
    }

    fn of(&self, owner: &Owner) -> Arc<Semaphore> {
        let mut each = self.each.lock();
        if let Some(known) = each.get(owner).and_then(Weak::upgrade) {
            return known;
        }
        if each.len() == each.capacity() {
            each.retain(|_, room| room.strong_count() > 0);
        }
        let room = Arc::new(Semaphore::new(QUEUED_BY_ONE / UNIT));
        each.insert(owner.clone(), Arc::downgrade(&room));
        room
    }
}
