//! Several nodes on one database, and a database that goes away.

use super::directory::bot;
use super::identity::{by, gateway};
use super::open::{ME, Opened, Witness, another, connect, entry};
use super::vault::{notify, send};
use angelia_core::clock;
use angelia_core::egress::ActionState;
use angelia_core::error::Kind;
use angelia_core::inbox::Quota;
use angelia_core::ports::Ledger;
use angelia_core::store::{
    ActionOutcome, Appended, Cursor, IdentityStore, Ingest, Intake, Log, NewAction, Upkeep,
};
use angelia_services::{Postgres, psql};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;

/// How long a transaction past the store stays open.
const OPEN: Duration = Duration::from_millis(1_500);

/// Runs a statement in a transaction that stays open for a while.
fn holding(opened: &Opened, statement: &str) -> std::thread::JoinHandle<()> {
    let seconds = OPEN.as_secs_f64();
    let script = format!("BEGIN; {statement}; SELECT pg_sleep({seconds}); COMMIT");
    let database = opened.database.clone();
    let held = std::thread::spawn(move || drop(psql(&database, &script).unwrap()));
    std::thread::sleep(OPEN / 3);
    held
}

#[tokio::test]
async fn whoever_adopts_waits_for_what_is_under_way() {
    let opened = Opened::new();
    let instance = opened.instance("a").await;
    let (first, second) = (opened.store.new_owner().await.unwrap(), opened.store.new_owner().await.unwrap());
    let action = NewAction { answering: None, ..send(instance, notify()) };
    let id = opened.store.accept(first, vec![action]).await.unwrap()[0].id;
    let began = clock::mono();
    let statement = format!(
        "SELECT 1 FROM ledger_owners WHERE owner = {} FOR SHARE; UPDATE actions SET state = 'sending', begun_by = {}",
        first.0, first.0
    );
    let held = holding(&opened, &statement);
    opened.store.adopt(second, Some(first)).await.unwrap();
    assert!(clock::mono().since(began) >= OPEN, "it would not have seen that a provider is called");
    held.join().unwrap();
    let left = opened.store.unfinished(second, angelia_core::ports::ActionId(0), 10).await.unwrap();
    assert_eq!((left[0].id, left[0].state, left[0].crashes), (id, ActionState::Sending, 1));
    assert!(!opened.store.begin(first, id).await.unwrap(), "it is another's by now");
}

#[tokio::test]
async fn a_gateway_does_not_leave_what_is_being_appended() {
    let opened = Opened::new();
    let instance = opened.instance("a").await;
    let began = clock::mono();
    let statement = format!("UPDATE instances SET tail = tail + 1 WHERE instance = {}", instance.0);
    let held = holding(&opened, &statement);
    opened.store.revoke_gateway("acme", "a", &by()).await.unwrap();
    assert!(clock::mono().since(began) >= OPEN, "whoever appends comes first, or sees it");
    held.join().unwrap();
    assert_eq!(opened.store.append(entry(instance, "m")).await.unwrap_err().kind(), Kind::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_unusual_intake_holds_up_no_other_write() {
    const MANY: usize = 60;
    let opened = Opened::new();
    let instance = opened.instance("a").await;
    let (node, _) = another(&opened);
    let intake = |name: &str| Intake {
        entry: Some(entry(instance, name)),
        cursor: Some(Cursor { stream: "updates".into(), position: name.into() }),
        ..Intake::default()
    };
    node.take_in(&bot(), None, vec![intake("m0")]).await.unwrap();
    let before = node.hot_writes();
    let appends = (0..MANY).map(|n| {
        let node = node.clone();
        tokio::spawn(async move { node.append(entry(instance, &format!("a{n}"))).await.unwrap() })
    });
    let again = node.take_in(&bot(), None, vec![intake("m0")]);
    let (appended, again) = tokio::join!(join_all(appends), again);
    assert!(appended.into_iter().all(|it| matches!(it.unwrap(), Appended::New(_))));
    assert!(matches!(again.unwrap()[0].appended, Some(Appended::Seen(_))));
    let did = node.hot_writes();
    assert_eq!(did.one_by_one - before.one_by_one, 1, "{did:?}");
}

/// Each of many tenants has one action accepted and another finished, in any order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_of_several_nodes_do_not_wait_for_each_other_in_a_circle() {
    const TENANTS: usize = 12;
    const EACH: usize = 12;
    let opened = Opened::new();
    let mut instances = Vec::new();
    for n in 0..TENANTS {
        let tenant = format!("t{n}");
        opened.store.create_tenant(&tenant, None, &by()).await.unwrap();
        let made = opened.store.create_gateway(gateway(&tenant, "g"), &by()).await.unwrap();
        instances.push((tenant, made.instance));
    }
    let nodes = [another(&opened).0, another(&opened).0];
    let began = clock::mono();
    let work = (0..EACH).flat_map(|_| instances.iter().enumerate()).enumerate();
    let work = work.map(|(n, (at, (tenant, instance)))| {
        let (node, tenant, instance) = (nodes[(n + at) % 2].clone(), tenant.clone(), *instance);
        tokio::spawn(async move {
            let action = NewAction { tenant, answering: None, ..send(instance, notify()) };
            let id = node.accept(ME, vec![action]).await.unwrap()[0].id;
            let sent = ActionOutcome { state: ActionState::Sent, message_id: None, error: None };
            node.finish(ME, vec![(id, sent)]).await.unwrap();
        })
    });
    join_all(work.collect::<Vec<_>>()).await.into_iter().for_each(|done| done.unwrap());
    let took = clock::mono().since(began);
    println!("{} actions of {TENANTS} tenants on two nodes in {took:?}", TENANTS * EACH);
    // The server looks for circles after a second.
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(nodes.iter().all(|node| node.hot_writes().one_by_one == 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_is_told_when_the_database_goes_and_nothing_is_lost() {
    const MANY: usize = 100;
    let server = Postgres::start().unwrap();
    let witness = Arc::new(Witness::default());
    let store = connect(&server.fresh_database().unwrap(), Quota::default(), &witness);
    store.create_tenant("acme", None, &by()).await.unwrap();
    let instance = store.create_gateway(gateway("acme", "a"), &by()).await.unwrap().instance;
    let append = |name: String| {
        let store = store.clone();
        tokio::spawn(async move { store.append(entry(instance, &name)).await })
    };
    let under_way: Vec<_> = (0..MANY).map(|n| append(format!("m{n}"))).collect();
    server.kill().unwrap();
    let told = tokio::time::timeout(Duration::from_secs(20), join_all(under_way)).await.unwrap();
    let kept = told.into_iter().filter(|told| told.as_ref().unwrap().is_ok()).count();
    assert!(store.append(entry(instance, "late")).await.is_err());
    assert!(!store.healthy());
    server.start_again().unwrap();
    // Whoever was told that it failed sends it again.
    for n in 0..MANY {
        while append(format!("m{n}")).await.unwrap().is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    assert!(store.healthy());
    assert_eq!(store.usage(instance).await.unwrap().entries, MANY as u64, "{kept} were kept before");
}
