//! How much one step of a long deletion may change: on a nearly full disk what is deleted
//! takes space before it frees any.

/// The pages of a database.
pub(crate) const PAGE: u64 = 4096;
/// What deleting a row costs beside its body: it may touch a page of its table and
/// of each index, and no two rows need to share one.
const ROW: u64 = 5 * PAGE;

/// What one step of a long deletion may still change.
pub(crate) struct Budget {
    pub(crate) whole: u64,
    left: u64,
}

impl Budget {
    /// So many bytes.
    pub(crate) fn new(whole: u64) -> Self {
        Self { whole, left: whole }
    }

    /// How many small rows that is.
    pub(crate) fn rows(&self) -> i64 {
        i64::try_from((self.left / ROW).max(1)).unwrap_or(i64::MAX)
    }

    /// Takes what a row with a body of this many bytes costs. One row always fits: it
    /// has to go somehow.
    pub(crate) fn allows(&mut self, body: u64) -> bool {
        let cost = body + ROW;
        if cost > self.left && self.left < self.whole {
            return false;
        }
        self.left = self.left.saturating_sub(cost);
        true
    }

    /// How many pages that is.
    pub(crate) fn pages(&self) -> u64 {
        (self.left / PAGE).max(1)
    }
}
