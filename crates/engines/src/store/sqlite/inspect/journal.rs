//! What the journal remembers.

use super::{Inspect, millis};
use std::time::Duration;

impl Inspect {
    /// How many messages the journal remembers.
    pub fn journaled(&self) -> u64 {
        self.count("SELECT count(*) FROM journal", [])
    }

    /// Lets every message that the journal remembers have come so much earlier.
    pub fn age_journal(&self, by: Duration) {
        self.change("UPDATE journal SET received_at = received_at - ?", [millis(by)]);
    }
}
