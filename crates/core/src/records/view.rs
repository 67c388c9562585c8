//! What a rule sees: the records as they are, with what it has written on top. It
//! reaches the store only when the rule agrees, all of it or nothing.

use super::erased::Erased;
use super::table::{Record, Row, Table, ToValue, Value, Walk};
use crate::audit::AuditEntry;
use crate::clock::{Old, UnixMillis};
use crate::error::{Error, Result};
use crate::inbox::InstanceId;
use std::collections::HashMap;
use std::time::Duration;

/// By what rows are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// The key: one row at most.
    Key,
    /// These columns; none for every row.
    Columns(&'static [&'static str]),
}

impl By {
    /// The names of the columns.
    pub fn names(self, table: &Table) -> Vec<&'static str> {
        match self {
            Self::Key => table.key_names(),
            Self::Columns(names) => names.to_vec(),
        }
    }
}

/// Rows that are looked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    /// By what.
    pub by: By,
    /// What that holds.
    pub values: Row,
    /// How many of them.
    pub part: RowRange,
}

impl Query {
    /// All rows that hold `values`.
    pub fn all(by: By, values: Row) -> Self {
        Self { by, values, part: RowRange::All }
    }

    /// What a statement is given. What is looked for because it holds nothing is not among
    /// it: the statement says that itself.
    pub fn given(&self) -> Vec<Value> {
        let values = self.values.iter().filter(|value| **value != Value::Null).cloned();
        values.chain(self.part.bounds()).collect()
    }
}

/// How many rows are wanted, and in which order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RowRange {
    /// All, in the order of their key.
    All,
    /// So many, the newest first.
    Newest(usize),
    /// So many of those whose column lies above a value, in its order.
    Along {
        /// The column.
        column: &'static str,
        /// Where it begins; this one is not among them.
        above: Value,
        /// From there up, or from the top down.
        direction: Direction,
        /// How many.
        limit: usize,
    },
    /// Those whose column lies above one value and not above another, in its order.
    Between {
        /// The column.
        column: &'static str,
        /// Where it begins; this one is not among them.
        above: Value,
        /// Where it ends; this one is.
        up_to: Value,
    },
}

impl RowRange {
    /// Where it begins, and how many.
    fn bounds(&self) -> Vec<Value> {
        let number = |limit: &usize| Value::Int(i64::try_from(*limit).unwrap_or(i64::MAX));
        match self {
            Self::All => Vec::new(),
            Self::Newest(limit) => vec![number(limit)],
            Self::Along { above, limit, .. } => vec![above.clone(), number(limit)],
            Self::Between { above, up_to, .. } => vec![above.clone(), up_to.clone()],
        }
    }
}

/// Which way a table is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The least first.
    Up,
    /// The greatest first.
    Down,
}

/// Where a view reads what was not written in it.
pub trait Source {
    /// The rows that a query finds.
    fn find(&mut self, table: &'static Table, query: &Query) -> Result<Vec<Row>>;

    /// How many rows that is.
    fn count(&mut self, table: &'static Table, query: &Query) -> Result<u64>;

    /// How the least and the greatest of a table's sealed values begin; nothing if there
    /// are none.
    fn heads(&mut self, table: &'static Table) -> Result<Vec<Vec<u8>>>;

    /// Which stamps are older than that; `None` while nobody knows, because the clock leapt.
    fn older_than(&mut self, span: Duration) -> Option<Old>;

    /// A number above every one that is, or is known to have been, a key of the table.
    fn next_number(&mut self, table: &'static Table, given: i64) -> Result<i64>;

    /// Whether this change may delete one more row, of so many bytes. See [`View::fits`].
    fn fits(&mut self, bytes: u64) -> bool;
}

/// One step of what a rule wants written.
#[derive(Clone, Debug)]
pub enum Write {
    /// A row, new or instead of the one with its key.
    Put(&'static Table, Row),
    /// The row with its key, if there is one, says this where it is not somebody else's.
    Replace(&'static Table, Row),
    /// This row goes, by its key.
    Delete(&'static Table, Row),
    /// A row is added; the engine numbers it.
    Append(&'static Table, Row),
    /// What this change replaces or deletes is to be gone from the disk as well.
    Erase(Erased),
    /// What belongs to an instance that is gone goes with it: what waits, and what is known of it.
    Forget(InstanceId),
    /// A tenant is gone. What waited for it and what was said in its rooms goes in steps.
    LeaveBehind {
        /// The tenant.
        tenant: String,
        /// Its instances.
        instances: Vec<InstanceId>,
        /// Its rooms of the web chat.
        rooms: Vec<String>,
    },
}

/// What was written in one table, by its key, and what the rows hold; `None` for what was deleted.
struct Over {
    columns: Vec<&'static str>,
    rows: HashMap<Row, Option<Row>>,
}

fn names(table: &Table) -> Vec<&'static str> {
    table.columns.iter().map(|column| column.name).collect()
}

/// The records, as one rule reads and changes them.
pub struct View<'a> {
    source: &'a mut dyn Source,
    now: UnixMillis,
    /// What was written, by table and key; `None` for what was deleted.
    over: HashMap<&'static str, Over>,
    writes: Vec<Write>,
    refusals: Vec<Write>,
    numbers: HashMap<&'static str, i64>,
}

impl<'a> View<'a> {
    /// A view on which nothing is written yet.
    pub fn new(source: &'a mut dyn Source, now: UnixMillis) -> Self {
        Self {
            source,
            now,
            over: HashMap::new(),
            writes: Vec::new(),
            refusals: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// The time of this change.
    pub fn now(&self) -> UnixMillis {
        self.now
    }

    /// Which stamps are older than that; `None` while nobody knows, because the clock leapt.
    pub fn older_than(&mut self, span: Duration) -> Option<Old> {
        self.source.older_than(span)
    }

    /// Whether this change may delete one more row, of so many bytes. Deleting takes space
    /// before it frees any, so what may be long is done by several changes, each as large as
    /// there is room for. The first row always fits: it has to go somehow.
    pub fn fits(&mut self, bytes: u64) -> bool {
        self.source.fits(bytes)
    }

    /// Runs a rule; answers what it says and what is to be written. A rule that
    /// refuses changes nothing: only the audit log may tell of it, and it may be counted.
    pub fn run(mut self, rule: &mut dyn FnMut(&mut View<'_>) -> Result<()>) -> (Result<()>, Vec<Write>) {
        let outcome = rule(&mut self);
        let writes = if outcome.is_ok() { self.writes } else { self.refusals };
        (outcome, writes)
    }

    /// The record with this key.
    pub fn get<R: Record>(&mut self, key: impl Key) -> Result<Option<R>> {
        self.row(R::TABLE, key.values())?.map(R::read).transpose()
    }

    fn row(&mut self, table: &'static Table, key: Row) -> Result<Option<Row>> {
        if let Some(written) = self.over(table)?.and_then(|over| over.get(&key)) {
            return Ok(written.clone());
        }
        let query = Query::all(By::Key, key);
        Ok(self.source.find(table, &query)?.pop())
    }

    /// The records whose columns `by` hold `values`, in the order of their keys.
    pub fn find<R: Record>(&mut self, by: &'static [&'static str], values: impl Key) -> Result<Vec<R>> {
        read(self.rows(R::TABLE, by, values.values())?)
    }

    /// All of them.
    pub fn all<R: Record>(&mut self) -> Result<Vec<R>> {
        self.find(&[], ())
    }

    /// Those whose first column holds a text that `is` says yes to. The others are not
    /// even read: what is wrong with them is no matter here.
    pub fn all_named<R: Record>(&mut self, is: impl Fn(&str) -> bool) -> Result<Vec<R>> {
        let rows = self.rows(R::TABLE, &[], Vec::new())?.into_iter();
        let named = rows.filter(|row| matches!(row.first(), Some(Value::Text(name)) if is(name)));
        named.map(R::read).collect()
    }

    /// How many records have `values` in their columns `by`.
    pub fn count<R: Record>(&mut self, by: &'static [&'static str], values: impl Key) -> Result<u64> {
        if self.over(R::TABLE)?.is_some() {
            return self.rows(R::TABLE, by, values.values()).map(|rows| rows.len() as u64);
        }
        is_declared(R::TABLE, by)?;
        self.source.count(R::TABLE, &Query::all(By::Columns(by), values.values()))
    }

    /// The newest of them, the newest first; those of which `by` holds `values`.
    /// What was appended in this view is not among them.
    pub fn newest<R: Record>(
        &mut self,
        by: &'static [&'static str],
        values: impl Key,
        limit: usize,
    ) -> Result<Vec<R>> {
        is_declared(R::TABLE, by)?;
        let query = Query { by: By::Columns(by), values: values.values(), part: RowRange::Newest(limit) };
        read(self.source.find(R::TABLE, &query)?)
    }

    /// Up to `limit` of the records whose columns `by` hold `values`, in the order of a
    /// column, from what lies above `above`. Where several rows may hold the same there, the
    /// end of a page can come between them. Not for a table that this view has written to.
    pub fn walk<R: Record>(
        &mut self,
        (by, values): (&'static [&'static str], impl Key),
        along: &'static str,
        (direction, above): (Direction, impl ToValue),
        limit: usize,
    ) -> Result<Vec<R>> {
        let part = RowRange::Along { column: along, above: above.to_value(), direction, limit };
        read(self.part::<R>(by, values.values(), along, part)?)
    }

    /// The records whose columns `by` hold `values`, and whose column `along` lies above one
    /// value and not above another, in its order. Not for a table that this view has written to.
    pub fn between<R: Record>(
        &mut self,
        (by, values): (&'static [&'static str], impl Key),
        along: &'static str,
        (above, up_to): (impl ToValue, impl ToValue),
    ) -> Result<Vec<R>> {
        let part = RowRange::Between { column: along, above: above.to_value(), up_to: up_to.to_value() };
        read(self.part::<R>(by, values.values(), along, part)?)
    }

    /// Deletes the first `limit` that a walk up from `above` comes to, whatever they say.
    pub fn delete_first<R: Record>(
        &mut self,
        (by, values): (&'static [&'static str], impl Key),
        along: &'static str,
        above: impl ToValue,
        limit: usize,
    ) -> Result<()> {
        let above = above.to_value();
        let part = RowRange::Along { column: along, above, direction: Direction::Up, limit };
        let found = self.part::<R>(by, values.values(), along, part)?;
        found.into_iter().for_each(|row| self.delete_row(R::TABLE, row));
        Ok(())
    }

    fn part<R: Record>(
        &mut self,
        by: &'static [&'static str],
        values: Row,
        along: &'static str,
        part: RowRange,
    ) -> Result<Vec<Row>> {
        let table = R::TABLE;
        if !table.walks.contains(&Walk { by, along }) {
            return Err(Error::internal(format!("{} is not read along {along} by {by:?}", table.name)));
        }
        self.is_unwritten(table)?;
        self.source.find(table, &Query { by: By::Columns(by), values, part })
    }

    /// How the least and the greatest of the sealed values begin: if they begin alike, so do
    /// all. Not for a table that this view has written to.
    pub fn heads<R: Record>(&mut self) -> Result<Vec<Vec<u8>>> {
        if R::TABLE.sealed.is_none() {
            return Err(Error::internal(format!("nothing is sealed in {}", R::TABLE.name)));
        }
        self.is_unwritten(R::TABLE)?;
        self.source.heads(R::TABLE)
    }

    /// What was written in a table. Several records may see one, each its own columns: of
    /// what one of them wrote another cannot tell what it holds.
    fn over(&self, table: &Table) -> Result<Option<&HashMap<Row, Option<Row>>>> {
        match self.over.get(table.name) {
            None => Ok(None),
            Some(over) if over.columns == names(table) => Ok(Some(&over.rows)),
            Some(_) => Err(Error::internal(format!("{} was written in another shape", table.name))),
        }
    }

    fn is_unwritten(&self, table: &Table) -> Result<()> {
        if self.over.contains_key(table.name) {
            return Err(Error::internal(format!(
                "{} is read a part at a time before it is written",
                table.name
            )));
        }
        Ok(())
    }

    fn rows(&mut self, table: &'static Table, by: &'static [&'static str], values: Row) -> Result<Vec<Row>> {
        is_declared(table, by)?;
        if table.long {
            return Err(Error::internal(format!("{} is too long to be read whole", table.name)));
        }
        let query = Query::all(By::Columns(by), values);
        let mut rows = self.source.find(table, &query)?;
        let Some(over) = self.over(table)? else { return Ok(rows) };
        rows.retain(|row| !over.contains_key(&row[..table.key]));
        let columns: Vec<usize> = by.iter().filter_map(|name| table.column(name)).collect();
        let matches = |row: &&Row| columns.iter().zip(&query.values).all(|(at, value)| row[*at] == *value);
        rows.extend(over.values().flatten().filter(matches).cloned());
        rows.sort_by(|one, other| order(&one[..table.key], &other[..table.key]));
        Ok(rows)
    }

    /// Writes a new record; a conflict if there is one with its key.
    pub fn add<R: Record>(&mut self, record: &R) -> Result<()> {
        let key = R::TABLE.key_of(&record.to_row());
        if self.row(R::TABLE, key)?.is_some() {
            return Err(Error::conflict("there is one of that name already; try again"));
        }
        self.put(record);
        Ok(())
    }

    /// Writes a record, new or instead of the one with its key.
    pub fn put<R: Record>(&mut self, record: &R) {
        let row = record.to_row();
        self.written(R::TABLE).insert(R::TABLE.key_of(&row), Some(row.clone()));
        self.writes.push(Write::Put(R::TABLE, row));
    }

    /// Writes over a record that was found, of which others write the rest.
    pub fn replace<R: Record>(&mut self, record: &R) {
        let row = record.to_row();
        self.written(R::TABLE).insert(R::TABLE.key_of(&row), Some(row.clone()));
        self.writes.push(Write::Replace(R::TABLE, row));
    }

    /// Deletes a record, if there is one.
    pub fn delete<R: Record>(&mut self, record: &R) {
        self.delete_row(R::TABLE, record.to_row());
    }

    /// Deletes all that `by` finds, whatever they say; answers how many.
    pub fn delete_all<R: Record>(&mut self, by: &'static [&'static str], values: impl Key) -> Result<u64> {
        let found = self.rows(R::TABLE, by, values.values())?;
        let count = found.len() as u64;
        found.into_iter().for_each(|row| self.delete_row(R::TABLE, row));
        Ok(count)
    }

    fn delete_row(&mut self, table: &'static Table, row: Row) {
        self.written(table).insert(table.key_of(&row), None);
        self.writes.push(Write::Delete(table, row));
    }

    fn written(&mut self, table: &'static Table) -> &mut HashMap<Row, Option<Row>> {
        let columns = names(table);
        let over = self.over.entry(table.name);
        let over = over.or_insert_with(|| Over { columns: columns.clone(), rows: HashMap::new() });
        if over.columns != columns {
            // Written in two shapes, it is read in none.
            over.columns.clear();
        }
        &mut over.rows
    }

    /// A number that no record of this kind has as its key, and that none had where the
    /// table remembers the last one it gave.
    pub fn number<R: Record>(&mut self) -> Result<i64> {
        let given = self.numbers.entry(R::TABLE.name).or_default();
        let next = self.source.next_number(R::TABLE, *given)?;
        *given += 1;
        Ok(next)
    }

    /// Writes a line of the audit log, with the change it tells of.
    pub fn audit(&mut self, entry: &AuditEntry) {
        let line = super::rows::AuditRow::of(entry, self.now);
        self.writes.push(Write::Append(super::rows::AuditRow::TABLE, line.to_row()));
    }

    /// Writes a line of the audit log that stays although the rule refuses.
    pub fn audit_refusal(&mut self, entry: &AuditEntry) {
        let line = super::rows::AuditRow::of(entry, self.now);
        self.refusals.push(Write::Append(super::rows::AuditRow::TABLE, line.to_row()));
    }

    /// Writes a record that stays although the rule refuses: what counts refusals.
    pub fn put_refusal<R: Record>(&mut self, record: &R) {
        self.refusals.push(Write::Put(R::TABLE, record.to_row()));
    }

    /// Has something done that is no record's, in the same commit.
    pub fn also(&mut self, write: Write) {
        self.writes.push(write);
    }
}

/// Values to search for: a tuple of what columns hold.
pub trait Key {
    /// In the order of the columns.
    fn values(self) -> Row;
}

impl Key for () {
    fn values(self) -> Row {
        Vec::new()
    }
}

impl<A: ToValue> Key for (A,) {
    fn values(self) -> Row {
        vec![self.0.to_value()]
    }
}

impl<A: ToValue, B: ToValue> Key for (A, B) {
    fn values(self) -> Row {
        vec![self.0.to_value(), self.1.to_value()]
    }
}

impl<A: ToValue, B: ToValue, C: ToValue> Key for (A, B, C) {
    fn values(self) -> Row {
        vec![self.0.to_value(), self.1.to_value(), self.2.to_value()]
    }
}

impl<A: ToValue, B: ToValue, C: ToValue, D: ToValue> Key for (A, B, C, D) {
    fn values(self) -> Row {
        vec![self.0.to_value(), self.1.to_value(), self.2.to_value(), self.3.to_value()]
    }
}

fn read<R: Record>(rows: Vec<Row>) -> Result<Vec<R>> {
    rows.into_iter().map(R::read).collect()
}

/// Refuses to search by what a table does not declare: engines would make a statement
/// that no other database has read.
fn is_declared(table: &Table, by: &'static [&'static str]) -> Result<()> {
    if by.is_empty() || table.finds.contains(&by) {
        return Ok(());
    }
    Err(Error::internal(format!("{} is not searched by {by:?}", table.name)))
}

/// The order of keys: as databases order bytes.
pub fn order(one: &[Value], other: &[Value]) -> std::cmp::Ordering {
    use std::cmp::Ordering;
    let pair = one.iter().zip(other).map(|pair| match pair {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        _ => Ordering::Equal,
    });
    pair.fold(Ordering::Equal, Ordering::then)
}
