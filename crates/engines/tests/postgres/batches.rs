//! What is hot is done for many at once, and two nodes do it to one database.

use super::directory::bot;
use super::identity::by;
use super::open::{ME, Opened, another, entry};
use super::vault::{notify, send};
use angelia_core::clock::{self, UnixMillis};
use angelia_core::egress::ActionState;
use angelia_core::inbox::{Epoch, InstanceId, Seq, SettledBy};
use angelia_core::ports::Ledger;
use angelia_core::ports::log::{OpenTurn, Ownership, TurnNote};
use angelia_core::store::{
    ActionOutcome, Appended, Cursor, Ingest, Intake, Lines, Log, NewAction, NewEntry, PageSize, Person,
    RoomStore, Settlement, Traffic, Upkeep,
};
use angelia_core::turns::ConversationKey;
use angelia_engines::store::postgres::Postgres;
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::sync::Arc;

fn settled(seq: angelia_core::inbox::Seq) -> Settlement {
    Settlement { seq, by: SettledBy::Ack, pushed_at: Some(clock::wall()) }
}

/// A message goes in and out, and is answered.
async fn one_of_each(store: Arc<Postgres>, instance: InstanceId, name: String) {
    let Appended::New(seq) = store.append(entry(instance, &name)).await.unwrap() else { panic!("new") };
    store.settle(instance, Epoch(0), vec![settled(seq)]).await.unwrap();
    let action = NewAction { answering: None, ..send(instance, notify()) };
    let id = store.accept(ME, vec![action]).await.unwrap()[0].id;
    assert!(store.begin(ME, id).await.unwrap());
    let sent = ActionOutcome { state: ActionState::Sent, message_id: Some(name.clone()), error: None };
    assert!(store.finish(ME, vec![(id, sent)]).await.unwrap().is_empty());
    let cursor = Some(Cursor { stream: "updates".into(), position: name.clone() });
    let traffic = vec![Traffic { chat_id: "lab".into(), message_id: name.clone(), at: clock::wall() }];
    let entry = Some(entry(instance, &format!("taken {name}")));
    let taken =
        store.take_in(&bot(), None, vec![Intake { entry, cursor, traffic, ..Intake::default() }]).await;
    assert!(matches!(taken.unwrap()[0].appended, Some(Appended::New(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_usual_is_done_for_many_at_once() {
    const MANY: usize = 300;
    let opened = Opened::new();
    let instance = opened.instance("a").await;
    let (node, _) = another(&opened);
    let began = clock::mono();
    join_all((0..MANY).map(|n| tokio::spawn(one_of_each(node.clone(), instance, format!("m{n}"))))).await;
    let took = clock::mono().since(began);
    // A batch is counted when everybody in it was answered.
    while node.hot_writes().together + node.hot_writes().one_by_one < 6 * MANY as u64 {
        tokio::task::yield_now().await;
    }
    let did = node.hot_writes();
    println!("{} hot writes in {took:?}: {did:?}", 6 * MANY);
    assert_eq!((did.together, did.one_by_one), (6 * MANY as u64, 0), "{did:?}");
    assert!(did.batches < did.together / 2, "{did:?}");
    assert_eq!(node.usage(instance).await.unwrap().entries, MANY as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_number_one_log_without_a_gap() {
    const EACH: usize = 200;
    let opened = Opened::new();
    let instance = opened.instance("a").await;
    let nodes = [another(&opened), another(&opened)];
    let appends =
        (0..EACH).flat_map(|n| nodes.iter().enumerate().map(move |(at, (node, _))| (n, at, node.clone())));
    let appended = join_all(appends.map(|(n, at, node)| {
        // Every tenth comes to both.
        let name = if n % 10 == 0 { format!("both {n}") } else { format!("{at} {n}") };
        tokio::spawn(async move { node.append(entry(instance, &name)).await.unwrap() })
    }));
    let appended: Vec<Appended> = appended.await.into_iter().map(Result::unwrap).collect();
    let new: BTreeSet<i64> = appended
        .iter()
        .filter_map(|it| if let Appended::New(seq) = it { Some(seq.0) } else { None })
        .collect();
    let seen = appended.iter().filter(|it| matches!(it, Appended::Seen(_))).count();
    assert_eq!((new.len(), seen), (2 * EACH - EACH / 10, EACH / 10));
    assert_eq!(new, (1..=new.len() as i64).collect(), "numbers are dense");
    let waiting =
        opened.store.load(instance, angelia_core::inbox::Seq(0), &[], PageSize::of(1_000)).await.unwrap();
    assert_eq!(waiting.len(), new.len());
    assert_eq!(opened.store.usage(instance).await.unwrap().entries, new.len() as u64);
    let heard: usize = nodes.iter().map(|(_, witness)| witness.appended.lock().unwrap().len()).sum();
    assert_eq!(heard, new.len(), "each is told of once");
}

/// Statements count in the database what is counted here, or what is kept of tenants drifts.
#[tokio::test]
async fn what_rows_take_is_counted_alike_here_and_there() {
    let opened = Opened::new();
    let instance = opened.instance("a").await;
    let (node, _) = another(&opened);
    let usage = || opened.number("SELECT coalesce(sum(bytes), 0) FROM tenant_usage");
    let long_ago = UnixMillis(clock::wall().0 - 40 * 24 * 3_600_000);
    let mut left = BTreeSet::new();
    for bytes in [0, 1, 10, 300, 700, 853, 854, 855, 990, 3_900, 4_061, 4_100, 5_000, 8_192, 65_536] {
        let body = vec![b'x'; bytes];
        let new = NewEntry { body: body.into(), received_at: long_ago, ..entry(instance, "m") };
        let Appended::New(seq) = node.append(new).await.unwrap() else { panic!("new") };
        node.settle(instance, Epoch(0), vec![settled(seq)]).await.unwrap();
        left.insert(usage());
        node.prune().await.unwrap();
        assert_eq!(usage(), 0, "{bytes}");
    }
    assert_eq!(left.len(), 1, "what the journal remembers is as long whatever was said: {left:?}");
    for bytes in [0, 1, 300, 900, 3_900, 4_100, 9_000, 65_536] {
        let reply_to = (bytes % 2 == 0).then(|| "r".repeat(bytes / 10));
        let action = NewAction {
            answering: None,
            body: vec![b'x'; bytes],
            reply_to,
            received_at: long_ago,
            ..send(instance, notify())
        };
        let id = node.accept(ME, vec![action]).await.unwrap()[0].id;
        let sent =
            ActionOutcome { state: ActionState::Sent, message_id: Some("m".repeat(bytes / 20)), error: None };
        node.finish(ME, vec![(id, sent)]).await.unwrap();
        assert!(usage() > 0);
        node.prune().await.unwrap();
        assert_eq!(usage(), 0, "{bytes}");
    }
    assert_eq!(node.hot_writes().one_by_one, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_open_and_close_for_many_at_once() {
    const MANY: usize = 60;
    let opened = Opened::new();
    let mut instances = Vec::new();
    for n in 0..MANY {
        instances.push(opened.instance(&format!("g{n}")).await);
    }
    let (node, _) = another(&opened);
    let mut epochs = Vec::new();
    for instance in &instances {
        epochs.push(node.claim(*instance, "node").await.unwrap().epoch);
    }
    let before = node.hot_writes();
    let noting = instances.iter().zip(epochs.clone()).map(|(instance, epoch)| {
        let (node, instance) = (node.clone(), *instance);
        tokio::spawn(async move {
            let notes =
                [("a", "m1"), ("b", "m2"), ("a", "m3")].map(|(key, id)| TurnNote::Opened(turn(key, id)));
            let closed = TurnNote::Closed(turn("b", "m2").conversation);
            let noted = node.note_turns(instance, epoch, notes.into_iter().chain([closed]).collect()).await;
            assert_eq!(noted.unwrap(), Ownership::Ours);
            let late = node.note_turns(instance, Epoch(epoch.0 - 1), vec![TurnNote::Opened(turn("c", "m4"))]);
            assert_eq!(late.await.unwrap(), Ownership::Lost);
        })
    });
    join_all(noting).await.into_iter().for_each(|done| done.unwrap());
    for instance in instances {
        let open = node.open_turns(instance).await.unwrap();
        assert_eq!(open, [turn("a", "m3")], "the last word counts, and nothing under an older epoch");
    }
    let did = node.hot_writes();
    assert!(did.together - before.together >= MANY as u64, "{did:?}");
    assert!(did.batches - before.batches < MANY as u64, "{did:?}");
}

/// A turn of a conversation, which a message began.
fn turn(session_key: &str, message_id: &str) -> OpenTurn {
    OpenTurn {
        conversation: ConversationKey { chat_id: "web-lab".into(), session_key: Some(session_key.into()) },
        platform: "webchat".into(),
        bot: "webchat".into(),
        thread_id: None,
        seq: Seq(1),
        message_id: message_id.into(),
        author: Some("ann".into()),
        asks: false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_who_shows_a_key_is_recognised_as_they_are_now() {
    const MANY: u8 = 120;
    let opened = Opened::new();
    let (node, _) = another(&opened);
    let person = |n: u8| Person { room: format!("room {}", n % 40), user: format!("p{n}") };
    for n in 0..MANY {
        opened.store.invite(person(n), [n; 32], &by()).await.unwrap();
    }
    let look = async || {
        let looking = (0..=MANY).flat_map(|n| [n, n]).map(|n| {
            let node = node.clone();
            tokio::spawn(async move { (n, node.person([n; 32]).await.unwrap()) })
        });
        join_all(looking).await.into_iter().map(|it| it.unwrap()).collect::<Vec<_>>()
    };
    for (n, guest) in look().await {
        assert_eq!(guest.as_ref().map(|it| it.person.clone()), (n < MANY).then(|| person(n)));
        assert!(guest.is_none_or(|it| !it.alone && it.first == (n < 40)));
    }
    opened.store.uninvite(person(7), &by()).await.unwrap();
    let left: Vec<u8> = look().await.into_iter().filter(|it| it.1.is_none()).map(|it| it.0).collect();
    assert_eq!(left, [7, 7, MANY, MANY], "from the moment a key is void");
}
