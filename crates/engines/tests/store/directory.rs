//! Chats, and the messages that others continue.

use super::open::Opened;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::directory::{BotKey, Chat, ChatKind, KnownChat};
use angelia_core::inbox::InstanceId;
use angelia_core::store::{Intake, NoticeKind, Traffic};
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

    pub(crate) fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.folder.path().join("angelia.db")).unwrap()
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
async fn what_does_not_differ_is_not_written() {
    let opened = Opened::new();
    let everything = Intake {
        chats: vec![chat("lab")],
        engaged: Some(("lab".into(), InstanceId(3))),
        ..Intake::default()
    };
    opened.store.take_in(&bot(), None, vec![everything.clone()]).await.unwrap();
    opened
        .raw()
        .execute_batch(
            "CREATE TRIGGER still BEFORE UPDATE ON chats BEGIN SELECT raise(ABORT, 'written'); END",
        )
        .unwrap();
    opened.store.take_in(&bot(), None, vec![everything]).await.unwrap();
    let renamed = Intake { chats: vec![Chat { name: None, ..chat("lab") }], ..Intake::default() };
    assert!(opened.store.take_in(&bot(), None, vec![renamed]).await.is_err(), "the trigger sees a change");
}

#[tokio::test]
async fn chats_with_traffic_are_found_newest_first() {
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
    let all = [row("a", "m4"), row("b", "m2"), row("c", "m3")];
    assert_eq!(recent(0, 10).await, all);
    assert_eq!(recent(30, 10).await, all[..2]);
    assert_eq!(recent(0, 1).await, all[..1]);
    assert_eq!(opened.known(&bot(), "unknown").await, None, "what a chat is is never guessed");
    let plan: String = opened
        .raw()
        .query_row(
            "EXPLAIN QUERY PLAN SELECT * FROM chats WHERE platform = 'p' AND bot = 'b' AND last_at >= 1
             ORDER BY last_at DESC, chat_id LIMIT 9",
            [],
            |row| row.get(3),
        )
        .unwrap();
    assert!(plan.contains("chats_recent"), "{plan}");
}

#[tokio::test]
async fn a_scope_is_forgotten_with_its_chats_and_a_chat_alone() {
    let opened = Opened::new();
    let elsewhere = Chat { scope: Some("other".into()), ..chat("den") };
    // An old guild's first channel has the guild's id: here it belongs to itself.
    let twin = Chat { scope: Some("twin".into()), ..chat("twin") };
    let beside = Chat { scope: Some("twin".into()), ..chat("beside") };
    let guild = Chat::new("guild", ChatKind::Scope);
    opened.learn(&bot(), &[guild, chat("lab"), chat("hall"), elsewhere, twin, beside]).await;
    for told in ["lab", "den"] {
        assert!(opened.store.notice(NoticeKind::Hint, &bot(), told, None).await.unwrap());
    }
    let left = async || -> Vec<&str> {
        let mut left = Vec::new();
        for id in ["guild", "lab", "hall", "den", "twin", "beside"] {
            if opened.known(&bot(), id).await.is_some() {
                left.push(id);
            }
        }
        left
    };
    opened.store.forget_chat(&bot(), "hall").await.unwrap();
    assert_eq!(left().await, ["guild", "lab", "den", "twin", "beside"]);
    opened.store.forget_scope(&BotKey::new("discord", "second"), "guild").await.unwrap();
    assert_eq!(left().await, ["guild", "lab", "den", "twin", "beside"]);
    opened.store.forget_scope(&bot(), "guild").await.unwrap();
    assert_eq!(left().await, ["guild", "den", "twin", "beside"], "its own row belongs to nothing here");
    opened.store.forget_chat(&bot(), "guild").await.unwrap();
    assert_eq!(left().await, ["den", "twin", "beside"]);
    opened.store.forget_chat(&bot(), "twin").await.unwrap();
    assert_eq!(left().await, ["den", "beside"]);
    opened.store.forget_scope(&bot(), "other").await.unwrap();
    assert_eq!(left().await, ["beside"], "a scope that nobody described");
    let again = opened.store.notice(NoticeKind::Hint, &bot(), "lab", None).await.unwrap();
    assert!(again, "who comes back may be told again");
}

#[tokio::test]
async fn the_pieces_of_a_message_are_kept_for_a_month() {
    let opened = Opened::new();
    let keep = async |chat: &str, message: &str, pieces: &[&str]| {
        let pieces = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        opened.store.keep_pieces(&bot(), chat, message, pieces).await.unwrap();
    };
    let pieces = async |chat: &str, message: &str| -> Vec<String> {
        opened.store.pieces(&bot(), chat, message).await.unwrap()
    };
    keep("lab", "m1", &["m2", "m3"]).await;
    keep("den", "m1", &["m9"]).await;
    assert_eq!(pieces("lab", "m1").await, ["m2", "m3"]);
    keep("lab", "m1", &["m2"]).await;
    assert_eq!(pieces("lab", "m1").await, ["m2"]);
    keep("lab", "m1", &[]).await;
    assert!(pieces("lab", "m1").await.is_empty());
    keep("lab", "m5", &["m6"]).await;
    let long_ago = clock::wall().before(Duration::from_secs(31 * 24 * 3600)).0;
    opened.raw().execute("UPDATE pieces SET at = ? WHERE chat_id = 'den'", [long_ago]).unwrap();
    opened.store.prune().await.unwrap();
    assert!(pieces("den", "m1").await.is_empty());
    assert_eq!(pieces("lab", "m5").await, ["m6"]);
}
