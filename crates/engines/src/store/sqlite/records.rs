//! Records in SQLite: a rule runs inside the open transaction, so nobody comes first.

use super::Sqlite;
use super::clock::Clock;
use super::queue::Owner;
use super::removal;
use super::space::{Budget, Space};
use super::writer::{Txn, now};
use crate::sql;
use angelia_core::audit::AuditEntry;
use angelia_core::clock::{Old, UnixMillis};
use angelia_core::error::{Error, Result};
use angelia_core::records::rows::AuditRow;
use angelia_core::records::{
    Change, Changed, Direction, Query, Record, Records, Row, Rule, Source, Table, Value, View, Write,
};
use angelia_core::space::Class;
use angelia_core::store::BoxFuture;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, ToSql, params};
use std::time::Duration;

impl Records for Sqlite {
    fn change(&self, change: Change, rule: Rule) -> BoxFuture<'_, Result<()>> {
        let owner = match (change.class, change.instance) {
            (Class::Operator, _) => Owner::Operator,
            (Class::Upkeep, _) => Owner::Upkeep,
            (Class::Ordinary, Some(instance)) => self.owners.of_instance(instance),
            (Class::Ordinary, None) => Owner::Server,
        };
        self.writer.try_write_for(owner, 0, change.what, move |txn| run(txn, rule))
    }

    fn look(&self, what: &'static str, mut rule: Rule) -> BoxFuture<'_, Result<()>> {
        let (clock, space) = (self.clock.clone(), self.space.clone());
        let looked = self.readers.read(what, move |db| {
            // One moment, however many statements.
            let snapshot = db.unchecked_transaction()?;
            let mut source = Rows::of(&snapshot, &clock, &space);
            let (outcome, _) = View::new(&mut source, UnixMillis(now())).run(&mut *rule);
            source.failed.map_or(Ok(outcome), Err)
        });
        Box::pin(async move { looked.await? })
    }

    fn changed(&self, after: i64, limit: usize) -> BoxFuture<'_, Result<Vec<Changed>>> {
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
    let mut source = Rows::of(txn.connection, txn.clock, txn.space);
    let (outcome, writes) = View::new(&mut source, UnixMillis(now())).run(&mut *rule);
    if let Some(error) = source.failed {
        return Err(error);
    }
    if source.step.is_some() {
        txn.then_make_room();
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
        Write::Replace(table, row) => {
            let (key, rest) = row[..table.own().len()].split_at(table.key);
            execute(txn, &sql::replace(table), &[rest, key].concat())?;
            feed(txn, table, &row)
        }
        Write::Delete(table, row) => {
            execute(txn, &sql::delete(table), &row[..table.key])?;
            feed(txn, table, &row)
        }
        Write::Append(table, row) => execute(txn, &sql::append(table), &row),
        Write::Erase(erased) => {
            txn.then_empty_log(erased);
            Ok(())
        }
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
pub(super) fn audit(txn: &Txn<'_>, entry: &AuditEntry) -> rusqlite::Result<()> {
    let line = AuditRow::of(entry, UnixMillis(now()));
    execute(txn, &sql::append(AuditRow::TABLE), &line.to_row())
}

pub(super) fn execute(db: &Connection, statement: &str, values: &[Value]) -> rusqlite::Result<()> {
    let values = values.iter().map(Bound);
    db.prepare_cached(statement)?.execute(rusqlite::params_from_iter(values)).map(drop)
}

/// What a rule reads. It is told of a failure as one that tries again later; the
/// failure itself ends the transaction.
struct Rows<'a> {
    db: &'a Connection,
    clock: &'a Clock,
    space: &'a Space,
    /// What the rule may still delete, once it asked.
    step: Option<Budget>,
    failed: Option<rusqlite::Error>,
}

impl<'a> Rows<'a> {
    fn of(db: &'a Connection, clock: &'a Clock, space: &'a Space) -> Self {
        Self { db, clock, space, step: None, failed: None }
    }

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
        self.tell(find(self.db, table, query))
    }

    fn count(&mut self, table: &'static Table, query: &Query) -> Result<u64> {
        let counted = self.db.prepare_cached(&sql::count(table, query)).and_then(|mut statement| {
            let given = query.given();
            statement.query_row(rusqlite::params_from_iter(given.iter().map(Bound)), |row| row.get(0))
        });
        self.tell(counted)
    }

    fn heads(&mut self, table: &'static Table) -> Result<Vec<Vec<u8>>> {
        self.tell(heads(self.db, table))
    }

    fn older_than(&mut self, span: Duration) -> Option<Old> {
        (!self.clock.has_leapt()).then(|| self.clock.older_than(span))
    }

    fn next_number(&mut self, table: &'static Table) -> Result<i64> {
        self.tell(next_number(self.db, table))
    }

    fn fits(&mut self, bytes: u64) -> bool {
        self.step.get_or_insert_with(|| Budget::of(self.space)).allows(bytes)
    }
}

pub(super) fn find(db: &Connection, table: &Table, query: &Query) -> rusqlite::Result<Vec<Row>> {
    let mut statement = db.prepare_cached(&sql::find(table, query))?;
    let given = query.given();
    let mut rows = statement.query(rusqlite::params_from_iter(given.iter().map(Bound)))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((0..table.columns.len()).map(|at| row.get_ref(at).map(value)).collect::<Result<_, _>>()?);
    }
    Ok(found)
}

fn heads(db: &Connection, table: &Table) -> rusqlite::Result<Vec<Vec<u8>>> {
    let Some(column) = table.sealed else { return Ok(Vec::new()) };
    let ends = [Direction::Up, Direction::Down].map(|way| {
        let nothing: &[u8] = &[];
        let mut statement = db.prepare_cached(&sql::head(table, column, way))?;
        statement.query_row([nothing], |row| row.get(0)).optional()
    });
    ends.into_iter().filter_map(rusqlite::Result::transpose).collect()
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
    use angelia_core::records::rows::{NoticeRow, TABLES};
    use angelia_core::records::{By, Direction, RowRange};

    /// How SQLite would find the rows of a query.
    fn plan(db: &Connection, table: &Table, query: &Query) -> String {
        let given = query.given();
        let mut explained = db.prepare(&format!("EXPLAIN QUERY PLAN {}", sql::find(table, query))).unwrap();
        let steps = explained
            .query_map(rusqlite::params_from_iter(given.iter().map(Bound)), |row| row.get::<_, String>(3));
        steps.unwrap().collect::<rusqlite::Result<Vec<_>>>().unwrap().join("; ")
    }

    fn with_schema() -> Connection {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("schema.sql")).unwrap();
        db
    }

    #[test]
    fn a_walk_reads_no_more_than_it_comes_to() {
        let db = with_schema();
        for table in TABLES {
            let ways = table.walks.iter().flat_map(|walk| [(walk, Direction::Up), (walk, Direction::Down)]);
            for (walk, direction) in ways {
                let part = RowRange::Along { column: walk.along, above: Value::Int(1), direction, limit: 1 };
                let values = vec![Value::Int(1); walk.by.len()];
                let plan = plan(&db, table, &Query { by: By::Columns(walk.by), values, part });
                // `explain b17` reads the journal through: it is asked by hand, and seldom.
                if walk.by == ["seq"] {
                    continue;
                }
                let asked =
                    walk.by.iter().map(|name| format!("{name}=?")).chain([format!("{}>?", walk.along)]);
                let by = walk.by.is_empty() || asked.into_iter().any(|by| plan.contains(&by));
                // Those of one message are few, and may be sorted once an index found them.
                let few = walk.by.iter().any(|name| ["message_id", "reply_to"].contains(name));
                let found = plan.starts_with("SEARCH") && by && (few || !plan.contains("TEMP B-TREE"));
                assert!(found, "{} {walk:?}: {plan}", table.name);
            }
        }
    }

    #[test]
    fn notices_of_an_instance_are_found_by_their_index() {
        let by = Query::all(By::Columns(&["instance"]), vec![Value::Int(1)]);
        let plan = plan(&with_schema(), NoticeRow::TABLE, &by);
        assert!(plan.contains("notices_by_instance"), "{plan}");
    }
}
