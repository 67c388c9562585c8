//! Records: a rule runs inside a transaction, and what it wrote is written with it.

use super::budget::Budget;
use super::clock::Clock;
use super::db::{Ask, Db, Failure, Param, Row as Found, Sql, ToParam, values};
use super::engine::{Engine, Owner, Store};
use super::removal;
use super::txn::Txn;
use crate::sql;
use angelia_core::audit::AuditEntry;
use angelia_core::clock::{Old, UnixMillis};
use angelia_core::error::{Error, Result};
use angelia_core::records::rows::{AuditRow, GatewayRow};
use angelia_core::records::{
    Change, Changed, Direction, Kind, Query, Record, Records, Row, Rule, Source, Table, Value, View, Write,
};
use angelia_core::space::Class;
use angelia_core::store::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

impl<E: Engine> Records for Store<E> {
    fn change(&self, change: Change, mut rule: Rule) -> BoxFuture<'_, Result<()>> {
        let owner = match (change.class, change.instance) {
            (Class::Operator, _) => Owner::Operator,
            (Class::Upkeep, _) => Owner::Upkeep,
            (Class::Ordinary, Some(instance)) => self.0.line_of(instance),
            (Class::Ordinary, None) => Owner::Server,
        };
        self.0.change(owner, change.what, move |txn| run(txn, &mut *rule))
    }

    fn look(&self, what: &'static str, mut rule: Rule) -> BoxFuture<'_, Result<()>> {
        let clock = self.0.clock().clone();
        let looked = self.0.read(what, move |db| {
            let now = clock.now();
            let mut source = Rows::of(On::Db(db, clock.clone()));
            let (outcome, _) = View::new(&mut source, now).run(&mut *rule);
            source.failed.map_or(Ok(outcome), Err)
        });
        Box::pin(async move { looked.await? })
    }

    fn changed(&self, after: i64, limit: usize) -> BoxFuture<'_, Result<Vec<Changed>>> {
        self.0.read("read what changed", move |db| {
            db.all(sql::FED, values![after, limit], |row| {
                Ok(Changed { id: row.get(0)?, records: row.get(1)?, key: row.get(2)? })
            })
        })
    }
}

/// A rule, wherever it is kept.
pub(super) type AnyRule<'a> = &'a mut dyn FnMut(&mut View<'_>) -> Result<()>;

/// Runs a rule in the open transaction and writes what it wrote.
pub(super) fn run(txn: &mut dyn Txn, rule: AnyRule<'_>) -> Sql<Result<()>> {
    // What waits is counted beside the rows; rules read it from them.
    txn.write_counters()?;
    let now = UnixMillis(txn.now());
    let mut source = Rows::of(On::Txn(txn));
    let (outcome, writes) = View::new(&mut source, now).run(rule);
    let Rows { step, failed, .. } = source;
    if let Some(failure) = failed {
        return Err(failure);
    }
    if step.is_some() {
        txn.then_make_room();
    }
    for write in writes {
        apply(txn, write)?;
    }
    Ok(outcome)
}

fn apply(txn: &mut dyn Txn, write: Write) -> Sql<()> {
    if let Write::Put(table, row) | Write::Delete(table, row) = &write {
        lock_gateway(txn, table, row)?;
    }
    match write {
        Write::Put(table, row) => {
            txn.execute(&sql::put(table), &bound(table, &row))?;
            feed(txn, table, &row)
        }
        Write::Replace(table, row) => {
            let mut given = bound(table, &row);
            // The key is given last.
            given.rotate_left(table.key);
            txn.execute(&sql::replace(table), &given)?;
            feed(txn, table, &row)
        }
        Write::Delete(table, row) => {
            txn.execute(&sql::delete(table), &bound(table, &row)[..table.key])?;
            feed(txn, table, &row)
        }
        Write::Append(table, row) => txn.execute(&sql::append(table), &bound(table, &row)).map(drop),
        Write::Erase(erased) => {
            txn.then_erase(erased);
            Ok(())
        }
        Write::Forget(instance) => removal::forget_instance(txn, instance),
        Write::LeaveBehind { tenant, instances, rooms } => {
            removal::leave_behind(txn, &tenant, &instances, &rooms)
        }
    }
}

/// What may wait for an instance depends on whether a gateway serves it.
fn lock_gateway(txn: &mut dyn Txn, table: &Table, row: &[Value]) -> Sql<()> {
    if table.name != GatewayRow::TABLE.name {
        return Ok(());
    }
    match GatewayRow::from_row(row.to_vec()) {
        Some(gateway) => txn.lock_gateway(&gateway.tenant, &gateway.gateway_id, gateway.instance),
        None => Ok(()),
    }
}

/// What a statement is given of a row, which may be longer than what records write of it.
fn bound<'a>(table: &Table, row: &'a [Value]) -> Vec<Param<'a>> {
    let nothing = |kind| match kind {
        Kind::Int => Param::Int(None),
        Kind::Text => Param::Text(None),
        Kind::Bytes => Param::Bytes(None),
    };
    let own = table.own().iter().zip(row);
    own.map(|(column, value)| if *value == Value::Null { nothing(column.kind) } else { value.param() })
        .collect()
}

fn feed(txn: &mut dyn Txn, table: &Table, row: &[Value]) -> Sql<()> {
    match table.feed(row) {
        Some(key) => txn.feed(table.name, &key),
        None => Ok(()),
    }
}

/// Writes a line of the audit log in the open transaction, with the change it tells of.
pub(super) fn audit(txn: &mut dyn Txn, entry: &AuditEntry) -> Sql<()> {
    let line = AuditRow::of(entry, UnixMillis(txn.now())).to_row();
    txn.execute(&sql::append(AuditRow::TABLE), &bound(AuditRow::TABLE, &line)).map(drop)
}

/// Where rows are read.
enum On<'a> {
    /// In a transaction that writes.
    Txn(&'a mut dyn Txn),
    /// In one that only reads.
    Db(&'a mut dyn Db, Arc<Clock>),
}

/// What a rule reads. It is told of a failure as one that tries again later; the
/// failure itself ends the transaction.
struct Rows<'a> {
    on: On<'a>,
    /// What the rule may still delete, once it asked.
    step: Option<Budget>,
    failed: Option<Failure>,
}

impl<'a> Rows<'a> {
    fn of(on: On<'a>) -> Self {
        Self { on, step: None, failed: None }
    }

    fn ask<T>(&mut self, ask: impl FnOnce(&mut dyn Db) -> Sql<T>) -> Result<T> {
        let asked = match &mut self.on {
            On::Txn(txn) => ask(&mut **txn),
            On::Db(db, _) => ask(&mut **db),
        };
        asked.map_err(|failure| {
            let told = Error::unavailable(format!("the store could not be read: {failure}"));
            self.failed = Some(failure);
            told
        })
    }
}

impl Source for Rows<'_> {
    fn find(&mut self, table: &'static Table, query: &Query) -> Result<Vec<Row>> {
        self.ask(|db| find(db, table, query))
    }

    fn count(&mut self, table: &'static Table, query: &Query) -> Result<u64> {
        let given = query.given();
        self.ask(|db| db.says(&sql::count(table, query), &params(&given)))
    }

    fn heads(&mut self, table: &'static Table) -> Result<Vec<Vec<u8>>> {
        self.ask(|db| heads(db, table))
    }

    fn older_than(&mut self, span: Duration) -> Option<Old> {
        let clock = match &self.on {
            On::Txn(txn) => txn.clock().clone(),
            On::Db(_, clock) => clock.clone(),
        };
        (!clock.has_leapt()).then(|| clock.older_than(span))
    }

    fn next_number(&mut self, table: &'static Table, given: i64) -> Result<i64> {
        self.ask(|db| db.next_number(table.name, table.columns[0].name, given))
    }

    fn fits(&mut self, bytes: u64) -> bool {
        let On::Txn(txn) = &self.on else { return true };
        self.step.get_or_insert_with(|| txn.budget()).allows(bytes)
    }
}

fn params(values: &[Value]) -> Vec<Param<'_>> {
    values.iter().map(ToParam::param).collect()
}

pub(super) fn find(db: &mut dyn Db, table: &Table, query: &Query) -> Sql<Vec<Row>> {
    let given = query.given();
    db.all(&sql::find(table, query), &params(&given), |row| {
        (0..table.columns.len()).map(|at| value(&row, at)).collect()
    })
}

fn heads(db: &mut dyn Db, table: &Table) -> Sql<Vec<Vec<u8>>> {
    let Some(column) = table.sealed else { return Ok(Vec::new()) };
    let nothing: &[u8] = &[];
    let ends = [Direction::Up, Direction::Down]
        .map(|way| db.first(&sql::head(table, column, way), values![nothing], |row| row.get(0)));
    ends.into_iter().filter_map(Sql::transpose).collect()
}

fn value(row: &Found<'_>, column: usize) -> Sql<Value> {
    row.value(column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::records::rows::{NoticeRow, TABLES};
    use angelia_core::records::{By, Direction, RowRange};
    use rusqlite::Connection;

    /// How SQLite would find the rows of a query.
    fn plan(db: &Connection, table: &Table, query: &Query) -> String {
        let given = query.given();
        let mut explained = db.prepare(&format!("EXPLAIN QUERY PLAN {}", sql::find(table, query))).unwrap();
        let steps = explained.query_map(
            rusqlite::params_from_iter(params(&given).into_iter().map(crate::store::sqlite::Bound)),
            |row| row.get::<_, String>(3),
        );
        steps.unwrap().collect::<rusqlite::Result<Vec<_>>>().unwrap().join("; ")
    }

    fn with_schema() -> Connection {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("sqlite/schema.sql")).unwrap();
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
