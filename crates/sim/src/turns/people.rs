//! People: who writes where, and what a line of theirs is in the log.

use super::LineId;
use super::store::INSTANCE;
use crate::dice::Dice;
use angelia_contract::event::{Event, PromptResponse};
use angelia_contract::source::Source;
use angelia_core::clock::UnixMillis;
use angelia_core::inbox::{Entry, EntryKind, Interaction, Request, WhenFull};
use angelia_core::ports::log::{NewEntry, Revision};
use bytes::Bytes;

/// Where several people write.
const GROUP: &str = "group";

/// Somebody in a chat.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    pub(crate) chat_id: String,
    pub(crate) session_key: String,
    author: String,
}

/// What somebody writes.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Text,
    /// Kilobytes of it.
    Long(usize),
    Reply,
    Command,
    Reset,
    Press(String),
}

/// A line that is written.
#[derive(Clone, Debug)]
pub(crate) struct Writes {
    pub(crate) conversation: usize,
    pub(crate) id: LineId,
    pub(crate) what: What,
}

/// Whether one person writes in a chat.
pub(crate) fn is_alone(chat_id: &str) -> bool {
    chat_id != GROUP
}

/// Three people by themselves, and three in a group.
pub(crate) fn conversations() -> Vec<Conversation> {
    let of = |chat: &str, author: &str| Conversation {
        chat_id: chat.to_owned(),
        session_key: format!("{chat}:{author}"),
        author: author.to_owned(),
    };
    let alone = ["ann", "bob", "cem"].map(|author| of(author, author));
    let together = ["ann", "dan", "eve"].map(|author| of(GROUP, author));
    alone.into_iter().chain(together).collect()
}

impl What {
    pub(crate) fn any(dice: &mut Dice) -> Self {
        match dice.below(100) {
            0..84 => Self::Text,
            84..88 => Self::Long(1 + dice.below(8)),
            88..92 => Self::Reply,
            92..97 => Self::Command,
            _ => Self::Reset,
        }
    }
}

/// The text of a line, in one of the forms its author gave it.
fn text(id: LineId, what: &What, form: u32) -> String {
    let said = format!("#{}.{form}", id.0);
    match what {
        What::Text | What::Reply | What::Press(_) => said,
        What::Long(kilobytes) => said + &"x".repeat(kilobytes * 1_024),
        What::Command => format!("/status {said}"),
        What::Reset => format!("/new {said}"),
    }
}

fn body(writes: &Writes, of: &Conversation, form: u32) -> Bytes {
    let reply = matches!(writes.what, What::Reply).then(|| "earlier".to_owned());
    let press = match &writes.what {
        What::Press(id) => Some(PromptResponse { prompt_id: id.clone(), ..PromptResponse::default() }),
        _ => None,
    };
    let event = Event {
        text: text(writes.id, &writes.what, form),
        message_id: Some(format!("m{}", writes.id.0)),
        source: Source { user_id: Some(of.author.clone()), ..Source::default() },
        reply_to_message_id: reply,
        prompt_response: press.clone(),
        ..Event::default()
    };
    let made = match press {
        Some(_) => serde_json::to_vec(&Interaction { event, request: Request::default(), command: None }),
        None => serde_json::to_vec(&event),
    };
    made.unwrap_or_default().into()
}

/// What the log is given of a line.
pub(crate) fn entry(writes: &Writes, of: &Conversation) -> NewEntry {
    let press = matches!(writes.what, What::Press(_));
    NewEntry {
        tenant: "t".to_owned(),
        instance: INSTANCE,
        kind: if press { EntryKind::Interaction } else { EntryKind::Message },
        platform: "telegram".into(),
        bot: "bot".into(),
        chat_id: of.chat_id.as_str().into(),
        message_id: format!("m{}", writes.id.0),
        session_key: of.session_key.as_str().into(),
        body: body(writes, of, 0),
        ahead: press,
        while_busy: None,
        when_full: WhenFull::MakeRoom,
        received_at: UnixMillis(0),
    }
}

/// What the log is given when its author changes it.
pub(crate) fn revision(writes: &Writes, of: &Conversation, form: u32) -> Revision {
    Revision {
        platform: "telegram".into(),
        bot: "bot".into(),
        chat_id: of.chat_id.as_str().into(),
        message_id: format!("m{}", writes.id.0),
        instance: INSTANCE,
        kind: EntryKind::Message,
        body: body(writes, of, form),
    }
}

/// What an entry says.
pub(crate) fn event(entry: &Entry) -> Event {
    match entry.kind {
        EntryKind::Interaction => Interaction::read(&entry.body).map(|it| it.event).unwrap_or_default(),
        EntryKind::Message | EntryKind::Stop => serde_json::from_slice(&entry.body).unwrap_or_default(),
    }
}

/// The lines in a text.
pub(crate) fn lines(text: &str) -> Vec<LineId> {
    let id = |line: &str| line.split_once('#')?.1.split_once('.')?.0.parse().ok().map(LineId);
    text.split('\n').filter_map(id).collect()
}
