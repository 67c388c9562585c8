//! What a turn has to know of an entry that waits: whose conversation it is of, who wrote it,
//! what sort of line it is, and whether it may go together with others.

use super::WhileBusy;
use crate::inbox::{Entry, EntryKind, Interaction, Seq};
use angelia_contract::event::{Event, message_type};
use std::sync::Arc;

/// A conversation, as the gateway of an instance tells them apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConversationKey {
    /// The chat it is in.
    pub chat_id: Arc<str>,
    /// The key a gateway builds; `None` if everybody in the chat shares one conversation.
    pub session_key: Option<Arc<str>>,
}

impl ConversationKey {
    /// The conversation of an entry, for a gateway that may have one for each chat only.
    pub fn of(entry: &Entry, one_per_chat: bool) -> Self {
        let session_key = (!one_per_chat).then(|| entry.session_key.clone());
        Self { chat_id: entry.chat_id.clone(), session_key }
    }

    /// Whether an entry is of this conversation.
    pub fn holds(&self, entry: &Entry) -> bool {
        let session = self.session_key.as_ref().is_none_or(|key| *key == entry.session_key);
        session && self.chat_id == entry.chat_id
    }
}

/// What sort of line it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Words.
    Text,
    /// A command for the agent.
    Command,
    /// `/new`, `/reset`: the conversation begins anew, so what runs may end.
    Reset,
    /// `/approve`, `/deny`, `/always`, `/cancel`: an answer to what the agent asks in mid-turn.
    Decision,
    /// The press of a button.
    Press,
    /// `/stop`.
    Stop,
}

impl Sort {
    /// Whether it goes to an agent at work, whatever that does.
    pub fn goes_ahead(self) -> bool {
        matches!(self, Self::Press | Self::Stop | Self::Decision)
    }
}

/// A line that waits.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its place in the log.
    pub seq: Seq,
    /// Its conversation.
    pub conversation: ConversationKey,
    /// The key a gateway builds for it.
    pub session_key: Arc<str>,
    /// The platform it came from.
    pub platform: Arc<str>,
    /// The bot that received it.
    pub bot: Arc<str>,
    /// The thread or topic of its chat.
    pub thread_id: Option<String>,
    /// The provider's id.
    pub message_id: String,
    /// Who wrote it.
    pub author: Option<String>,
    /// What it is.
    pub sort: Sort,
    /// Whether it may go together with others of its author: words, and nothing beside them.
    pub joins: bool,
    /// How it waits.
    pub while_busy: WhileBusy,
    /// The length of its text.
    pub length: usize,
}

impl Line {
    /// Reads what there is to know of an entry; `None` if it cannot be read.
    pub fn read(entry: &Entry, one_per_chat: bool, while_busy: WhileBusy) -> Option<Self> {
        let event: Event = match entry.kind {
            EntryKind::Interaction => Interaction::read(&entry.body)?.event,
            EntryKind::Message | EntryKind::Stop => serde_json::from_slice(&entry.body).ok()?,
        };
        let sort = sort(entry.kind, &event);
        let alone = event.reply_to_message_id.is_none() && event.reply_to.is_none();
        let bare = event.media_urls.is_empty() && event.media.is_empty();
        let text = event.message_type == message_type::TEXT && sort == Sort::Text;
        Some(Self {
            seq: entry.seq,
            conversation: ConversationKey::of(entry, one_per_chat),
            session_key: entry.session_key.clone(),
            platform: entry.platform.clone(),
            bot: entry.bot.clone(),
            joins: entry.kind == EntryKind::Message && text && alone && bare && !entry.is_final(),
            length: event.text.len(),
            message_id: event.message_id.unwrap_or_default(),
            author: event.source.user_id,
            thread_id: event.source.thread_id,
            sort,
            while_busy,
        })
    }
}

fn sort(kind: EntryKind, event: &Event) -> Sort {
    if event.prompt_response.is_some() {
        return Sort::Press;
    }
    if kind == EntryKind::Stop {
        return Sort::Stop;
    }
    sort_of_text(&event.text)
}

/// What sort of line a text is by its first word.
pub fn sort_of_text(text: &str) -> Sort {
    let Some(command) = text.trim_start().strip_prefix('/') else { return Sort::Text };
    let word = command.split(|c: char| c.is_whitespace() || c == '@').next().unwrap_or_default();
    match word.to_ascii_lowercase().as_str() {
        "new" | "reset" => Sort::Reset,
        "approve" | "deny" | "always" | "cancel" => Sort::Decision,
        _ => Sort::Command,
    }
}
