//! Two processes with one id take its socket from each other for ever, and neither
//! gets anything done. So after a few takeovers further sockets are turned away for
//! a while: one of the two keeps its place, and somebody sees the refusals.

use crate::clock::Mono;
use crate::limit::SlidingWindow;
use std::time::Duration;

/// Takeovers between living peers within [`FLAP_SPAN`] that mean two processes use one id.
const FLAPS: usize = 3;
const FLAP_SPAN: Duration = Duration::from_secs(30);
/// How long further sockets of such an instance are turned away.
const BAR: Duration = Duration::from_secs(60);

/// The takeovers of one instance.
#[derive(Clone, Debug)]
pub struct Takeovers {
    /// Those that are no harm.
    lately: SlidingWindow,
    barred_until: Mono,
}

impl Default for Takeovers {
    fn default() -> Self {
        Self { lately: SlidingWindow::new(FLAPS - 1, FLAP_SPAN), barred_until: Mono::default() }
    }
}

impl Takeovers {
    /// Counts a takeover between living peers; `true` if it was one too many.
    pub fn note(&mut self, now: Mono) -> bool {
        let too_many = self.lately.take(now).is_err();
        if too_many {
            self.lately.clear();
            self.barred_until = now + BAR;
        }
        too_many
    }

    /// How much longer sockets are turned away, if they are.
    pub fn barred(&self, now: Mono) -> Option<Duration> {
        Some(self.barred_until.since(now)).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_in_thirty_seconds_bar_the_instance_for_a_minute() {
        let at = |seconds| Mono(Duration::from_secs(seconds));
        let mut takeovers = Takeovers::default();
        assert!(!takeovers.note(at(100)) && !takeovers.note(at(110)));
        assert!(!takeovers.note(at(131)), "the first is too long ago");
        assert_eq!(takeovers.barred(at(131)), None);
        assert!(takeovers.note(at(132)));
        assert_eq!(takeovers.barred(at(150)), Some(Duration::from_secs(42)));
        assert_eq!(takeovers.barred(at(192)), None);
        assert!(!takeovers.note(at(192)), "they are counted anew");
    }
}
