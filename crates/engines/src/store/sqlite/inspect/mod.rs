//! What tests see of a database, and do to it, past the server that works on it.
//!
//! A story told from outside asks now and then what is really on the disk, or needs
//! what otherwise takes days or an accident: messages that are three days old, a
//! damaged secret, a store that does not commit. That is said here in the words of the
//! story, so that it can be told over every database and names none. What a port
//! answers is asked there, and not here.
//!
//! Only with the feature `inspect`, which nothing but dev-dependencies turns on.
//! Everything panics where it fails: a test has nobody to return an error to.

mod bots;
mod commits;
mod journal;
mod ledger;
mod records;
mod tenant;
mod vault;

#[cfg(test)]
mod tests;

pub use bots::RefusedCursors;
pub use commits::{CommitWatch, StoppedCommits};
pub use ledger::SeenAction;
pub use vault::SeenCapability;

use super::{DATABASE, DATABASE_FILES, make_private};
use angelia_core::clock::UnixMillis;
use rusqlite::{Connection, OpenFlags, Params, Row};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a statement waits for the server to let go of the database.
const PATIENCE: Duration = Duration::from_secs(10);

/// A database, whoever works on it.
#[derive(Clone, Debug)]
pub struct Inspect {
    data_dir: PathBuf,
}

/// Servers of earlier releases, by the version of the schema they wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Version 1.
    One,
    /// Version 4.
    Four,
}

/// Puts into a data directory that has none the database that a server of an earlier
/// release left: a tenant with gateways, and messages that wait.
///
/// # Panics
///
/// When it cannot be written.
pub fn leave_database_of(release: Release, data_dir: &Path) {
    let dump = match release {
        Release::One => include_str!("../../../../tests/store/release-1.sql"),
        Release::Four => include_str!("../../../../tests/store/release-4.sql"),
    };
    let path = data_dir.join(DATABASE);
    make_private(&path);
    let db = Connection::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    db.execute_batch(dump).unwrap_or_else(|error| panic!("{release:?}: {error}"));
}

impl Inspect {
    /// The database in a data directory.
    pub fn of(data_dir: &Path) -> Self {
        Self { data_dir: data_dir.to_owned() }
    }

    /// Whether these bytes are anywhere in the files of the database, as whoever has a
    /// copy of the disk would find them.
    ///
    /// # Panics
    ///
    /// When there is no database, or nothing to look for.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        assert!(!bytes.is_empty(), "nothing is everywhere");
        let path = self.data_dir.join(DATABASE);
        assert!(path.exists(), "{} is not there", path.display());
        // The database last: what leaves the log on the way is found there.
        let files = DATABASE_FILES.iter().rev().map(|name| std::fs::read(self.data_dir.join(name)));
        let holds = |file: Vec<u8>| file.windows(bytes.len()).any(|part| part == bytes);
        files.map(Result::unwrap_or_default).any(holds)
    }

    /// Lets the database say that another release wrote it.
    ///
    /// # Panics
    ///
    /// When it cannot be written.
    pub fn set_schema_version(&self, version: u32) {
        let set = self.open().pragma_update(None, "user_version", version);
        set.unwrap_or_else(|error| panic!("the version of the schema: {error}"));
    }

    /// A connection for one question: one that stayed open would keep the server from
    /// folding its log into the database when it closes.
    fn open(&self) -> Connection {
        let path = self.data_dir.join(DATABASE);
        // Not the default, which makes a database where there is none.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(&path, flags).and_then(|db| {
            db.busy_timeout(PATIENCE)?;
            Ok(db)
        });
        opened.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// What a statement finds.
    fn ask<T>(
        &self,
        statement: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Vec<T> {
        let db = self.open();
        let found =
            db.prepare(statement).and_then(|mut prepared| prepared.query_map(values, read)?.collect());
        found.unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    /// The one number that a statement finds.
    fn count(&self, statement: &str, values: impl Params) -> u64 {
        self.ask(statement, values, |row| row.get(0)).pop().unwrap_or_default()
    }

    /// Does something; answers to how many rows.
    fn change(&self, statement: &str, values: impl Params) -> usize {
        self.open().execute(statement, values).unwrap_or_else(|error| panic!("{statement}: {error}"))
    }
}

/// As a column of milliseconds holds it.
fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<UnixMillis> {
    row.get(column).map(UnixMillis)
}
