//! A budget for everybody together, of which no address gets all.
//!
//! Strangers cost something before anybody knows who they are: a look at an
//! account service, a new row. What they may cost in all is bounded, and one of
//! them must not use that up for the others.

use crate::clock::Mono;
use crate::limit::{SlidingWindow, SlidingWindowOf, WhenCrowded};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

angelia_contract::limits! {
    /// Enough for everybody who is good to a server within a day. Beyond it
    /// whoever was good longest ago counts as a stranger again.
    pub const MAX_GOOD_ADDRESSES: usize = 10_000, count "addresses remembered as good, per budget";
    /// Whoever was good yesterday is let in before strangers; after that they are
    /// a stranger again.
    pub const GOOD_FOR: Duration = Duration::from_secs(24 * 3600), time "an address counts as good";
}

/// Whose budget a caller takes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// The first half of an IPv6 address: the other half is its owner's to choose.
    V6(u64),
    /// Nobody knows: the caller is on this machine, or behind a proxy.
    Unknown,
}

impl Address {
    /// The address of a peer, if it is known.
    pub fn of(peer: Option<IpAddr>) -> Self {
        match peer.map(|ip| ip.to_canonical()) {
            Some(IpAddr::V4(ip)) => Self::V4(ip),
            Some(IpAddr::V6(ip)) => Self::V6(half(ip)),
            None => Self::Unknown,
        }
    }
}

fn half(ip: Ipv6Addr) -> u64 {
    (u128::from(ip) >> 64) as u64
}

/// How a budget is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// So much …
    pub all: usize,
    /// … within this time.
    pub span: Duration,
    /// What one address may take of it. Unknown callers are many behind one
    /// address, so for them it is all.
    pub each: usize,
    /// What is kept for addresses that were good before.
    pub kept: usize,
}

/// What was taken lately, and who was good.
#[derive(Clone, Debug)]
pub struct LimitPerAddress {
    shares: Shares,
    all: SlidingWindow,
    each: SlidingWindowOf<Address>,
    good: HashMap<Address, Good>,
}

#[derive(Clone, Copy, Debug)]
struct Good {
    since: Mono,
    until: Mono,
}

impl LimitPerAddress {
    /// A budget of which nothing is taken.
    pub fn new(shares: Shares) -> Self {
        let Shares { all, span, each, .. } = shares;
        // Nobody is forgotten: each that is remembered has taken one of those for all.
        let each = SlidingWindowOf::new(all, WhenCrowded::ForgetOne, SlidingWindow::new(each, span));
        Self { shares, all: SlidingWindow::new(all, span), each, good: HashMap::new() }
    }

    /// Takes one; if there is none for this address, says when to try again.
    /// What is refused is not counted.
    pub fn take(&mut self, from: Address, now: Mono) -> Result<(), Mono> {
        self.check(from, now)?;
        if from != Address::Unknown {
            self.each.take(&from, now)?;
        }
        self.all.take(now)
    }

    /// The same, without taking it.
    pub fn check(&mut self, from: Address, now: Mono) -> Result<(), Mono> {
        if from == Address::Unknown {
            return self.all.check(now);
        }
        self.each.check(&from, now)?;
        if self.was_good(from, now) {
            return self.all.check(now);
        }
        self.all.check_below(self.shares.all.saturating_sub(self.shares.kept), now)
    }

    /// Notes that a caller proved to be good: it comes before strangers from the
    /// next span on. Not at once, or being good would be part of a rush.
    pub fn note_good(&mut self, from: Address, now: Mono) {
        if from == Address::Unknown {
            return;
        }
        if !self.good.contains_key(&from) {
            self.make_room(now);
        }
        let until = now + GOOD_FOR;
        let fresh = Good { since: now, until };
        let good = self.good.entry(from).or_insert(fresh);
        *good = if good.until > now { Good { until, ..*good } } else { fresh };
    }

    fn was_good(&self, from: Address, now: Mono) -> bool {
        let good = self.good.get(&from);
        good.is_some_and(|good| good.until > now && now.since(good.since) >= self.shares.span)
    }

    fn make_room(&mut self, now: Mono) {
        if self.good.len() < MAX_GOOD_ADDRESSES {
            return;
        }
        self.good.retain(|_, good| good.until > now);
        let longest_ago = self.good.iter().min_by_key(|(_, good)| good.until).map(|(who, _)| *who);
        if let Some(who) = longest_ago.filter(|_| self.good.len() >= MAX_GOOD_ADDRESSES) {
            self.good.remove(&who);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const SHARES: Shares = Shares { all: 10, span: MINUTE, each: 4, kept: 3 };

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    fn address(n: u8) -> Address {
        Address::of(Some(IpAddr::from([192, 0, 2, n])))
    }

    #[test]
    fn one_address_does_not_use_up_what_is_for_all() {
        let mut limit = LimitPerAddress::new(SHARES);
        for second in 0..4 {
            assert_eq!(limit.take(address(1), at(second)), Ok(()));
        }
        assert_eq!(limit.take(address(1), at(4)), Err(at(60)), "until the first is a minute ago");
        assert_eq!(limit.take(address(2), at(4)), Ok(()));
        assert_eq!(limit.take(address(1), at(60)), Ok(()));
    }

    #[test]
    fn many_addresses_leave_a_share_for_those_that_were_good_before() {
        let mut limit = LimitPerAddress::new(SHARES);
        limit.note_good(address(200), at(0));
        for n in 0..7 {
            assert_eq!(limit.take(address(n), at(100 + u64::from(n))), Ok(()), "{n}");
        }
        assert_eq!(limit.take(address(9), at(110)), Err(at(160)), "the first of those before is gone then");
        // Being good now, in the midst of it, does not count yet.
        limit.note_good(address(9), at(110));
        assert_eq!(limit.take(address(9), at(111)), Err(at(160)));
        for _ in 0..3 {
            assert_eq!(limit.take(address(200), at(112)), Ok(()));
        }
        assert_eq!(limit.take(address(200), at(113)), Err(at(160)), "no more than all");
        let much_later = at(48 * 3600);
        for n in 0..7 {
            assert_eq!(limit.take(address(n), much_later), Ok(()));
        }
        assert!(limit.take(address(200), much_later).is_err(), "that was long ago");
    }

    #[test]
    fn callers_nobody_knows_have_what_is_for_all() {
        let mut limit = LimitPerAddress::new(SHARES);
        for _ in 0..10 {
            assert_eq!(limit.take(Address::Unknown, at(0)), Ok(()));
        }
        assert_eq!(limit.take(Address::Unknown, at(1)), Err(at(60)));
    }

    #[test]
    fn where_everything_is_kept_for_the_good_a_stranger_gets_nothing() {
        let mut limit = LimitPerAddress::new(Shares { all: 2, span: MINUTE, each: 1, kept: 2 });
        assert_eq!(limit.take(address(1), at(0)), Err(at(60)));
        limit.note_good(address(2), at(0));
        assert_eq!(limit.take(address(2), at(60)), Ok(()));
        assert_eq!(limit.take(address(1), at(61)), Err(at(120)));
    }

    #[test]
    fn an_ipv6_network_is_one_address_and_a_mapped_one_is_ipv4() {
        let of = |text: &str| Address::of(Some(text.parse().unwrap()));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.7"), address(7));
        assert_eq!(Address::of(None), Address::Unknown);
    }

    #[test]
    fn as_many_good_addresses_are_remembered_and_no_more() {
        let mut limit = LimitPerAddress::new(SHARES);
        for n in 0..=MAX_GOOD_ADDRESSES as u64 {
            limit.note_good(Address::V6(n), at(n));
        }
        assert_eq!(limit.good.len(), MAX_GOOD_ADDRESSES);
        assert!(!limit.good.contains_key(&Address::V6(0)), "the one that was good longest ago");
    }

    proptest::proptest! {
        #[test]
        fn no_span_has_more_than_is_for_all_or_for_one(steps in proptest::collection::vec((0u8..6, 0u64..30), 1..200)) {
            let mut limit = LimitPerAddress::new(SHARES);
            let (mut now, mut taken) = (0, Vec::new());
            for (n, pause) in steps {
                now += pause;
                if limit.take(address(n), at(now)).is_ok() {
                    taken.push((now, n));
                    limit.note_good(address(n), at(now));
                }
                let lately: Vec<_> = taken.iter().filter(|(then, _)| now - then < 60).collect();
                proptest::prop_assert!(lately.len() <= SHARES.all);
                proptest::prop_assert!(lately.iter().filter(|(_, who)| *who == n).count() <= SHARES.each);
            }
        }
    }
}
