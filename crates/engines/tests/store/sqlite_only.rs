//! What only a database in a file of our own does: rows of the wrong kind, a lock, bytes on the disk.

use super::identity::{by, long_revoked};
use super::inbox::settled;
use super::open::{Opened, entry};
use angelia_core::error::Kind;
use angelia_core::inbox::{Epoch, Quota};
use angelia_core::store::{IdentityStore, NewEntry};
use std::time::Duration;

#[tokio::test]
async fn a_gateway_that_cannot_be_read_is_not_pruned_for_ever() {
    let opened = Opened::new();
    opened.instance("damaged").await;
    long_revoked(&opened, "damaged").await;
    opened.raw().execute_batch("UPDATE gateways SET wake_url = x'00'").unwrap();
    let pruned = tokio::time::timeout(Duration::from_secs(20), opened.store.prune()).await;
    let error = pruned.expect("it ends").expect_err("nothing was forgotten").to_string();
    assert!(error.contains("a row of gateways cannot be read"), "{error}");
}

#[tokio::test]
async fn a_tenant_goes_whatever_its_rows_say() {
    let opened = Opened::new();
    opened.instance("a").await;
    opened
        .raw()
        .execute_batch(
            "INSERT INTO link_codes VALUES (x'00', 'acme', NULL, 'no json', 0, 1);
             INSERT INTO routes (place, bot, tenant) VALUES ('no place', '', 'acme');
             UPDATE gateways SET wake_url = x'00';",
        )
        .unwrap();
    let removed = opened.store.remove_tenant("acme", Vec::new(), &by()).await.unwrap();
    assert_eq!((removed.gateways, removed.routes), (1, 1));
    assert!(
        opened.store.gateways().await.unwrap().is_empty() && opened.store.routes().await.unwrap().is_empty()
    );
}

#[tokio::test]
async fn a_data_directory_is_used_by_one_store_only() {
    let opened = Opened::new();
    let second = angelia_engines::store::sqlite::Sqlite::open(
        opened.folder.path(),
        Quota::default(),
        opened.witness.bus(),
    );
    assert_eq!(second.err().unwrap().kind(), Kind::Conflict);
    assert!(angelia_engines::store::sqlite::is_locked(opened.folder.path()));
    let Opened { store, folder, .. } = opened;
    drop(store);
    // Those who only look do not take each other for a holder.
    let looking = std::fs::File::open(folder.path().join("lock")).unwrap();
    looking.try_lock_shared().unwrap();
    assert!(!angelia_engines::store::sqlite::is_locked(folder.path()));
}

#[tokio::test]
async fn settled_text_is_overwritten_on_disk() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let canary = "canary-4c7e-on-disk";
    let body = format!("{{\"text\":\"{}\"}}", canary.repeat(50));
    opened.store.append(NewEntry { body: body.into(), ..entry(a, "m") }).await.unwrap();
    let on_disk = |opened: &Opened| {
        let files = ["angelia.db", "angelia.db-wal"].map(|name| opened.folder.path().join(name));
        files.iter().any(|file| {
            let bytes = std::fs::read(file).unwrap_or_default();
            bytes.windows(canary.len()).any(|window| window == canary.as_bytes())
        })
    };
    assert!(on_disk(&opened), "the search finds what waits");
    let seqs = opened.seqs(a).await;
    opened.store.settle(a, Epoch(0), vec![settled(seqs[0])]).await.unwrap();
    let opened = opened.reopen();
    assert!(!on_disk(&opened), "and nothing after it settled and the log was folded in");
}
