//! Counting attempts within a span of time.

use crate::clock::Mono;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

/// So many attempts within so long; further ones are one too many.
#[derive(Clone, Debug)]
pub struct Attempts {
    limit: usize,
    span: Duration,
    at: VecDeque<Mono>,
}

impl Attempts {
    /// At most `limit` within `span`.
    pub fn new(limit: usize, span: Duration) -> Self {
        Self { limit, span, at: VecDeque::new() }
    }

    /// Notes an attempt; `false` if it was one too many, which is not noted.
    pub fn note(&mut self, now: Mono) -> bool {
        let room = self.has_room(now);
        if room {
            self.at.push_back(now);
        }
        room
    }

    /// Whether another attempt would be within the limit.
    pub fn has_room(&mut self, now: Mono) -> bool {
        while self.at.front().is_some_and(|at| now.since(*at) >= self.span) {
            self.at.pop_front();
        }
        self.at.len() < self.limit
    }

    /// When the next attempt is within the limit, if it is not already.
    pub fn room_at(&self) -> Option<Mono> {
        let first = self.at.front().filter(|_| self.at.len() >= self.limit)?;
        Some(*first + self.span)
    }
}

/// [`Attempts`] for each of many. Beyond `most` of them whoever tried longest
/// ago is forgotten, so that memory has an end.
#[derive(Clone, Debug)]
pub struct AttemptsOf<K> {
    most: usize,
    of_one: Attempts,
    known: HashMap<K, Attempts>,
}

impl<K: Clone + Eq + Hash> AttemptsOf<K> {
    /// Remembers `most` at a time, each with attempts like `of_one`, which has none yet.
    pub fn new(most: usize, of_one: Attempts) -> Self {
        Self { most, of_one, known: HashMap::new() }
    }

    /// Notes an attempt of `who`; if it was one too many, says when there is room again.
    pub fn note(&mut self, who: &K, now: Mono) -> Result<(), Mono> {
        if !self.known.contains_key(who) {
            self.make_room();
        }
        let attempts = self.known.entry(who.clone()).or_insert_with(|| self.of_one.clone());
        if attempts.note(now) { Ok(()) } else { Err(attempts.room_at().unwrap_or(now)) }
    }

    fn make_room(&mut self) {
        if self.known.len() < self.most {
            return;
        }
        let oldest = self.known.iter().min_by_key(|(_, attempts)| attempts.at.back().copied());
        if let Some(oldest) = oldest.map(|(who, _)| who.clone()) {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_limit_of_its_own_and_the_oldest_is_forgotten() {
        let at = |seconds| Mono(Duration::from_secs(seconds));
        let mut all = AttemptsOf::new(2, Attempts::new(2, Duration::from_secs(10)));
        assert_eq!((all.note(&"a", at(0)), all.note(&"a", at(1))), (Ok(()), Ok(())));
        assert_eq!(all.note(&"a", at(2)), Err(at(10)), "until the first is ten seconds ago");
        assert_eq!(all.note(&"b", at(2)), Ok(()), "somebody else");
        assert_eq!(all.note(&"c", at(3)), Ok(()));
        assert_eq!(all.known.len(), 2);
        assert!(!all.known.contains_key("a"), "whoever tried longest ago");
        assert_eq!(all.note(&"b", at(3)), Ok(()));
        assert_eq!(all.note(&"b", at(4)), Err(at(12)), "those who stay are still counted");
    }

    #[test]
    fn the_limit_holds_for_any_span() {
        let at = |ms: u64| Mono(Duration::from_millis(ms));
        let mut attempts = Attempts::new(2, Duration::from_secs(1));
        assert!(attempts.note(at(0)) && attempts.note(at(900)));
        assert!(!attempts.note(at(950)), "the third");
        assert!(attempts.note(at(1_000)), "the first is a second ago");
        assert!(!attempts.note(at(1_899)));
        assert!(attempts.note(at(1_900)));
    }
}
