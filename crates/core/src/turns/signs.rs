//! The signs by which a gateway marks its turns: what it has shown on a platform, and which of its
//! actions say that a turn is over.

use angelia_contract::action::Action;
use serde_json::Value;
use std::sync::Arc;

/// The reaction that says that a message is being worked on.
const SEEN: &str = "👀";
/// Reactions that say that the work is over.
const DONE: [&str; 4] = ["✅", "❌", "👍", "👎"];

/// What a gateway has shown on one platform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// It reacts to the message it works on.
    pub reacts: bool,
    /// It says which message ends a turn (`notify`).
    pub notifies: bool,
    /// It ended a turn with words that did not say so: any of its words may be the last.
    pub only_says: bool,
    /// It shows that it types.
    pub types: bool,
}

/// What an action means for the turns of its chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act<'a> {
    /// It took a message up.
    Seen(&'a str),
    /// It is done with a message, for good.
    Done(&'a str),
    /// It let go of a message; whether it says more of it is open.
    LetGo(&'a str),
    /// It types.
    Typing,
    /// It says something.
    Says {
        /// In answer to this message.
        reply_to: Option<&'a str>,
        /// Whether this is how it ends a turn, as far as it tells.
        last: bool,
        /// Whether it carries `notify`.
        notifies: bool,
        /// Whether it asks for leave, in words.
        asks: bool,
    },
    /// It asks, with buttons.
    Asks(Asked),
    /// Anything else: it lives.
    Lives,
}

impl<'a> Act<'a> {
    /// The message it is about.
    pub(super) fn message(&self) -> Option<&'a str> {
        match self {
            Self::Seen(message) | Self::Done(message) | Self::LetGo(message) => Some(message),
            Self::Says { reply_to, .. } => *reply_to,
            Self::Typing | Self::Asks(_) | Self::Lives => None,
        }
    }
}

/// What a gateway asks in mid-turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// For leave: only a decision answers it.
    Approval,
    /// A question: any words answer it.
    Clarify,
}

/// Where an action happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where<'a> {
    /// In a chat.
    Chat(&'a str),
    /// In a session, by its key.
    Session(&'a str),
}

/// What an action means, and where; `None` if it is nowhere.
pub(super) fn act(action: &Action) -> Option<(Where<'_>, Act<'_>)> {
    let (chat_id, act): (&str, Act<'_>) = match action {
        Action::FollowUp { session_key, metadata, .. } => {
            let notifies = metadata.get("notify") == Some(&Value::Bool(true));
            let said = Act::Says { reply_to: None, last: notifies, notifies, asks: false };
            return Some((Where::Session(session_key), said));
        }
        Action::React { chat_id, message_id, emoji, remove, .. } => {
            let emoji = emoji.trim_end_matches('\u{fe0f}');
            let act = match (emoji, *remove) {
                (SEEN, false) => Act::Seen(message_id),
                (SEEN, true) => Act::LetGo(message_id),
                (done, false) if DONE.contains(&done) => Act::Done(message_id),
                _ => Act::Lives,
            };
            (chat_id, act)
        }
        Action::Typing { chat_id, .. } => (chat_id, Act::Typing),
        Action::Send { chat_id, content, reply_to, metadata } => {
            let is = |key: &str| metadata.get(key) == Some(&Value::Bool(true));
            let notifies = is("notify");
            let last = notifies && !is("expect_edits");
            // A gateway that was not offered buttons names the commands that answer.
            let asks = !notifies && content.contains("/approve");
            (chat_id, Act::Says { reply_to: reply_to.as_deref(), last, notifies, asks })
        }
        Action::Prompt { chat_id, prompt_kind, .. } => {
            let asked = if prompt_kind == "clarify" { Asked::Clarify } else { Asked::Approval };
            (chat_id, Act::Asks(asked))
        }
        other => (other.chat_id()?, Act::Lives),
    };
    Some((Where::Chat(chat_id), act))
}

/// What a gateway has shown on a platform.
pub(super) fn shown_on(signs: &[(Arc<str>, Signs)], platform: &str) -> Signs {
    signs.iter().find(|(on, _)| **on == *platform).map(|(_, signs)| *signs).unwrap_or_default()
}

/// Keeps what it shows there; answers what is known with it.
pub(super) fn shown(
    signs: &mut Vec<(Arc<str>, Signs)>,
    platform: &Arc<str>,
    show: impl FnOnce(&mut Signs),
) -> Signs {
    let at = signs.iter().position(|(on, _)| on == platform).unwrap_or_else(|| {
        signs.push((platform.clone(), Signs::default()));
        signs.len() - 1
    });
    let known = &mut signs[at].1;
    show(known);
    *known
}
