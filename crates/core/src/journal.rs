//! What happened to a message: put together from the journal, the ledger and the names of
//! instances. The journal and the ledger are long, so they are read by what names a message.

use crate::egress::ActionState;
use crate::error::Result;
use crate::inbox::{InstanceId, Seq};
use crate::ports::ActionId;
use crate::records::rows::{InstanceRow, JournalRow, LedgerRow};
use crate::records::{Direction, Key, View};
use crate::store::{ActionTrace, Edits, MessageTrace};
use std::collections::HashMap;

/// Messages of one name, the newest: a provider may count within each chat.
const MOST_MESSAGES: usize = 1_000;
/// Actions shown of one message: more than anybody reads.
const MOST_ACTIONS: usize = 100;
/// Changes of one message that are read at a time.
const EDITS: usize = 500;

/// Messages with this provider id, or of this log number, oldest first, with their replies.
pub(crate) fn explain(view: &mut View<'_>, message: &str) -> Result<Vec<MessageTrace>> {
    let mut found = messages(view, &["message_id"], (message,))?;
    if let Some((chat, within)) = named(message) {
        found.extend(messages(view, &["message_id", "chat_id"], (within, chat))?);
        found.sort_by_key(|row| row.id);
    }
    if let Some(seq) = Seq::from_buffer_id(message) {
        found.extend(messages(view, &["seq"], (seq,))?);
    }
    let mut names = HashMap::new();
    found.into_iter().map(|row| story(view, row, &mut names)).collect()
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
fn story(
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
    let replies = replies(view, &row)?;
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
        pushed_at: row.pushed_at,
        pushes: u32::try_from(row.pushes).unwrap_or(u32::MAX),
        settled_at: row.settled_at,
        outcome: row.outcome,
        replies,
    })
}

/// What was written in answer to a message: its id may be another one elsewhere.
fn replies(view: &mut View<'_>, row: &JournalRow) -> Result<Vec<ActionTrace>> {
    let by: &[&str] = &["reply_to", "chat_id", "platform", "bot"];
    let values = (&row.message_id, &row.chat_id, &row.platform, &row.bot);
    let found = view.walk::<LedgerRow>((by, values), "id", (Direction::Up, 0), MOST_ACTIONS)?;
    Ok(found.into_iter().map(ActionTrace::from).collect())
}

/// Actions of which nobody knows whether the provider has them, newest first.
pub(crate) fn ambiguous(view: &mut View<'_>, limit: usize) -> Result<Vec<ActionTrace>> {
    let state = ActionState::Ambiguous.as_str();
    let found = view.newest::<LedgerRow>(&["state"], (state,), limit)?;
    Ok(found.into_iter().map(ActionTrace::from).collect())
}

/// Actions that produced this message id, oldest first.
pub(crate) fn actions(view: &mut View<'_>, message: &str) -> Result<Vec<ActionTrace>> {
    let mut found =
        view.walk::<LedgerRow>((&["message_id"], (message,)), "id", (Direction::Up, 0), MOST_ACTIONS)?;
    if let Some((chat, within)) = named(message) {
        found.extend(of_chat(view, (chat, within), ActionId(0), MOST_ACTIONS)?);
        found.sort_by_key(|row| row.id);
        found.truncate(MOST_ACTIONS);
    }
    Ok(found.into_iter().map(ActionTrace::from).collect())
}

/// How often a message of a chat was changed.
pub(crate) fn edits(view: &mut View<'_>, chat: &str, message: &str) -> Result<Edits> {
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
