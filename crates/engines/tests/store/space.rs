//! What goes, in steps and for good, and a file that shrinks.

use super::identity::by;
use super::open::{Opened, entry};
use angelia_core::clock;
use angelia_core::error::Kind;
use angelia_core::inbox::InstanceId;
use angelia_core::store::{IdentityStore, NewEntry, NewLine, PageSize, Person, RoomStore};
use angelia_engines::store::sqlite::{DataLock, compact};
use rusqlite::Connection;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Waiting messages of a tenant, and what each holds.
const ENTRIES: usize = 50;
const BODY: usize = 400_000;

impl Opened {
    /// Lets 20 MB wait for an instance of a tenant.
    async fn with_much_waiting(self) -> (Self, InstanceId) {
        let instance = self.instance("gw").await;
        for number in 0..ENTRIES {
            let body = "x".repeat(BODY).into();
            self.store.append(NewEntry { body, ..entry(instance, &format!("m{number}")) }).await.unwrap();
        }
        (self, instance)
    }

    fn count(&self, table: &str) -> i64 {
        self.raw().query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }

    fn database(&self) -> u64 {
        fs::metadata(self.folder.path().join("angelia.db")).unwrap().len()
    }
}

#[tokio::test]
async fn the_file_shrinks_after_a_tenant_was_removed() {
    let (opened, _) = Opened::new().with_much_waiting().await;
    opened.store.probe().await.unwrap();
    assert!(opened.store.disk().await.unwrap().database > 20_000_000);
    let removed = opened.store.remove_tenant("acme", Vec::new(), &by()).await.unwrap();
    assert_eq!(removed.waiting, ENTRIES as u64);
    opened.store.tend().await.unwrap();
    assert_eq!((opened.count("inbox"), opened.count("journal"), opened.count("removals")), (0, 0, 0));
    let disk = opened.store.disk().await.unwrap();
    assert!(disk.shrinks && disk.database < 12_000_000, "{disk:?}");
    assert!(opened.database() < 12_000_000, "{} bytes on the disk", opened.database());
    assert!(disk.disk.reserve == disk.reserve_wanted && disk.disk.reserve > 0, "{disk:?}");
}

#[tokio::test]
async fn a_removal_goes_on_after_a_restart() {
    let (opened, gone) = Opened::new().with_much_waiting().await;
    opened.store.remove_tenant("acme", Vec::new(), &by()).await.unwrap();
    assert_eq!(opened.count("inbox"), ENTRIES as i64, "its data takes longer");
    let opened = opened.reopen();
    assert!(
        opened.store.tenants().await.unwrap().is_empty() && opened.store.gateways().await.unwrap().is_empty()
    );
    assert!(opened.store.instances().await.unwrap().is_empty());
    let refused = opened.store.append(entry(gone, "late")).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::NotFound);
    let refused = opened.store.create_tenant("acme", None, &by()).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Conflict, "or it would inherit what is deleted");
    opened.store.tend().await.unwrap();
    assert_eq!((opened.count("inbox"), opened.count("removals")), (0, 0));
    assert_eq!(opened.store.usage(gone).await.unwrap().entries, 0);
    opened.store.create_tenant("acme", None, &by()).await.unwrap();
}

#[tokio::test]
async fn nobody_new_reads_what_a_removed_tenant_said() {
    let opened = Opened::new().with_ann_in_lab().await;
    opened.instance("gw").await;
    let line = |id: &str| NewLine {
        room: "lab".into(),
        message_id: id.into(),
        author: "ann".into(),
        from_agent: false,
        text: "words".into(),
        reply_to: None,
        client_id: None,
        files: Vec::new(),
        undelivered: None,
        buttons: None,
        thread: None,
        thread_name: None,
        at: clock::wall(),
    };
    opened.store.post_line(line("m1"), None).await.unwrap();
    opened.store.remove_tenant("acme", vec!["lab".into()], &by()).await.unwrap();
    let ann = Person { room: "lab".into(), user: "ann".into() };
    let refused = opened.store.invite(ann.clone(), [7; 32], &by()).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Conflict);
    let later = clock::wall().after(Duration::from_secs(60));
    assert_eq!(opened.store.visit(ann.clone(), [8; 32], later).await.unwrap_err().kind(), Kind::Conflict);
    opened.store.finish_removals().await.unwrap();
    opened.store.invite(ann, [7; 32], &by()).await.unwrap();
    opened.store.post_line(line("m2"), None).await.unwrap();
    opened.store.finish_removals().await.unwrap();
    let lines = opened.store.lines("lab", 0, PageSize::of(10)).await.unwrap();
    assert_eq!(lines.iter().map(|line| line.message_id.as_str()).collect::<Vec<_>>(), ["m2"]);
}

fn raw(folder: &Path) -> Connection {
    Connection::open(folder.join("angelia.db")).unwrap()
}

/// Makes a database what older releases made: it cannot shrink.
fn make_old(folder: &Path) {
    let db = raw(folder);
    db.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM").unwrap();
    assert_eq!(db.pragma_query_value(None, "auto_vacuum", |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[tokio::test]
async fn a_database_of_an_older_release_is_rewritten() {
    let (opened, instance) = Opened::new().with_much_waiting().await;
    let seqs = opened.seqs(instance).await;
    let opened = opened.closed(make_old);
    assert!(opened.store.disk().await.unwrap().shrinks, "a start did it: it is small");
    assert_eq!(opened.seqs(instance).await, seqs, "nothing is lost");

    let opened = opened.closed(|folder| {
        make_old(folder);
        let db = raw(folder);
        db.execute("DELETE FROM inbox WHERE seq > ?", [seqs[9].0]).unwrap();
        db.execute_batch("PRAGMA journal_mode = WAL; BEGIN").unwrap();
        db.query_row("SELECT count(*) FROM inbox", [], |row| row.get::<_, i64>(0)).unwrap();
        let lock = DataLock::try_take(folder).unwrap().unwrap();
        assert_eq!(compact(&lock).unwrap_err().kind(), Kind::Unavailable, "somebody reads it");
        drop(db);
        let (was, is) = compact(&lock).unwrap();
        assert!(was > 20_000_000 && is < 5_000_000, "{was} {is}");
        assert_eq!(fs::metadata(folder.join("angelia.db")).unwrap().len(), is);
    });
    assert!(opened.store.disk().await.unwrap().shrinks);
    assert_eq!(opened.seqs(instance).await, &seqs[..10]);
}
