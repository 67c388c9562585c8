//! When to poke a sleeping gateway.

use crate::clock::Mono;
use crate::limit::Backoff;
use std::time::Duration;

/// Delay after the first poke; a machine needs seconds to resume.
pub const WAKE_FIRST_DELAY: Duration = Duration::from_secs(5);
/// The delay doubles up to this, so that a dead wake URL costs little.
pub const WAKE_LONGEST_DELAY: Duration = Duration::from_secs(600);
/// A gateway that did not come for a day will not come for a poke.
pub const WAKE_GIVE_UP: Duration = Duration::from_secs(24 * 3600);

/// The pokes owed to one disconnected instance with something waiting.
#[derive(Clone, Copy, Debug)]
pub struct WakeSchedule {
    started: Mono,
    next: Mono,
    backoff: Backoff,
}

impl WakeSchedule {
    /// The first poke is due at once.
    pub fn start(now: Mono) -> Self {
        Self { started: now, next: now, backoff: Backoff::new(WAKE_FIRST_DELAY, WAKE_LONGEST_DELAY) }
    }

    /// When the next poke is due; `None` once it is hopeless.
    pub fn next(&self) -> Option<Mono> {
        (self.next.since(self.started) < WAKE_GIVE_UP).then_some(self.next)
    }

    /// Notes that a poke was sent.
    pub fn poked(&mut self, now: Mono) {
        self.next = now + self.backoff.pause();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backs_off_and_gives_up_after_a_day() {
        let mut schedule = WakeSchedule::start(Mono::default());
        let mut pokes = Vec::new();
        while let Some(at) = schedule.next() {
            pokes.push(at.0.as_secs());
            schedule.poked(at);
        }
        assert_eq!(&pokes[..6], &[0, 5, 15, 35, 75, 155]);
        assert!(pokes.windows(2).all(|w| w[1] - w[0] <= 600));
        assert!(*pokes.last().unwrap() < 86_400 && pokes.len() > 140);
    }
}
