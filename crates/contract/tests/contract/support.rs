//! What several test modules share.

use proptest::test_runner::Config;

/// A proptest configuration that `PROPTEST_CASES` can still override.
pub(crate) fn cases(count: u32) -> Config {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => Config::default(),
        None => Config::with_cases(count),
    }
}

/// Rounds of a hostile loop; `HOSTILE_CASES` overrides.
pub(crate) fn rounds() -> u64 {
    std::env::var("HOSTILE_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(100_000)
}

/// A small, seeded generator (SplitMix64): hostile loops need many cheap
/// cases rather than shrinking, and a seed names a case exactly.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.roll() % bound as u64) as usize
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }
}
