//! The address of a chat: where a reply goes.

use angelia_contract::source::{RELAY, chat_type};
use angelia_contract::{Metadata, Source};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An address of a conversation, good for sending long after its event.
///
/// Take it from a conversation and store it, or write one down by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Chat {
    /// The platform; empty if unknown.
    pub platform: String,
    /// The bot to speak through, if it matters.
    pub bot_id: Option<String>,
    /// The chat's id.
    pub chat_id: String,
    /// The thread inside it.
    pub thread_id: Option<String>,
    /// Guild, workspace or server.
    pub scope_id: Option<String>,
    /// The other person of a conversation of two.
    pub user_id: Option<String>,
}

impl Chat {
    /// A chat of a platform, with nothing else known about it.
    pub fn new(platform: impl Into<String>, chat_id: impl Into<String>) -> Self {
        Self { platform: platform.into(), chat_id: chat_id.into(), ..Self::default() }
    }

    /// The platform, unless it is unknown or the word for "any".
    pub(crate) fn named_platform(&self) -> Option<&str> {
        Some(self.platform.as_str()).filter(|name| !name.is_empty() && *name != RELAY)
    }

    /// The hints that let a connector find its way back.
    pub(crate) fn metadata(&self) -> Metadata {
        let hints =
            [("thread_id", &self.thread_id), ("scope_id", &self.scope_id), ("user_id", &self.user_id)];
        hints
            .into_iter()
            .filter_map(|(key, hint)| Some((key.to_owned(), Value::from(hint.clone()?))))
            .collect()
    }
}

impl From<&Source> for Chat {
    fn from(source: &Source) -> Self {
        let dm = source.chat_type == chat_type::DM;
        Self {
            platform: source.platform.clone(),
            bot_id: None,
            chat_id: source.chat_id.clone(),
            thread_id: source.thread_id.clone(),
            scope_id: source.scope_id.clone(),
            user_id: source.user_id.clone().filter(|_| dm),
        }
    }
}
