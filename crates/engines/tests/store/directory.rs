//! What bots learn of chats while they read, and for how long it is kept.

use super::open::Opened;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::directory::{BotKey, Chat, ChatKind, KnownChat};
use angelia_core::inbox::InstanceId;
use angelia_core::own_words::Language;
use angelia_core::store::{DirectoryStore, Intake, Traffic};
use std::time::Duration;

pub(crate) fn bot() -> BotKey {
    BotKey::new("discord", "main")
}

pub(crate) fn chat(chat_id: &str) -> Chat {
    Chat {
        parent: Some("category".into()),
        scope: Some("guild".into()),
        name: Some(format!("name of {chat_id}")),
        topic: Some("topic".into()),
        ..Chat::new(chat_id, ChatKind::Group)
    }
}

pub(crate) fn seen(chat_id: &str, message_id: &str, at: i64) -> Traffic {
    Traffic { chat_id: chat_id.into(), message_id: message_id.into(), at: UnixMillis(at) }
}

impl Opened {
    pub(crate) async fn learn(&self, bot: &BotKey, chats: &[Chat]) {
        let intake = Intake { chats: chats.to_vec(), ..Intake::default() };
        self.store.take_in(bot, None, vec![intake]).await.unwrap();
    }

    pub(crate) async fn known(&self, bot: &BotKey, chat_id: &str) -> Option<KnownChat> {
        self.store.chat(bot, chat_id).await.unwrap()
    }
}

#[tokio::test]
async fn a_chat_is_known_after_a_restart_and_only_to_its_bot() {
    let opened = Opened::new();
    let guild = Chat { roles: vec!["r1".into(), "r2".into()], ..Chat::new("guild", ChatKind::Scope) };
    let dm = Chat { person: Some("ann".into()), ..Chat::new("dm", ChatKind::Dm) };
    opened.learn(&bot(), &[guild.clone(), chat("lab"), dm.clone()]).await;
    let opened = opened.reopen();
    for known in [guild, chat("lab"), dm] {
        assert_eq!(opened.known(&bot(), &known.chat_id).await, Some(known.into()));
    }
    assert_eq!(opened.known(&bot(), "nowhere").await, None);
    for other in [BotKey::new("discord", "second"), BotKey::new("telegram", "main")] {
        assert_eq!(opened.known(&other, "lab").await, None);
    }
}

#[tokio::test]
async fn new_facts_leave_what_was_seen() {
    let opened = Opened::new();
    let first = Intake {
        chats: vec![chat("lab")],
        traffic: vec![seen("lab", "m5", 50)],
        engaged: Some(("lab".into(), InstanceId(3))),
        ..Intake::default()
    };
    opened.store.take_in(&bot(), None, vec![first]).await.unwrap();
    let renamed = Chat { name: None, topic: Some("other".into()), kind: ChatKind::Thread, ..chat("lab") };
    opened.learn(&bot(), std::slice::from_ref(&renamed)).await;
    let expected = KnownChat {
        chat: renamed,
        moved_to: None,
        engaged: Some(InstanceId(3)),
        last_message: Some("m5".into()),
        last_at: Some(UnixMillis(50)),
    };
    assert_eq!(opened.known(&bot(), "lab").await, Some(expected));
}

#[tokio::test]
async fn a_language_stays_until_another_one_is_told() {
    let opened = Opened::new();
    let said = |language, name: &str| Chat { language, name: Some(name.into()), ..chat("lab") };
    let spoken = async || opened.known(&bot(), "lab").await.unwrap().chat.language;
    opened.learn(&bot(), &[said(None, "lab")]).await;
    assert_eq!(spoken().await, None);
    opened.learn(&bot(), &[said(Some(Language::German), "lab")]).await;
    opened.learn(&bot(), &[said(None, "renamed")]).await;
    assert_eq!(spoken().await, Some(Language::German), "who says nothing of it changes nothing");
    opened.learn(&bot(), &[said(Some(Language::English), "renamed")]).await;
    assert_eq!(spoken().await, Some(Language::English));
}

#[tokio::test]
async fn what_does_not_differ_is_not_written() {
    let opened = Opened::new();
    let everything = Intake {
        chats: vec![chat("lab")],
        engaged: Some(("lab".into(), InstanceId(3))),
        ..Intake::default()
    };
    opened.store.take_in(&bot(), None, vec![everything.clone()]).await.unwrap();
    opened.refuse("UPDATE", "chats", "1 = 1");
    opened.store.take_in(&bot(), None, vec![everything]).await.unwrap();
    let renamed = Intake { chats: vec![Chat { name: None, ..chat("lab") }], ..Intake::default() };
    assert!(opened.store.take_in(&bot(), None, vec![renamed]).await.is_err(), "the trigger sees a change");
}

#[tokio::test]
async fn the_newest_message_of_a_known_chat_counts() {
    let opened = Opened::new();
    opened.learn(&bot(), &[chat("a"), chat("b"), chat("c"), chat("quiet")]).await;
    opened.learn(&BotKey::new("discord", "second"), &[chat("a")]).await;
    let traffic = vec![
        seen("a", "m1", 10),
        seen("b", "m2", 30),
        seen("c", "m3", 20),
        seen("a", "m4", 40),
        seen("b", "old", 29),
        seen("unknown", "m5", 90),
    ];
    opened.store.take_in(&bot(), None, vec![Intake { traffic, ..Intake::default() }]).await.unwrap();
    let recent = async |since, limit| -> Vec<(String, Option<String>)> {
        let chats = opened.store.recent_chats(&bot(), UnixMillis(since), limit).await.unwrap();
        chats.into_iter().map(|known| (known.chat.chat_id, known.last_message)).collect()
    };
    let row = |chat: &str, message: &str| (chat.to_owned(), Some(message.to_owned()));
    assert_eq!(recent(0, 10).await, [row("a", "m4"), row("b", "m2"), row("c", "m3")]);
    assert_eq!(opened.known(&bot(), "unknown").await, None, "what a chat is is never guessed");
}

#[tokio::test]
async fn the_pieces_of_a_message_are_kept_for_a_month() {
    let opened = Opened::new();
    for (chat, message) in [("den", "m1"), ("lab", "m5")] {
        opened.store.keep_pieces(&bot(), chat, message, vec!["m6".into()]).await.unwrap();
    }
    let long_ago = clock::wall().before(Duration::from_secs(31 * 24 * 3600)).0;
    opened.sql(&format!("UPDATE pieces SET at = {long_ago} WHERE chat_id = 'den'"));
    opened.store.prune().await.unwrap();
    assert!(opened.store.pieces(&bot(), "den", "m1").await.unwrap().is_empty());
    assert_eq!(opened.store.pieces(&bot(), "lab", "m5").await.unwrap(), ["m6"]);
}
