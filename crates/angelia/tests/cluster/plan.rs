//! What goes wrong in a run, and when: the same for the same seed.

use std::fmt;
use std::time::Duration;

/// Something that goes wrong, for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `kill -9`, and a start after it.
    Killed(usize),
    /// `SIGSTOP`, longer than the node is believed to be there.
    Frozen(usize),
    /// `SIGTERM`, and a start after it.
    Restarted(usize),
    /// What the node has open to PostgreSQL breaks, once.
    StoreBroken(usize),
    /// The node does not reach PostgreSQL.
    StoreCut(usize),
    /// It reaches it slowly.
    StoreSlow(usize),
    /// The node does not reach Redis.
    BusCut(usize),
    /// It reaches it slowly.
    BusSlow(usize),
    /// There is no Redis.
    RedisKilled,
    /// PostgreSQL crashes and is started again.
    PostgresKilled,
    /// Nothing more fits on PostgreSQL's disk.
    DiskFull,
}

/// A fault, how long before it all is well, and how long it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) after: Duration,
    pub(crate) fault: Fault,
    pub(crate) lasts: Duration,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { after, fault, lasts } = self;
        write!(f, "after {} ms {fault:?} for {} ms", after.as_millis(), lasts.as_millis())
    }
}

/// Randomness that can be played again (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn within(&mut self, low: u64, high: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        low + (z ^ (z >> 31)) % (high - low)
    }
}

/// Faults without an end, one at a time.
pub(crate) fn plan(seed: u64, nodes: usize) -> impl Iterator<Item = Step> {
    let mut dice = Dice::new(seed);
    std::iter::repeat_with(move || {
        let node = usize::try_from(dice.within(0, nodes as u64)).unwrap_or_default();
        let (fault, low, high) = match dice.within(0, 12) {
            0 | 1 => (Fault::Killed(node), 500, 6_000),
            2 => (Fault::Frozen(node), 4_500, 7_000),
            3 => (Fault::Restarted(node), 0, 1_000),
            4 => (Fault::StoreBroken(node), 0, 1),
            5 => (Fault::StoreCut(node), 1_000, 6_000),
            6 => (Fault::StoreSlow(node), 1_000, 4_000),
            7 => (Fault::BusCut(node), 1_000, 4_000),
            8 => (Fault::BusSlow(node), 1_000, 4_000),
            9 => (Fault::RedisKilled, 1_000, 4_000),
            10 => (Fault::DiskFull, 500, 3_000),
            _ => (Fault::PostgresKilled, 200, 2_000),
        };
        Step {
            after: Duration::from_millis(dice.within(500, 2_500)),
            fault,
            lasts: Duration::from_millis(dice.within(low, high)),
        }
    })
}

mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_plan() {
        let steps = |seed| plan(seed, 3).take(100).collect::<Vec<_>>();
        assert_eq!(steps(7), steps(7));
        assert_ne!(steps(7), steps(8));
        for (name, fault) in [("a full disk", Fault::DiskFull), ("a pause", Fault::Frozen(2))] {
            assert!(steps(7).iter().any(|step| step.fault == fault), "{name} belongs to every long plan");
        }
    }
}
