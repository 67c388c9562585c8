//! What people are told: what goes with a tenant, and what waits for too long.

use super::directory::{bot, chat};
use super::identity::by;
use super::open::{Opened, entry};
use angelia_core::clock;
use angelia_core::directory::ChatKind;
use angelia_core::inbox::{EntryKind, Epoch, InstanceId, Seq};
use angelia_core::store::{IdentityStore, NewEntry, NoticeKind, NoticeStore, Overdue, Returned};
use std::time::Duration;

#[tokio::test]
async fn notices_go_with_the_tenant() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    for (kind, instance) in [(NoticeKind::Away, Some(a)), (NoticeKind::Hint, None)] {
        opened.store.notice(kind, &bot(), "lab", instance).await.unwrap();
    }
    opened.store.remove_tenant("acme", Vec::new(), &by()).await.unwrap();
    opened.store.finish_removals().await.unwrap();
    assert!(opened.store.noticed().await.unwrap().is_empty());
    assert!(opened.store.notice(NoticeKind::Away, &bot(), "lab", Some(InstanceId(9))).await.unwrap());
    assert!(!opened.store.notice(NoticeKind::Hint, &bot(), "lab", None).await.unwrap());
}

#[tokio::test]
async fn what_waits_for_too_long_is_found_in_order() {
    let opened = Opened::new();
    let (a, b) = (opened.instance("a").await, opened.instance("b").await);
    opened.learn(&bot(), &[chat("lab")]).await;
    let waits = |instance, id: &str, chat: &str, at: u64, body: &str| NewEntry {
        platform: "discord".into(),
        bot: "main".into(),
        chat_id: chat.into(),
        received_at: clock::wall().before(Duration::from_secs(at * 60)),
        body: body.to_owned().into(),
        ..entry(instance, id)
    };
    let entries = [
        waits(a, "m1", "lab", 90, r#"{"source":{"thread_id":"t1"}}"#),
        waits(a, "m2", "den", 80, r#"{"source":{"thread_id":null}}"#),
        NewEntry { kind: EntryKind::Stop, ..waits(a, "m3", "lab", 80, "{}") },
        waits(b, "m4", "lab", 90, "{}"),
        waits(a, "m5", "lab", 68, "{}"),
        waits(a, "m6", "lab", 70, "no json"),
        waits(a, "dead", "lab", 90, "{}"),
    ];
    for entry in entries {
        opened.store.append(entry).await.unwrap();
    }
    for _ in 0..3 {
        let strike = Returned { entries: Vec::new(), strike: Some(Seq(6)) };
        opened.store.returned(a, Epoch(0), strike).await.unwrap();
    }
    let found = async |after, minutes: u64, limit| -> Vec<Overdue> {
        opened.store.overdue(a, Seq(after), Duration::from_secs(minutes * 60), limit).await.unwrap()
    };
    let expected = |seq, chat: &str, thread: Option<&str>, id: &str, kind| Overdue {
        seq: Seq(seq),
        bot: bot(),
        chat_id: chat.into(),
        thread_id: thread.map(str::to_owned),
        message_id: id.into(),
        kind,
    };
    let all = [
        expected(1, "lab", Some("t1"), "m1", Some(ChatKind::Group)),
        expected(2, "den", None, "m2", None),
        expected(5, "lab", None, "m6", Some(ChatKind::Group)),
    ];
    assert_eq!(found(0, 70, 10).await, all);
    assert_eq!(found(1, 70, 10).await, all[1..]);
    assert_eq!(found(0, 70, 2).await, all[..2]);
    assert_eq!(found(0, 85, 10).await, all[..1]);
    assert_eq!(found(0, 0, 10).await.len(), 4, "all of them, just now ones too");
}
