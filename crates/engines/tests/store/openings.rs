//! Messages that wait for a thread of their own: apart from the log, once, and in it when they are
//! released.

use super::directory::bot;
use super::identity::by;
use super::open::{Opened, entry};
use angelia_contract::event::Event;
use angelia_contract::source::{Source, chat_type};
use angelia_core::inbox::outcome;
use angelia_core::inbox::{EntryKind, InstanceId, Seq};
use angelia_core::ports::{Begun, Opening, Openings, Released};
use angelia_core::store::{
    Appended, DirectoryStore, IdentityStore, Intake, JournalStore, NewEntry, PageSize, Revised, Revision,
    Taken, Withdrawal,
};
use angelia_core::threads::{CreatedThread, KEPT_PER_INSTANCE, MAX_OPENINGS, Moved, ThreadStore};
use std::time::Duration;

fn body(text: &str) -> Vec<u8> {
    let source = Source {
        platform: "discord".into(),
        chat_id: "111".into(),
        chat_type: chat_type::GROUP.into(),
        user_id: Some("42".into()),
        ..Source::default()
    };
    serde_json::to_vec(&Event { text: text.into(), source, ..Event::default() }).unwrap()
}

fn said(instance: InstanceId, message_id: &str) -> NewEntry {
    NewEntry {
        platform: "discord".into(),
        bot: "main".into(),
        chat_id: "111".into(),
        session_key: "agent:main:discord:group:111:42".into(),
        body: body(message_id).into(),
        ..entry(instance, message_id)
    }
}

fn moved() -> Moved {
    Moved {
        chat_id: "333".into(),
        chat_type: chat_type::THREAD,
        thread_id: "333".into(),
        parent_chat_id: Some("111".into()),
        is_topic: false,
        name: "plan".into(),
        own: true,
    }
}

async fn hold(opened: &Opened, instance: InstanceId, message_id: &str) -> Taken {
    let intake = Intake { entry: Some(said(instance, message_id)), opens: true, ..Intake::default() };
    opened.store.take_in(&bot(), None, vec![intake]).await.unwrap()[0]
}

async fn held(opened: &Opened) -> Vec<Opening> {
    opened.store.openings(Openings::OlderThan(Duration::ZERO)).await.unwrap()
}

/// What waits in the log: the chat, the key, the text.
async fn in_log(opened: &Opened, instance: InstanceId) -> Vec<(String, String, String)> {
    let read = opened.store.load(instance, Seq(0), &[], PageSize::of(1_000)).await.unwrap();
    let of = |entry: &angelia_core::inbox::Entry| {
        let event: Event = serde_json::from_slice(&entry.body).unwrap();
        (entry.chat_id.to_string(), entry.session_key.to_string(), event.text)
    };
    read.iter().map(of).collect()
}

fn in_place(text: &str) -> (String, String, String) {
    ("111".into(), "agent:main:discord:group:111:42".into(), text.into())
}

fn in_thread(text: &str) -> (String, String, String) {
    ("333".into(), "agent:main:discord:thread:333:333".into(), text.into())
}

#[tokio::test]
async fn what_opens_a_thread_is_in_the_log_when_it_is_released_and_once() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let taken = hold(&opened, a, "m1").await;
    assert!(taken.opens && taken.appended.is_none());
    assert!(hold(&opened, a, "m1").await.opens, "it comes again, and waits once");
    assert!(in_log(&opened, a).await.is_empty());
    let opened = opened.reopen();
    let [opening] = &held(&opened).await[..] else { panic!("one waits, across a restart") };
    assert_eq!((&*opening.chat_id, &*opening.message_id, opening.instance), ("111", "m1", a));
    assert_eq!(opened.store.release(opening.id, Some(moved())).await.unwrap(), Released::InLog);
    assert_eq!(opened.store.release(opening.id, None).await.unwrap(), Released::Gone, "somebody was first");
    assert_eq!(in_log(&opened, a).await, [in_thread("m1")]);
    // By where it was written: the provider brings it again from there.
    assert_eq!(hold(&opened, a, "m1").await.appended, Some(Appended::Seen(Seq(1))));
    let again = Intake { entry: Some(said(a, "m1")), ..Intake::default() };
    let again = opened.store.take_in(&bot(), None, vec![again]).await.unwrap();
    assert_eq!(again[0].appended, Some(Appended::Seen(Seq(1))));
    hold(&opened, a, "m2").await;
    let id = held(&opened).await[0].id;
    opened.store.release(id, None).await.unwrap();
    assert_eq!(in_log(&opened, a).await, [in_thread("m1"), in_place("m2")]);
    assert!(held(&opened).await.is_empty());
}

#[tokio::test]
async fn that_a_thread_is_opened_is_noted_for_whoever_comes_after() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    hold(&opened, a, "m1").await;
    let id = held(&opened).await[0].id;
    let begin = async |within| opened.store.begin_opening(id, Duration::from_secs(within)).await.unwrap();
    let one = async || {
        let one = Openings::One(bot(), "111".into(), "m1".into());
        opened.store.openings(one).await.unwrap().first().map(|it| it.begun)
    };
    assert_eq!(one().await, Some(None), "nobody is at it");
    assert_eq!(begin(60).await, Begun::Try(1));
    assert!(one().await.unwrap().unwrap() < Duration::from_secs(60));
    assert_eq!(begin(60).await, Begun::NotYet, "somebody is at it");
    assert_eq!(begin(0).await, Begun::Try(2));
    let hour = Duration::from_secs(3_600).as_millis();
    opened.sql(&format!("UPDATE openings SET tried_at = tried_at + {hour}, held_at = held_at + {hour}"));
    assert_eq!(begin(60).await, Begun::Try(3), "the clock was set back since");
    assert_eq!(held(&opened).await.len(), 1);
    opened.store.release(id, None).await.unwrap();
    assert_eq!(begin(0).await, Begun::Gone);
    assert_eq!(one().await, None);
    let of_chat = Openings::OfChat(bot(), "111".into());
    assert!(opened.store.openings(of_chat).await.unwrap().is_empty());
}

#[tokio::test]
async fn too_many_at_once_go_on_without_a_thread_in_order() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    for number in 0..MAX_OPENINGS + 3 {
        hold(&opened, a, &format!("m{number}")).await;
    }
    assert_eq!(held(&opened).await.len(), MAX_OPENINGS);
    assert_eq!(in_log(&opened, a).await, ["m0", "m1", "m2"].map(in_place));
}

#[tokio::test]
async fn what_follows_stays_behind_what_waits_for_a_thread() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let follow = async |message: &str, ahead: bool| {
        let entry = NewEntry { ahead, ..said(a, message) };
        let intake = Intake { entry: Some(entry), follows: true, ..Intake::default() };
        opened.store.take_in(&bot(), None, vec![intake]).await.unwrap()[0]
    };
    assert!(follow("m0", false).await.appended.is_some(), "nothing waits");
    hold(&opened, a, "m1").await;
    assert!(follow("m2", false).await.opens);
    assert!(follow("m3", true).await.appended.is_some(), "what overtakes the log overtakes those too");
    let [first, second] = &held(&opened).await[..] else { panic!("two wait") };
    let begin = async |id| opened.store.begin_opening(id, Duration::ZERO).await.unwrap();
    assert_eq!(begin(first.id).await, Begun::Try(1));
    assert!(matches!(begin(second.id).await, Begun::Try(1_000..)), "it opens no thread of its own");
    for id in [first.id, second.id] {
        opened.store.release(id, None).await.unwrap();
    }
    assert_eq!(in_log(&opened, a).await, ["m0", "m1", "m2"].map(in_place), "m3 goes ahead");
}

#[tokio::test]
async fn a_change_counts_before_and_after_the_thread_is_open() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let revise = async |message: &str, text: &str, kind| {
        let revision = Revision {
            platform: "discord".into(),
            bot: "main".into(),
            chat_id: "111".into(),
            message_id: message.into(),
            instance: a,
            kind,
            body: body(text).into(),
        };
        opened.store.revise(revision).await.unwrap()
    };
    hold(&opened, a, "m1").await;
    assert_eq!(revise("m1", "changed", EntryKind::Message).await, Revised::Replaced);
    let id = held(&opened).await[0].id;
    opened.store.release(id, Some(moved())).await.unwrap();
    assert_eq!(in_log(&opened, a).await, [in_thread("changed")]);
    assert_eq!(revise("m1", "again", EntryKind::Message).await, Revised::Replaced);
    assert_eq!(in_log(&opened, a).await, [in_thread("again")], "it stays in its thread");
    hold(&opened, a, "m2").await;
    assert_eq!(revise("m2", "/stop", EntryKind::Stop).await, Revised::Replaced);
    assert!(held(&opened).await.is_empty(), "a command opens no thread");
    assert_eq!(in_log(&opened, a).await[1], in_place("/stop"));
    let gone = |message: &str| Withdrawal {
        platform: "discord".into(),
        bot: "main".into(),
        chat_id: "111".into(),
        message_id: message.into(),
    };
    hold(&opened, a, "m3").await;
    assert!(opened.store.withdraw(gone("m3")).await.unwrap(), "it waited for its thread");
    assert!(held(&opened).await.is_empty());
    assert!(opened.store.withdraw(gone("m1")).await.unwrap(), "it waited in its thread");
    assert_eq!(in_log(&opened, a).await.len(), 1);
}

#[tokio::test]
async fn nothing_waits_for_whoever_is_gone() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    hold(&opened, a, "m1").await;
    let id = held(&opened).await[0].id;
    opened.store.revoke_gateway("acme", "a", &by()).await.unwrap();
    assert_eq!(opened.store.release(id, Some(moved())).await.unwrap(), Released::NoInstance);
    assert!(held(&opened).await.is_empty());
    let told = &opened.store.explain("m1").await.unwrap()[0];
    assert_eq!(told.outcome.as_deref(), Some("no_instance"));
}

#[tokio::test]
async fn what_is_said_in_a_thread_stays_behind_the_message_that_opened_it() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    hold(&opened, a, "333").await;
    let entry = NewEntry {
        chat_id: "333".into(),
        session_key: "agent:main:discord:thread:333:333".into(),
        ..said(a, "444")
    };
    let intake = Intake { entry: Some(entry), follows: true, ..Intake::default() };
    assert!(opened.store.take_in(&bot(), None, vec![intake]).await.unwrap()[0].opens);
    let [first, second] = &held(&opened).await[..] else { panic!("two wait") };
    let begin = async |id| opened.store.begin_opening(id, Duration::ZERO).await.unwrap();
    assert_eq!(begin(second.id).await, Begun::NotYet, "whose thread it is in is not in the log yet");
    assert_eq!(begin(first.id).await, Begun::Try(1));
    opened.store.release(first.id, Some(moved())).await.unwrap();
    assert!(matches!(begin(second.id).await, Begun::Try(1_000..)));
    opened.store.release(second.id, None).await.unwrap();
    assert_eq!(in_log(&opened, a).await, ["333", "444"].map(in_thread));
}

#[tokio::test]
async fn what_was_deleted_while_it_waited_takes_nobodys_place() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    hold(&opened, a, "m1").await;
    let gone = Withdrawal {
        platform: "discord".into(),
        bot: "main".into(),
        chat_id: "111".into(),
        message_id: "m1".into(),
    };
    assert!(opened.store.withdraw(gone.clone()).await.unwrap());
    assert!(!opened.store.withdraw(gone).await.unwrap(), "once");
    assert!(held(&opened).await.is_empty());
    let told = &opened.store.explain("m1").await.unwrap()[0];
    assert_eq!(told.outcome.as_deref(), Some(outcome::WITHDRAWN));
    hold(&opened, a, "m2").await;
    let id = held(&opened).await[0].id;
    opened.store.release(id, None).await.unwrap();
    let numbers = opened.store.load(a, Seq(0), &[], PageSize::of(10)).await.unwrap();
    assert_eq!(numbers.iter().map(|it| it.seq).collect::<Vec<_>>(), [Seq(1)], "it never had a number");
    assert!(hold(&opened, a, "m1").await.appended.is_some(), "it is seen once all the same");
}

fn thread(instance: InstanceId, chat_id: &str) -> CreatedThread {
    let name = "plan".to_owned();
    CreatedThread { bot: bot(), chat_id: chat_id.into(), parent: "-5".into(), name, instance }
}

#[tokio::test]
async fn the_name_that_was_given_is_kept_and_follows_its_chat() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let given = async |opened: &Opened, chat: &str| opened.store.given_name(&bot(), chat).await.unwrap();
    opened.store.keep_thread(thread(a, "-5/7")).await.unwrap();
    opened.store.rename_thread(&bot(), "-5/7", "harbour").await.unwrap();
    opened.store.rename_thread(&bot(), "-5/8", "harbour").await.unwrap();
    opened.store.keep_thread(thread(a, "-5/7")).await.unwrap();
    assert_eq!(given(&opened, "-5/7").await.as_deref(), Some("harbour"), "it was opened once");
    assert_eq!(given(&opened, "-5/8").await, None, "it was not opened by the connector");
    opened.store.move_chat(&bot(), "-5", "-1005", &by()).await.unwrap();
    let opened = opened.reopen();
    assert_eq!(given(&opened, "-1005/7").await.as_deref(), Some("harbour"));
    assert_eq!(given(&opened, "-5/7").await, None);
}

#[tokio::test]
async fn so_many_names_are_kept_for_an_instance() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let many = if Opened::ERASES { KEPT_PER_INSTANCE + 1 } else { 3 };
    for number in 0..many {
        opened.store.keep_thread(thread(a, &format!("{number}"))).await.unwrap();
    }
    let kept = opened.number("SELECT count(*) FROM created_threads");
    assert_eq!(kept, many.min(KEPT_PER_INSTANCE) as i64);
}
