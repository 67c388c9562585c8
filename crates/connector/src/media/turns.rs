//! Whose turn it is to send or get a file.
//!
//! Turns are for gateways in the first place. Whoever has a link, or writes in the web chat, gets a part
//! of them: those parts can all be taken, and gateways still send and fetch.

use angelia_core::error::{Error, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

angelia_contract::limits! {
    /// Each holds a quarter of a megabyte at the most. Further ones wait, and are told to come back.
    const TRANSFERS: usize = 256, count "files on their way at a time";
    /// Gateways have the rest for themselves.
    const TRANSFERS_OF_GUESTS: usize = TRANSFERS / 4 * 3, count "of those, files on their way by links and in the web chat";
    /// One tenant leaves room for the others.
    const TRANSFERS_OF_TENANT: usize = 64, count "files of one tenant on their way at a time";
    /// Its gateways have the rest for themselves.
    const TRANSFERS_OF_TENANTS_GUESTS: usize = TRANSFERS_OF_TENANT / 4 * 3, count "of those, files on their way by links and in the web chat";
    /// Links are found in histories: whoever has one must not keep people from their files.
    const TRANSFERS_BY_LINK: usize = TRANSFERS_OF_TENANT / 4, count "of those, files on their way by links";
}
/// How long a transfer waits for its turn.
const PATIENCE: Duration = Duration::from_secs(20);

/// Who sends or gets a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// A gateway, or the connector for it.
    Gateway,
    /// Somebody in the web chat.
    Room,
    /// Whoever has a link.
    Link,
}

/// The turns there are.
pub(super) struct Turns {
    all: Arc<Semaphore>,
    of_guests: Arc<Semaphore>,
    of_tenants: Mutex<HashMap<String, Weak<OfTenant>>>,
}

/// The turns of one tenant.
struct OfTenant {
    all: Arc<Semaphore>,
    of_guests: Arc<Semaphore>,
    by_link: Arc<Semaphore>,
}

/// A turn, for as long as this is kept.
pub(super) struct Turn {
    _of: Arc<OfTenant>,
    _taken: Vec<OwnedSemaphorePermit>,
}

impl Default for Turns {
    fn default() -> Self {
        Self { all: new(TRANSFERS), of_guests: new(TRANSFERS_OF_GUESTS), of_tenants: Mutex::default() }
    }
}

fn new(turns: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(turns))
}

impl Turns {
    fn of(&self, tenant: &str) -> Arc<OfTenant> {
        let mut of_tenants = self.of_tenants.lock();
        if let Some(known) = of_tenants.get(tenant).and_then(Weak::upgrade) {
            return known;
        }
        of_tenants.retain(|_, turns| turns.strong_count() > 0);
        let turns = Arc::new(OfTenant {
            all: new(TRANSFERS_OF_TENANT),
            of_guests: new(TRANSFERS_OF_TENANTS_GUESTS),
            by_link: new(TRANSFERS_BY_LINK),
        });
        of_tenants.insert(tenant.to_owned(), Arc::downgrade(&turns));
        turns
    }

    /// Waits for a gateway's turn.
    pub(super) async fn take(&self, tenant: &str) -> Result<Turn> {
        self.take_for(Who::Gateway, tenant).await
    }

    /// Waits for a turn: among the fewest first, so that none of them stands in others' way.
    pub(super) async fn take_for(&self, who: Who, tenant: &str) -> Result<Turn> {
        let of = self.of(tenant);
        let ways: &[&Arc<Semaphore>] = match who {
            Who::Gateway => &[&of.all, &self.all],
            Who::Room => &[&of.of_guests, &of.all, &self.of_guests, &self.all],
            Who::Link => &[&of.by_link, &of.of_guests, &of.all, &self.of_guests, &self.all],
        };
        let taking = async {
            let mut taken = Vec::with_capacity(ways.len());
            for way in ways {
                taken.push(Arc::clone(way).acquire_owned().await.ok()?);
            }
            Some(taken)
        };
        let taken = tokio::time::timeout(PATIENCE, taking).await.ok().flatten().ok_or_else(|| {
            Error::unavailable("too many files are on their way; try again").retry_in(PATIENCE)
        })?;
        Ok(Turn { _of: of, _taken: taken })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::error::Kind;

    async fn take_all(turns: &Turns, who: Who, tenant: &str) -> Vec<Turn> {
        let mut taken = Vec::new();
        loop {
            match turns.take_for(who, tenant).await {
                Ok(turn) => taken.push(turn),
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Unavailable);
                    return taken;
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_with_many_transfers_leaves_room_for_others() {
        let turns = Turns::default();
        let taken = take_all(&turns, Who::Gateway, "acme").await;
        assert_eq!(taken.len(), TRANSFERS_OF_TENANT);
        let other = turns.take("bolt").await.unwrap();
        assert_eq!(turns.of_tenants.lock().len(), 2);
        drop((taken, other));
        drop(turns.take("crane").await.unwrap());
        assert_eq!(turns.of_tenants.lock().len(), 1, "of tenants at rest nothing is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_a_link_or_a_key_leaves_gateways_their_turns() {
        let turns = Turns::default();
        let by_link = take_all(&turns, Who::Link, "acme").await;
        assert_eq!(by_link.len(), TRANSFERS_BY_LINK);
        let in_rooms = take_all(&turns, Who::Room, "acme").await;
        assert_eq!(by_link.len() + in_rooms.len(), TRANSFERS_OF_TENANTS_GUESTS);
        let gateways = take_all(&turns, Who::Gateway, "acme").await;
        assert_eq!(gateways.len(), TRANSFERS_OF_TENANT - TRANSFERS_OF_TENANTS_GUESTS);
    }

    #[tokio::test(start_paused = true)]
    async fn guests_of_many_tenants_leave_gateways_their_turns() {
        let turns = Turns::default();
        let mut guests = Vec::new();
        for tenant in 0..8 {
            guests.extend(take_all(&turns, Who::Room, &tenant.to_string()).await);
        }
        assert_eq!(guests.len(), TRANSFERS_OF_GUESTS);
        for tenant in 8..8 + (TRANSFERS - TRANSFERS_OF_GUESTS) {
            guests.push(turns.take(&tenant.to_string()).await.unwrap());
        }
    }
}
