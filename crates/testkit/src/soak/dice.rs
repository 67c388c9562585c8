//! Randomness that is the same in every run.

/// A small, fast generator (splitmix64); quality is not what matters here.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` up to, not including, `high`.
    pub(super) fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low)
    }

    /// Whether something that happens in one of `n` cases happens.
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    /// Words of about that many bytes.
    pub(super) fn words(&mut self, bytes: u64) -> String {
        const WORDS: [&str; 8] =
            ["the", "milk", "is", "in", "**kitchen**", "beside", "größer", "`cargo run`"];
        let mut text = String::new();
        while (text.len() as u64) < bytes {
            text.push_str(WORDS[usize::try_from(self.within(0, 8)).unwrap_or_default()]);
            text.push(' ');
        }
        text
    }
}
