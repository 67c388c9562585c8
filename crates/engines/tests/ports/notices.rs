//! What people are told once.

use crate::store::directory::bot;
use angelia_core::directory::BotKey;
use angelia_core::inbox::InstanceId;
use angelia_core::records::Records;
use angelia_core::store::{NoticeKind, NoticeStore};

async fn a_chat_is_told_once_until_the_outage_is_over(records: &(impl Records + ?Sized)) {
    let (a, b) = (InstanceId(1), InstanceId(2));
    let away = async |chat: &str, instance| {
        records.notice(NoticeKind::Away, &bot(), chat, Some(instance)).await.unwrap()
    };
    assert!(records.noticed().await.unwrap().is_empty());
    assert!(away("lab", a).await);
    assert!(!away("lab", a).await);
    assert!(away("den", b).await);
    assert!(records.notice(NoticeKind::Hint, &bot(), "lab", None).await.unwrap(), "another thing");
    let second = BotKey::new("telegram", "7");
    assert!(records.notice(NoticeKind::Away, &second, "lab", Some(a)).await.unwrap());
    assert_eq!(records.noticed().await.unwrap(), [a, b]);
    records.end_notices(a).await.unwrap();
    assert_eq!(records.noticed().await.unwrap(), [b]);
    assert!(away("lab", a).await, "the next outage is told again");
    assert!(!away("den", b).await, "another instance's goes on");
    assert!(!records.notice(NoticeKind::Hint, &bot(), "lab", None).await.unwrap(), "once per place");
    records.clear_notice(NoticeKind::Hint, &bot(), "lab").await.unwrap();
    assert!(!records.was_noticed(NoticeKind::Hint, &bot(), "lab").await.unwrap());
    assert!(records.notice(NoticeKind::Hint, &bot(), "lab", None).await.unwrap());
    assert!(records.was_noticed(NoticeKind::Hint, &bot(), "lab").await.unwrap());
    assert!(!records.was_noticed(NoticeKind::Stopped, &bot(), "lab").await.unwrap());
    assert!(!away("lab", a).await, "only what could not be told is forgotten");
}

async fn every_instance_that_told_something_is_found_however_many_chats_it_told(
    records: &(impl Records + ?Sized),
) {
    let mut expected = Vec::new();
    for (instance, chats) in [(3, 1), (5, 230), (7, 2), (8, 100), (9, 1)] {
        for chat in 0..chats {
            let (chat, instance) = (format!("{instance}-{chat}"), Some(InstanceId(instance)));
            assert!(records.notice(NoticeKind::Away, &bot(), &chat, instance).await.unwrap());
        }
        expected.push(InstanceId(instance));
    }
    assert_eq!(records.noticed().await.unwrap(), expected);
    records.end_notices(InstanceId(5)).await.unwrap();
    expected.remove(1);
    assert_eq!(records.noticed().await.unwrap(), expected);
}

on_every_engine!(
    a_chat_is_told_once_until_the_outage_is_over,
    every_instance_that_told_something_is_found_however_many_chats_it_told,
);
