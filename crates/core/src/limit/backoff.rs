//! How long to wait before a retry: a pause that doubles with every failure, up to a longest one.

use std::time::Duration;

/// How long to wait after each failure in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    /// Nothing has failed yet.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failures: 0 }
    }

    /// It failed: how long to wait now.
    pub fn pause(&mut self) -> Duration {
        let pause = doubled(self.first, self.longest, self.failures);
        self.failures = self.failures.saturating_add(1);
        pause
    }

    /// It worked: the next failure is the first again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

/// `first`, doubled so many times, but not more than `longest`.
pub fn doubled(first: Duration, longest: Duration, times: u32) -> Duration {
    first.saturating_mul(2u32.saturating_pow(times)).min(longest)
}

/// A pause somewhere in the upper half of this one, so that many who failed together do not come
/// back together. `dice` is any random number.
pub fn spread(pause: Duration, dice: u64) -> Duration {
    let half = pause / 2;
    // A part of the half that is a number below 2^64 of 2^64.
    let more = half.as_nanos().saturating_mul(u128::from(dice)) >> 64;
    half + Duration::from_nanos(u64::try_from(more).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_start_over() {
        let mut backoff = Backoff::new(seconds(1), seconds(30));
        let pauses: Vec<u64> = (0..8).map(|_| backoff.pause().as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30, 30]);
        backoff.reset();
        assert_eq!(backoff.pause(), seconds(1));
    }

    #[test]
    fn the_ends_of_the_spread_are_a_half_and_the_whole() {
        assert_eq!(spread(seconds(8), 0), seconds(4));
        assert_eq!(spread(seconds(8), 1 << 63), seconds(6));
        assert!(spread(seconds(8), u64::MAX) > Duration::from_millis(7_999));
    }

    proptest! {
        #[test]
        fn pauses_never_shrink_or_pass_the_longest_until_it_works_again(
            first in 1u64..1_000_000,
            longest in 1u64..10_000_000,
            worked in prop::collection::vec(prop::bool::weighted(0.05), 1..200),
        ) {
            let (first, longest) = (Duration::from_micros(first), Duration::from_micros(longest));
            let (mut backoff, mut before) = (Backoff::new(first, longest), None::<Duration>);
            for worked in worked {
                if worked {
                    backoff.reset();
                    before = None;
                    continue;
                }
                let pause = backoff.pause();
                let expected = before.map_or(first, |before| before * 2).min(longest);
                prop_assert_eq!(pause, expected);
                before = Some(pause);
            }
        }

        #[test]
        fn a_spread_pause_is_in_the_upper_half(millis in 0u64..1_000_000_000, dice in any::<u64>()) {
            let pause = Duration::from_millis(millis);
            let spread = spread(pause, dice);
            prop_assert!(spread >= pause / 2 && spread <= pause, "{:?} of {:?}", spread, pause);
        }

        #[test]
        fn no_number_is_too_large(times in any::<u32>(), dice in any::<u64>()) {
            prop_assert!(doubled(seconds(1), seconds(60), times) <= seconds(60));
            prop_assert!(spread(Duration::MAX, dice) <= Duration::MAX);
        }
    }
}
