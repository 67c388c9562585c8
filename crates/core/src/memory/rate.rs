//! How fast bytes may come: a burst, and then so many a second.

use crate::clock::Mono;
use crate::limit::{Gcra, Rate};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::time::Duration;

/// A rate that several share; part of a larger one, perhaps.
#[derive(Debug)]
pub struct ByteRate {
    rate: Rate,
    came: Mutex<Gcra>,
    whole: Option<Arc<ByteRate>>,
}

impl ByteRate {
    /// So many bytes a second, after a burst.
    pub fn new(per_second: usize, burst: usize) -> Arc<Self> {
        Self::within(None, per_second, burst)
    }

    /// A part of this rate: what is taken there is taken here too.
    pub fn part(self: &Arc<Self>, per_second: usize, burst: usize) -> Arc<Self> {
        Self::within(Some(self.clone()), per_second, burst)
    }

    fn within(whole: Option<Arc<Self>>, per_second: usize, burst: usize) -> Arc<Self> {
        let rate = Rate { calls: number(per_second), per: Duration::from_secs(1), burst: number(burst) };
        Arc::new(Self { rate, came: Mutex::default(), whole })
    }

    /// Notes bytes that came. They are here already, so they always count.
    pub fn took(&self, bytes: usize, now: Mono) {
        self.came().note(self.rate, number(bytes), now);
        if let Some(whole) = &self.whole {
            whole.took(bytes, now);
        }
    }

    /// When more may come, if not now.
    pub fn ready_at(&self, now: Mono) -> Option<Mono> {
        let own = Some(self.came().ready_at(self.rate, 0, now)).filter(|at| *at > now);
        own.max(self.whole.as_ref().and_then(|whole| whole.ready_at(now)))
    }

    /// Whether all of its burst may come: then it is as good as a new one.
    pub fn is_rested(&self, now: Mono) -> bool {
        self.came().is_rested(now)
    }

    fn came(&self) -> MutexGuard<'_, Gcra> {
        self.came.lock()
    }
}

/// Bytes as a rate counts them; there are never so many at once that some are left out.
fn number(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
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
