//! The rows of one table, many in one statement.

use super::source::{Source, Table};
use super::target::{Kind, Target};
use angelia_core::error::{Error, Result};
use rusqlite::types::ValueRef;
use std::borrow::Cow;
use tokio_postgres::types::{ToSql, Type};

/// Rows, and bytes, of one statement: enough that a far server does not matter, few enough for
/// the memory of a small machine.
const ROWS: usize = 5_000;
const BYTES: usize = 4 * 1024 * 1024;
/// What PostgreSQL's text cannot hold, and what stands for it, as everywhere in the store.
const NOTHING: char = '\0';
const REPLACED: &str = "\u{fffd}";

/// Copies a table; answers in how many texts a character was replaced.
pub(super) async fn copy(
    source: &Source,
    target: &Target,
    table: &Table,
    tell: &mut dyn FnMut(u64),
) -> Result<u64> {
    let names: Vec<String> = table.columns.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let names = names.join(", ");
    let filter = if table.only.is_empty() { String::new() } else { format!(" WHERE {}", table.only) };
    let failed = |error| source.failed(error);
    let select = format!("SELECT {names} FROM \"{}\"{filter}", table.name);
    let mut select = source.db.prepare(&select).map_err(failed)?;
    let given: Vec<String> = (1..=table.columns.len()).map(|number| format!("${number}")).collect();
    let insert =
        format!("INSERT INTO \"{}\" ({names}) SELECT * FROM unnest({})", table.name, given.join(", "));
    let mut rows = select.query([]).map_err(failed)?;
    let (mut batch, mut done) = (Batch::new(table), 0);
    tell(done);
    while let Some(row) = rows.next().map_err(failed)? {
        for (at, (name, _)) in table.columns.iter().enumerate() {
            let value = row.get_ref(at).map_err(failed)?;
            if !batch.push(at, value) {
                return Err(Error::internal(format!(
                    "{}.{name} holds {} where it should not; nothing was moved",
                    table.name,
                    value.data_type()
                )));
            }
        }
        batch.rows += 1;
        if batch.rows >= ROWS || batch.bytes >= BYTES {
            done += batch.send(target, &insert).await?;
            tell(done);
        }
    }
    if batch.rows > 0 {
        done += batch.send(target, &insert).await?;
        tell(done);
    }
    Ok(batch.replaced)
}

/// Rows on their way, column by column.
struct Batch {
    columns: Vec<Values>,
    rows: usize,
    bytes: usize,
    replaced: u64,
}

enum Values {
    Ints(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Batch {
    fn new(table: &Table) -> Self {
        let column = |(_, kind): &(String, Kind)| match kind {
            Kind::Int => Values::Ints(Vec::new()),
            Kind::Text => Values::Texts(Vec::new()),
            Kind::Bytes => Values::Bytes(Vec::new()),
        };
        let columns = table.columns.iter().map(column).collect();
        Self { columns, rows: 0, bytes: 0, replaced: 0 }
    }

    /// Takes a value into a column; `false` if it is none that belongs there.
    fn push(&mut self, column: usize, value: ValueRef<'_>) -> bool {
        match (&mut self.columns[column], value) {
            (Values::Ints(all), ValueRef::Null) => all.push(None),
            (Values::Texts(all), ValueRef::Null) => all.push(None),
            (Values::Bytes(all), ValueRef::Null) => all.push(None),
            (Values::Ints(all), ValueRef::Integer(number)) => all.push(Some(number)),
            (Values::Texts(all), ValueRef::Text(text)) => {
                let (text, changed) = storable(text);
                self.bytes += text.len();
                self.replaced += u64::from(changed);
                all.push(Some(text));
            }
            (Values::Bytes(all), ValueRef::Blob(bytes) | ValueRef::Text(bytes)) => {
                self.bytes += bytes.len();
                all.push(Some(bytes.to_vec()));
            }
            _ => return false,
        }
        true
    }

    /// Writes what is in it, and is empty again.
    async fn send(&mut self, target: &Target, insert: &str) -> Result<u64> {
        let sent = {
            let given: Vec<(&(dyn ToSql + Sync), Type)> = self.columns.iter().map(Values::given).collect();
            target.execute(insert, &given).await?
        };
        self.columns.iter_mut().for_each(Values::clear);
        (self.rows, self.bytes) = (0, 0);
        Ok(sent)
    }
}

impl Values {
    fn given(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            Self::Ints(all) => (all, Type::INT8_ARRAY),
            Self::Texts(all) => (all, Type::TEXT_ARRAY),
            Self::Bytes(all) => (all, Type::BYTEA_ARRAY),
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Ints(all) => all.clear(),
            Self::Texts(all) => all.clear(),
            Self::Bytes(all) => all.clear(),
        }
    }
}

/// A text as PostgreSQL can keep it, and whether that is another one.
fn storable(bytes: &[u8]) -> (String, bool) {
    let text = String::from_utf8_lossy(bytes);
    let is_other = matches!(text, Cow::Owned(_));
    if text.contains(NOTHING) {
        return (text.replace(NOTHING, REPLACED), true);
    }
    (text.into_owned(), is_other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_postgresql_cannot_keep_is_replaced_and_counted() {
        assert_eq!(storable(b"plain"), ("plain".into(), false));
        assert_eq!(storable(b"a\0b\0"), ("a\u{fffd}b\u{fffd}".into(), true));
        assert_eq!(storable(b"a\xff"), ("a\u{fffd}".into(), true));
    }

    #[test]
    fn a_value_of_another_kind_is_noticed() {
        let columns = vec![("a".to_owned(), Kind::Int), ("b".into(), Kind::Text), ("c".into(), Kind::Bytes)];
        let mut batch = Batch::new(&Table { name: "t".into(), columns, only: "", rows: 0 });
        assert!((0..3).all(|column| batch.push(column, ValueRef::Null)));
        assert!(batch.push(0, ValueRef::Integer(1)) && !batch.push(0, ValueRef::Text(b"1")));
        assert!(batch.push(1, ValueRef::Text(b"\0")) && !batch.push(1, ValueRef::Integer(1)));
        assert!(batch.push(2, ValueRef::Blob(b"1")) && !batch.push(2, ValueRef::Real(1.0)));
        assert_eq!((batch.replaced, batch.bytes), (1, 4));
    }
}
