use super::*;
use crate::local_bus::LocalBus;
use crate::store::sqlite::Sqlite;
use angelia_core::audit::Actor;
use angelia_core::inbox::Quota;
use angelia_core::records::rows::{NoteRow, TenantRow};
use angelia_core::store::{IdentityStore, NewGateway, Upkeep};
use std::sync::Arc;
use tempfile::TempDir;

fn open(folder: &Path) -> Sqlite {
    Sqlite::open(folder, Quota::default(), Arc::new(LocalBus::default())).unwrap()
}

async fn stage() -> (TempDir, Sqlite, Inspect) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    store.create_tenant("acme", None, &Actor::server()).await.unwrap();
    let inspect = Inspect::of(folder.path());
    (folder, store, inspect)
}

#[tokio::test]
async fn nothing_commits_while_commits_are_stopped() {
    let (_folder, store, inspect) = stage().await;
    let watch = inspect.watch_commits();
    let stopped = inspect.stop_commits();
    assert!(store.probe().await.is_err());
    assert!(!watch.saw_one());
    drop(stopped);
    store.probe().await.unwrap();
    assert!(watch.saw_one());
}

#[tokio::test]
async fn what_is_in_the_files_is_found_in_the_log_too() {
    let (_folder, store, inspect) = stage().await;
    store.set_note("sings", b"the canary".to_vec()).await.unwrap();
    assert!(inspect.holds(b"the canary"), "not yet folded into the database");
    assert!(!inspect.holds(b"the canary is silent"));
    drop(store);
    assert!(inspect.holds(b"the canary"));
}

#[tokio::test]
async fn records_change_without_a_rule() {
    let (folder, store, inspect) = stage().await;
    store.set_note("kept", vec![1]).await.unwrap();
    drop(store);
    inspect.rewrite(|note: &NoteRow| note.name == "kept", |note| note.value = vec![2]);
    inspect.delete(|tenant: &TenantRow| tenant.tenant == "acme");
    assert!(inspect.records::<TenantRow>().is_empty());
    let store = open(folder.path());
    assert_eq!(store.note("kept").await.unwrap(), Some(vec![2]));
    assert!(store.tenants().await.unwrap().is_empty());
}

#[tokio::test]
#[should_panic(expected = "there is none of them in notes")]
async fn a_change_of_nothing_is_a_mistake() {
    let (_folder, _store, inspect) = stage().await;
    inspect.rewrite(|note: &NoteRow| note.name == "nobody's", |note| note.value = vec![]);
}

#[tokio::test]
async fn a_database_of_an_earlier_release_is_brought_here() {
    for (release, gateways) in [(Release::One, 1), (Release::Four, 2)] {
        let folder = tempfile::tempdir().unwrap();
        leave_database_of(release, folder.path());
        assert!(open(folder.path()).gateways().await.unwrap().len() >= gateways, "{release:?}");
        assert!(Inspect::of(folder.path()).journaled() > 0, "{release:?}");
    }
}

#[tokio::test]
async fn whoever_is_stuffed_has_rows_until_they_are_removed() {
    let (folder, store, inspect) = stage().await;
    store.create_tenant("other", None, &Actor::server()).await.unwrap();
    for tenant in ["acme", "other"] {
        store.create_gateway(gateway_of(tenant), &Actor::server()).await.unwrap();
    }
    drop(store);
    inspect.stuff("acme", 120, 1_000);
    inspect.stuff("other", 10, 10);
    assert_eq!((inspect.rows_of("acme"), inspect.rows_of("other")), (360, 30));
    let store = open(folder.path());
    store.remove_tenant("acme", Vec::new(), &Actor::server()).await.unwrap();
    store.finish_removals().await.unwrap();
    assert_eq!((inspect.rows_of("acme"), inspect.rows_of("other")), (0, 30));
}

fn gateway_of(tenant: &str) -> NewGateway {
    NewGateway {
        tenant: tenant.into(),
        gateway_id: "gw".into(),
        instance: None,
        sealed_secret: vec![7],
        wake_url: None,
        display_name: None,
        while_busy: None,
        shared_groups: false,
        subject: None,
        most: 10,
    }
}
