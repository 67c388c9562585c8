//! What one tenant may keep on disk, and who is refused beyond it.

use super::identity::{by, gateway};
use super::open::{Opened, entry};
use super::vault::{notify, send};
use angelia_core::egress::ActionState;
use angelia_core::error::Kind;
use angelia_core::inbox::{Quota, WhenFull};
use angelia_core::store::{ActionOutcome, NewAction, NewEntry};

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
        let accepted = opened.store.accept_actions(vec![action("acme", 10_000)]).await;
        let id = accepted.unwrap_or_else(|error| panic!("round {round}: {error}"))[0].id;
        opened.store.finish_action(id, sent()).await.unwrap();
    }
    // What is not finished stays, and fills it up.
    let mut accepted = 0;
    let refused = loop {
        match opened.store.accept_actions(vec![action("acme", 10_000)]).await {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(accepted, 9);
    assert_eq!(refused.kind(), Kind::TooMany);
    assert!(refused.to_string().contains("limits.tenant_disk"), "{refused}");
    assert!(opened.store.accept_actions(vec![action("globex", 10_000)]).await.is_ok(), "another tenant");
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
    }
    assert_eq!(taken, 9);
    // A stream cannot be refused: the chat that holds most gives way, as much as was written.
    opened.store.append(message(0, "small", WhenFull::MakeRoom)).await.unwrap();
    let waiting = opened.store.usage(instance).await.unwrap();
    assert_eq!((waiting.entries, waiting.bytes), (9, 90_000));
    let theirs = NewEntry { tenant: "globex".into(), ..entry(other, "m") };
    assert!(opened.store.append(theirs).await.is_ok(), "another tenant");
}
