//! Counting attempts within a span of time.

use crate::clock::Mono;
use std::collections::VecDeque;
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
