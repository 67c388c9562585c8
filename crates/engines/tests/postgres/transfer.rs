//! Moving an SQLite database into PostgreSQL.

use crate::store::identity::{by, gateway};
use crate::store::open::{Engine, Opened, entry, through};
use crate::store::people::line;
use angelia_core::clock;
use angelia_core::error::{Kind, Result};
use angelia_core::inbox::{InstanceId, Quota, Seq};
use angelia_core::store::{IdentityStore, NewAction, PageSize, Person, RoomStore};
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::postgres::Options;
use angelia_engines::store::sqlite::{DATABASE, DataLock, MOVED, Sqlite, is_moved};
use angelia_engines::store::transfer::{Moved, Progress, to_postgres};
use angelia_services::psql;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

fn empty() -> String {
    angelia_services::Postgres::shared().unwrap().fresh_database().unwrap()
}

/// An SQLite store in a folder of its own, closed.
async fn filled() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path(), Quota::default(), Arc::new(LocalBus::default())).unwrap();
    fill(&store).await;
    folder
}

/// Something of everything that is counted.
async fn fill(store: &dyn Engine) {
    store.create_tenant("acme", None, &by()).await.unwrap();
    let instance = store.create_gateway(gateway("acme", "gw"), &by()).await.unwrap().instance;
    for number in 0..5 {
        store.append(entry(instance, &format!("m{number}"))).await.unwrap();
    }
    store.invite(Person { room: "lab".into(), user: "ann".into() }, [1; 32], &by()).await.unwrap();
    for id in ["l1", "l2", "l3"] {
        store.post_line(line(id, None), None).await.unwrap();
    }
    let owner = store.new_owner().await.unwrap();
    store.accept(owner, vec![action(instance)]).await.unwrap();
    store.set_note("key_check", vec![1; 40]).await.unwrap();
}

fn action(instance: InstanceId) -> NewAction {
    NewAction {
        tenant: "acme".into(),
        gateway_id: Some("gw".into()),
        thread_id: None,
        edits: None,
        instance,
        platform: "webchat".into(),
        bot: "webchat".into(),
        chat_id: "web-lab".into(),
        op: "send".into(),
        reply_to: Some("m1".into()),
        body: b"{}".to_vec(),
        answering: None,
        received_at: clock::wall(),
    }
}

/// Moves what is in a folder, on a thread of its own: what is read meanwhile stays on one.
fn moved(folder: &Path, url: &str) -> Result<Moved> {
    let (folder, url) = (folder.to_owned(), through(url));
    let moving = std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let lock = DataLock::try_take(&folder).unwrap().unwrap();
        let options = Options::new(url.parse().unwrap());
        let mut last = 0;
        runtime.block_on(to_postgres(&lock, &options, &mut |progress| {
            if let Progress::Copying { done, rows, all_done, all, .. } = progress {
                assert!(done <= rows && all_done <= all && last <= all_done);
                last = all_done;
            }
        }))
    });
    moving.join().unwrap()
}

fn raw(folder: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(folder.join(DATABASE)).unwrap()
}

/// What a database has counted, without times.
fn counts(url: &str) -> String {
    let all = [
        "SELECT * FROM tenant_usage ORDER BY 1",
        "SELECT * FROM webchat_rooms ORDER BY 1",
        "SELECT name, value FROM counters WHERE name NOT IN ('probe', 'webchat_id') ORDER BY 1",
        "SELECT instance, tail, redrives, waiting, bytes FROM instances ORDER BY 1",
        "SELECT id, tenant, state FROM actions ORDER BY 1",
        "SELECT instance, seq, message_id, journal, convert_from(body, 'UTF8') FROM inbox ORDER BY 1, 2",
        "SELECT last_value FROM journal_id_seq",
        "SELECT last_value FROM instances_instance_seq",
        "SELECT last_value FROM actions_id_seq",
    ];
    all.map(|query| psql(url, query).unwrap()).join("\n")
}

#[tokio::test]
async fn a_moved_database_is_as_if_it_had_always_been_there() {
    let native = Opened::at(empty());
    fill(&*native.store).await;
    let (folder, url) = (filled().await, empty());
    let before = std::fs::read(folder.path().join(DATABASE)).unwrap();
    let said = moved(folder.path(), &url).unwrap();
    assert_eq!((said.replaced, said.before), (0, false));
    assert_eq!(counts(&url), counts(native.database()));
    assert!(is_moved(folder.path()) && said.shelved == folder.path().join(MOVED));
    assert_eq!(std::fs::read(&said.shelved).unwrap(), before, "nothing in it was changed");
    // And it goes on.
    let opened = Opened::at(url);
    let instance = opened.store.gateways().await.unwrap()[0].instance;
    assert_eq!(opened.seqs(instance).await, (1..=5).map(Seq).collect::<Vec<_>>());
    opened.store.append(entry(instance, "m5")).await.unwrap();
    assert_eq!(opened.seqs(instance).await.last(), Some(&Seq(6)));
    opened.post("lab", "l4").await;
    let lines = opened.store.lines("lab", 0, PageSize::of(10)).await.unwrap();
    assert_eq!(lines.iter().map(|line| line.id).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(opened.store.new_owner().await.unwrap().0 > 1, "an owner is nobody else");
}

#[tokio::test]
async fn no_number_is_given_again() {
    let (folder, url) = (filled().await, empty());
    raw(folder.path())
        .execute_batch(
            "UPDATE sqlite_sequence SET seq = 900 WHERE name = 'journal';
             UPDATE sqlite_sequence SET seq = 800 WHERE name = 'instances';
             UPDATE sqlite_sequence SET seq = 700 WHERE name = 'changes';
             UPDATE notes SET value = 600 WHERE name = 'webchat_id';
             UPDATE notes SET value = 500 WHERE name = 'ledger_owner';
             INSERT INTO notes VALUES ('ledger_first_owner', 400), ('log_base', 1000), ('running', x'01');
             INSERT INTO webchat_lines (id, room, message_id, author, from_agent, text, at)
                 VALUES (99, 'lab', 'nul', 'ann', 0, 'a' || char(0) || 'b', 1);",
        )
        .unwrap();
    let said = moved(folder.path(), &url).unwrap();
    assert_eq!(said.replaced, 1);
    for (query, answer) in [
        ("SELECT nextval('journal_id_seq')", "901"),
        ("SELECT nextval('instances_instance_seq')", "801"),
        ("SELECT nextval('webchat_lines_id_seq')", "601"),
        ("SELECT value FROM counters WHERE name = 'feed'", "700"),
        ("SELECT value FROM counters WHERE name = 'ledger_owner'", "500"),
        ("SELECT value FROM counters WHERE name = 'ledger_first_owner'", "400"),
        (
            "SELECT count(*) FROM notes WHERE name IN ('running', 'ledger_owner', 'log_base', 'webchat_id')",
            "0",
        ),
        ("SELECT text FROM webchat_lines WHERE id = 99", "a\u{fffd}b"),
        ("INSERT INTO instances (tenant, name) VALUES ('t', 'n') RETURNING tail", "1000"),
    ] {
        assert_eq!(psql(&url, query).unwrap(), answer, "{query}");
    }
}

#[tokio::test]
async fn a_hundred_thousand_rows_take_seconds() {
    let (folder, url) = (filled().await, empty());
    raw(folder.path())
        .execute_batch(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100000)
             INSERT INTO journal (message_id, kind, platform, bot, chat_id, tenant, instance, received_at,
                 appended_at, outcome) SELECT 'x' || n, 'message', 'webchat', 'webchat', 'web-lab', 'acme', 1, n, n,
                 'acknowledged' FROM n;",
        )
        .unwrap();
    let began = clock::mono();
    let said = moved(folder.path(), &url).unwrap();
    let took = clock::mono().since(began);
    println!("100,000 rows in {took:?}");
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert!(said.tables.contains(&("journal".to_owned(), 100_005)));
}

#[tokio::test]
async fn a_database_with_something_in_it_is_left_alone() {
    let (folder, url) = (filled().await, empty());
    let native = Opened::at(url.clone());
    native.store.create_tenant("theirs", None, &by()).await.unwrap();
    let error = moved(folder.path(), &url).unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict);
    assert!(error.to_string().contains("is not empty") && error.to_string().contains("tenants"), "{error}");
    let foreign = empty();
    psql(&foreign, "CREATE TABLE invoices (id INT)").unwrap();
    let error = moved(folder.path(), &foreign).unwrap_err();
    assert!(error.to_string().contains("belongs to something else: it has the tables invoices"), "{error}");
    assert_eq!(
        psql(&foreign, "SELECT string_agg(tablename, ' ') FROM pg_tables WHERE schemaname = 'public'")
            .unwrap(),
        "invoices"
    );
    assert!(folder.path().join(DATABASE).exists(), "and the file is where it was");
    moved(folder.path(), &empty()).unwrap();
}

#[tokio::test]
async fn a_run_that_ended_too_early_is_begun_again() {
    let (folder, url) = (filled().await, empty());
    // Something in the middle cannot be moved.
    raw(folder.path()).execute_batch("UPDATE webchat_lines SET at = 'soon' WHERE message_id = 'l2'").unwrap();
    let error = moved(folder.path(), &url).unwrap_err();
    assert!(error.to_string().contains("webchat_lines.at holds Text"), "{error}");
    assert_eq!(psql(&url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").unwrap(), "0");
    raw(folder.path()).execute_batch("UPDATE webchat_lines SET at = 1 WHERE message_id = 'l2'").unwrap();
    let said = moved(folder.path(), &url).unwrap();
    // It was killed before it could put the file aside.
    std::fs::rename(&said.shelved, folder.path().join(DATABASE)).unwrap();
    let again = moved(folder.path(), &url).unwrap();
    assert!(again.before && is_moved(folder.path()));
    // Somebody went back to the file, and it is not what was moved any more.
    std::fs::rename(&again.shelved, folder.path().join(DATABASE)).unwrap();
    let bus = Arc::new(LocalBus::default());
    let store = Sqlite::open(folder.path(), Quota::default(), bus).unwrap();
    store.create_tenant("later", None, &by()).await.unwrap();
    drop(store);
    let error = moved(folder.path(), &url).unwrap_err();
    assert!(error.to_string().contains("is not empty"), "{error}");
}

#[tokio::test]
async fn a_file_of_another_release_or_that_is_damaged_is_not_moved() {
    let folder = filled().await;
    raw(folder.path()).execute_batch("PRAGMA user_version = 6").unwrap();
    let error = moved(folder.path(), &empty()).unwrap_err();
    assert!(error.to_string().contains("start this release on it once"), "{error}");
    let none = tempfile::tempdir().unwrap();
    assert_eq!(moved(none.path(), &empty()).unwrap_err().kind(), Kind::NotFound);
}
