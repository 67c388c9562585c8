//! Records in memory, as a database with many writers keeps them: a rule runs beside
//! the others on what it read, and runs again if somebody was faster.

use angelia_core::clock::{Old, UnixMillis};
use angelia_core::error::Result;
use angelia_core::ports::BoxFuture;
use angelia_core::records::rows::Names;
use angelia_core::records::{
    By, Change, Changed, Direction, Kind, Query, Records, Row, RowRange, Rule, Source, Table, ToValue, Value,
    View, Write, order,
};
use angelia_core::seal::HEAD_BYTES;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// What one change may delete where a rule asks: little, so that what goes on in further
/// changes is seen to.
const STEP: u64 = 1 << 20;

/// Records in memory.
pub struct MemoryRecords {
    state: Mutex<State>,
    now: fn() -> UnixMillis,
}

/// A row as its table has it, whatever part of it a record sees.
type Columns = HashMap<&'static str, Value>;

#[derive(Clone)]
struct State {
    /// When it was read.
    now: UnixMillis,
    /// How many changes were made.
    version: u64,
    tables: BTreeMap<&'static str, Vec<Columns>>,
    /// The last number given in each table.
    numbers: HashMap<&'static str, i64>,
    feed: Vec<Changed>,
    /// What the one change that sees this asked to delete.
    deleted: u64,
}

impl MemoryRecords {
    /// Without any records; `now` is the time of changes.
    pub fn new(now: fn() -> UnixMillis) -> Self {
        let state = State {
            now: now(),
            version: 0,
            tables: BTreeMap::new(),
            numbers: HashMap::new(),
            feed: Vec::new(),
            deleted: 0,
        };
        Self { state: Mutex::new(state), now }
    }

    /// What there is now.
    fn seen(&self) -> State {
        State { now: (self.now)(), ..self.state().clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Runs a rule once; `None` if what it read is not so any more.
    fn attempt(&self, seen: &mut State, rule: &mut Rule) -> Option<Result<()>> {
        let now = seen.now;
        let (outcome, writes) = View::new(seen, now).run(&mut **rule);
        let mut state = self.state();
        if state.version != seen.version {
            return None;
        }
        writes.into_iter().for_each(|write| state.apply(write));
        state.version += 1;
        Some(outcome)
    }
}

impl Records for MemoryRecords {
    fn change(&self, _: Change, mut rule: Rule) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            loop {
                let mut seen = self.seen();
                // Here others may come first.
                tokio::task::yield_now().await;
                if let Some(outcome) = self.attempt(&mut seen, &mut rule) {
                    return outcome;
                }
            }
        })
    }

    fn look(&self, _: &'static str, mut rule: Rule) -> BoxFuture<'_, Result<()>> {
        let mut seen = self.seen();
        let now = seen.now;
        let (outcome, _) = View::new(&mut seen, now).run(&mut *rule);
        Box::pin(async move { outcome })
    }

    fn changed(&self, after: i64, limit: usize) -> BoxFuture<'_, Result<Vec<Changed>>> {
        let found = self.state().feed.iter().filter(|line| line.id > after).take(limit).cloned().collect();
        Box::pin(async move { Ok(found) })
    }
}

impl State {
    fn matching(&self, table: &Table, query: &Query) -> Vec<Row> {
        let names = query.by.names(table);
        let rows = self.tables.get(table.name).map(Vec::as_slice).unwrap_or_default();
        let matching = rows.iter().filter(|row| {
            let mut pairs = names.iter().zip(&query.values);
            pairs.all(|(name, value)| row.get(name).unwrap_or(&Value::Null) == value)
        });
        matching.map(|row| seen(table, row)).collect()
    }

    fn apply(&mut self, write: Write) {
        match write {
            Write::Put(table, row) => {
                self.feed(table, &row);
                let rows = self.tables.entry(table.name).or_default();
                let own = table.own().iter().map(|column| column.name).zip(row.iter().cloned());
                let at = rows.iter().position(|known| has_key(table, known, &row));
                match at {
                    Some(at) => rows[at].extend(own),
                    None => rows.push(own.collect()),
                }
                if let Some(Value::Int(number)) = row.first() {
                    let last = self.numbers.entry(table.name).or_default();
                    *last = (*last).max(*number);
                }
            }
            Write::Replace(table, row) => {
                self.feed(table, &row);
                let rows = self.tables.entry(table.name).or_default();
                let own = table.own().iter().map(|column| column.name).zip(row.iter().cloned());
                if let Some(known) = rows.iter_mut().find(|known| has_key(table, known, &row)) {
                    known.extend(own);
                }
            }
            Write::Delete(table, row) => {
                self.feed(table, &row);
                let rows = self.tables.entry(table.name).or_default();
                rows.retain(|known| !has_key(table, known, &row));
            }
            Write::Append(table, row) => {
                let last = self.numbers.entry(table.name).or_default();
                *last += 1;
                let own = table.own().iter().map(|column| column.name).zip(row);
                let numbered = own.chain([("id", Value::Int(*last))]).collect();
                self.tables.entry(table.name).or_default().push(numbered);
            }
            // There is no disk.
            Write::Erase(erased) => erased.tell(true),
            // There are no logs here.
            Write::Forget(_) => {}
            Write::LeaveBehind { tenant, rooms, .. } => {
                let left =
                    Columns::from([("tenant", Value::Text(tenant)), ("rooms", Names(rooms).to_value())]);
                self.tables.entry("removals").or_default().push(left);
            }
        }
    }

    fn feed(&mut self, table: &Table, row: &[Value]) {
        if let Some(key) = table.feed(row) {
            let id = self.feed.last().map_or(0, |line| line.id) + 1;
            self.feed.push(Changed { id, records: table.name.to_owned(), key });
        }
    }
}

impl Source for State {
    fn find(&mut self, table: &'static Table, query: &Query) -> Result<Vec<Row>> {
        let mut found = self.matching(table, query);
        found.sort_by(|one, other| order(&table.key_of(one), &table.key_of(other)));
        let column = |row: &Row, name| row[table.column(name).unwrap_or_default()].clone();
        match &query.part {
            RowRange::All => {}
            RowRange::Newest(limit) => {
                found.reverse();
                found.truncate(*limit);
            }
            RowRange::Along { column: along, above, direction, limit } => {
                found.retain(|row| lies_above(&column(row, along), above));
                found.sort_by(|one, other| order(&[column(one, along)], &[column(other, along)]));
                if *direction == Direction::Down {
                    found.reverse();
                }
                found.truncate(*limit);
            }
            RowRange::Between { column: along, above, up_to } => {
                found.retain(|row| {
                    let value = column(row, along);
                    lies_above(&value, above) && !lies_above(&value, up_to)
                });
                found.sort_by(|one, other| order(&[column(one, along)], &[column(other, along)]));
            }
        }
        Ok(found)
    }

    fn heads(&mut self, table: &'static Table) -> Result<Vec<Vec<u8>>> {
        let Some(at) = table.sealed.and_then(|column| table.column(column)) else { return Ok(Vec::new()) };
        let all = self.matching(table, &Query::all(By::Columns(&[]), Row::new()));
        let heads = all.iter().filter_map(|row| match &row[at] {
            Value::Bytes(sealed) => Some(sealed[..sealed.len().min(HEAD_BYTES)].to_vec()),
            _ => None,
        });
        let heads: BTreeSet<Vec<u8>> = heads.collect();
        Ok([heads.first(), heads.last()].into_iter().flatten().cloned().collect())
    }

    fn count(&mut self, table: &'static Table, query: &Query) -> Result<u64> {
        Ok(self.matching(table, query).len() as u64)
    }

    fn older_than(&mut self, span: Duration) -> Option<Old> {
        let span = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Some(Old { before: self.now.0.saturating_sub(span), except: Vec::new() })
    }

    fn next_number(&mut self, table: &'static Table, given: i64) -> Result<i64> {
        Ok(self.numbers.get(table.name).copied().unwrap_or_default() + given + 1)
    }

    fn fits(&mut self, bytes: u64) -> bool {
        let fits = self.deleted == 0 || self.deleted + bytes <= STEP;
        self.deleted += if fits { bytes.max(1) } else { 0 };
        fits
    }
}

/// Whether a column holds more than that; what holds nothing does not.
fn lies_above(value: &Value, above: &Value) -> bool {
    *value != Value::Null && order(std::slice::from_ref(value), std::slice::from_ref(above)).is_gt()
}

fn has_key(table: &Table, known: &Columns, row: &[Value]) -> bool {
    table.key_names().iter().zip(row).all(|(name, value)| known.get(name) == Some(value))
}

/// What a record sees of a row. What others would have written is as it begins.
fn seen(table: &Table, row: &Columns) -> Row {
    let value = |name, nullable, kind| match (row.get(name), nullable, kind) {
        (Some(value), ..) => value.clone(),
        (None, true, _) => Value::Null,
        (None, false, Kind::Int) => Value::Int(0),
        (None, false, Kind::Text) => Value::Text(String::new()),
        (None, false, Kind::Bytes) => Value::Bytes(Vec::new()),
    };
    table.columns.iter().map(|column| value(column.name, column.nullable, column.kind)).collect()
}
