//! Databases of earlier releases.

use super::open::Opened;
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::sqlite::Sqlite;
use std::sync::Arc;

/// Everything that makes up a schema, without the words it was written in.
fn shape(db: &rusqlite::Connection) -> Vec<String> {
    let names = |kind: &str| -> Vec<String> {
        db.prepare("SELECT name FROM sqlite_master WHERE type = ? AND name NOT LIKE 'sqlite_%' ORDER BY name")
            .unwrap()
            .query_map([kind], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap()
    };
    let mut shape = Vec::new();
    for table in names("table") {
        let mut columns: Vec<String> = db
            .prepare("SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info(?)")
            .unwrap()
            .query_map([&table], |row| {
                let default: Option<String> = row.get(3)?;
                let (name, kind): (String, String) = (row.get(0)?, row.get(1)?);
                Ok(format!(
                    "{table}.{name} {kind} {} {default:?} {}",
                    row.get::<_, i64>(2)?,
                    row.get::<_, i64>(4)?
                ))
            })
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        columns.sort();
        shape.extend(columns);
        let sql: String =
            db.query_row("SELECT sql FROM sqlite_master WHERE name = ?", [&table], |row| row.get(0)).unwrap();
        for quality in ["AUTOINCREMENT", "WITHOUT ROWID", "ON DELETE CASCADE"] {
            shape.push(format!("{table} {quality} {}", sql.contains(quality)));
        }
        let mut indices: Vec<String> = db
            .prepare(
                "SELECT l.\"unique\" || l.partial || ' ' || iif(l.origin = 'c', l.name, '') || (
                     SELECT group_concat(coalesce(i.name, 'an expression')) FROM pragma_index_info(l.name) i)
                 FROM pragma_index_list(?) l",
            )
            .unwrap()
            .query_map([&table], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        indices.sort();
        shape.extend(indices.into_iter().map(|index| format!("{table} index {index}")));
    }
    // What an index leaves out and what a trigger does is only in their words.
    let words: Vec<String> = db
        .prepare("SELECT sql FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql IS NOT NULL ORDER BY name")
        .unwrap()
        .query_map([], |row| row.get::<_, String>(0))
        .unwrap()
        .map(|sql| sql.unwrap().split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    shape.extend(words);
    shape
}

/// What is in the tables: every row of every column that `like` has too.
fn rows(db: &rusqlite::Connection, like: &[(String, String)]) -> Vec<String> {
    let mut rows = Vec::new();
    for (table, columns) in like {
        let quoted: Vec<String> = columns.split(',').map(|column| format!("quote({column})")).collect();
        let query = format!("SELECT {} FROM {table} ORDER BY {columns}", quoted.join(" || ',' || "));
        let mut statement = db.prepare(&query).unwrap();
        let found = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.extend(found.map(|row| format!("{table}: {}", row.unwrap())));
    }
    rows
}

/// Every table and its columns.
fn columns(db: &rusqlite::Connection) -> Vec<(String, String)> {
    db.prepare(
        "SELECT t.name, group_concat(c.name) FROM sqlite_master t JOIN pragma_table_info(t.name) c
         WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' GROUP BY t.name ORDER BY t.name",
    )
    .unwrap()
    .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
    .unwrap()
    .collect::<Result<_, _>>()
    .unwrap()
}

fn open(folder: &std::path::Path) -> rusqlite::Connection {
    let quota = angelia_core::inbox::Quota::default();
    drop(Sqlite::open(folder, quota, Arc::new(LocalBus::default())).unwrap());
    rusqlite::Connection::open(folder.join("angelia.db")).unwrap()
}

/// Opens a database of an earlier release; nothing of it may be lost.
fn upgrade(release: &str) -> (tempfile::TempDir, rusqlite::Connection) {
    let folder = tempfile::tempdir().unwrap();
    let db = rusqlite::Connection::open(folder.path().join("angelia.db")).unwrap();
    db.execute_batch(release).unwrap();
    db.execute("UPDATE instances SET idle = 1, ack_habit = 'acks' WHERE instance = 1", []).unwrap();
    let known = columns(&db);
    let before = rows(&db, &known);
    drop(db);
    let upgraded = open(folder.path());
    let mut after = rows_without_who_waits_for_a_first_gateway(&upgraded, &known);
    // Above every number that was given.
    after.retain(|row| !row.starts_with("notes: 'log_base',") || before.contains(row));
    assert_eq!(after, before);
    let fresh = tempfile::tempdir().unwrap();
    assert_eq!(shape(&upgraded), shape(&open(fresh.path())), "an upgraded database is like a new one");
    (folder, upgraded)
}

/// What is in the tables but for the instances that tenants got which had none.
fn rows_without_who_waits_for_a_first_gateway(
    db: &rusqlite::Connection,
    like: &[(String, String)],
) -> Vec<String> {
    let transaction = db.unchecked_transaction().unwrap();
    transaction
        .execute_batch(
            "UPDATE tenants SET default_instance = NULL
             WHERE default_instance IN (SELECT instance FROM instances WHERE name = '');
             DELETE FROM instances WHERE name = '';",
        )
        .unwrap();
    rows(&transaction, like)
}

/// The next numbers are those that the old release would have given, after the instance that
/// waits for the first gateway of the tenant `default`.
fn numbers_go_on(db: &rusqlite::Connection, instance: i64, seq: i64) {
    let tails = "SELECT min(tail), max(tail) FROM instances";
    let tails: (i64, i64) = db.query_row(tails, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(tails, (seq - 1, seq - 1), "numbers of every log begin above all old ones");
    db.execute("DELETE FROM instances", []).unwrap();
    db.execute("INSERT INTO instances (tenant, name) VALUES ('x', 'y')", []).unwrap();
    assert_eq!(db.last_insert_rowid(), instance, "an instance's number is never given again");
    db.execute("DELETE FROM journal", []).unwrap();
    db.execute(
        "INSERT INTO journal (message_id, kind, platform, bot, chat_id, tenant, instance, received_at, appended_at)
         VALUES ('m', 'message', 'p', 'b', 'c', 't', 1, 1, 1)",
        [],
    )
    .unwrap();
    assert_eq!(db.last_insert_rowid(), seq, "nor a number of the log");
}

#[test]
fn release_1_is_brought_here() {
    let (_folder, upgraded) = upgrade(include_str!("release-1.sql"));
    let waiting: i64 = upgraded.query_row("SELECT count(*) FROM inbox", [], |row| row.get(0)).unwrap();
    assert_eq!(waiting, 5);
    numbers_go_on(&upgraded, 5, 6);
}

#[test]
fn release_2_is_brought_here() {
    let (_folder, upgraded) = upgrade(include_str!("release-2.sql"));
    let unknown: i64 = upgraded
        .query_row("SELECT count(*) FROM actions WHERE begun_at IS NULL", [], |row| row.get(0))
        .unwrap();
    assert_eq!(unknown, 3, "nobody knows when they were begun");
    numbers_go_on(&upgraded, 11, 13);
}

#[test]
fn release_3_is_brought_here() {
    let (_folder, upgraded) = upgrade(include_str!("release-3.sql"));
    let untouched: i64 = upgraded
        .query_row("SELECT count(*) FROM actions WHERE crashes = 0 AND gateway_id IS NULL", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(untouched, 4, "nobody knows who asked for them");
    numbers_go_on(&upgraded, 11, 13);
}

#[test]
fn release_4_is_brought_here() {
    let (_folder, upgraded) = upgrade(include_str!("release-4.sql"));
    numbers_go_on(&upgraded, 7, 7);
}

#[test]
fn release_5_is_brought_here() {
    let (_folder, upgraded) = upgrade(include_str!("release-5.sql"));
    numbers_go_on(&upgraded, 8, 7);
}

#[test]
fn release_6_is_brought_here() {
    let (_folder, upgraded) = upgrade(include_str!("release-6.sql"));
    let silent = "SELECT (SELECT count(*) FROM inbox WHERE while_busy IS NULL)
        + (SELECT count(*) FROM routes WHERE while_busy IS NULL)
        + (SELECT count(*) FROM gateways WHERE while_busy IS NULL AND NOT shared_groups)";
    let silent: i64 = upgraded.query_row(silent, [], |row| row.get(0)).unwrap();
    assert_eq!(silent, 16, "nobody has said what becomes of messages while an agent is busy");
    numbers_go_on(&upgraded, 8, 7);
}

/// Those who never had a gateway, and not those whose gateways were taken from them.
#[test]
fn tenants_of_release_5_wait_for_their_first_gateway() {
    let more = "INSERT INTO tenants VALUES ('bereft', 5, NULL, NULL), ('again', 5, NULL, NULL), ('new', 5, NULL, NULL);
                INSERT INTO audit VALUES (11, 9, 'server', 'gateway.forget', 'bereft', 'gw', 'done', '', 'other'),
                                         (12, 4, 'server', 'gateway.forget', 'again', 'gw', 'done', '', 'other');";
    let (_folder, upgraded) = upgrade(&format!("{} {more}", include_str!("release-5.sql")));
    let mut defaults = upgraded
        .prepare(
            "SELECT t.tenant || ': ' || coalesce(name, 'none') FROM tenants t
             LEFT JOIN instances i ON i.instance = t.default_instance AND i.tenant = t.tenant ORDER BY t.tenant",
        )
        .unwrap();
    let defaults: Vec<String> =
        defaults.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let expected = ["acme: gw-old", "again: ", "bereft: none", "beta: gw-beta", "default: ", "new: "];
    assert_eq!(defaults, expected, "a tenant of that name before it is somebody else");
}

/// Other rooms wrote beside `lab` under the numbers that all rooms shared.
#[tokio::test]
async fn rooms_of_release_4_count_on_from_what_their_people_have_seen() {
    let others = "INSERT INTO webchat_lines (id, place, room, message_id, author, from_agent, text, at)
                      VALUES (6, 6, 'den', 'd1', 'bob', 0, 'hello', 1), (9, 7, 'den', 'd2', 'bob', 0, 'edited', 1);
                  UPDATE notes SET value = 9 WHERE name = 'webchat_id';";
    let (folder, upgraded) = upgrade(&format!("{} {others}", include_str!("release-4.sql")));
    drop(upgraded);
    let opened = Opened::at(folder).with_ann_in(&["lab", "den", "new"]).await;
    let (lab, den) = (opened.numbers("lab", 0).await, opened.numbers("den", 0).await);
    let numbers = |lines: &[(String, i64)]| lines.iter().map(|(_, number)| *number).collect::<Vec<_>>();
    assert_eq!((numbers(&lab), numbers(&den)), (vec![1, 2, 3, 4, 5], vec![6, 9]), "given numbers stay");
    for room in ["den", "lab", "new", "lab"] {
        opened.post(room, &format!("{room}-{}", opened.numbers(room, 0).await.len())).await;
    }
    assert_eq!(numbers(&opened.numbers("lab", 5).await), [6, 7], "an open browser goes on from where it is");
    assert_eq!(numbers(&opened.numbers("den", 9).await), [10]);
    assert_eq!(numbers(&opened.numbers("new", 0).await), [1]);
}

#[test]
fn an_empty_journal_of_release_2_keeps_its_numbers() {
    let emptied = format!("{} DELETE FROM journal;", include_str!("release-2.sql"));
    let (_folder, upgraded) = upgrade(&emptied);
    numbers_go_on(&upgraded, 11, 13);
}

#[test]
fn lines_of_the_audit_log_are_sorted() {
    let more = "INSERT INTO audit VALUES (2, 1, 'stranger', 'gateway.dial', '', 'gw', 'refused: wrong secret', '');
                INSERT INTO audit VALUES (3, 1, 'subject ann', 'gateway.enroll', 'acme', 'gw', 'done', '');
                INSERT INTO audit VALUES (4, 1, 'server', 'audit.swallowed', '', 'strangers', '9 refusals', '');";
    let (_folder, upgraded) = upgrade(&format!("{} {more}", include_str!("release-3.sql")));
    let mut sorts = upgraded.prepare("SELECT sort FROM audit ORDER BY id").unwrap();
    let sorts: Vec<String> = sorts.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(sorts, ["operator", "refusal", "other", "refusal"]);
}
