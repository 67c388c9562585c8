//! What happened to a message, and never its text: put together from the journal, the ledger and the names of
//! instances. The journal and the ledger are long, so they are read by what names a message.

use crate::clock::UnixMillis;
use crate::directory::BotKey;
use crate::egress::{ActionState, REMARK};
use crate::error::Result;
use crate::inbox::{InstanceId, Seq};
use crate::ports::{ActionId, BoxFuture};
use crate::records::rows::{InstanceRow, JournalRow, LedgerRow};
use crate::records::{Direction, Key, Records, View, look};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The way of one received message.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MessageTrace {
    /// Its place in the log.
    pub seq: Seq,
    /// What it was.
    pub kind: String,
    /// The platform it came from.
    pub platform: String,
    /// The bot that received it.
    pub bot: String,
    /// The chat it came from.
    pub chat_id: String,
    /// The provider's id.
    pub message_id: String,
    /// The tenant it belongs to.
    pub tenant: String,
    /// The instance it was for.
    pub instance: InstanceId,
    /// The instance's name.
    pub instance_name: String,
    /// When it reached us.
    pub received_at: UnixMillis,
    /// When it was durable.
    pub appended_at: UnixMillis,
    /// When it had to wait for the end of a turn.
    pub held_at: Option<UnixMillis>,
    /// When it was first pushed.
    pub pushed_at: Option<UnixMillis>,
    /// On how many sockets it was pushed.
    pub pushes: u32,
    /// When the turn it began was asked to end.
    pub interrupted_at: Option<UnixMillis>,
    /// When it left the inbox.
    pub settled_at: Option<UnixMillis>,
    /// How it left the inbox, in words.
    pub outcome: Option<String>,
    /// What the agent wrote in answer; whoever shows it says how often that was changed.
    #[serde(skip)]
    pub replies: Vec<ActionTrace>,
}

/// The way of one outbound action.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ActionTrace {
    /// Its number in the ledger.
    pub id: ActionId,
    /// The operation.
    pub op: String,
    /// The chat written to.
    pub chat_id: String,
    /// The message it answers.
    pub reply_to: Option<String>,
    /// When it was accepted.
    pub accepted_at: UnixMillis,
    /// When it was finished.
    pub finished_at: Option<UnixMillis>,
    /// How far it came.
    pub state: String,
    /// The id the provider gave.
    pub message_id: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// What the provider says became of the message.
    pub receipt: Option<String>,
}

/// How often an agent changed one of its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// The changes that were made.
    pub count: u64,
    /// When the last one was.
    pub last_at: Option<UnixMillis>,
}

/// Asking what happened, of any records.
pub trait JournalStore: Records {
    /// Messages with this provider id, or of this log number, with their replies.
    fn explain(&self, message: &str) -> BoxFuture<'_, Result<Vec<MessageTrace>>> {
        let message = message.to_owned();
        look(self, "read the journal", move |view| explain(view, &message))
    }

    /// The newest messages, the newest first; without what was answered.
    fn recent(&self, limit: usize) -> BoxFuture<'_, Result<Vec<MessageTrace>>> {
        look(self, "read the journal", move |view| {
            let found: Vec<JournalRow> = view.walk((&[], ()), "id", (Direction::Down, 0), limit)?;
            let mut names = HashMap::new();
            found.into_iter().map(|row| trace(view, row, &mut names)).collect()
        })
    }

    /// Actions of which nobody knows whether the provider has them, newest first.
    fn ambiguous_actions(&self, limit: usize) -> BoxFuture<'_, Result<Vec<ActionTrace>>> {
        look(self, "read the ledger", move |view| {
            let found = view.newest::<LedgerRow>(&["state"], (ActionState::Ambiguous.as_str(),), limit)?;
            Ok(found.into_iter().map(ActionTrace::from).collect())
        })
    }

    /// Actions that produced this message id.
    fn explain_action(&self, message: &str) -> BoxFuture<'_, Result<Vec<ActionTrace>>> {
        let message = message.to_owned();
        look(self, "read the ledger", move |view| actions(view, &message))
    }

    /// The instance whose message this is; `None` if it is nobody's, or not known any more.
    fn sender(
        &self,
        bot: &BotKey,
        chat_id: &str,
        message_id: &str,
    ) -> BoxFuture<'_, Result<Option<InstanceId>>> {
        let (bot, chat_id, message_id) = (bot.clone(), chat_id.to_owned(), message_id.to_owned());
        look(self, "read the ledger", move |view| sender(view, &bot, &chat_id, &message_id))
    }

    /// The changes of a message of a chat.
    fn edits(&self, chat_id: &str, message_id: &str) -> BoxFuture<'_, Result<Edits>> {
        let (chat_id, message_id) = (chat_id.to_owned(), message_id.to_owned());
        look(self, "read the ledger", move |view| edits(view, &chat_id, &message_id))
    }
}

impl<R: Records + ?Sized> JournalStore for R {}

/// Messages of one name, the newest: a provider may count within each chat.
const MOST_MESSAGES: usize = 1_000;
/// Actions shown of one message: more than anybody reads.
const MOST_ACTIONS: usize = 100;
/// Changes of one message that are read at a time.
const EDITS: usize = 500;

/// Messages with this provider id, or of this log number, oldest first, with their replies.
fn explain(view: &mut View<'_>, message: &str) -> Result<Vec<MessageTrace>> {
    let mut found = messages(view, &["message_id"], (message,))?;
    if let Some((chat, within)) = named(message) {
        found.extend(messages(view, &["message_id", "chat_id"], (within, chat))?);
        found.sort_by_key(|row| row.id);
    }
    if let Some(seq) = Seq::from_buffer_id(message) {
        found.extend(messages(view, &["seq"], (seq,))?);
    }
    let mut names = HashMap::new();
    let story = |row: JournalRow| {
        let replies = replies(view, &row)?;
        Ok(MessageTrace { replies, ..trace(view, row, &mut names)? })
    };
    found.into_iter().map(story).collect()
}

fn messages(view: &mut View<'_>, by: &'static [&'static str], values: impl Key) -> Result<Vec<JournalRow>> {
    let mut found = view.walk((by, values), "id", (Direction::Down, 0), MOST_MESSAGES)?;
    found.reverse();
    Ok(found)
}

/// A chat and a message of it, where somebody wrote `CHAT/MESSAGE`.
fn named(message: &str) -> Option<(&str, &str)> {
    message.rsplit_once('/')
}

/// The way of a message, with the name of its instance, if that is still there.
fn trace(
    view: &mut View<'_>,
    row: JournalRow,
    names: &mut HashMap<InstanceId, String>,
) -> Result<MessageTrace> {
    let instance_name = match names.get(&row.instance) {
        Some(name) => name.clone(),
        None => {
            let name = view.get::<InstanceRow>((row.instance,))?.map(|of| of.name).unwrap_or_default();
            names.entry(row.instance).or_insert(name).clone()
        }
    };
    Ok(MessageTrace {
        seq: row.seq,
        kind: row.kind,
        platform: row.platform,
        bot: row.bot,
        chat_id: row.chat_id,
        message_id: row.message_id,
        tenant: row.tenant,
        instance: row.instance,
        instance_name,
        received_at: row.received_at,
        appended_at: row.appended_at,
        held_at: row.held_at,
        interrupted_at: row.interrupted_at,
        pushed_at: row.pushed_at,
        pushes: u32::try_from(row.pushes).unwrap_or(u32::MAX),
        settled_at: row.settled_at,
        outcome: row.outcome,
        replies: Vec::new(),
    })
}

/// What was written in answer to a message: its id may be another one elsewhere.
fn replies(view: &mut View<'_>, row: &JournalRow) -> Result<Vec<ActionTrace>> {
    let by: &[&str] = &["reply_to", "chat_id", "platform", "bot"];
    let values = (&row.message_id, &row.chat_id, &row.platform, &row.bot);
    let found = view.walk::<LedgerRow>((by, values), "id", (Direction::Up, 0), MOST_ACTIONS)?;
    Ok(found.into_iter().map(ActionTrace::from).collect())
}

/// Actions that produced this message id, oldest first.
fn actions(view: &mut View<'_>, message: &str) -> Result<Vec<ActionTrace>> {
    let mut found =
        view.walk::<LedgerRow>((&["message_id"], (message,)), "id", (Direction::Up, 0), MOST_ACTIONS)?;
    if let Some((chat, within)) = named(message) {
        found.extend(of_chat(view, (chat, within), ActionId(0), MOST_ACTIONS)?);
        found.sort_by_key(|row| row.id);
        found.truncate(MOST_ACTIONS);
    }
    Ok(found.into_iter().map(ActionTrace::from).collect())
}

/// Who had a message written: the first action that has its id, which is none of those that change it.
fn sender(view: &mut View<'_>, bot: &BotKey, chat: &str, message: &str) -> Result<Option<InstanceId>> {
    let found = of_chat(view, (chat, message), ActionId(0), MOST_ACTIONS)?;
    let wrote = |row: &&LedgerRow| {
        // A thread may have the id of the message it was opened from, which is a person's.
        let is_new = !["edit", "delete", "thread_create", "thread_rename", REMARK].contains(&row.op.as_str());
        is_new && row.gateway_id.is_some() && row.platform == *bot.platform && row.bot == *bot.bot
    };
    Ok(found.iter().find(wrote).filter(|row| row.state == ActionState::Sent.as_str()).map(|row| row.instance))
}

/// How often a message of a chat was changed.
fn edits(view: &mut View<'_>, chat: &str, message: &str) -> Result<Edits> {
    let (mut edits, mut last) = (Edits::default(), ActionId(0));
    loop {
        let page = of_chat(view, (chat, message), last, EDITS)?;
        let made = page.iter().filter(|row| row.op == "edit" && row.state == ActionState::Sent.as_str());
        for row in made {
            edits.count += 1;
            edits.last_at = edits.last_at.max(row.finished_at);
        }
        match page.last() {
            Some(row) if page.len() == EDITS => last = row.id,
            _ => return Ok(edits),
        }
    }
}

/// Actions behind `after` that produced a message of a chat.
fn of_chat(
    view: &mut View<'_>,
    (chat, message): (&str, &str),
    after: ActionId,
    limit: usize,
) -> Result<Vec<LedgerRow>> {
    let by: &[&str] = &["message_id", "chat_id"];
    view.walk((by, (message, chat)), "id", (Direction::Up, after), limit)
}
