//! A store of its own for each test, in SQLite.

pub(crate) use super::common::*;

use angelia_core::inbox::Quota;
use angelia_engines::store::sqlite::Sqlite;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Engine>,
    pub(crate) witness: Arc<Witness>,
    pub(crate) folder: TempDir,
    quota: Quota,
}

impl Opened {
    /// Whether what is replaced can be made to go from the disk.
    pub(crate) const ERASES: bool = true;

    pub(crate) fn with(quota: Quota) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), quota)
    }

    /// A store that is there already.
    pub(crate) fn at(folder: TempDir) -> Self {
        Self::in_folder(folder, Quota::default())
    }

    fn in_folder(folder: TempDir, quota: Quota) -> Self {
        let witness = Arc::new(Witness::default());
        let store = Arc::new(Sqlite::open(folder.path(), quota, witness.bus()).unwrap());
        Self { store, witness, folder, quota }
    }

    /// Closes the store and opens it again, as a restart does.
    pub(crate) fn reopen(self) -> Self {
        self.closed(|_| ())
    }

    /// The same, with something done to its files in between.
    pub(crate) fn closed(self, change: impl FnOnce(&Path)) -> Self {
        let Self { store, witness, folder, quota } = self;
        drop(store);
        change(folder.path());
        let store = Arc::new(Sqlite::open(folder.path(), quota, witness.bus()).unwrap());
        Self { store, witness, folder, quota }
    }

    pub(crate) fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.folder.path().join("angelia.db")).unwrap()
    }

    /// Runs statements past the store; answers the first column of what the last one finds.
    pub(crate) fn try_sql(&self, statements: &str) -> Result<Vec<String>, String> {
        let db = self.raw();
        if !statements.starts_with("SELECT") {
            return db.execute_batch(statements).map(|()| Vec::new()).map_err(|e| e.to_string());
        }
        let text = |row: &rusqlite::Row<'_>| {
            row.get::<_, rusqlite::types::Value>(0).map(|value| match value {
                rusqlite::types::Value::Integer(number) => number.to_string(),
                rusqlite::types::Value::Text(text) => text,
                other => format!("{other:?}"),
            })
        };
        let mut statement = db.prepare(statements).map_err(|e| e.to_string())?;
        statement.query_map([], text).and_then(Iterator::collect).map_err(|e| e.to_string())
    }

    /// Has every row refused that an event would touch while a condition holds.
    pub(crate) fn refuse(&self, event: &str, table: &str, when: &str) {
        self.sql(&format!(
            "CREATE TRIGGER refuse_{table} BEFORE {event} ON {table} WHEN {when}
             BEGIN SELECT raise(ABORT, 'a test'); END"
        ));
    }

    /// Has nothing refused any more.
    pub(crate) fn allow(&self, table: &str) {
        self.sql(&format!("DROP TRIGGER refuse_{table}"));
    }
}
