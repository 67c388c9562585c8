//! How much may wait for one instance.

use std::time::Duration;

/// What may be kept on disk of one tenant, unless an operator says otherwise.
pub const TENANT_DISK: u64 = 1024 * 1024 * 1024;

/// The bounds of one inbox. Beyond them the oldest entries go, as counted gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Longest time an entry waits.
    pub age: Duration,
    /// Most entries waiting.
    pub entries: u64,
    /// Most bytes waiting.
    pub bytes: u64,
    /// Most bytes kept on disk of one tenant, all its inboxes and its ledger together.
    pub tenant_bytes: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            age: Duration::from_secs(7 * 24 * 3600),
            entries: 10_000,
            bytes: 64 * 1024 * 1024,
            tenant_bytes: TENANT_DISK,
        }
    }
}

/// What waits for one instance now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Entries waiting.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Usage {
    /// Counts one entry more.
    pub fn add(&mut self, bytes: usize) {
        self.entries += 1;
        self.bytes += bytes as u64;
    }

    /// Counts one entry less.
    pub fn remove(&mut self, bytes: usize) {
        self.entries = self.entries.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes as u64);
    }

    /// Whether something has to go.
    pub fn exceeds(&self, quota: &Quota) -> bool {
        self.entries > quota.entries || self.bytes > quota.bytes
    }
}
