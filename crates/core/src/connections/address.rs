//! Connections by where they come from.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The peer's address, where it says who the peer is: a proxy's says nothing,
/// and on this machine everybody has the same.
pub fn known(peer: SocketAddr, behind_proxy: bool) -> Option<SocketAddr> {
    let ip = peer.ip().to_canonical();
    (!behind_proxy && !ip.is_loopback()).then(|| SocketAddr::new(ip, peer.port()))
}

/// What is counted as one address. Whoever has one of IPv6 mostly has 2^64 of them.
pub fn neighbourhood(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
        ip @ IpAddr::V4(_) => ip,
    }
}

/// How many connections each address has.
#[derive(Debug, Default)]
pub struct Addresses {
    open: HashMap<IpAddr, usize>,
}

impl Addresses {
    /// How many it has.
    pub fn open(&self, ip: IpAddr) -> usize {
        self.open.get(&neighbourhood(ip)).copied().unwrap_or_default()
    }

    /// Counts one more.
    pub fn enter(&mut self, ip: IpAddr) {
        *self.open.entry(neighbourhood(ip)).or_default() += 1;
    }

    /// Counts one less; an address without connections is forgotten.
    pub fn leave(&mut self, ip: IpAddr) {
        let ip = neighbourhood(ip);
        if let Some(open) = self.open.get_mut(&ip) {
            *open -= 1;
            if *open == 0 {
                self.open.remove(&ip);
            }
        }
    }

    /// How many addresses are remembered.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether nobody is here.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_is_known_unless_it_is_a_proxys_or_this_machines() {
        assert_eq!(known(peer("192.0.2.7:40000"), false), Some(peer("192.0.2.7:40000")));
        assert_eq!(known(peer("[2001:db8::7]:1"), false), Some(peer("[2001:db8::7]:1")));
        // A listener on [::] sees IPv4 in this form.
        assert_eq!(known(peer("[::ffff:192.0.2.7]:1"), false), Some(peer("192.0.2.7:1")));
        for here in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(known(peer(here), false), None, "{here}");
        }
        assert_eq!(known(peer("192.0.2.7:40000"), true), None);
    }

    #[test]
    fn what_leaves_is_forgotten_and_a_network_of_ipv6_is_one_address() {
        let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
        let mut addresses = Addresses::default();
        for (come, open) in [
            ("192.0.2.7", 1),
            ("::ffff:192.0.2.7", 2),
            ("192.0.2.8", 1),
            ("2001:db8:0:1::1", 1),
            ("2001:db8:0:1:ffff::", 2),
            ("2001:db8:0:2::1", 1),
        ] {
            addresses.enter(ip(come));
            assert_eq!(addresses.open(ip(come)), open, "{come}");
        }
        for gone in
            ["192.0.2.7", "192.0.2.7", "192.0.2.8", "2001:db8:0:1::9", "2001:db8:0:1::9", "2001:db8:0:2::"]
        {
            addresses.leave(ip(gone));
        }
        assert!(addresses.is_empty());
        addresses.leave(ip("192.0.2.7"));
        assert_eq!(addresses.len(), 0);
    }
}
