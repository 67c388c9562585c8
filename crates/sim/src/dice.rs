//! Chance that can be repeated.

/// Numbers that follow from a seed and nothing else (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or_default()
    }

    /// Whether something happens that does so this often in a hundred.
    pub(crate) fn percent(&mut self, often: usize) -> bool {
        self.below(100) < often
    }

    /// Takes one out of a list; `None` if it is empty.
    pub(crate) fn take<T>(&mut self, list: &mut Vec<T>) -> Option<T> {
        (!list.is_empty()).then(|| {
            let at = self.below(list.len());
            list.remove(at)
        })
    }
}
