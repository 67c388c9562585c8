//! Group commit has to share its fsync, and an action must not read the whole
//! vault; both would be slow otherwise.

use super::directory::bot;
use super::open::{ME, Opened, entry};
use super::vault::{interaction, notify, send};
use angelia_core::clock;
use angelia_core::egress::ActionState;
use angelia_core::inbox::Epoch;
use angelia_core::store::{ActionOutcome, IdentityStore, NewAction, Settlement};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_producers_share_commits() {
    const PRODUCERS: usize = 64;
    const EACH: usize = 40;
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let began = clock::mono();
    let mut tasks = tokio::task::JoinSet::new();
    for producer in 0..PRODUCERS {
        let store = opened.store.clone();
        tasks.spawn(async move {
            for n in 0..EACH {
                let appended = store.append(entry(a, &format!("{producer}-{n}"))).await.unwrap();
                let angelia_core::store::Appended::New(seq) = appended else { panic!("new") };
                store
                    .settle(
                        a,
                        Epoch(0),
                        vec![Settlement { seq, by: angelia_core::inbox::SettledBy::Ack, pushed_at: None }],
                    )
                    .await
                    .unwrap();
            }
        });
    }
    tasks.join_all().await;
    let took = clock::mono().since(began);
    println!("{} durable appends and settlements in {took:?}", PRODUCERS * EACH);
    assert_eq!(opened.store.usage(a).await.unwrap().entries, 0);
}

/// Accepts and finishes as many sends, and tells how long that took.
async fn answer_all(opened: &Opened, sends: Vec<NewAction>, claims: bool) -> Duration {
    let began = clock::mono();
    let mut rest = sends.into_iter().peekable();
    while rest.peek().is_some() {
        let batch = rest.by_ref().take(50).collect();
        let accepted = opened.store.accept(ME, batch).await.unwrap();
        assert!(accepted.iter().all(|it| it.uses.is_some() == claims));
        let mut finishing = tokio::task::JoinSet::new();
        for it in accepted {
            let store = opened.store.clone();
            let sent = ActionOutcome { state: ActionState::Sent, message_id: None, error: None };
            finishing.spawn(async move { store.finish(ME, vec![(it.id, sent)]).await.unwrap() });
        }
        finishing.join_all().await;
    }
    clock::mono().since(began)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_people_in_one_chat_are_answered_soon() {
    const MANY: i64 = 2_000;
    let opened = Opened::new();
    let a = opened.instance("a").await;
    opened.store.take_in(&bot(), None, (1..=MANY).map(|n| interaction(a, n)).collect()).await.unwrap();
    let plain = (0..MANY).map(|_| NewAction { answering: None, ..send(a, notify()) }).collect();
    let plain = answer_all(&opened, plain, false).await;
    let answers = answer_all(&opened, (0..MANY).map(|_| send(a, notify())).collect(), true).await;
    println!("{MANY} sends in {plain:?}; {MANY} that answer one of as many people in {answers:?}");
    // Three times as long is usual; with all of the vault read for each it would be hundreds.
    assert!(answers < plain * 30, "{answers:?}, and {plain:?} without a vault");
}

/// Adds gateways with one secret each, from one number up to another.
fn add_gateways(db: &rusqlite::Connection, numbers: std::ops::RangeInclusive<u32>) {
    db.execute_batch(&format!(
        "BEGIN;
         WITH RECURSIVE n(i) AS (SELECT {from} UNION ALL SELECT i + 1 FROM n WHERE i < {to})
         INSERT INTO instances (tenant, name) SELECT 'acme', 'gw-' || i FROM n;
         INSERT INTO gateways (tenant, gateway_id, instance, created_at)
         SELECT tenant, name, instance, instance FROM instances
         WHERE name LIKE 'gw-%' AND name NOT IN (SELECT gateway_id FROM gateways);
         INSERT INTO gateway_secrets (tenant, gateway_id, sealed, created_at)
         SELECT tenant, gateway_id, randomblob(100), 1 FROM gateways
         WHERE gateway_id LIKE 'gw-%' AND gateway_id NOT IN (SELECT gateway_id FROM gateway_secrets);
         COMMIT;",
        from = numbers.start(),
        to = numbers.end(),
    ))
    .unwrap();
}

/// Every start reads them all, and nobody is served before: ten times as many take ten
/// times as long, and not a hundred times.
#[tokio::test]
async fn ten_thousand_gateways_are_read_at_once() {
    let opened = Opened::new();
    opened.instance("a").await;
    let db = rusqlite::Connection::open(opened.folder.path().join("angelia.db")).unwrap();
    let read = async |count: usize| {
        let begun = clock::mono();
        let gateways = opened.store.gateways().await.unwrap();
        let taken = clock::mono().since(begun);
        assert_eq!(gateways.len(), count + 1);
        assert!(gateways.iter().all(|gateway| gateway.secrets.len() == 1));
        taken
    };
    add_gateways(&db, 1..=1_000);
    let thousand = read(1_000).await;
    add_gateways(&db, 1_001..=10_000);
    let all = read(10_000).await;
    println!("[store] 1,000 gateways read in {thousand:?}, 10,000 in {all:?} (debug build)");
    assert!(all < thousand * 50, "{thousand:?}, then {all:?}");
}
