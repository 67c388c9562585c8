//! The SQL of records, made from what their tables say: once, for every database.
//!
//! Values are numbered `$1`, `$2` in the order they are given, which SQLite and
//! PostgreSQL both understand. Rules read and write by these statements alone, and
//! [`every_statement`] names them all, so that a test can have a real PostgreSQL
//! read each one.

use angelia_core::records::rows::TABLES;
use angelia_core::records::{By, Column, Direction, Query, Row, RowRange, Table, Value, Walk};
use angelia_core::seal::HEAD_BYTES;

/// Finds rows.
pub fn find(table: &Table, query: &Query) -> String {
    let columns = names(table.columns);
    let (name, by) = (table.name, searched(table, query));
    let found = format!("SELECT {columns} FROM {name}{by}");
    let next = query.values.iter().filter(|value| **value != Value::Null).count() + 1;
    let and = if by.is_empty() { "WHERE" } else { "AND" };
    match &query.part {
        RowRange::All if table.key == 0 => found,
        RowRange::All => format!("{found} ORDER BY {}", list(table.key_names())),
        RowRange::Newest(_) => {
            format!("{found} ORDER BY {} DESC LIMIT ${next}", list([table.columns[0].name]))
        }
        RowRange::Between { column, .. } => {
            let order = along(table, column, Direction::Up);
            format!("{found} {and} \"{column}\" > ${next} AND \"{column}\" <= ${} ORDER BY {order}", next + 1)
        }
        RowRange::Along { column, direction, .. } => {
            let order = along(table, column, *direction);
            format!("{found} {and} \"{column}\" > ${next} ORDER BY {order} LIMIT ${}", next + 1)
        }
    }
}

/// Finds how the least or the greatest sealed value begins. Databases keep an index of
/// that: the statement and the index say it in the same words.
pub fn head(table: &Table, column: &str, direction: Direction) -> String {
    let head = format!("substr(\"{column}\", 1, {HEAD_BYTES})");
    let way = way(direction);
    format!("SELECT {head} FROM {} WHERE {head} >= $1 ORDER BY {head}{way} LIMIT 1", table.name)
}

/// The order of a column; what is alike there is in the order of its key.
fn along(table: &Table, column: &str, direction: Direction) -> String {
    let key = table.key_names().into_iter().filter(|name| *name != column);
    let names = std::iter::once(column).chain(key);
    let way = way(direction);
    names.map(|name| format!("\"{name}\"{way}")).collect::<Vec<_>>().join(", ")
}

fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "",
        Direction::Down => " DESC",
    }
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

/// Writes over the row with its key, if there is one. What others write in it stays. The
/// key is given last: SQLite numbers values in the order in which they are named.
pub fn replace(table: &Table) -> String {
    let (key, rest) = table.own().split_at(table.key);
    let are = |columns: &[Column], given: usize, between: &str| {
        let each = columns.iter().zip(given + 1..);
        each.map(|(column, at)| format!("\"{}\" = ${at}", column.name)).collect::<Vec<_>>().join(between)
    };
    let (set, by) = (are(rest, 0, ", "), are(key, rest.len(), " AND "));
    format!("UPDATE {} SET {set} WHERE {by}", table.name)
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
                let part = if table.long && by != By::Key { RowRange::Newest(1) } else { RowRange::All };
                let query = Query { by, values, part };
                all.extend([find(table, &query), count(table, &query)]);
            }
        }
        all.extend(table.walks.iter().flat_map(|walk| walks(table, walk)));
        let ways = [Direction::Up, Direction::Down];
        all.extend(table.sealed.iter().flat_map(|column| ways.map(|way| head(table, column, way))));
        if table.key > 0 {
            all.push(delete(table));
            all.push(put(table));
            if table.own().len() > table.key {
                all.push(replace(table));
            }
        } else {
            all.push(append(table));
        }
    }
    all
}

/// A way through a table: up, down, and between two values.
fn walks(table: &Table, walk: &Walk) -> Vec<String> {
    let (by, column, above) = (By::Columns(walk.by), walk.along, Value::Null);
    let along = |direction| RowRange::Along { column, above: above.clone(), direction, limit: 1 };
    let between = RowRange::Between { column, above: above.clone(), up_to: Value::Null };
    let parts = [along(Direction::Up), along(Direction::Down), between];
    let of = |values: Row| parts.clone().map(|part| find(table, &Query { by, values: values.clone(), part }));
    samples(table, by).into_iter().flat_map(of).collect()
}

/// What may be looked for by some columns: something in each, or nothing where that may be.
fn samples(table: &Table, by: By) -> Vec<Row> {
    let mut rows = vec![Row::new()];
    for name in by.names(table) {
        let holding = |value: Value| rows.iter().map(move |row| [row.clone(), vec![value.clone()]].concat());
        let nothing = is_nullable(table, name).then(|| holding(Value::Null)).into_iter().flatten();
        rows = holding(Value::Int(1)).chain(nothing).collect();
    }
    rows
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

fn is_nullable(table: &Table, name: &str) -> bool {
    table.columns.iter().any(|column| column.name == name && column.nullable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::audit::AuditLine;
    use angelia_core::records::Record;
    use angelia_core::records::rows::{FrontRow, GatewayRow, InstanceRow, SealedSecretRow};

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
        assert_eq!(
            replace(SealedSecretRow::TABLE),
            r#"UPDATE gateway_secrets SET "sealed" = $1 WHERE "id" = $2"#
        );
        let newest = Query { by: By::Columns(&[]), values: vec![], part: RowRange::Newest(3) };
        assert!(find(AuditLine::TABLE, &newest).ends_with(r#"FROM audit ORDER BY "id" DESC LIMIT $1"#));
    }
}
