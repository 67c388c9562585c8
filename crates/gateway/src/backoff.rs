//! How long to wait before the next dial.

use std::time::Duration;

/// The middle of the first wait.
const FIRST: Duration = Duration::from_secs(1);
/// The middle of the longest wait.
const LONGEST: Duration = Duration::from_secs(30);
/// The longest wait a server may ask for; a typo of it must not park a gateway.
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// Exponential waits, spread so that gateways do not come back as a herd.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The next wait: 0.5 to 1.5 times 1, 2, 4 … 30 seconds.
    ///
    /// `dice` is any random number. A wait the server `asked` for is a lower
    /// bound, spread by up to a tenth upwards.
    pub(crate) fn next(&mut self, dice: u64, asked: Option<Duration>) -> Duration {
        let middle = FIRST.saturating_mul(1 << self.failures.min(5)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        // 53 bits are what an f64 holds exactly.
        let spread = (dice >> 11) as f64 / (1_u64 << 53) as f64;
        let wait = middle.mul_f64(0.5 + spread);
        let asked = asked.unwrap_or_default().min(LONGEST_ASKED);
        wait.max(asked.mul_f64(1.0 + spread / 10.0))
    }

    /// Starts over; called once a handshake was completed.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_over() {
        let mut backoff = Backoff::default();
        let middle = 1 << 63;
        let waits: Vec<_> = (0..8).map(|_| backoff.next(middle, None).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
        backoff.reset();
        assert_eq!(backoff.next(0, None), Duration::from_millis(500));
        assert!(backoff.next(u64::MAX, None) <= Duration::from_secs(3));
    }

    #[test]
    fn a_server_can_ask_for_more_but_not_for_everything() {
        let ask = |seconds| Backoff::default().next(0, Some(Duration::from_secs(seconds)));
        assert_eq!(ask(20), Duration::from_secs(20));
        assert_eq!(ask(0), Duration::from_millis(500));
        assert_eq!(ask(1 << 40), LONGEST_ASKED);
    }
}
