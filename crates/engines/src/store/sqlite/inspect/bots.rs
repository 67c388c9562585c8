//! What bots read and what people were told.

use super::{Inspect, millis};
use angelia_core::store::NoticeKind;
use std::time::Duration;

/// As long as this is there, nothing commits that says how far a bot has read.
pub struct RefusedCursors(Inspect);

impl Inspect {
    /// Lets every message that was seen in a chat have come so much earlier.
    pub fn age_chats(&self, by: Duration) {
        self.change("UPDATE chats SET last_at = last_at - ?", [millis(by)]);
    }

    /// Keeps bots from committing how far they have read, and what comes with it, until
    /// what is answered is dropped. Everything else is committed.
    pub fn refuse_cursors(&self) -> RefusedCursors {
        self.change(
            "CREATE TRIGGER refused BEFORE UPDATE ON cursors BEGIN SELECT raise(ABORT, 'refused'); END",
            [],
        );
        RefusedCursors(self.clone())
    }

    /// How many chats were told this, and it holds still.
    pub fn noticed(&self, kind: NoticeKind) -> u64 {
        self.count("SELECT count(*) FROM notices WHERE kind = ?", [kind.as_str()])
    }
}

impl Drop for RefusedCursors {
    fn drop(&mut self) {
        // A test that fails has more to say than that this failed too.
        if !std::thread::panicking() {
            self.0.change("DROP TRIGGER refused", []);
        }
    }
}
