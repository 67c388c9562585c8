//! What one tenant may keep on disk, and who is refused beyond it.

use super::identity::{by, gateway};
use super::open::{ME, Opened, entry};
use super::vault::{notify, send};
use angelia_core::egress::ActionState;
use angelia_core::error::Kind;
use angelia_core::inbox::{Quota, Seq, WhenFull};
use angelia_core::store::{ActionOutcome, IdentityStore, NewAction, NewEntry, PageSize};
use futures_util::future::join_all;

const QUOTA: Quota = Quota {
    age: std::time::Duration::from_secs(3600),
    entries: 1_000_000,
    bytes: 1 << 30,
    tenant_bytes: 100_000,
};

fn sent() -> ActionOutcome {
    ActionOutcome { state: ActionState::Sent, message_id: Some("m".into()), error: None }
}

#[tokio::test]
async fn finished_actions_are_forgotten_and_then_the_tenant_is_refused_and_nobody_else() {
    let opened = Opened::with(QUOTA);
    let instance = opened.instance("a").await;
    let action = |tenant: &str, bytes: usize| NewAction {
        tenant: tenant.into(),
        answering: None,
        body: vec![b'x'; bytes],
        ..send(instance, notify())
    };
    // A hundred times the quota goes through it, one after the other.
    for round in 0..1_000 {
        let accepted = opened.store.accept(ME, vec![action("acme", 10_000)]).await;
        let id = accepted.unwrap_or_else(|error| panic!("round {round}: {error}"))[0].id;
        opened.store.finish(ME, vec![(id, sent())]).await.unwrap();
    }
    // What is not finished stays, and fills it up.
    let mut accepted = 0;
    let refused = loop {
        assert!(accepted < 20, "it has no end");
        match opened.store.accept(ME, vec![action("acme", 10_000)]).await {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(accepted, 9);
    assert_eq!(refused.kind(), Kind::TooMany);
    assert!(refused.to_string().contains("limits.tenant_disk"), "{refused}");
    assert!(opened.store.accept(ME, vec![action("globex", 10_000)]).await.is_ok(), "another tenant");
}

#[tokio::test]
async fn nothing_is_forgotten_of_anybody_else() {
    let opened = Opened::with(QUOTA);
    let instance = opened.instance("a").await;
    let accept = async |tenant: &str, bytes: usize| {
        let action = NewAction {
            tenant: tenant.into(),
            answering: None,
            body: vec![b'x'; bytes],
            ..send(instance, notify())
        };
        opened.store.accept(ME, vec![action]).await.map(|accepted| accepted[0].id)
    };
    let theirs = accept("globex", 10).await.unwrap();
    opened.store.finish(ME, vec![(theirs, sent())]).await.unwrap();
    accept("acme", 90_000).await.unwrap();
    assert!(accept("acme", 90_000).await.is_err());
    let kept = "SELECT count(*) FROM actions WHERE tenant = 'globex'";
    assert_eq!(opened.raw().query_row(kept, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
}

#[tokio::test]
async fn a_message_is_refused_where_its_sender_can_be_told_and_makes_room_elsewhere() {
    let opened = Opened::with(QUOTA);
    let instance = opened.instance("a").await;
    opened.store.create_tenant("globex", None, &by()).await.unwrap();
    let other = opened.store.create_gateway(gateway("globex", "b"), &by()).await.unwrap().instance;
    let message = |n: usize, chat: &str, when_full| NewEntry {
        chat_id: chat.into(),
        body: vec![b'x'; 10_000].into(),
        when_full,
        ..entry(instance, &format!("{chat}-{n}"))
    };
    let mut taken = 0;
    while opened.store.append(message(taken, "big", WhenFull::Refuse)).await.is_ok() {
        taken += 1;
        assert!(taken < 20, "it has no end");
    }
    assert_eq!(taken, 7, "each takes three pages, and rows besides");
    // A stream cannot be refused: the chat that holds most gives way, as much as was written.
    opened.store.append(message(0, "small", WhenFull::MakeRoom)).await.unwrap();
    let waiting = opened.store.usage(instance).await.unwrap();
    assert_eq!((waiting.entries, waiting.bytes), (7, 70_000));
    let left = opened.store.load(instance, Seq(0), &[], PageSize::of(20)).await.unwrap();
    assert!(left.iter().any(|entry| &*entry.chat_id == "small"), "not the one that holds little");
    let theirs = NewEntry { tenant: "globex".into(), ..entry(other, "m") };
    assert!(opened.store.append(theirs).await.is_ok(), "another tenant");
}

/// What a tenant's rows may take in the tests that look at the database itself.
const SHARE: u64 = 4 << 20;

impl Opened {
    /// What the database holds, without what is free in it.
    fn held_on_disk(&self) -> u64 {
        let pragma =
            |name: &str| self.raw().pragma_query_value(None, name, |row| row.get::<_, u64>(0)).unwrap();
        (pragma("page_count") - pragma("freelist_count")) * pragma("page_size")
    }

    /// That the share of a tenant that has used it up is what it really takes, more or less.
    fn assert_share(&self, empty: u64, what: &str) {
        let really = self.held_on_disk() - empty;
        println!("{what}: {really} bytes on the disk for a share of {SHARE}");
        let bounds = SHARE * 2 / 3..=SHARE * 3 / 2;
        assert!(bounds.contains(&really), "{what}: {really} bytes on the disk for a share of {SHARE}");
    }
}

fn long(number: usize) -> String {
    format!("{number:0>512}")
}

/// One case: how a row of the ledger is made longer, how its message is named, how many are written.
type Case = (&'static str, fn(NewAction, usize) -> NewAction, fn(usize) -> String, usize);

#[tokio::test]
async fn what_is_counted_of_the_ledger_is_what_it_takes() {
    let cases: [Case; 4] = [
        ("small", |action, _| action, |n| n.to_string(), 40_000),
        (
            "long replies",
            |action, n| NewAction { reply_to: Some(long(n)), ..action },
            |n| n.to_string(),
            5_000,
        ),
        (
            "long edits",
            |action, n| NewAction { edits: Some(long(n)), thread_id: Some(long(n)), ..action },
            long,
            2_000,
        ),
        ("long ids", |action, _| action, long, 5_000),
    ];
    for (what, change, message_id, rows) in cases {
        let opened = Opened::with(Quota { tenant_bytes: SHARE, ..QUOTA });
        let instance = opened.instance("a").await;
        let empty = opened.held_on_disk();
        for first in (0..rows).step_by(250) {
            let actions = (first..first + 250).map(|n| {
                let action = NewAction { answering: None, ..send(instance, notify()) };
                change(action, n)
            });
            let accepted = opened.store.accept(ME, actions.collect()).await.unwrap();
            let ends = accepted.iter().enumerate().map(|(n, action)| {
                let outcome = ActionOutcome { message_id: Some(message_id(first + n)), ..sent() };
                (action.id, outcome)
            });
            opened.store.finish(ME, ends.collect()).await.unwrap();
        }
        opened.assert_share(empty, what);
    }
}

#[tokio::test]
async fn what_is_counted_of_inboxes_is_what_they_take() {
    for (what, body, id) in [
        ("small", 100, (|n| n.to_string()) as fn(usize) -> String),
        ("middling", 1_200, |n| n.to_string()),
        ("long ids", 100, long),
    ] {
        let opened = Opened::with(Quota { tenant_bytes: SHARE, ..QUOTA });
        let instance = opened.instance("a").await;
        let empty = opened.held_on_disk();
        let message = |n: usize| NewEntry {
            body: vec![b'x'; body].into(),
            when_full: WhenFull::Refuse,
            ..entry(instance, &id(n))
        };
        let mut full = false;
        for first in (0..).step_by(200).take_while(|first| *first < 20_000) {
            let written = join_all((first..first + 200).map(|n| opened.store.append(message(n)))).await;
            full = written.iter().any(Result::is_err);
            if full {
                break;
            }
        }
        assert!(full, "{what}");
        opened.assert_share(empty, what);
    }
}

#[tokio::test]
async fn a_message_is_not_kept_out_by_what_can_be_forgotten() {
    let opened = Opened::with(QUOTA);
    let instance = opened.instance("a").await;
    for _ in 0..20 {
        let actions = (0..50).map(|n| {
            let reply_to = Some(long(n));
            NewAction { answering: None, reply_to, ..send(instance, notify()) }
        });
        let accepted = opened.store.accept(ME, actions.collect()).await.unwrap();
        let ends = accepted.iter().map(|action| (action.id, sent())).collect();
        opened.store.finish(ME, ends).await.unwrap();
    }
    let message = |n: usize, bytes: usize| NewEntry {
        body: vec![b'x'; bytes].into(),
        when_full: WhenFull::Refuse,
        ..entry(instance, &format!("m{n}"))
    };
    opened.store.append(message(0, 30_000)).await.expect("what is only remembered makes room");
    let mut number = 1;
    let refused = loop {
        match opened.store.append(message(number, 10_000)).await {
            Ok(_) => number += 1,
            Err(error) => break error,
        }
    };
    assert!(refused.to_string().contains("share of the server's disk"), "it says what is full: {refused}");
    assert_eq!(refused.kind(), Kind::Unavailable);
}

#[tokio::test]
async fn a_stream_that_cannot_be_refused_does_not_creep_past_the_share() {
    let opened = Opened::with(QUOTA);
    let instance = opened.instance("a").await;
    let empty = opened.held_on_disk();
    let message =
        |n: usize| NewEntry { body: vec![b'x'; 500].into(), ..entry(instance, &format!("m{n:05}")) };
    for first in (0..4_000).step_by(200) {
        let written = join_all((first..first + 200).map(|n| opened.store.append(message(n)))).await;
        assert!(written.iter().all(Result::is_ok));
    }
    let (waiting, really) = (opened.store.usage(instance).await.unwrap(), opened.held_on_disk() - empty);
    assert!(waiting.entries > 80, "the newest wait: {waiting:?}");
    assert!(really < 200_000, "{really} bytes on the disk for a share of 100,000");
}
