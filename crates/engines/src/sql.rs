//! The SQL of records, made from what their tables say: once, for every database.
//!
//! Values are numbered `$1`, `$2` in the order they are given, which SQLite and
//! PostgreSQL both understand. Rules read and write by these statements alone, and
//! [`every_statement`] names them all, so that a test can have a real PostgreSQL
//! read each one.

use angelia_core::records::rows::TABLES;
use angelia_core::records::{By, Column, Direction, Kind, Part, Query, Table, Value, Walk};

/// Finds rows.
pub fn find(table: &Table, query: &Query) -> String {
    let columns = names(table.columns);
    let (name, by) = (table.name, conditions(table, query.by));
    let found = format!("SELECT {columns} FROM {name}{by}");
    let next = query.values.len() + 1;
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
pub fn count(table: &Table, by: By) -> String {
    format!("SELECT count(*) FROM {}{}", table.name, conditions(table, by))
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
    format!("DELETE FROM {}{}", table.name, conditions(table, By::Key))
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
            let values = vec![Value::Null; by.names(table).len()];
            let part = if table.long { Part::Newest(1) } else { Part::All };
            all.push(find(table, &Query { by, values, part }));
            all.push(count(table, by));
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
fn walks(table: &Table, walk: &Walk) -> [String; 2] {
    [Direction::Up, Direction::Down].map(|direction| {
        let part = Part::Along { column: walk.along, above: Value::Null, direction, limit: 1 };
        find(table, &Query { by: By::Columns(walk.by), values: vec![Value::Null; walk.by.len()], part })
    })
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
        Kind::Text => "TEXT",
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

fn conditions(table: &Table, by: By) -> String {
    let names = by.names(table);
    let nullable = |name: &str| table.columns.iter().any(|column| column.name == name && column.nullable);
    let each = names.iter().enumerate().map(|(at, name)| {
        let is = if nullable(name) { "IS NOT DISTINCT FROM" } else { "=" };
        format!("\"{name}\" {is} ${}", at + 1)
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
        let newest = Query { by: By::Columns(&[]), values: vec![], part: Part::Newest(3) };
        assert!(find(AuditLineRow::TABLE, &newest).ends_with(r#"FROM audit ORDER BY "id" DESC LIMIT $1"#));
    }
}
