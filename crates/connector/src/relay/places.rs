//! Places for relay sockets among the connections there are.

use angelia_core::connections::{Lasting, NoPlace, RelayPlaces};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// Who has taken how many.
#[derive(Debug)]
pub(crate) struct Places {
    most: Lasting,
    taken: Mutex<RelayPlaces>,
}

/// One place. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    tenant: String,
}

impl Places {
    pub(crate) fn new(most: Lasting) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// Takes a place for a socket of a tenant.
    pub(crate) fn take(self: &Arc<Self>, tenant: &str) -> Result<Place, NoPlace> {
        self.taken().take(tenant, &self.most)?;
        Ok(Place { places: self.clone(), tenant: tenant.to_owned() })
    }

    fn taken(&self) -> MutexGuard<'_, RelayPlaces> {
        self.taken.lock()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().leave(&self.tenant);
    }
}
