//! SQLite as the store sees it.

use crate::store::db::{Db, EachRow, Param, Row, Sql};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, ToSql, params_from_iter};

/// A value on its way into a statement.
pub(crate) struct Bound<'a>(pub(crate) Param<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self.0 {
            Param::Int(number) => number.map(ValueRef::Integer),
            Param::Text(text) => text.map(|text| ValueRef::Text(text.as_bytes())),
            Param::Bytes(bytes) => bytes.map(ValueRef::Blob),
        };
        Ok(ToSqlOutput::Borrowed(value.unwrap_or(ValueRef::Null)))
    }
}

/// A connection, in a transaction or not.
pub(crate) struct Plain<'a>(pub(crate) &'a Connection);

impl Db for Plain<'_> {
    fn execute(&mut self, statement: &str, given: &[Param<'_>]) -> Sql<usize> {
        let given = given.iter().map(|param| Bound(*param));
        Ok(self.0.prepare_cached(statement)?.execute(params_from_iter(given))?)
    }

    fn each(&mut self, statement: &str, given: &[Param<'_>], row: EachRow<'_>) -> Sql<()> {
        let mut statement = self.0.prepare_cached(statement)?;
        let mut rows = statement.query(params_from_iter(given.iter().map(|param| Bound(*param))))?;
        while let Some(found) = rows.next()? {
            if !row(Row::Sqlite(found))? {
                break;
            }
        }
        Ok(())
    }

    fn insert(&mut self, statement: &str, given: &[Param<'_>]) -> Sql<Option<i64>> {
        let inserted = self.execute(statement, given)?;
        Ok((inserted > 0).then(|| self.0.last_insert_rowid()))
    }

    /// Above every number that a row has, or that SQLite knows one had.
    fn next_number(&mut self, table: &str, key: &str, given: i64) -> Sql<i64> {
        let counted: Option<i64> = self
            .0
            .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = ?")?
            .query_row([table], |row| row.get(0))
            .optional()?;
        let last: i64 = self
            .0
            .prepare_cached(&format!("SELECT coalesce(max({key}), 0) FROM {table}"))?
            .query_row([], |row| row.get(0))?;
        Ok(counted.unwrap_or_default().max(last) + given + 1)
    }
}
