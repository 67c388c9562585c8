//! A sliding window: so many within any stretch of so long.

use crate::clock::Mono;
use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

/// At most so many within any stretch of so long.
#[derive(Clone, Debug)]
pub struct SlidingWindow {
    most: usize,
    span: Duration,
    /// When those in it were taken, oldest first; at most `most`.
    taken: VecDeque<Mono>,
}

impl SlidingWindow {
    /// At most `most` within `span`.
    pub const fn new(most: usize, span: Duration) -> Self {
        Self { most, span, taken: VecDeque::new() }
    }

    /// Takes one; if that is one too many, says when there is room. What is refused does not count.
    pub fn take(&mut self, now: Mono) -> Result<(), Mono> {
        self.check(now)?;
        self.taken.push_back(now);
        Ok(())
    }

    /// The same, without taking it.
    pub fn check(&mut self, now: Mono) -> Result<(), Mono> {
        self.check_below(self.most, now)
    }

    /// Whether fewer than `most` are in it, which may be less than it holds; if not, says when.
    pub fn check_below(&mut self, most: usize, now: Mono) -> Result<(), Mono> {
        let count = self.count(now);
        if count < most {
            return Ok(());
        }
        // So many have to be gone first. Where none may be in it, whoever asks waits for the last.
        let last_to_go = count.checked_sub(most.max(1)).and_then(|index| self.taken.get(index));
        Err(last_to_go.map_or(now, |at| *at) + self.span)
    }

    /// How many were taken within the last span.
    pub fn count(&mut self, now: Mono) -> usize {
        while self.taken.front().is_some_and(|at| now.since(*at) >= self.span) {
            self.taken.pop_front();
        }
        self.taken.len()
    }

    /// Takes back one that was taken at that moment.
    pub fn give_back(&mut self, at: Mono) {
        if let Some(index) = self.taken.iter().position(|taken| *taken == at) {
            self.taken.remove(index);
        }
    }

    /// Forgets what was taken.
    pub fn clear(&mut self) {
        self.taken.clear();
    }
}

/// What becomes of somebody new if as many are remembered as may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenCrowded {
    /// Whoever took something longest ago is forgotten.
    ForgetOne,
    /// They are turned away until one of the others has nothing left in its window.
    TurnAway,
}

/// A [`SlidingWindow`] for each of many, so many at a time.
#[derive(Clone, Debug)]
pub struct SlidingWindowOf<K> {
    most: usize,
    when_crowded: WhenCrowded,
    of_one: SlidingWindow,
    known: HashMap<K, SlidingWindow>,
}

impl<K: Clone + Eq + Hash> SlidingWindowOf<K> {
    /// Remembers `most` at a time, each with a window like `of_one`, which is empty.
    pub fn new(most: usize, when_crowded: WhenCrowded, of_one: SlidingWindow) -> Self {
        Self { most, when_crowded, of_one, known: HashMap::new() }
    }

    /// Takes one for `who`; if that is one too many, says when there is room.
    pub fn take<Q>(&mut self, who: &Q, now: Mono) -> Result<(), Mono>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        self.check(who, now)?;
        if !self.known.contains_key(who) && self.known.len() >= self.most {
            self.forget_one();
        }
        self.known.entry(who.to_owned()).or_insert_with(|| self.of_one.clone()).take(now)
    }

    /// The same, without taking it.
    pub fn check<Q>(&mut self, who: &Q, now: Mono) -> Result<(), Mono>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if let Some(window) = self.known.get_mut(who) {
            return window.check(now);
        }
        if self.known.len() >= self.most {
            self.known.retain(|_, window| window.count(now) > 0);
        }
        if self.known.len() >= self.most && self.when_crowded == WhenCrowded::TurnAway {
            return Err(now + self.of_one.span);
        }
        Ok(())
    }

    /// Takes back one of `who` that was taken at that moment.
    pub fn give_back<Q>(&mut self, who: &Q, at: Mono)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if let Some(window) = self.known.get_mut(who) {
            window.give_back(at);
            if window.taken.is_empty() {
                self.known.remove(who);
            }
        }
    }

    /// How many are remembered.
    pub fn remembered(&self) -> usize {
        self.known.len()
    }

    fn forget_one(&mut self) {
        let oldest = self.known.iter().min_by_key(|(_, window)| window.taken.back().copied());
        if let Some(oldest) = oldest.map(|(who, _)| who.clone()) {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEN: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    #[test]
    fn the_third_waits_for_the_first() {
        let mut window = SlidingWindow::new(2, TEN);
        assert_eq!([window.take(at(0)), window.take(at(9))], [Ok(()), Ok(())]);
        assert_eq!((window.take(at(9)), window.check(at(9))), (Err(at(10)), Err(at(10))));
        assert_eq!((window.count(at(9)), window.count(at(10))), (2, 1));
        assert_eq!([window.take(at(10)), window.take(at(18))], [Ok(()), Err(at(19))]);
        window.give_back(at(9));
        window.give_back(at(3));
        assert_eq!(window.take(at(18)), Ok(()), "what was taken back does not count");
        window.clear();
        assert_eq!(window.count(at(18)), 0);
    }

    #[test]
    fn a_part_of_it_can_be_kept_free() {
        let mut window = SlidingWindow::new(4, TEN);
        assert!([1, 3, 5].into_iter().all(|second| window.take(at(second)).is_ok()));
        assert_eq!(window.check_below(2, at(6)), Err(at(13)), "two have to go");
        assert_eq!(window.check_below(2, at(13)), Ok(()));
        assert_eq!(window.check_below(0, at(13)), Err(at(15)), "all have to, and even then");
        assert_eq!(window.check(at(13)), Ok(()));
    }

    #[test]
    fn where_nothing_may_come_there_is_somebody_to_wait_for_all_the_same() {
        assert_eq!(SlidingWindow::new(0, TEN).take(at(5)), Err(at(15)));
    }

    #[test]
    fn each_has_a_limit_of_its_own_and_the_oldest_is_forgotten() {
        let mut all = SlidingWindowOf::<String>::new(2, WhenCrowded::ForgetOne, SlidingWindow::new(2, TEN));
        assert_eq!((all.take("a", at(0)), all.take("a", at(1))), (Ok(()), Ok(())));
        assert_eq!(all.take("a", at(2)), Err(at(10)), "until the first is ten seconds ago");
        assert_eq!(all.take("b", at(2)), Ok(()), "somebody else");
        assert_eq!(all.take("c", at(3)), Ok(()));
        assert_eq!(all.remembered(), 2);
        assert!(!all.known.contains_key("a"), "whoever tried longest ago");
        assert_eq!(all.take("b", at(3)), Ok(()));
        assert_eq!(all.take("b", at(4)), Err(at(12)), "those who stay are still counted");
    }

    #[test]
    fn in_a_crowd_newcomers_are_turned_away_until_somebody_has_rested() {
        let mut all = SlidingWindowOf::<String>::new(2, WhenCrowded::TurnAway, SlidingWindow::new(2, TEN));
        assert_eq!([all.take("a", at(0)), all.take("b", at(5))], [Ok(()), Ok(())]);
        assert!(all.take("c", at(9)).is_err());
        assert_eq!(all.take("a", at(9)), Ok(()), "those who are known are not");
        assert!(all.take("c", at(14)).is_err());
        assert_eq!(all.take("c", at(15)), Ok(()));
        assert_eq!(all.remembered(), 2);
    }

    #[test]
    fn whoever_has_nothing_left_is_forgotten() {
        let mut all = SlidingWindowOf::<String>::new(2, WhenCrowded::ForgetOne, SlidingWindow::new(2, TEN));
        assert_eq!([all.take("a", at(0)), all.take("a", at(1))], [Ok(()), Ok(())]);
        all.give_back("a", at(0));
        assert_eq!(all.remembered(), 1);
        all.give_back("a", at(1));
        all.give_back("nobody", at(1));
        assert_eq!(all.remembered(), 0);
    }

    proptest! {
        /// Whatever comes when, no stretch of the window's length holds more than it may, and
        /// nothing is refused that would have fitted.
        #[test]
        fn no_stretch_holds_more_and_nothing_is_wasted(
            most in 1usize..8,
            span in 1u64..30,
            steps in prop::collection::vec((0u64..12, prop::bool::weighted(0.1)), 1..300),
        ) {
            let mut window = SlidingWindow::new(most, Duration::from_secs(span));
            let (mut now, mut taken) = (0, Vec::new());
            for (pause, back) in steps {
                now += pause;
                let inside = |taken: &[u64]| taken.iter().filter(|then| *then + span > now).count();
                if back && let Some(last) = taken.pop() {
                    window.give_back(at(last));
                    continue;
                }
                let (fits, took) = (inside(&taken) < most, window.take(at(now)));
                prop_assert_eq!(took.is_ok(), fits);
                match took {
                    Ok(()) => taken.push(now),
                    Err(room_at) => {
                        prop_assert!(room_at > at(now) && room_at <= at(now + span));
                        prop_assert!(window.clone().take(room_at).is_ok(), "there is room then");
                    }
                }
                prop_assert!(inside(&taken) <= most);
                prop_assert_eq!(window.count(at(now)), inside(&taken));
            }
        }
    }
}
