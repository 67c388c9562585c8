//! The SQL of records, made from what their tables say: once, for every database.
//!
//! Values are numbered `$1`, `$2` in the order they are given, which SQLite and
//! PostgreSQL both understand. Rules read and write by these statements alone, and
//! [`every_statement`] names them all, so that a test can have a real PostgreSQL
//! read each one.

use angelia_core::records::rows::TABLES;
use angelia_core::records::{By, Column, Direction, Kind, Part, Query, Row, Table, Value, Walk};

/// Finds rows.
pub fn find(table: &Table, query: &Query) -> String {
    let columns = names(table.columns);
    let (name, by) = (table.name, searched(table, query));
    let found = format!("SELECT {columns} FROM {name}{by}");
    let next = query.values.iter().filter(|value| **value != Value::Null).count() + 1;
    match &query.part {
        Part::All if table.key == 0 => found,
        Part::All => format!("{found} ORDER BY {}", list(table.key_names())),
        Part::Newest(_) => {
            format!("{found} ORDER BY {} DESC LIMIT ${next}", list([table.columns[0].name]))
        }
        Part::Along { column, direction, .. } => {
            let and = if by.is_empty() { "WHERE" } else { "AND" };
            let order = along(table, column, *direction);
            format!("{found} {and} \"{column}\" > ${next} ORDER BY {order} LIMIT ${}", next + 1)
        }
    }
}

/// The order of a column; what is alike there is in the order of its key.
fn along(table: &Table, column: &str, direction: Direction) -> String {
    let key = table.key_names().into_iter().filter(|name| *name != column);
    let names = std::iter::once(column).chain(key);
    let way = match direction {
        Direction::Up => "",
        Direction::Down => " DESC",
    };
    names.map(|name| format!("\"{name}\"{way}")).collect::<Vec<_>>().join(", ")
}

/// Counts rows.
pub fn count(table: &Table, query: &Query) -> String {
    format!("SELECT count(*) FROM {}{}", table.name, searched(table, query))
}

/// Writes a row, new or instead of the one with its key. What others write in it stays.
pub fn put(table: &Table) -> String {
    let own = table.own();
    let set: Vec<String> = own[table.key..]
        .iter()
        .map(|column| format!("\"{name}\" = excluded.\"{name}\"", name = column.name))
        .collect();
    let then = if set.is_empty() { "NOTHING".to_owned() } else { format!("UPDATE SET {}", set.join(", ")) };
    format!("{} ON CONFLICT ({}) DO {then}", append(table), list(table.key_names()))
}

/// Adds a row.
pub fn append(table: &Table) -> String {
    let own = table.own();
    let values: Vec<String> = (1..=own.len()).map(|number| format!("${number}")).collect();
    format!("INSERT INTO {} ({}) VALUES ({})", table.name, names(own), values.join(", "))
}

/// Deletes the row with a key.
pub fn delete(table: &Table) -> String {
    format!("DELETE FROM {}{}", table.name, conditions(&table.key_names(), |_| false))
}

/// Writes a line of the change feed.
pub const FEED: &str = "INSERT INTO changes (records, key, at) VALUES ($1, $2, $3)";
/// Reads the change feed.
pub const FED: &str = "SELECT id, records, key FROM changes WHERE id > $1 ORDER BY id LIMIT $2";

/// Every statement that can be made for records.
pub fn every_statement() -> Vec<String> {
    let mut all = vec![FEED.to_owned(), FED.to_owned()];
    for table in TABLES {
        let finds = std::iter::once(By::Columns(&[])).chain(table.finds.iter().copied().map(By::Columns));
        let finds = finds.chain((table.key > 0).then_some(By::Key));
        for by in finds {
            for values in samples(table, by) {
                let part = if table.long { Part::Newest(1) } else { Part::All };
                let query = Query { by, values, part };
                all.extend([find(table, &query), count(table, &query)]);
            }
        }
        all.extend(table.walks.iter().flat_map(|walk| walks(table, walk)));
        if table.key > 0 {
            all.push(delete(table));
            all.push(put(table));
        } else {
            all.push(append(table));
        }
    }
    all
}

/// A way through a table, up and down.
fn walks(table: &Table, walk: &Walk) -> Vec<String> {
    let by = By::Columns(walk.by);
    let both = [Direction::Up, Direction::Down].into_iter().flat_map(|direction| {
        let part = Part::Along { column: walk.along, above: Value::Null, direction, limit: 1 };
        samples(table, by).into_iter().map(move |values| Query { by, values, part: part.clone() })
    });
    both.map(|query| find(table, &query)).collect()
}

/// What may be looked for by some columns: something in each, or nothing where that may be.
fn samples(table: &Table, by: By) -> Vec<Row> {
    let mut rows = vec![Row::new()];
    for name in by.names(table) {
        let nullable = table.columns.iter().any(|column| column.name == name && column.nullable);
        let holding = |value: Value| rows.iter().map(move |row| [row.clone(), vec![value.clone()]].concat());
        let nothing = nullable.then(|| holding(Value::Null)).into_iter().flatten();
        rows = holding(Value::Int(1)).chain(nothing).collect();
    }
    rows
}

/// How PostgreSQL would be told of the tables of records, for those who read statements there.
pub fn postgres_tables() -> Vec<String> {
    let mut tables = std::collections::BTreeMap::<&str, (Vec<Column>, Vec<&str>)>::new();
    for table in TABLES {
        let (columns, key) = tables.entry(table.name).or_default();
        for column in table.columns {
            if columns.iter().all(|known| known.name != column.name) {
                columns.push(*column);
            }
        }
        if table.key > 0 {
            *key = table.key_names();
        }
    }
    let made = tables.into_iter().map(|(name, (columns, key))| {
        let columns: Vec<String> = columns.iter().map(|column| definition(column, &key)).collect();
        format!("CREATE TABLE {name} ({}, PRIMARY KEY ({}))", columns.join(", "), list(key))
    });
    let feed = "CREATE TABLE changes (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, records TEXT NOT NULL, \
                key TEXT NOT NULL, at BIGINT NOT NULL)";
    made.chain([feed.to_owned()]).collect()
}

fn definition(column: &Column, key: &[&str]) -> String {
    let kind = match column.kind {
        Kind::Int if key == ["id"] && column.name == "id" => "BIGINT GENERATED BY DEFAULT AS IDENTITY",
        Kind::Int => "BIGINT",
        // Rules rely on the order of bytes, not on anybody's alphabet.
        Kind::Text => "TEXT COLLATE \"C\"",
        Kind::Bytes => "BYTEA",
    };
    let null = if column.nullable { "" } else { " NOT NULL" };
    format!("\"{}\" {kind}{null}", column.name)
}

fn names(columns: &[Column]) -> String {
    list(columns.iter().map(|column| column.name))
}

/// Names in quotes: `user` is a word of PostgreSQL's own.
fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// What the rows of a query hold.
fn searched(table: &Table, query: &Query) -> String {
    conditions(&query.by.names(table), |at| query.values.get(at) == Some(&Value::Null))
}

/// What columns hold: something that is given, or nothing. No index helps to find what is
/// `NOT DISTINCT` from either.
fn conditions(names: &[&str], is_nothing: impl Fn(usize) -> bool) -> String {
    let mut number = 0;
    let each = names.iter().enumerate().map(|(at, name)| {
        if is_nothing(at) {
            return format!("\"{name}\" IS NULL");
        }
        number += 1;
        format!("\"{name}\" = ${number}")
    });
    let all: Vec<String> = each.collect();
    if all.is_empty() { String::new() } else { format!(" WHERE {}", all.join(" AND ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::records::Record;
    use angelia_core::records::rows::{AuditLineRow, FrontRow, GatewayRow, InstanceRow};

    #[test]
    fn statements_say_what_tables_say() {
        let by = Query::all(By::Columns(&["instance"]), vec![]);
        let found = find(GatewayRow::TABLE, &by);
        assert!(
            found.ends_with(r#"FROM gateways WHERE "instance" = $1 ORDER BY "tenant", "gateway_id""#),
            "{found}"
        );
        assert_eq!(
            put(FrontRow::TABLE),
            concat!(
                r#"INSERT INTO fronts ("instance", "platform", "bot") VALUES ($1, $2, $3)"#,
                r#" ON CONFLICT ("instance", "platform", "bot") DO NOTHING"#
            )
        );
        let kept = put(InstanceRow::TABLE);
        assert!(!kept.contains("waiting"), "the log writes that: {kept}");
        let living = |at| Query::all(By::Columns(&["tenant", "revoked_at"]), vec![Value::Int(1), at]);
        let all = "SELECT count(*) FROM gateways";
        let nothing = format!(r#"{all} WHERE "tenant" = $1 AND "revoked_at" IS NULL"#);
        assert_eq!(count(GatewayRow::TABLE, &living(Value::Null)), nothing);
        let something = format!(r#"{all} WHERE "tenant" = $1 AND "revoked_at" = $2"#);
        assert_eq!(count(GatewayRow::TABLE, &living(Value::Int(1))), something);
        assert!(every_statement().contains(&nothing) && every_statement().contains(&something));
        let newest = Query { by: By::Columns(&[]), values: vec![], part: Part::Newest(3) };
        assert!(find(AuditLineRow::TABLE, &newest).ends_with(r#"FROM audit ORDER BY "id" DESC LIMIT $1"#));
    }
}
