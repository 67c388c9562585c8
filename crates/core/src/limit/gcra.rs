//! A burst, and then a steady rate: the generic cell rate algorithm.
//!
//! All that is remembered is one moment, at which everything was earned back. Each call puts it
//! off by what a call costs, and it may be as far ahead as a whole burst costs. So there is no
//! bucket to refill and no list of what was.

use crate::clock::Mono;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// How often something may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// So many calls …
    pub calls: u32,
    /// … in this time.
    pub per: Duration,
    /// Calls that may come at once after a silence.
    pub burst: u32,
}

impl Rate {
    /// So many at once, and then so many in a minute.
    pub const fn a_minute(calls: u32, burst: u32) -> Self {
        Self { calls, per: Duration::from_secs(60), burst }
    }

    /// The time that earns so many calls. It is never nothing: a rate has an end.
    pub fn cost(&self, calls: u32) -> Duration {
        let nanos = self.per.as_nanos().saturating_mul(u128::from(calls)) / u128::from(self.calls.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX).max(u64::from(calls)))
    }

    /// The time that earns a whole burst.
    fn whole(&self) -> Duration {
        self.cost(self.burst.max(1))
    }
}

/// What was done lately at a rate. The same rate is to be given every time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gcra {
    /// When all of a burst is earned back.
    rested_at: Mono,
}

impl Gcra {
    /// When so many calls more may be made at once; not later than `now` if they may be now.
    pub fn ready_at(&self, rate: Rate, calls: u32, now: Mono) -> Mono {
        (self.rested_at.max(now) + rate.cost(calls)).before(rate.whole())
    }

    /// How long until a call may be made.
    pub fn wait(&self, rate: Rate, now: Mono) -> Duration {
        self.ready_at(rate, 1, now).since(now)
    }

    /// Notes calls, whether they were within the rate or not: what is too much is a debt.
    pub fn note(&mut self, rate: Rate, calls: u32, now: Mono) {
        self.rested_at = self.rested_at.max(now) + rate.cost(calls);
    }

    /// Takes a call; if there is none, says when there may be one. What is refused costs nothing.
    pub fn take(&mut self, rate: Rate, now: Mono) -> Result<(), Mono> {
        let ready = self.ready_at(rate, 1, now);
        if ready > now {
            return Err(ready);
        }
        self.note(rate, 1, now);
        Ok(())
    }

    /// Whether all of a burst may come: then it is as good as a new one.
    pub fn is_rested(&self, now: Mono) -> bool {
        self.rested_at <= now
    }
}

/// A [`Gcra`] for each of many. Beyond `most` those who have rested are forgotten, and if nobody
/// has, the one who is nearest to it.
#[derive(Clone, Debug)]
pub struct GcraOf<K> {
    most: usize,
    known: HashMap<K, Gcra>,
}

impl<K: Eq + Hash + Clone> GcraOf<K> {
    /// Remembers `most` at a time.
    pub fn new(most: usize) -> Self {
        Self { most, known: HashMap::new() }
    }

    /// How long until `who` may do something.
    pub fn wait<Q>(&self, who: &Q, rate: Rate, now: Mono) -> Duration
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.known.get(who).copied().unwrap_or_default().wait(rate, now)
    }

    /// Notes that `who` did something, whether that was within the rate or not.
    pub fn note<Q>(&mut self, who: &Q, rate: Rate, now: Mono)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(known) = self.known.get_mut(who) {
            return known.note(rate, 1, now);
        }
        self.make_room(now);
        self.known.entry(who.to_owned()).or_default().note(rate, 1, now);
    }

    /// Takes one for `who`; if there is none, says how long they have to wait.
    pub fn take<Q>(&mut self, who: &Q, rate: Rate, now: Mono) -> Result<(), Duration>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let wait = self.wait(who, rate, now);
        if !wait.is_zero() {
            return Err(wait);
        }
        self.note(who, rate, now);
        Ok(())
    }

    /// How many are remembered.
    pub fn remembered(&self) -> usize {
        self.known.len()
    }

    fn make_room(&mut self, now: Mono) {
        if self.known.len() < self.most {
            return;
        }
        self.known.retain(|_, known| !known.is_rested(now));
        if self.known.len() >= self.most {
            let nearest =
                self.known.iter().min_by_key(|(_, known)| known.rested_at).map(|(who, _)| who.clone());
            nearest.map(|who| self.known.remove(&who));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Mono {
        Mono(Duration::from_millis(ms))
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_burst_and_then_one_by_one() {
        let (mut paces, rate) = (GcraOf::<String>::new(10), Rate::a_minute(120, 3));
        let mut take = |now| paces.take("ann", rate, at(now));
        assert_eq!([take(0), take(0), take(0)], [Ok(()); 3]);
        assert_eq!(take(0), Err(ms(500)));
        assert_eq!(take(400), Err(ms(100)), "what was refused costs nothing");
        assert_eq!([take(500), take(500)], [Ok(()), Err(ms(500))]);
        assert_eq!([take(60_000), take(60_000), take(60_000)], [Ok(()); 3], "rested");
        assert!(take(60_000).is_err());
    }

    #[test]
    fn each_has_their_own_and_memory_has_an_end() {
        let (mut paces, rate) = (GcraOf::<String>::new(2), Rate::a_minute(60, 1));
        assert_eq!(paces.take("ann", rate, at(0)), Ok(()));
        assert_eq!(paces.take("bob", rate, at(10)), Ok(()));
        assert!(paces.take("ann", rate, at(20)).is_err() && paces.take("bob", rate, at(20)).is_err());
        assert_eq!(paces.take("eve", rate, at(30)), Ok(()));
        assert_eq!(paces.remembered(), 2);
        assert!(paces.take("bob", rate, at(40)).is_err(), "whoever was nearest to being rested went");
        for n in 0..100 {
            assert_eq!(paces.take(&*format!("p{n}"), rate, at(5_000 + n)), Ok(()));
            assert!(paces.remembered() <= 2);
        }
    }

    #[test]
    fn what_was_too_much_is_paid_back() {
        let (mut bytes, rate) = (Gcra::default(), Rate { calls: 1_000, per: ms(1_000), burst: 500 });
        bytes.note(rate, 700, at(0));
        assert_eq!(bytes.ready_at(rate, 0, at(0)), at(200), "the debt");
        assert_eq!(bytes.ready_at(rate, 500, at(0)), at(700), "all of a burst");
        assert!(!bytes.is_rested(at(699)) && bytes.is_rested(at(700)));
    }

    #[test]
    fn no_silence_saves_up_more_than_a_burst() {
        let (gcra, rate) = (Gcra::default(), Rate::a_minute(60, 3));
        assert!(gcra.ready_at(rate, 3, at(999_000)) <= at(999_000));
        assert_eq!(gcra.ready_at(rate, 5, at(999_000)), at(1_001_000));
    }

    #[test]
    fn any_rate_is_one() {
        let largest = Rate { calls: u32::MAX, per: Duration::from_secs(60), burst: u32::MAX };
        let slowest = Rate { calls: 0, per: Duration::MAX, burst: u32::MAX };
        for rate in [Rate::a_minute(0, 0), largest, slowest] {
            assert_eq!(Gcra::default().take(rate, at(0)), Ok(()), "{rate:?}");
        }
    }

    fn rates() -> impl Strategy<Value = Rate> {
        (1u32..500, 1u64..120, 1u32..50).prop_map(|(calls, seconds, burst)| Rate {
            calls,
            per: Duration::from_secs(seconds),
            burst,
        })
    }

    proptest! {
        /// No stretch of time holds more than a burst and what it earns.
        #[test]
        fn no_stretch_holds_more(rate in rates(), pauses in prop::collection::vec(0u64..3_000, 1..300)) {
            let (mut gcra, mut now, mut taken) = (Gcra::default(), 0, Vec::new());
            for pause in pauses {
                now += pause;
                if gcra.take(rate, at(now)).is_ok() {
                    taken.push(now);
                }
            }
            for (first, from) in taken.iter().enumerate() {
                for (last, to) in taken.iter().enumerate().skip(first) {
                    let earned = ms(to - from).as_nanos() / rate.cost(1).as_nanos();
                    prop_assert!((last - first + 1) as u128 <= u128::from(rate.burst) + earned);
                }
            }
        }

        /// A burst is there at once, and then one at every moment that earns it, and not before.
        #[test]
        fn whoever_takes_all_there_is_gets_the_burst_and_the_rate(rate in rates(), start in 0u64..1_000_000) {
            let (mut gcra, mut now) = (Gcra::default(), at(start));
            for _ in 0..rate.burst {
                prop_assert_eq!(gcra.take(rate, now), Ok(()));
            }
            for _ in 0..100 {
                let ready = gcra.take(rate, now).unwrap_err();
                prop_assert!(ready > now && ready.since(now) <= rate.cost(1));
                prop_assert!(gcra.take(rate, ready.before(Duration::from_nanos(1))).is_err(), "too early");
                now = ready;
                prop_assert_eq!(gcra.take(rate, now), Ok(()));
            }
            let took = now.since(at(start));
            let off = took.as_nanos().abs_diff(rate.cost(100).as_nanos());
            prop_assert!(off <= 200, "{} ns off in {:?}", off, took);
        }
    }
}
