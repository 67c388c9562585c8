//! Every connection of a listener, and who has to go for a new one.

use super::connection::Connection;
use super::pipelining::Ahead;
use angelia_core::clock::{self, Mono};
use angelia_core::connections::{Addresses, is_given_up, least_deserving, neighbourhood};
use angelia_core::limit::LogThrottle;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// One place in so many is kept free, so that a new connection need not wait for
/// an old one to be gone.
const KEEP_FREE: usize = 32;
/// Where all are deserving, one of them may have become less so after this time.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How often connections whose peers do not read are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The connections of one listener.
pub(super) struct Table {
    places: usize,
    per_address: usize,
    inner: Mutex<Inner>,
    freed: Notify,
    /// Turns of requests that were sent ahead.
    pub(super) ahead: Arc<Ahead>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    open: HashMap<u64, Held>,
    addresses: Addresses,
    full: LogThrottle,
    crowded: LogThrottle,
}

struct Held {
    connection: Arc<Connection>,
    /// What is counted as its address.
    address: Option<IpAddr>,
}

impl Table {
    pub(super) fn new(places: usize, per_address: usize) -> Arc<Self> {
        let (inner, freed, ahead) = Default::default();
        Arc::new(Self { places, per_address, inner, freed, ahead })
    }

    /// A place for a new connection, as soon as there is one; `None` if its
    /// address has too many, and none of them has to go.
    pub(super) async fn place(self: &Arc<Self>, peer: Option<SocketAddr>) -> Option<Slot> {
        let address = peer.map(|peer| neighbourhood(peer.ip()));
        if !self.inner.lock().admit(address, self.per_address, clock::mono()) {
            return None;
        }
        loop {
            let freed = self.freed.notified();
            if let Some(place) = self.take(address) {
                return Some(place);
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, freed).await;
        }
    }

    /// Ends, for ever, the connections whose peers have read nothing for too long by this clock.
    pub(super) async fn sweep(self: Arc<Self>, now: fn() -> Mono) {
        let mut looks = tokio::time::interval(SWEEP_EVERY);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            self.give_up(now());
        }
    }

    pub(super) fn give_up(&self, now: Mono) {
        for held in self.inner.lock().open.values() {
            if held.connection.standing().is_some_and(|standing| is_given_up(&standing, now)) {
                held.connection.end();
            }
        }
    }

    fn take(self: &Arc<Self>, address: Option<IpAddr>) -> Option<Slot> {
        let now = clock::mono();
        let mut inner = self.inner.lock();
        inner.make_room(self.places, now);
        if inner.open.len() >= self.places {
            return None;
        }
        let connection = Arc::new(Connection::new(now));
        let id = inner.next;
        inner.next += 1;
        inner.open.insert(id, Held { connection: connection.clone(), address });
        if let Some(address) = address {
            inner.addresses.enter(address);
        }
        Some(Slot { id, connection, table: self.clone() })
    }

    #[cfg(test)]
    pub(super) fn standings(&self) -> Vec<angelia_core::connections::Standing> {
        self.inner.lock().open.values().filter_map(|held| held.connection.standing()).collect()
    }

    #[cfg(test)]
    pub(super) fn open(&self) -> usize {
        let inner = self.inner.lock();
        assert!(inner.addresses.len() <= inner.open.len());
        inner.open.len()
    }
}

impl Inner {
    /// Whether an address may have one more: it may if one of its own goes for it.
    fn admit(&mut self, address: Option<IpAddr>, most: usize, now: Mono) -> bool {
        let Some(address) = address else { return true };
        let open = self.addresses.open(address);
        if open < most {
            return true;
        }
        let from_there = |held: &Held| held.address == Some(address);
        let staying = self.staying().filter(|(_, held)| from_there(held)).count();
        if staying >= most && self.end_worst(from_there, 1, 0, now) == 0 {
            if let Some(times) = self.crowded.note(now) {
                tracing::warn!(
                    %address, open, times,
                    "connections of an address were refused: it has as many as limits.connections_per_address"
                );
            }
            return false;
        }
        // Those that go are gone in a moment; until then it has a few more.
        open < most.saturating_mul(2)
    }

    /// Ends those that deserve their places least, if few are free.
    fn make_room(&mut self, places: usize, now: Mono) {
        let spare = places / KEEP_FREE;
        if self.open.len() + spare < places {
            return;
        }
        let need = (self.staying().count() + spare + 1).saturating_sub(places);
        if need == 0 {
            return;
        }
        let ended = self.end_worst(|_| true, need, spare, now);
        if let Some(times) = self.full.note(now) {
            tracing::warn!(
                open = self.open.len(),
                ended,
                times,
                "nearly all connections are taken: new ones get the places of those that do not read, do not \
                 ask, or are quiet"
            );
        }
    }

    fn end_worst(&self, among: impl Fn(&Held) -> bool, need: usize, spare: usize, now: Mono) -> usize {
        let standings = self.staying().filter(|(_, held)| among(held));
        let standings = standings.filter_map(|(id, held)| Some((id, held.connection.standing()?)));
        let worst = least_deserving(standings, now, need, spare);
        worst.iter().filter_map(|id| self.open.get(id)).for_each(|held| held.connection.end());
        worst.len()
    }

    /// Those that are not about to go.
    fn staying(&self) -> impl Iterator<Item = (u64, &Held)> {
        self.open.iter().filter(|(_, held)| !held.connection.is_ended()).map(|(id, held)| (*id, held))
    }
}

/// One connection's place, free again when this is gone.
pub(super) struct Slot {
    id: u64,
    connection: Arc<Connection>,
    table: Arc<Table>,
}

impl Slot {
    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut inner = self.table.inner.lock();
        if let Some(Held { address: Some(address), .. }) = inner.open.remove(&self.id) {
            inner.addresses.leave(address);
        }
        drop(inner);
        self.table.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::connections::Doing;

    const AT_ONCE: Duration = Duration::from_millis(10);

    async fn placed(table: &Arc<Table>, peer: Option<&str>) -> Option<Slot> {
        let place = table.place(peer.map(|peer| peer.parse().unwrap()));
        tokio::time::timeout(AT_ONCE, place).await.ok().flatten()
    }

    #[tokio::test]
    async fn a_new_connection_gets_the_place_of_who_deserves_it_least() {
        let table = Table::new(3, 99);
        let mut places = Vec::new();
        for doing in [Doing::Answering, Doing::Quiet, Doing::Relay] {
            let place = placed(&table, None).await.unwrap();
            place.connection().does(doing);
            places.push(place);
        }
        assert!(placed(&table, None).await.is_none(), "the quiet one is told to go, and has not gone yet");
        let ended: Vec<bool> = places.iter().map(|place| place.connection().is_ended()).collect();
        assert_eq!(ended, [false, true, false]);
        places.remove(1);
        let newest = placed(&table, None).await.unwrap();
        newest.connection().does(Doing::Answering);
        assert!(placed(&table, None).await.is_none(), "nobody has to go");
        assert!(!newest.connection().is_ended());
        drop((places, newest));
        assert_eq!(table.open(), 0);
        assert!(table.inner.lock().addresses.is_empty());
    }

    #[tokio::test]
    async fn an_address_pays_for_itself() {
        let table = Table::new(99, 2);
        let here = Some("192.0.2.7:1");
        let first = placed(&table, here).await.unwrap();
        let second = placed(&table, here).await.unwrap();
        let other = placed(&table, Some("192.0.2.8:1")).await.unwrap();
        let third = placed(&table, here).await.unwrap();
        assert!(first.connection().is_ended(), "the longest without a request");
        assert!(!second.connection().is_ended() && !other.connection().is_ended());
        drop(first);
        second.connection().does(Doing::Relay);
        third.connection().does(Doing::Relay);
        assert!(placed(&table, here).await.is_none());
        assert!(placed(&table, Some("192.0.2.8:2")).await.is_some());
        for _ in 0..5 {
            assert!(placed(&table, None).await.is_some(), "who has no address is not counted");
        }
        drop((second, third, other));
        assert_eq!(table.open(), 0);
        assert!(table.inner.lock().addresses.is_empty());
    }
}
