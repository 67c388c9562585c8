//! What the schema owes to records: the tables and columns they name, and an index
//! wherever a long table is searched.

use crate::sql;
use angelia_core::records::rows::{JournalRow, LedgerRow, TABLES};
use angelia_core::records::{By, Direction, Query, Record, RowRange, Value};
use angelia_core::vault::Capability;
use rusqlite::Connection;

fn schema() -> Connection {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(include_str!("schema.sql")).unwrap();
    db
}

/// How a statement goes about it, with these values.
fn plan(db: &Connection, statement: &str, values: &[&str]) -> Vec<String> {
    let mut plan = db.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
    let missing = plan.parameter_count() - values.len();
    let values = values.iter().copied().map(Some).chain(std::iter::repeat_n(None, missing));
    let steps = plan.query_map(rusqlite::params_from_iter(values), |row| row.get("detail")).unwrap();
    steps.map(Result::unwrap).collect()
}

#[test]
fn the_schema_has_what_records_are_kept_in() {
    let db = schema();
    for statement in sql::every_statement() {
        db.prepare(&statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

/// Columns of bytes that nothing is sealed in.
const OPEN: [&str; 7] = [
    "clients.secret_fingerprint",
    "enroll_tokens.fingerprint",
    "link_codes.fingerprint",
    "webchat_people.key_fingerprint",
    "inbox.body",
    "openings.body",
    "actions.body",
];
/// Notes hold what is sealed and what is not: each is known by its name.
const NOTES: &str = "notes.value";

#[test]
fn every_column_of_bytes_is_known_as_sealed_or_open() {
    let db = schema();
    let mut statement = db
        .prepare(
            "SELECT t.name || '.' || c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
             WHERE t.type = 'table' AND c.type = 'BLOB'",
        )
        .unwrap();
    let columns: Vec<String> =
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let sealed = TABLES.iter().filter_map(|table| Some(format!("{}.{}", table.name, table.sealed?)));
    let sealed: Vec<String> = sealed.chain([NOTES.to_owned()]).collect();
    for column in &columns {
        assert!(
            OPEN.contains(&column.as_str()) || sealed.contains(column),
            "say in core/records/rows/seals.rs or here whether {column} holds sealed values"
        );
    }
    assert_eq!(sealed.len(), 6, "as core/seal/stored.rs knows them");
    for column in sealed {
        assert!(columns.contains(&column), "{column} is gone");
    }
}

#[test]
fn whether_a_key_is_needed_is_read_from_an_index() {
    let db = schema();
    for table in TABLES {
        let Some(column) = table.sealed else { continue };
        for way in [Direction::Up, Direction::Down] {
            let steps = plan(&db, &sql::head(table, column, way), &[]);
            let by_head = |step: &String| step.starts_with("SEARCH") && step.contains("_by_head (<expr>>?)");
            assert!(steps.len() == 1 && by_head(&steps[0]), "{}: {steps:?}", table.name);
        }
    }
}

#[test]
fn long_tables_are_searched_by_an_index() {
    let db = schema();
    let up = |column| RowRange::Along { column, above: Value::Int(0), direction: Direction::Up, limit: 1 };
    let text = |values: &[&str]| values.iter().map(|it| Value::Text((*it).into())).collect();
    let ending = RowRange::Between { column: "expires_at", above: Value::Int(0), up_to: Value::Int(0) };
    let (journal, ledger, vault) = (JournalRow::TABLE, LedgerRow::TABLE, Capability::TABLE);
    let answer: &[&str] = &["reply_to", "chat_id", "platform", "bot"];
    let by_end = "capabilities_by_end (expires_at>? AND expires_at<?)";
    for (table, by, values, part, way) in [
        (journal, &["message_id"] as &[&str], &["m"] as &[&str], up("id"), "(message_id=?)"),
        (journal, &["message_id", "chat_id"], &["m", "c"], up("id"), "(message_id=? AND chat_id=?)"),
        (ledger, &["message_id"], &["m"], up("id"), "actions_by_message (message_id=? AND rowid>?)"),
        (
            ledger,
            &["message_id", "chat_id"],
            &["m", "c"],
            up("id"),
            "actions_by_message (message_id=? AND rowid>?)",
        ),
        (ledger, answer, &["m", "c", "p", "b"], up("id"), "actions_by_reply (reply_to=? AND rowid>?)"),
        (ledger, &["state"], &["ambiguous"], RowRange::Newest(1), "actions_ambiguous"),
        (vault, &["stage"], &["open"], ending, by_end),
        (vault, &["instance"], &["1"], RowRange::All, "capabilities_by_chat (instance=?)"),
    ] {
        let query = Query { by: By::Columns(by), values: text(values), part };
        let steps = plan(&db, &sql::find(table, &query), values);
        assert!(steps[0].contains("USING INDEX") && steps[0].ends_with(way), "{}: {steps:?}", table.name);
    }
}

/// What names a chat and moves, or goes, with it.
const MOVES: [&str; 4] = ["chats", "created_threads", "notices", "pieces"];
/// What tells of the past, or works only where it came from: a capability
/// answers in the chat it was given for, under the id it had there.
const STAYS: [&str; 11] = [
    "actions",
    "capabilities",
    "conversations",
    "gaps",
    "inbox",
    "journal",
    "missed",
    "openings",
    "prompts",
    "untold_gaps",
    "turns",
];

#[test]
fn every_table_that_names_a_chat_is_known_to_move_or_to_stay() {
    let db = schema();
    let tables: Vec<String> = db
        .prepare(
            "SELECT t.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
             WHERE t.type = 'table' AND c.name = 'chat_id' ORDER BY t.name",
        )
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<rusqlite::Result<_>>()
        .unwrap();
    let mut known = [MOVES.as_slice(), &STAYS].concat();
    known.sort_unstable();
    assert_eq!(
        tables, known,
        "say what becomes of it when its chat moves: crates/core/src/directory/moves.rs"
    );
}
