//! What the connector itself knows of chats: their kind, and what they belong to.
//! It is filled by what a bot sees and by its own provider calls, never by a frame.

pub mod chats;
pub mod moves;
pub mod pieces;

use crate::clock::UnixMillis;
use crate::inbox::InstanceId;
use crate::words::words;
use std::sync::Arc;

/// One shared identity: the platform and the bot's id on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BotKey {
    /// The platform's name on the wire.
    pub platform: Arc<str>,
    /// The bot's id there.
    pub bot: Arc<str>,
}

impl BotKey {
    /// The bot `bot` of `platform`.
    pub fn new(platform: &str, bot: &str) -> Self {
        Self { platform: platform.into(), bot: bot.into() }
    }
}

words! {
    /// What a chat is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ChatKind {
        /// Not a chat itself: what chats belong to, such as a guild.
        Scope = "scope",
        /// One person and the bot.
        Dm = "dm",
        /// Several people; also a channel of a guild.
        Group = "group",
        /// Where some write and many read.
        Channel = "channel",
        /// A conversation beside its parent, with an id of its own.
        Thread = "thread",
        /// A topic of a group, found by the group's id and its own.
        Topic = "topic",
    }
}

/// What a provider said of a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chat {
    /// The provider's id; of a topic, the group's and its own with a `/` between.
    pub chat_id: String,
    /// What it is.
    pub kind: ChatKind,
    /// The chat it is beside or within: of a thread its channel, of a topic its group.
    pub parent: Option<String>,
    /// What it belongs to, such as a guild.
    pub scope: Option<String>,
    /// How people call it.
    pub name: Option<String>,
    /// What it is about.
    pub topic: Option<String>,
    /// The other person of a private chat.
    pub person: Option<String>,
    /// The bot's own roles in a scope: a mention of one means the bot.
    pub roles: Vec<String>,
}

impl Chat {
    /// A chat of which nothing but its kind is known.
    pub fn new(chat_id: impl Into<String>, kind: ChatKind) -> Self {
        let (parent, scope, name, topic, person) = Default::default();
        Self { chat_id: chat_id.into(), kind, parent, scope, name, topic, person, roles: Vec::new() }
    }
}

/// A chat as the directory has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownChat {
    /// What the provider said of it.
    pub chat: Chat,
    /// Where it went: a group that became a supergroup has a new id.
    pub moved_to: Option<String>,
    /// The instance that was addressed there, where that counts for what follows.
    pub engaged: Option<InstanceId>,
    /// The newest message seen there.
    pub last_message: Option<String>,
    /// When that was.
    pub last_at: Option<UnixMillis>,
}

impl From<Chat> for KnownChat {
    fn from(chat: Chat) -> Self {
        Self { chat, moved_to: None, engaged: None, last_message: None, last_at: None }
    }
}
