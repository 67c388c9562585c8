//! Saying something now and then, however often there is reason to.

use angelia_core::clock::Mono;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often the same thing is worth a line in the log: whoever reads it sees
/// that it goes on, and strangers cannot fill a disk.
const EVERY: Duration = Duration::from_secs(3600);

/// When something was last said.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Mutex<Option<Mono>>);

impl Seldom {
    /// Whether it is time to say it again; if so, it counts as said.
    pub(crate) fn is_due(&self, now: Mono) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = said.is_none_or(|said| now.since(said) >= EVERY);
        if due {
            *said = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_once_an_hour() {
        let seldom = Seldom::default();
        let hours = [0, 1, 3599, 3600, 3601, 7200].map(|at| seldom.is_due(Mono(Duration::from_secs(at))));
        assert_eq!(hours, [true, false, false, true, false, true]);
    }
}
