//! Turns, step by step: a stage for the tests of each part.

use super::*;
use crate::inbox::{Entry, EntryKind};
use angelia_contract::action::{Action, Metadata};
use angelia_contract::event::Event;
use angelia_contract::source::Source;
use serde_json::json;

mod busy;
mod ends;
mod held;
mod left;

const NEWER: Peer = Peer { generation: Generation::Newer, interrupts: true };
const OLDER: Peer = Peer { generation: Generation::Older, interrupts: false };

fn at(millis: u64) -> Mono {
    Mono(Duration::from_millis(millis))
}

fn entry(seq: i64, author: &str, text: &str) -> Entry {
    let source = Source { user_id: Some(author.into()), ..Source::default() };
    let event = Event { text: text.into(), message_id: Some(format!("m{seq}")), source, ..Event::default() };
    Entry {
        seq: Seq(seq),
        kind: EntryKind::Message,
        platform: "telegram".into(),
        bot: "1".into(),
        chat_id: "c".into(),
        session_key: format!("k:{author}").into(),
        body: serde_json::to_vec(&event).unwrap().into(),
        revision: 0,
        while_busy: None,
    }
}

fn line(seq: i64, author: &str, text: &str) -> Line {
    Line::read(&entry(seq, author, text), false, WhileBusy::Auto).unwrap()
}

fn turns(peer: Peer) -> Turns {
    Turns::new(peer, TURN_LIMIT, Vec::new())
}

fn react(message: &str, emoji: &str, remove: bool) -> Action {
    Action::React {
        chat_id: "c".into(),
        message_id: message.into(),
        emoji: emoji.into(),
        remove,
        metadata: Metadata::new(),
    }
}

fn typing() -> Action {
    Action::Typing { chat_id: "c".into(), content: None, metadata: Metadata::new() }
}

fn send(reply_to: Option<&str>, notify: bool) -> Action {
    let metadata = if notify { json!({"notify": true}) } else { json!({}) };
    Action::Send {
        chat_id: "c".into(),
        content: "words".into(),
        reply_to: reply_to.map(str::to_owned),
        metadata: metadata.as_object().unwrap().clone(),
    }
}

/// Turns with one opened by ann's first line, acknowledged.
fn one_open(peer: Peer) -> Turns {
    let mut turns = turns(peer);
    let first = line(1, "ann", "hello");
    assert_eq!(turns.consider(&first, false, at(0)), Verdict::Push);
    turns.pushed(&first, at(0));
    turns.acknowledged(Seq(1), at(5));
    turns
}

/// The same, seen by a gateway that reacts and types.
fn one_seen() -> Turns {
    let mut turns = one_open(NEWER);
    act(&mut turns, &react("m1", "👀", false), 1, at(10));
    turns.acts(&typing(), None, 2, at(20));
    turns
}

/// An action that is answered at once.
fn act(turns: &mut Turns, action: &Action, ticket: u64, now: Mono) {
    turns.acts(action, None, ticket, now);
    turns.answered(ticket, true, now);
}

fn is_open_at(turns: &mut Turns, now: Mono) -> bool {
    turns.tick(now);
    turns.is_any_open()
}
