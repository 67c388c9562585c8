//! Databases of earlier releases.

use super::open::Witness;
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
        shape.push(format!("{table} autoincrement {}", sql.contains("AUTOINCREMENT")));
    }
    shape.extend(names("index"));
    shape.extend(names("trigger"));
    shape
}

#[test]
fn an_upgraded_database_is_like_a_new_one() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = old.path().join("angelia.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(include_str!("release-1.sql")).unwrap();
    db.execute("UPDATE instances SET idle = 1, ack_habit = 'acks' WHERE instance = 1", []).unwrap();
    drop(db);
    let open = |folder: &std::path::Path| {
        let quota = angelia_core::inbox::Quota::default();
        drop(Sqlite::open(folder, quota, Arc::new(Witness::default())).unwrap());
        rusqlite::Connection::open(folder.join("angelia.db")).unwrap()
    };
    let (upgraded, fresh) = (open(old.path()), open(new.path()));
    assert_eq!(shape(&upgraded), shape(&fresh));
    let kept: (String, bool) = upgraded
        .query_row("SELECT ack_habit, idle FROM instances WHERE instance = 1", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!(kept, ("acks".into(), true));
    let waiting: i64 = upgraded.query_row("SELECT count(*) FROM inbox", [], |row| row.get(0)).unwrap();
    assert_eq!(waiting, 5);
    upgraded.execute("DELETE FROM instances", []).unwrap();
    upgraded.execute("INSERT INTO instances (tenant, name) VALUES ('x', 'y')", []).unwrap();
    assert_eq!(upgraded.last_insert_rowid(), 4, "an instance's number is never given again");
}
