//! How fast bytes may come: a burst, and then so many a second.

use crate::clock::Mono;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A rate that several share; part of a larger one, perhaps.
#[derive(Debug)]
pub struct ByteRate {
    per_second: usize,
    burst: usize,
    state: Mutex<State>,
    whole: Option<Arc<ByteRate>>,
}

#[derive(Debug, Default)]
struct State {
    /// What may still come at `at`; below zero after a piece that was larger.
    left: i64,
    at: Option<Mono>,
}

impl ByteRate {
    /// So many bytes a second, after a burst.
    pub fn new(per_second: usize, burst: usize) -> Arc<Self> {
        Arc::new(Self { per_second: per_second.max(1), burst, state: Mutex::default(), whole: None })
    }

    /// A part of this rate: what is taken there is taken here too.
    pub fn part(self: &Arc<Self>, per_second: usize, burst: usize) -> Arc<Self> {
        let whole = Some(self.clone());
        Arc::new(Self { per_second: per_second.max(1), burst, state: Mutex::default(), whole })
    }

    /// Notes bytes that came. They are here already, so they always count.
    pub fn took(&self, bytes: usize, now: Mono) {
        let mut state = self.refilled(now);
        state.left = state.left.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        drop(state);
        if let Some(whole) = &self.whole {
            whole.took(bytes, now);
        }
    }

    /// When more may come, if not now.
    pub fn ready_at(&self, now: Mono) -> Option<Mono> {
        let owed = u64::try_from(-self.refilled(now).left).ok().filter(|owed| *owed > 0);
        let own = owed.map(|owed| {
            now + Duration::from_micros(owed.saturating_mul(1_000_000) / self.per_second as u64 + 1)
        });
        own.max(self.whole.as_ref().and_then(|whole| whole.ready_at(now)))
    }

    /// Whether all of its burst may come: then it is as good as a new one.
    pub fn is_rested(&self, now: Mono) -> bool {
        self.refilled(now).left >= i64::try_from(self.burst).unwrap_or(i64::MAX)
    }

    fn refilled(&self, now: Mono) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let burst = i64::try_from(self.burst).unwrap_or(i64::MAX);
        let earned = match state.at {
            None => burst,
            Some(at) => {
                let micros = i64::try_from(now.since(at).as_micros()).unwrap_or(i64::MAX);
                micros.saturating_mul(i64::try_from(self.per_second).unwrap_or(i64::MAX)) / 1_000_000
            }
        };
        // Moments too short to earn a byte add up.
        if earned > 0 || state.at.is_none() {
            state.left = state.left.saturating_add(earned).min(burst);
            state.at = Some(now);
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono(Duration::from_millis(ms))
    }

    #[test]
    fn a_burst_and_then_a_rate() {
        let rate = ByteRate::new(1_000, 500);
        assert_eq!(rate.ready_at(at(0)), None);
        rate.took(700, at(0));
        let ready = rate.ready_at(at(0)).unwrap();
        assert!(ready >= at(200) && ready < at(201), "{ready:?}");
        assert!(rate.ready_at(at(100)).is_some());
        assert_eq!(rate.ready_at(at(201)), None);
        assert_eq!(rate.ready_at(at(60_000)), None);
        rate.took(501, at(60_000));
        assert!(rate.ready_at(at(60_000)).is_some(), "never more than a burst is saved up");
    }

    #[test]
    fn parts_share_the_whole() {
        let whole = ByteRate::new(1_000, 100);
        let (one, other) = (whole.part(10_000, 1_000), whole.part(10_000, 1_000));
        one.took(600, at(0));
        assert!(other.ready_at(at(0)).is_some(), "the whole is used up");
        assert_eq!(other.ready_at(at(501)), None);
    }
}
