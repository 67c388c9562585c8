//! How often somebody else's account service is asked whose a bearer is.
//!
//! Strangers decide how many bearers there are to ask about, so each address
//! has a share, and a part is kept for those who were good before.

use crate::clock::Mono;
use crate::limit::SlidingWindow;
use crate::limit_per_address::{Address, LimitPerAddress, Shares};
use crate::store::Fingerprint;
use std::collections::HashMap;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

angelia_contract::limits! {
    /// The service is somebody else's, and strangers must not make us a burden to it; gateways ask at their start
    /// only. Beyond it callers get 503 and when to try again.
    pub const SIGN_INS: usize = 90, count "questions a minute to the account service about bearers not known to be good";
    /// A house full of agents that start together. Beyond it that address waits, and nobody else.
    pub const SIGN_INS_PER_ADDRESS: usize = 30, count "of them, from one address";
    /// So that a crowd of addresses does not keep those out who were good within a day.
    pub const SIGN_INS_KEPT: usize = 30, count "of them, kept for addresses that were good before";
    /// Behind a proxy nobody has an address; a bearer that was good before cannot be made up.
    pub const SIGN_INS_KNOWN: usize = 30, count "further questions a minute about bearers that were good before";
    /// Beyond it the one that was good longest ago counts as unknown.
    pub const MAX_GOOD_BEARERS: usize = 10_000, count "bearers remembered as good, by their hashes";
    /// Longer than most bearers live.
    pub const GOOD_BEARER_FOR: Duration = Duration::from_secs(24 * 3600), time "a bearer counts as good before";
}

/// What was asked lately, and who was good.
#[derive(Debug)]
pub struct SignIns {
    strangers: LimitPerAddress,
    known: SlidingWindow,
    good: HashMap<Fingerprint, Mono>,
}

impl Default for SignIns {
    fn default() -> Self {
        let shares = Shares { all: SIGN_INS, span: MINUTE, each: SIGN_INS_PER_ADDRESS, kept: SIGN_INS_KEPT };
        Self {
            strangers: LimitPerAddress::new(shares),
            known: SlidingWindow::new(SIGN_INS_KNOWN, MINUTE),
            good: HashMap::new(),
        }
    }
}

impl SignIns {
    /// Takes a question about a bearer; if there is none left, says when to try again.
    pub fn take(&mut self, from: Address, bearer: &Fingerprint, now: Mono) -> Result<(), Mono> {
        let was_good = self.good.get(bearer).is_some_and(|at| now.since(*at) < GOOD_BEARER_FOR);
        if was_good && self.known.take(now).is_ok() {
            return Ok(());
        }
        self.strangers.take(from, now)
    }

    /// Notes what the service said of a bearer.
    pub fn answered(&mut self, from: Address, bearer: Fingerprint, good: bool, now: Mono) {
        if !good {
            self.good.remove(&bearer);
            return;
        }
        self.strangers.note_good(from, now);
        if self.good.len() >= MAX_GOOD_BEARERS && !self.good.contains_key(&bearer) {
            let longest_ago = self.good.iter().min_by_key(|(_, at)| **at).map(|(bearer, _)| *bearer);
            longest_ago.map(|bearer| self.good.remove(&bearer));
        }
        self.good.insert(bearer, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::fingerprint;
    use std::net::IpAddr;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    fn address(n: u8) -> Address {
        Address::of(Some(IpAddr::from([192, 0, 2, n])))
    }

    /// Asks about made-up bearers until that is refused.
    fn flood(sign_ins: &mut SignIns, from: Address, now: Mono) -> usize {
        let made_up = |n: usize| fingerprint(&format!("made-up-{n}"));
        (0..1_000).take_while(|n| sign_ins.take(from, &made_up(*n), now).is_ok()).count()
    }

    #[test]
    fn one_address_leaves_the_rest_to_the_others() {
        let mut sign_ins = SignIns::default();
        assert_eq!(flood(&mut sign_ins, address(1), at(0)), SIGN_INS_PER_ADDRESS);
        assert_eq!(sign_ins.take(address(2), &fingerprint("x"), at(1)), Ok(()));
        assert_eq!(sign_ins.take(address(1), &fingerprint("x"), at(1)), Err(at(60)));
    }

    #[test]
    fn a_crowd_leaves_a_share_to_those_who_were_good() {
        let mut sign_ins = SignIns::default();
        sign_ins.answered(address(200), fingerprint("ann"), true, at(0));
        let crowd: usize = (0..100).map(|n| flood(&mut sign_ins, address(n), at(100))).sum();
        assert_eq!(crowd, SIGN_INS - SIGN_INS_KEPT);
        assert_eq!(sign_ins.take(address(200), &fingerprint("a new bearer"), at(100)), Ok(()));
    }

    #[test]
    fn behind_a_proxy_a_bearer_that_was_good_is_still_asked_about() {
        let mut sign_ins = SignIns::default();
        let ann = fingerprint("ann");
        sign_ins.answered(Address::Unknown, ann, true, at(0));
        assert_eq!(flood(&mut sign_ins, Address::Unknown, at(100)), SIGN_INS);
        assert!(sign_ins.take(Address::Unknown, &fingerprint("bob"), at(100)).is_err());
        assert_eq!(sign_ins.take(Address::Unknown, &ann, at(100)), Ok(()));
        sign_ins.answered(Address::Unknown, ann, false, at(100));
        assert!(sign_ins.take(Address::Unknown, &ann, at(101)).is_err(), "withdrawn");
    }

    #[test]
    fn a_bearer_counts_as_good_for_a_day() {
        let mut sign_ins = SignIns::default();
        let (ann, day) = (fingerprint("ann"), GOOD_BEARER_FOR.as_secs());
        sign_ins.answered(Address::Unknown, ann, true, at(0));
        assert_eq!(flood(&mut sign_ins, Address::Unknown, at(day - 1)), SIGN_INS);
        assert_eq!(sign_ins.take(Address::Unknown, &ann, at(day - 1)), Ok(()));
        assert!(sign_ins.take(Address::Unknown, &ann, at(day)).is_err(), "that was long ago");
    }

    #[test]
    fn the_service_is_not_asked_more_than_both_together() {
        let mut sign_ins = SignIns::default();
        let ann = fingerprint("ann");
        sign_ins.answered(Address::Unknown, ann, true, at(0));
        let asked = (0..1_000).filter(|_| sign_ins.take(Address::Unknown, &ann, at(1)).is_ok()).count();
        assert_eq!(asked, SIGN_INS_KNOWN + SIGN_INS);
    }

    #[test]
    fn so_many_are_remembered() {
        let mut sign_ins = SignIns::default();
        for n in 0..=MAX_GOOD_BEARERS as u64 {
            sign_ins.answered(Address::Unknown, fingerprint(&n.to_string()), true, at(n));
        }
        assert_eq!(sign_ins.good.len(), MAX_GOOD_BEARERS);
        assert!(!sign_ins.good.contains_key(&fingerprint("0")));
    }
}
