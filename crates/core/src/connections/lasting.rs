//! What lasts on a connection, and may not take every place: event streams and
//! relay sockets. Nobody else gets the place of one that makes progress, so there is
//! always a share of the places that they do not take: whoever asks for something
//! short gets one.

use super::{MAX_CONNECTIONS, MAX_STREAMS};
use std::collections::HashMap;

/// Of the places there are, in sixteenths. One tenant may have most of them: often there
/// is no other.
const PARTS: usize = 16;
const FOR_STREAMS: usize = 3;
const FOR_RELAY: usize = 11;
const FOR_RELAY_OF_TENANT: usize = 9;

/// How many connections may be something that lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasting {
    /// Event streams of the web chat.
    pub streams: usize,
    /// Those of people nobody invited, among them.
    pub streams_of_visitors: usize,
    /// Relay sockets.
    pub relay: usize,
    /// Those of one tenant.
    pub relay_of_tenant: usize,
}

impl Lasting {
    /// Of so many connections.
    pub fn of(connections: usize) -> Self {
        let part = |parts: usize| (connections * parts / PARTS).max(1);
        let streams = part(FOR_STREAMS).min(MAX_STREAMS);
        Self {
            streams,
            streams_of_visitors: (streams / 2).max(1),
            relay: part(FOR_RELAY),
            relay_of_tenant: part(FOR_RELAY_OF_TENANT),
        }
    }
}

impl Default for Lasting {
    /// Of as many as there can be.
    fn default() -> Self {
        Self::of(MAX_CONNECTIONS)
    }
}

/// Why there is no place for a relay socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPlace {
    /// All have too many.
    Full,
    /// Its tenant has too many.
    TenantFull,
}

/// Places that relay sockets have taken.
#[derive(Debug, Default)]
pub struct RelayPlaces {
    all: usize,
    /// Only tenants that have any.
    of_tenant: HashMap<String, usize>,
}

impl RelayPlaces {
    /// Takes one for a tenant, if there is one left for it.
    pub fn take(&mut self, tenant: &str, most: &Lasting) -> Result<(), NoPlace> {
        if self.all >= most.relay {
            return Err(NoPlace::Full);
        }
        if self.of_tenant.get(tenant).is_some_and(|taken| *taken >= most.relay_of_tenant) {
            return Err(NoPlace::TenantFull);
        }
        self.all += 1;
        *self.of_tenant.entry(tenant.to_owned()).or_default() += 1;
        Ok(())
    }

    /// Gives one back.
    pub fn leave(&mut self, tenant: &str) {
        let Some(taken) = self.of_tenant.get_mut(tenant) else { return };
        *taken -= 1;
        self.all -= 1;
        if *taken == 0 {
            self.of_tenant.remove(tenant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MAX_RELAY, MAX_RELAY_OF_TENANT, MAX_STREAMS_OF_VISITORS, share};
    use super::*;

    #[test]
    fn whatever_lasts_leaves_places_for_what_does_not() {
        for descriptors in 64..100_000_u64 {
            let places = share(descriptors).connections;
            let Lasting { streams, streams_of_visitors, relay, relay_of_tenant } = Lasting::of(places);
            assert!(streams + relay <= places - places / 8, "{descriptors}");
            assert!(streams_of_visitors <= streams / 2 && relay_of_tenant < relay, "{descriptors}");
        }
        let few = Lasting { streams: 144, streams_of_visitors: 72, relay: 528, relay_of_tenant: 432 };
        assert_eq!(Lasting::of(share(1_024).connections), few);
        assert_eq!(Lasting::of(1).relay, 1, "somebody is served, however few there are");
        let most = Lasting {
            streams: MAX_STREAMS,
            streams_of_visitors: MAX_STREAMS_OF_VISITORS,
            relay: MAX_RELAY,
            relay_of_tenant: MAX_RELAY_OF_TENANT,
        };
        assert_eq!(Lasting::default(), most, "what operators are told");
    }

    #[test]
    fn one_tenant_leaves_relay_places_to_another_and_gets_its_own_back() {
        let most = Lasting { relay: 5, relay_of_tenant: 4, ..Lasting::of(8) };
        let mut places = RelayPlaces::default();
        for _ in 0..4 {
            assert_eq!(places.take("acme", &most), Ok(()));
        }
        assert_eq!(places.take("acme", &most), Err(NoPlace::TenantFull));
        assert_eq!(places.take("globex", &most), Ok(()));
        assert_eq!(places.take("globex", &most), Err(NoPlace::Full));
        places.leave("acme");
        assert_eq!(places.take("acme", &most), Ok(()));
        (0..4).for_each(|_| places.leave("acme"));
        places.leave("globex");
        places.leave("nobody");
        assert!(places.all == 0 && places.of_tenant.is_empty());
    }
}
