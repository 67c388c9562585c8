//! The SQLite file that is moved: what is in it, and whether it is sound.

use super::target::{Kind, Schema};
use crate::store::sqlite::{self, DATABASE};
use angelia_core::error::{Error, Result};
use angelia_core::seal::KEY_CHECK;
use angelia_core::secret::hex;
use angelia_core::store::DATABASE_ID;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The table of small facts. Of those some are numbers that SQLite counts with, which have a
/// place of their own in PostgreSQL, and some are about the file and who has it open.
pub(super) const NOTES: &str = "notes";
const KEPT_NOTES: &str = "typeof(value) <> 'integer' AND name NOT IN ('running', 'probe')";

/// The database, at one moment.
pub(super) struct Source {
    pub(super) db: Connection,
    path: PathBuf,
}

/// A table that is moved.
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<(String, Kind)>,
    /// Which of its rows, as SQL; empty for all.
    pub(super) only: &'static str,
    pub(super) rows: u64,
}

impl Source {
    /// Opens the database of a data directory.
    pub(super) fn open(data_dir: &Path) -> Result<Self> {
        let path = data_dir.join(DATABASE);
        if !path.exists() {
            return Err(Error::not_found(format!(
                "{} holds no data; check server.data_dir",
                data_dir.display()
            )));
        }
        // Not for reading only: whoever closes it last folds its log into the file.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(&path, flags).map_err(|error| unreadable(&path, error))?;
        let source = Self { db, path };
        let version: i64 = source.says("PRAGMA user_version")?;
        if version != sqlite::SCHEMA_VERSION {
            return Err(Error::conflict(format!(
                "{} is of another release (schema version {version}, this angelia has {}): start this release on \
                 it once, with store.url = \"sqlite\", stop it again, and then move it",
                source.path.display(),
                sqlite::SCHEMA_VERSION
            )));
        }
        source.db.execute_batch("BEGIN").map_err(|error| unreadable(&source.path, error))?;
        Ok(source)
    }

    /// Looks through the whole of it: what is damaged must not be moved along unnoticed.
    pub(super) fn check(&self) -> Result<()> {
        let verdict: String = self.says("PRAGMA quick_check(1)")?;
        if verdict == "ok" {
            return Ok(());
        }
        Err(Error::internal(format!(
            "{} is damaged: {verdict}; restore a backup, and move that",
            self.path.display()
        )))
    }

    /// Every table with its rows, those last whose rows need another's.
    pub(super) fn tables(&self, schema: &Schema) -> Result<Vec<Table>> {
        let names: Vec<String> = self.list(
            "SELECT name FROM sqlite_schema t WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
             ORDER BY EXISTS (SELECT 1 FROM pragma_foreign_key_list(t.name)), name",
        )?;
        let missing = schema.moved().find(|name| !names.iter().any(|own| own == name));
        if let Some(missing) = missing {
            return Err(unlike(missing));
        }
        names.into_iter().map(|name| self.table(schema, name)).collect()
    }

    fn table(&self, schema: &Schema, name: String) -> Result<Table> {
        let own: Vec<String> = self.list(&format!("SELECT name FROM pragma_table_info('{name}')"))?;
        let there = schema.columns(&name).ok_or_else(|| unlike(&name))?;
        let kind = |column: &String| there.get(column).map(|known| (column.clone(), known.kind));
        let columns: Option<Vec<(String, Kind)>> = own.iter().map(kind).collect();
        let columns = columns.filter(|columns| columns.len() == there.len()).ok_or_else(|| unlike(&name))?;
        let only = if name == NOTES { KEPT_NOTES } else { "" };
        let filter = if only.is_empty() { String::new() } else { format!(" WHERE {only}") };
        let rows = self.says::<i64>(&format!("SELECT count(*) FROM \"{name}\"{filter}"))?;
        Ok(Table { name, columns, only, rows: rows.unsigned_abs() })
    }

    /// What every table holds.
    pub(super) fn counts(&self) -> Result<Vec<(String, u64)>> {
        let names: Vec<String> = self.list(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
        )?;
        let count = |name: String| {
            let rows = self.says::<i64>(&format!("SELECT count(*) FROM \"{name}\""))?;
            Ok((name, rows.unsigned_abs()))
        };
        names.into_iter().map(count).collect()
    }

    /// The highest number that each table ever gave, deleted rows included.
    pub(super) fn sequences(&self) -> Result<BTreeMap<String, i64>> {
        self.pairs("SELECT name, seq FROM sqlite_sequence")
    }

    /// What is counted beside the tables.
    pub(super) fn counters(&self) -> Result<BTreeMap<String, i64>> {
        self.pairs("SELECT name, value FROM notes WHERE typeof(value) = 'integer'")
    }

    /// By what it is recognised that nothing has changed since it was moved: its names, and
    /// every number it counts. `None` for one that nothing was ever sealed in.
    pub(super) fn state(&self) -> Result<Option<String>> {
        let note = |name: &str| {
            let found = self
                .db
                .query_row("SELECT value FROM notes WHERE name = ?", [name], |row| row.get::<_, Vec<u8>>(0));
            found.optional().map_err(|error| self.failed(error))
        };
        let Some(key) = note(KEY_CHECK)? else { return Ok(None) };
        let id = note(DATABASE_ID)?.map(|id| String::from_utf8_lossy(&id).into_owned()).unwrap_or_default();
        let (numbers, counters) = (self.sequences()?, self.counters()?);
        let rows: Vec<u64> = self.counts()?.into_iter().map(|(_, rows)| rows).collect();
        Ok(Some(format!("{id} {} {numbers:?} {counters:?} {rows:?}", hex(&key))))
    }

    /// Lets the file go.
    pub(super) fn close(self) -> Result<()> {
        let ended = self.db.execute_batch("COMMIT");
        ended.map_err(|error| self.failed(error))?;
        let Self { db, path } = self;
        db.close().map_err(|(_, error)| unreadable(&path, error))
    }

    pub(super) fn failed(&self, error: rusqlite::Error) -> Error {
        unreadable(&self.path, error)
    }

    fn says<T: rusqlite::types::FromSql>(&self, statement: &str) -> Result<T> {
        self.db.query_row(statement, [], |row| row.get(0)).map_err(|error| self.failed(error))
    }

    fn list(&self, statement: &str) -> Result<Vec<String>> {
        let read = || {
            let mut statement = self.db.prepare(statement)?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<_>>()
        };
        read().map_err(|error| self.failed(error))
    }

    fn pairs(&self, statement: &str) -> Result<BTreeMap<String, i64>> {
        let read = || {
            let mut statement = self.db.prepare(statement)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<rusqlite::Result<_>>()
        };
        read().map_err(|error| self.failed(error))
    }
}

/// Both schemas are ours and of one release: somebody changed one of them by hand.
fn unlike(table: &str) -> Error {
    Error::internal(format!("the table {table} is not the same in both databases; nothing was moved"))
}

fn unreadable(path: &Path, error: rusqlite::Error) -> Error {
    Error::internal(format!("{} could not be read: {error}; nothing was moved", path.display()))
        .caused_by(error)
}
