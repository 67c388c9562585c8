//! A real PostgreSQL reads every statement that records are kept with, and has a column for
//! each of SQLite's.

use super::open::Opened;
use angelia_engines::sql::every_statement;
use std::collections::BTreeMap;

#[tokio::test]
async fn every_statement_of_records_can_be_read() {
    let opened = Opened::new();
    let all = every_statement();
    let prepare = all.iter().enumerate().map(|(n, statement)| format!("PREPARE s{n} AS {statement};"));
    let script = prepare.collect::<String>() + "SELECT count(*) FROM pg_prepared_statements";
    let prepared = opened.sql(&script).last().unwrap().parse::<usize>().unwrap();
    assert!(prepared == all.len() && prepared > 50, "{prepared} of {}", all.len());
}

/// The columns of each table.
type Schema = BTreeMap<String, Vec<String>>;

/// The names in what `table,column` lines say.
fn schema(lines: impl IntoIterator<Item = String>) -> Schema {
    let mut schema = Schema::new();
    for line in lines {
        let (table, column) = line.split_once(',').unwrap();
        schema.entry(table.to_owned()).or_default().push(column.to_owned());
    }
    schema.values_mut().for_each(|columns| columns.sort_unstable());
    schema
}

#[tokio::test]
async fn both_databases_have_the_same_columns() {
    let there = Opened::new().sql(
        "SELECT table_name || ',' || column_name FROM information_schema.columns WHERE table_schema = 'public'",
    );
    let db = rusqlite::Connection::open_in_memory().unwrap();
    db.execute_batch(include_str!("../../src/store/sqlite/schema.sql")).unwrap();
    let mut here = db
        .prepare("SELECT m.name || ',' || c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type IN ('table', 'view')")
        .unwrap();
    let here = here.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap);
    let (here, mut there) = (schema(here.filter(|line| !line.starts_with("sqlite_"))), schema(there));
    for own in ["schema_version", "counters", "ledger_owners", "tenant_usage", "webchat_rooms"] {
        assert!(there.remove(own).is_some(), "{own} is there for several nodes");
    }
    assert_eq!(here, there);
}
