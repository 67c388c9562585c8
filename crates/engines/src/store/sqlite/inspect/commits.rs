//! Whether anybody commits, and a store that does not.

use super::Inspect;
use rusqlite::Connection;

/// As long as this is there, nothing commits.
pub struct StoppedCommits {
    /// In a transaction that holds the one lock for writing; closed without an end to it.
    _holds: Connection,
}

/// Looks whether others commit.
pub struct CommitWatch {
    db: Connection,
    before: i64,
}

impl Inspect {
    /// Keeps the server from committing anything, until what is answered is dropped: it
    /// is told at once that it cannot.
    ///
    /// # Panics
    ///
    /// When somebody else keeps it from that.
    pub fn stop_commits(&self) -> StoppedCommits {
        let db = self.open();
        db.execute_batch("BEGIN IMMEDIATE").unwrap_or_else(|error| panic!("stop commits: {error}"));
        StoppedCommits { _holds: db }
    }

    /// Watches for commits from now on.
    pub fn watch_commits(&self) -> CommitWatch {
        let db = self.open();
        let before = data_version(&db);
        CommitWatch { db, before }
    }
}

impl CommitWatch {
    /// Whether anybody committed something since it began.
    pub fn saw_one(&self) -> bool {
        data_version(&self.db) != self.before
    }
}

/// A number that says something to the connection it is asked of only: another one than
/// before, if others committed.
fn data_version(db: &Connection) -> i64 {
    let version = db.query_row("PRAGMA data_version", [], |row| row.get(0));
    version.unwrap_or_else(|error| panic!("watch commits: {error}"))
}
