//! Randomness that can be played again.

use crate::stage::report;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A small, fast generator (splitmix64); quality is not what matters here.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The dice of one test: from `CHAOS_SEED` if it is set, else new. Prints the seed.
    pub(crate) fn roll_for(test: &str) -> Self {
        let seed = match std::env::var("CHAOS_SEED") {
            Ok(text) => text.trim().parse().expect("CHAOS_SEED is a number"),
            Err(_) => RandomState::new().build_hasher().finish() % 1_000_000_000,
        };
        report(test, &format!("seed {seed} (again: CHAOS_SEED={seed})"));
        Self::new(seed)
    }

    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Dice for a part of a test that runs beside others.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` up to, not including, `high`.
    pub(crate) fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low)
    }

    /// Whether something that happens in one of `n` cases happens.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.within(0, from.len() as u64)).unwrap()]
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}
