//! Records in SQLite: a rule runs inside the open transaction, so nobody comes first.

use super::Sqlite;
use super::clock::Clock;
use super::queue::Owner;
use super::removal;
use super::txn::{Txn, now};
use crate::sql;
use angelia_core::audit::Deed;
use angelia_core::clock::{Old, UnixMillis};
use angelia_core::error::{Error, Result};
use angelia_core::records::rows::AuditRow;
use angelia_core::records::{
    Change, Changed, Query, Record, Records, Row, Rule, Source, Table, Value, View, Write,
};
use angelia_core::space::Class;
use angelia_core::store::Later;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, ToSql, params};
use std::time::Duration;

impl Records for Sqlite {
    fn change(&self, change: Change, rule: Rule) -> Later<'_, ()> {
        let owner = match (change.class, change.instance) {
            (Class::Operator, _) => Owner::Operator,
            (_, Some(instance)) => self.owners.of_instance(instance),
            (_, None) => Owner::Server,
        };
        self.writer.submit(owner, 0, change.class, change.what, move |txn| run(txn, rule))
    }

    fn look(&self, what: &'static str, mut rule: Rule) -> Later<'_, ()> {
        let clock = self.clock.clone();
        let looked = self.readers.read(what, move |db| {
            // One moment, however many statements.
            let snapshot = db.unchecked_transaction()?;
            let mut source = Rows { db: &snapshot, clock: &clock, failed: None };
            let (outcome, _) = View::new(&mut source, UnixMillis(now())).run(&mut *rule);
            source.failed.map_or(Ok(outcome), Err)
        });
        Box::pin(async move { looked.await? })
    }

    fn changed(&self, after: i64, limit: usize) -> Later<'_, Vec<Changed>> {
        self.readers.read("read what changed", move |db| {
            db.prepare_cached(sql::FED)?
                .query_map(params![after, limit as i64], |row| {
                    Ok(Changed { id: row.get(0)?, records: row.get(1)?, key: row.get(2)? })
                })?
                .collect()
        })
    }
}

/// Runs a rule in the open transaction and writes what it wrote.
pub(super) fn run(txn: &mut Txn<'_>, mut rule: Rule) -> rusqlite::Result<Result<()>> {
    // What waits is counted beside the rows; rules read it from them.
    txn.write_counters()?;
    let mut source = Rows { db: txn.connection, clock: txn.clock, failed: None };
    let (outcome, writes) = View::new(&mut source, UnixMillis(now())).run(&mut *rule);
    if let Some(error) = source.failed {
        return Err(error);
    }
    for write in writes {
        apply(txn, write)?;
    }
    Ok(outcome)
}

fn apply(txn: &mut Txn<'_>, write: Write) -> rusqlite::Result<()> {
    match write {
        Write::Put(table, row) => {
            execute(txn, &sql::put(table), &row[..table.own().len()])?;
            feed(txn, table, &row)
        }
        Write::Delete(table, row) => {
            execute(txn, &sql::delete(table), &row[..table.key])?;
            feed(txn, table, &row)
        }
        Write::Append(table, row) => execute(txn, &sql::append(table), &row),
        Write::Forget(instance) => removal::forget_instance(txn, instance),
        Write::LeaveBehind { tenant, instances, rooms } => {
            removal::leave_behind(txn, &tenant, &instances, &rooms)
        }
    }
}

fn feed(txn: &Txn<'_>, table: &Table, row: &[Value]) -> rusqlite::Result<()> {
    match table.feed(row) {
        Some(key) => txn.prepare_cached(sql::FEED)?.execute(params![table.name, key, now()]).map(drop),
        None => Ok(()),
    }
}

/// Writes a line of the audit log in the open transaction, with the change it tells of.
pub(super) fn audit(txn: &Txn<'_>, deed: &Deed) -> rusqlite::Result<()> {
    let line = AuditRow::of(deed, UnixMillis(now()));
    execute(txn, &sql::append(AuditRow::TABLE), &line.to_row())
}

fn execute(db: &Connection, statement: &str, values: &[Value]) -> rusqlite::Result<()> {
    let values = values.iter().map(Bound);
    db.prepare_cached(statement)?.execute(rusqlite::params_from_iter(values)).map(drop)
}

/// What a rule reads. It is told of a failure as one that tries again later; the
/// failure itself ends the transaction.
struct Rows<'a> {
    db: &'a Connection,
    clock: &'a Clock,
    failed: Option<rusqlite::Error>,
}

impl Rows<'_> {
    fn tell<T>(&mut self, read: rusqlite::Result<T>) -> Result<T> {
        read.map_err(|error| {
            let told = Error::unavailable(format!("the store could not be read: {error}"));
            self.failed = Some(error);
            told
        })
    }
}

impl Source for Rows<'_> {
    fn find(&mut self, table: &'static Table, query: &Query) -> Result<Vec<Row>> {
        let found = find(self.db, table, query);
        self.tell(found)
    }

    fn count(&mut self, table: &'static Table, query: &Query) -> Result<u64> {
        let counted = self.db.prepare_cached(&sql::count(table, query.by)).and_then(|mut statement| {
            let values = query.values.iter().map(Bound);
            statement.query_row(rusqlite::params_from_iter(values), |row| row.get(0))
        });
        self.tell(counted)
    }

    fn older_than(&mut self, span: Duration) -> Option<Old> {
        (!self.clock.has_leapt()).then(|| self.clock.older_than(span))
    }

    fn next_number(&mut self, table: &'static Table) -> Result<i64> {
        let next = next_number(self.db, table);
        self.tell(next)
    }
}

fn find(db: &Connection, table: &Table, query: &Query) -> rusqlite::Result<Vec<Row>> {
    let mut statement = db.prepare_cached(&sql::find(table, query))?;
    let bounds = query.part.bounds();
    let values = query.values.iter().chain(&bounds).map(Bound);
    let mut rows = statement.query(rusqlite::params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((0..table.columns.len()).map(|at| row.get_ref(at).map(value)).collect::<Result<_, _>>()?);
    }
    Ok(found)
}

/// Above every number that a row has, or that SQLite knows one had.
fn next_number(db: &Connection, table: &Table) -> rusqlite::Result<i64> {
    let given = "SELECT seq FROM sqlite_sequence WHERE name = ?";
    let given: Option<i64> =
        db.prepare_cached(given)?.query_row([table.name], |row| row.get(0)).optional()?;
    let key = table.columns[0].name;
    let last: i64 = db
        .prepare_cached(&format!("SELECT coalesce(max({key}), 0) FROM {}", table.name))?
        .query_row([], |row| row.get(0))?;
    Ok(given.unwrap_or_default().max(last) + 1)
}

fn value(stored: ValueRef<'_>) -> Value {
    match stored {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        // No column of a record holds one.
        ValueRef::Real(_) => Value::Null,
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
    }
}

/// A value on its way into a statement.
struct Bound<'a>(&'a Value);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Int(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_has_what_records_are_kept_in() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("schema.sql")).unwrap();
        for statement in sql::every_statement() {
            db.prepare(&statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }
}
