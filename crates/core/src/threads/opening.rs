//! Conversations that get a thread of their own: which message opens one, and how it reads there.
//!
//! Such a message is committed apart from the log, as an opening; then its thread is opened, and
//! with the next commit it is in the log, as a message of that thread. Where no thread could be
//! opened it is in the log as it was. So it has one key when it is pushed, and nothing of the
//! log has to know of the others.

use crate::admission::{Admitted, Threads};
use crate::turns::{Sort, sort_of_text};
use angelia_contract::event::Event;
use angelia_contract::session_key::{KeyOptions, Rules, session_key};
use angelia_contract::source::{Source, chat_type};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Whether a message opens a thread: its route says so, it is meant for the agent, and it is said
/// among people and in no thread. An answer to what the agent said there goes on with that; a
/// command is about the conversation it is typed in.
pub fn begins(admitted: &Admitted, event: &Event, addressed: bool) -> bool {
    let source = &event.source;
    admitted.options.threads == Threads::Auto
        && addressed
        && source.chat_type == chat_type::GROUP
        && source.thread_id.is_none()
        && event.prompt_response.is_none()
        && !event.reply_to.as_ref().is_some_and(|answered| answered.is_own)
        && sort_of_text(&event.text) == Sort::Text
}

/// Whether messages of a place may wait for threads, so that what is said there and opens none has
/// to stay behind them. A thread that is a chat of its own is seen by people before the message that
/// opened it is in the log.
pub fn follows(admitted: &Admitted, event: &Event) -> bool {
    let source = &event.source;
    let is_shared = source.chat_type == chat_type::GROUP && source.thread_id.is_none();
    let is_thread =
        source.chat_type == chat_type::THREAD && source.thread_id.as_ref() == Some(&source.chat_id);
    admitted.options.threads == Threads::Auto && (is_shared || is_thread)
}

/// A thread that was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The provider's id.
    pub thread_id: String,
    /// Its name.
    pub name: String,
    /// Whether the bot opened it; a person may have been first.
    pub own: bool,
}

/// A thread, as the directory knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownThread {
    /// Its id there.
    pub chat_id: String,
    /// Its name now.
    pub name: Option<String>,
}

/// Where a message goes on that opened a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The chat, as gateways know it.
    pub chat_id: String,
    /// What kind of chat that is.
    pub chat_type: &'static str,
    /// The thread.
    pub thread_id: String,
    /// What the thread is below, where it is a chat of its own.
    pub parent_chat_id: Option<String>,
    /// Whether the thread's name is what the chat is about, rather than a part of its name.
    pub is_topic: bool,
    /// The thread's name.
    pub name: String,
    /// Whether the bot opened it.
    pub own: bool,
}

/// A message after the move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rekeyed {
    /// The chat it is in.
    pub chat_id: Arc<str>,
    /// The conversation key a gateway builds for it.
    pub session_key: Arc<str>,
    /// The event.
    pub body: Bytes,
}

impl Moved {
    /// The event as a message of the thread; `None` if it cannot be read.
    pub fn apply(&self, body: &[u8]) -> Option<Rekeyed> {
        let mut event: Event = serde_json::from_slice(body).ok()?;
        self.place(&mut event.source);
        Some(Rekeyed {
            chat_id: event.source.chat_id.as_str().into(),
            session_key: session_key(&event.source, &KeyOptions::default(), Rules::Published).into(),
            body: serde_json::to_vec(&event).ok()?.into(),
        })
    }

    fn place(&self, source: &mut Source) {
        if self.is_topic {
            source.chat_topic = Some(self.name.clone());
        } else {
            let names = source.chat_name.iter().map(String::as_str).chain([self.name.as_str()]);
            source.chat_name = Some(names.collect::<Vec<_>>().join(" / "));
        }
        source.chat_id.clone_from(&self.chat_id);
        source.chat_type = self.chat_type.to_owned();
        source.thread_id = Some(self.thread_id.clone());
        source.parent_chat_id.clone_from(&self.parent_chat_id);
        source.auto_thread_created = self.own.then_some(true);
        source.auto_thread_initial_name = self.own.then(|| self.name.clone());
    }
}

/// What a message says after its author changed it, where it was moved into a thread: the change
/// was seen where it was written. `None` if it was not moved.
pub fn keep_place(before: &[u8], after: &[u8]) -> Option<Bytes> {
    let before: Event = serde_json::from_slice(before).ok()?;
    let mut event: Event = serde_json::from_slice(after).ok()?;
    if before.source.thread_id.is_none() || event.source.thread_id.is_some() {
        return None;
    }
    let is_edit = event.source.message_is_edit;
    event.source = Source { message_is_edit: is_edit, ..before.source };
    serde_json::to_vec(&event).ok().map(Bytes::from)
}
