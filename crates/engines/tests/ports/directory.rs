//! Chats, and the messages that others continue: what is found of them and what is forgotten.

use crate::store::directory::{bot, chat};
use angelia_core::clock::UnixMillis;
use angelia_core::directory::{BotKey, Chat, ChatKind, KnownChat};
use angelia_core::inbox::InstanceId;
use angelia_core::records::rows::ChatRow;
use angelia_core::records::{Change, Records, change};
use angelia_core::store::{DirectoryStore, NoticeKind, NoticeStore, StreamStore};
use futures_util::future::join_all;

/// What a bot learnt of chats before.
pub(super) async fn knows(records: &(impl Records + ?Sized), bot: &BotKey, chats: &[KnownChat]) {
    let rows: Vec<ChatRow> = chats.iter().map(|known| ChatRow::of(bot, known)).collect();
    let known = change(records, Change::to("learn"), move |view| {
        rows.iter().for_each(|row| view.put(row));
        Ok(())
    });
    known.await.unwrap();
}

async fn a_chat_is_known_as_it_was_learnt_and_only_to_its_bot(records: &(impl Records + ?Sized)) {
    let guild = Chat { roles: vec!["r1".into(), "r2".into()], ..Chat::new("guild", ChatKind::Scope) };
    let dm = Chat { person: Some("ann".into()), ..Chat::new("dm", ChatKind::Dm) };
    let lab = KnownChat {
        chat: chat("lab"),
        moved_to: Some("other".into()),
        engaged: Some(InstanceId(3)),
        last_message: Some("m5".into()),
        last_at: Some(UnixMillis(50)),
    };
    let all = [guild.into(), dm.into(), lab];
    knows(records, &bot(), &all).await;
    for known in all {
        let found = records.chat(&bot(), &known.chat.chat_id).await.unwrap();
        assert_eq!(found, Some(known));
    }
    assert_eq!(records.chat(&bot(), "nowhere").await.unwrap(), None);
    for other in [BotKey::new("discord", "second"), BotKey::new("telegram", "main")] {
        assert_eq!(records.chat(&other, "lab").await.unwrap(), None);
    }
}

async fn chats_with_traffic_are_found_newest_first(records: &(impl Records + ?Sized)) {
    let seen = |id: &str, message: &str, at| KnownChat {
        last_message: Some(message.into()),
        last_at: Some(UnixMillis(at)),
        ..chat(id).into()
    };
    let all = [seen("a", "m4", 40), seen("b", "m2", 30), seen("c", "m3", 20)];
    knows(records, &bot(), &all).await;
    knows(records, &bot(), &[chat("quiet").into()]).await;
    knows(records, &BotKey::new("discord", "second"), &[seen("a", "m9", 90)]).await;
    let recent = async |since, limit| records.recent_chats(&bot(), UnixMillis(since), limit).await.unwrap();
    assert_eq!(recent(0, 10).await, all);
    assert_eq!(recent(30, 10).await, all[..2], "one at that very moment is among them");
    assert_eq!(recent(0, 1).await, all[..1]);
    assert_eq!(recent(i64::MIN, 10).await, all);
}

async fn a_scope_is_forgotten_with_its_chats_and_a_chat_alone(records: &(impl Records + ?Sized)) {
    let elsewhere = Chat { scope: Some("other".into()), ..chat("den") };
    // An old guild's first channel has the guild's id: here it belongs to itself.
    let twin = Chat { scope: Some("twin".into()), ..chat("twin") };
    let beside = Chat { scope: Some("twin".into()), ..chat("beside") };
    let guild = Chat::new("guild", ChatKind::Scope);
    let all = [guild, chat("lab"), chat("hall"), elsewhere, twin, beside];
    knows(records, &bot(), &all.map(KnownChat::from)).await;
    for told in ["lab", "den"] {
        for kind in NoticeKind::ALL {
            assert!(records.notice(kind, &bot(), told, None).await.unwrap());
        }
    }
    let left = async || -> Vec<&str> {
        let mut left = Vec::new();
        for id in ["guild", "lab", "hall", "den", "twin", "beside"] {
            if records.chat(&bot(), id).await.unwrap().is_some() {
                left.push(id);
            }
        }
        left
    };
    records.forget_chat(&bot(), "hall").await.unwrap();
    assert_eq!(left().await, ["guild", "lab", "den", "twin", "beside"]);
    records.forget_scope(&BotKey::new("discord", "second"), "guild").await.unwrap();
    assert_eq!(left().await, ["guild", "lab", "den", "twin", "beside"]);
    records.forget_scope(&bot(), "guild").await.unwrap();
    assert_eq!(left().await, ["guild", "den", "twin", "beside"], "its own row belongs to nothing here");
    records.forget_chat(&bot(), "guild").await.unwrap();
    assert_eq!(left().await, ["den", "twin", "beside"]);
    records.forget_chat(&bot(), "twin").await.unwrap();
    assert_eq!(left().await, ["den", "beside"]);
    for kind in NoticeKind::ALL {
        assert!(records.notice(kind, &bot(), "lab", None).await.unwrap(), "who comes back may be told again");
        assert!(!records.notice(kind, &bot(), "den", None).await.unwrap(), "nobody else is");
    }
    records.forget_scope(&bot(), "other").await.unwrap();
    assert_eq!(left().await, ["beside"], "a scope that nobody described");
    records.forget_chat(&bot(), "nowhere").await.unwrap();
}

async fn the_pieces_of_a_message_are_kept_until_there_are_none(records: &(impl Records + ?Sized)) {
    let keep = async |chat: &str, message: &str, pieces: &[&str]| {
        let pieces = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        records.keep_pieces(&bot(), chat, message, pieces).await.unwrap();
    };
    let pieces = async |chat: &str, message: &str| records.pieces(&bot(), chat, message).await.unwrap();
    assert!(pieces("lab", "m1").await.is_empty());
    keep("lab", "m1", &[]).await;
    keep("lab", "m1", &["m2", "m3"]).await;
    keep("den", "m1", &["m9"]).await;
    assert_eq!(pieces("lab", "m1").await, ["m2", "m3"]);
    keep("lab", "m1", &["m2"]).await;
    assert_eq!(pieces("lab", "m1").await, ["m2"]);
    keep("lab", "m1", &[]).await;
    assert!(pieces("lab", "m1").await.is_empty());
    assert_eq!(pieces("den", "m1").await, ["m9"]);
}

async fn what_was_made_up_first_stays(records: &(impl Records + ?Sized)) {
    let tries = (0..8).map(|number| records.mint(&bot(), "nonce", format!("made up {number}")));
    let mut kept: Vec<String> = join_all(tries).await.into_iter().map(Result::unwrap).collect();
    kept.dedup();
    assert_eq!(kept.len(), 1, "whoever came first: {kept:?}");
    assert_eq!(records.mint(&bot(), "nonce", "later".into()).await.unwrap(), kept[0]);
    let other = BotKey::new("telegram", "main");
    assert_eq!(records.mint(&other, "nonce", "its own".into()).await.unwrap(), "its own");
}

on_every_engine!(
    what_was_made_up_first_stays,
    a_chat_is_known_as_it_was_learnt_and_only_to_its_bot,
    chats_with_traffic_are_found_newest_first,
    a_scope_is_forgotten_with_its_chats_and_a_chat_alone,
    the_pieces_of_a_message_are_kept_until_there_are_none,
);
