//! Which messages open threads, and how they read there.

use super::*;
use crate::admission::{Admitted, RouteOptions, Threads};
use angelia_contract::event::{Event, ReplyTo};
use angelia_contract::source::{Source, chat_type};

fn event(text: &str) -> Event {
    let source = Source {
        platform: "discord".into(),
        chat_id: "111".into(),
        chat_type: chat_type::GROUP.into(),
        chat_name: Some("Harbour / #quay".into()),
        user_id: Some("42".into()),
        ..Source::default()
    };
    Event { text: text.into(), source, ..Event::default() }
}

fn admitted(threads: Threads) -> Admitted {
    let options = RouteOptions { threads, ..RouteOptions::default() };
    Admitted { options, ..Admitted::to("acme", InstanceId(1)) }
}

#[test]
fn only_what_begins_a_conversation_opens_a_thread() {
    let auto = admitted(Threads::Auto);
    assert!(begins(&auto, &event("hello"), true));
    assert!(!begins(&admitted(Threads::Off), &event("hello"), true), "its route does not say so");
    assert!(!begins(&auto, &event("hello"), false), "chatter");
    for command in ["/new", "/stop", "/approve", " /help me"] {
        assert!(!begins(&auto, &event(command), true), "{command}");
    }
    let mut answer = event("yes");
    answer.reply_to = Some(ReplyTo { is_own: true, ..ReplyTo::default() });
    assert!(!begins(&auto, &answer, true), "it goes on with what the agent said");
    answer.reply_to = Some(ReplyTo::default());
    assert!(begins(&auto, &answer, true), "it quotes somebody else");
    for (chat_type, thread_id) in
        [(chat_type::DM, None), (chat_type::GROUP, Some("5")), (chat_type::CHANNEL, None)]
    {
        let mut elsewhere = event("hello");
        elsewhere.source.chat_type = chat_type.into();
        elsewhere.source.thread_id = thread_id.map(str::to_owned);
        assert!(!begins(&auto, &elsewhere, true), "{chat_type} {thread_id:?}");
    }
}

#[test]
fn what_is_said_beside_an_opening_or_in_its_thread_stays_behind_it() {
    let follows = |threads, chat_type: &str, thread_id: Option<&str>| {
        let mut said = event("hello");
        said.source.chat_type = chat_type.into();
        said.source.thread_id = thread_id.map(str::to_owned);
        follows(&admitted(threads), &said)
    };
    assert!(follows(Threads::Auto, chat_type::GROUP, None));
    assert!(follows(Threads::Auto, chat_type::THREAD, Some("111")), "a thread that is a chat");
    assert!(!follows(Threads::Off, chat_type::THREAD, Some("111")));
    assert!(!follows(Threads::Auto, chat_type::FORUM, Some("5")), "a topic");
    assert!(!follows(Threads::Auto, chat_type::DM, None));
}

fn moved(is_topic: bool) -> Moved {
    Moved {
        chat_id: if is_topic { "111" } else { "333" }.into(),
        chat_type: if is_topic { chat_type::FORUM } else { chat_type::THREAD },
        thread_id: "333".into(),
        parent_chat_id: (!is_topic).then(|| "111".into()),
        is_topic,
        name: "hello".into(),
        own: true,
    }
}

#[test]
fn what_opened_a_thread_is_a_message_of_it() {
    let body = serde_json::to_vec(&event("hello")).unwrap();
    let there = moved(false).apply(&body).unwrap();
    assert_eq!((&*there.chat_id, &*there.session_key), ("333", "agent:main:discord:thread:333:333"));
    let Event { source, text, .. } = serde_json::from_slice(&there.body).unwrap();
    assert_eq!((text.as_str(), source.thread_id.as_deref()), ("hello", Some("333")));
    assert_eq!(source.parent_chat_id.as_deref(), Some("111"));
    assert_eq!(source.chat_name.as_deref(), Some("Harbour / #quay / hello"));
    assert_eq!(source.auto_thread_created, Some(true));
    assert_eq!(source.auto_thread_initial_name.as_deref(), Some("hello"));
    assert_eq!(source.prospective_thread_id, None);
    let topic = moved(true).apply(&body).unwrap();
    assert_eq!((&*topic.chat_id, &*topic.session_key), ("111", "agent:main:discord:forum:111:333"));
    let Event { source, .. } = serde_json::from_slice(&topic.body).unwrap();
    assert_eq!((source.chat_topic.as_deref(), source.parent_chat_id), (Some("hello"), None));
    assert!(moved(false).apply(b"{").is_none());
}

#[test]
fn a_change_does_not_take_a_message_out_of_its_thread() {
    let (before, after) =
        (serde_json::to_vec(&event("helo")).unwrap(), serde_json::to_vec(&event("hello")).unwrap());
    assert_eq!(keep_place(&before, &after), None, "it is where it was written");
    let there = moved(false).apply(&before).unwrap().body;
    let changed: Event = serde_json::from_slice(&keep_place(&there, &after).unwrap()).unwrap();
    assert_eq!((changed.text.as_str(), changed.source.chat_id.as_str()), ("hello", "333"));
}
