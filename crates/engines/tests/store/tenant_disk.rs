//! What one tenant may keep on disk, and who is refused beyond it.

use super::identity::{by, gateway};
use super::open::{ME, Opened, entry};
use super::vault::{notify, send};
use angelia_core::egress::ActionState;
use angelia_core::error::Kind;
use angelia_core::inbox::{Quota, Seq, WhenFull};
use angelia_core::store::{ActionOutcome, IdentityStore, NewAction, NewEntry, PageSize};

pub(crate) const QUOTA: Quota = Quota {
    age: std::time::Duration::from_secs(3600),
    entries: 1_000_000,
    bytes: 1 << 30,
    tenant_bytes: 100_000,
};

pub(crate) fn sent() -> ActionOutcome {
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
    assert_eq!(opened.number(kept), 1);
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

#[tokio::test]
async fn a_message_is_not_kept_out_by_what_can_be_forgotten() {
    let opened = Opened::with(QUOTA);
    let instance = opened.instance("a").await;
    for _ in 0..20 {
        let actions = (0..50).map(|n| {
            let reply_to = Some(format!("{n:0>512}"));
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
