//! Warnings that come by the thousand are told once, and then counted.

use super::SlidingWindow;
use crate::clock::Mono;
use std::time::Duration;

/// One warning: whoever reads the log sees that it goes on, and strangers cannot fill a disk.
#[derive(Clone, Debug)]
pub struct LogThrottle {
    told: SlidingWindow,
    untold: u64,
}

impl LogThrottle {
    /// Told once in this time.
    const fn every(span: Duration) -> Self {
        Self { told: SlidingWindow::new(1, span), untold: 0 }
    }

    /// Told once an hour.
    pub const fn hourly() -> Self {
        Self::every(Duration::from_secs(3_600))
    }

    /// Notes that it happened. If it is to be told now: how often it happened since it was told last.
    pub fn note(&mut self, now: Mono) -> Option<u64> {
        self.untold += 1;
        self.told.take(now).ok()?;
        Some(std::mem::take(&mut self.untold))
    }
}

/// Told once a minute.
impl Default for LogThrottle {
    fn default() -> Self {
        Self::every(Duration::from_secs(60))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_and_then_a_count() {
        let mut warning = LogThrottle::default();
        let at = |seconds: u64| Mono(Duration::from_secs(seconds));
        assert_eq!(warning.note(at(5)), Some(1));
        assert_eq!(warning.note(at(5)), None);
        assert_eq!(warning.note(at(64)), None);
        assert_eq!(warning.note(at(65)), Some(3));
        assert_eq!(warning.note(at(1_000)), Some(1));
    }

    #[test]
    fn it_is_said_once_an_hour() {
        let mut warning = LogThrottle::hourly();
        let told =
            [0, 1, 3599, 3600, 3601, 7200].map(|at| warning.note(Mono(Duration::from_secs(at))).is_some());
        assert_eq!(told, [true, false, false, true, false, true]);
    }
}
