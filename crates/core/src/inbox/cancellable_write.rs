//! Giving up on a write that was not begun yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// Shared by whoever waits for a write and whoever makes it: of the two, the
/// first to act decides whether it happens.
#[derive(Clone, Debug, Default)]
pub struct CancellableWrite(Arc<AtomicU8>);

impl CancellableWrite {
    /// The write is about to be made; `false` if nobody wants it any more.
    pub fn begin(&self) -> bool {
        let found = self.0.compare_exchange(WAITING, BEGUN, Ordering::AcqRel, Ordering::Acquire);
        found.is_ok() || found == Err(BEGUN)
    }

    /// Nobody waits any more; `false` if the write was begun and may still happen.
    pub fn give_up(&self) -> bool {
        let found = self.0.compare_exchange(WAITING, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire);
        found.is_ok() || found == Err(GIVEN_UP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_to_act_decides() {
        let begun = CancellableWrite::default();
        assert!(begun.begin() && !begun.give_up() && begun.begin());
        let given_up = CancellableWrite::default();
        assert!(given_up.give_up() && !given_up.begin() && given_up.give_up());
    }
}
