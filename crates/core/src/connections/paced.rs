//! Warnings that come by the thousand are told once, and then counted.

use crate::clock::Mono;
use std::time::Duration;

/// How often the same warning is written.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// One warning.
#[derive(Debug, Default)]
pub struct Paced {
    told: Option<Mono>,
    untold: u64,
}

impl Paced {
    /// Notes that it happened. If it is to be told now: how often it happened since it was told last.
    pub fn note(&mut self, now: Mono) -> Option<u64> {
        self.untold += 1;
        if self.told.is_some_and(|told| now.since(told) < TELL_EVERY) {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_and_then_a_count() {
        let mut paced = Paced::default();
        let at = |seconds: u64| Mono(Duration::from_secs(seconds));
        assert_eq!(paced.note(at(5)), Some(1));
        assert_eq!(paced.note(at(5)), None);
        assert_eq!(paced.note(at(64)), None);
        assert_eq!(paced.note(at(65)), Some(3));
        assert_eq!(paced.note(at(1_000)), Some(1));
    }
}
