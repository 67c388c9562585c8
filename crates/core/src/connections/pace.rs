//! How fast a file has to come or go. Whoever is slower holds the turn of somebody else.

use super::{SLOW_START, SLOWEST};
use std::time::Duration;

/// By when more than so many bytes have to be on their way, counted from the beginning.
pub fn time_for(bytes: u64) -> Duration {
    SLOW_START + Duration::from_millis(bytes.saturating_mul(1_000) / SLOWEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_earns_time_for_the_next_ones() {
        assert_eq!(time_for(0), SLOW_START);
        assert_eq!(time_for(SLOWEST * 10) - SLOW_START, Duration::from_secs(10));
        assert!(time_for(u64::MAX) > SLOW_START);
    }
}
