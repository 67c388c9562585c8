//! How often each of many may do something: a burst, and then a rate.

use crate::clock::Mono;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// A burst at once, and then so many in a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// What may come at once after a silence.
    pub burst: u32,
    /// What is earned in a minute.
    pub per_minute: u32,
}

impl Pace {
    /// The time that earns one.
    fn interval(&self) -> Duration {
        Duration::from_secs(60) / self.per_minute.max(1)
    }
}

/// Who did how much lately. Beyond `most` those who have rested are forgotten, and
/// if nobody has, the one who is nearest to it.
#[derive(Clone, Debug)]
pub struct PaceOf<K> {
    pace: Pace,
    most: usize,
    /// When each has rested completely.
    rested_at: HashMap<K, Mono>,
}

impl<K: Eq + Hash + Clone> PaceOf<K> {
    /// The same pace for each, remembered for `most` at a time.
    pub fn new(pace: Pace, most: usize) -> Self {
        Self { pace, most, rested_at: HashMap::new() }
    }

    /// Takes one for `who`, or says how long they have to wait.
    pub fn take<Q>(&mut self, who: &Q, now: Mono) -> Result<(), Duration>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let interval = self.pace.interval();
        // After a full rest a burst may come at once; each puts the rest off.
        let may_reach = interval * self.pace.burst.max(1).saturating_sub(1);
        let rested_at = self.rested_at.get(who).copied().unwrap_or(now).max(now);
        let wait = rested_at.since(now).saturating_sub(may_reach);
        if !wait.is_zero() {
            return Err(wait);
        }
        if !self.rested_at.contains_key(who) {
            self.make_room(now);
        }
        self.rested_at.insert(who.to_owned(), rested_at + interval);
        Ok(())
    }

    fn make_room(&mut self, now: Mono) {
        if self.rested_at.len() < self.most {
            return;
        }
        self.rested_at.retain(|_, rested_at| *rested_at > now);
        if self.rested_at.len() >= self.most {
            let nearest = self.rested_at.iter().min_by_key(|(_, at)| **at).map(|(who, _)| who.clone());
            nearest.map(|who| self.rested_at.remove(&who));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono(Duration::from_millis(ms))
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_burst_and_then_one_by_one() {
        let mut paces: PaceOf<String> = PaceOf::new(Pace { burst: 3, per_minute: 120 }, 10);
        let mut take = |now| paces.take("ann", at(now));
        assert_eq!([take(0), take(0), take(0)], [Ok(()); 3]);
        assert_eq!(take(0), Err(ms(500)));
        assert_eq!(take(400), Err(ms(100)), "what was refused costs nothing");
        assert_eq!([take(500), take(500)], [Ok(()), Err(ms(500))]);
        assert_eq!([take(60_000), take(60_000), take(60_000)], [Ok(()); 3], "rested");
        assert!(take(60_000).is_err());
    }

    #[test]
    fn each_has_their_own_and_memory_has_an_end() {
        let mut paces: PaceOf<String> = PaceOf::new(Pace { burst: 1, per_minute: 60 }, 2);
        assert_eq!(paces.take("ann", at(0)), Ok(()));
        assert_eq!(paces.take("bob", at(10)), Ok(()));
        assert!(paces.take("ann", at(20)).is_err() && paces.take("bob", at(20)).is_err());
        assert_eq!(paces.take("eve", at(30)), Ok(()));
        assert_eq!(paces.rested_at.len(), 2);
        assert!(paces.take("bob", at(40)).is_err(), "whoever was nearest to being rested went");
        for n in 0..100 {
            assert_eq!(paces.take(&*format!("p{n}"), at(5_000 + n)), Ok(()));
            assert!(paces.rested_at.len() <= 2);
        }
    }

    #[test]
    fn any_pace_is_one() {
        for pace in [Pace { burst: 0, per_minute: 0 }, Pace { burst: u32::MAX, per_minute: u32::MAX }] {
            let mut paces: PaceOf<String> = PaceOf::new(pace, 10);
            assert_eq!(paces.take("ann", at(0)), Ok(()));
        }
    }
}
