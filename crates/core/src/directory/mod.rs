//! What the connector itself knows of chats: their kind, and what they belong to.
//! It is filled by what a bot sees and by its own provider calls, never by a frame.

pub mod chats;
pub mod moves;
pub mod pieces;

use crate::audit::Actor;
use crate::clock::UnixMillis;
use crate::error::{Error, Result};
use crate::inbox::InstanceId;
use crate::own_words::Language;
use crate::ports::BoxFuture;
use crate::records::{Change, Records, change, look};
use crate::words::words;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One shared identity: the platform and the bot's id on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
        /// Where every conversation is a thread below: nobody writes in it itself.
        Forum = "forum",
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
    /// The language of whoever an agent was last addressed by there; `None` if nobody said
    /// which, or not this time.
    pub language: Option<Language>,
}

impl Chat {
    /// A chat of which nothing but its kind is known.
    pub fn new(chat_id: impl Into<String>, kind: ChatKind) -> Self {
        let (parent, scope, name, topic, person, language) = Default::default();
        let (chat_id, roles) = (chat_id.into(), Vec::new());
        Self { chat_id, kind, parent, scope, name, topic, person, roles, language }
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

/// Chats a bot knows, asked of any records. What a bot learns of chats is committed with what it
/// received, by [`Ingest::take_in`](crate::ports::Ingest::take_in).
pub trait DirectoryStore: Records {
    /// A chat of a bot.
    fn chat(&self, bot: &BotKey, chat_id: &str) -> BoxFuture<'_, Result<Option<KnownChat>>> {
        let (bot, chat_id) = (bot.clone(), chat_id.to_owned());
        look(self, "find a chat", move |view| chats::find(view, &bot, &chat_id))
    }

    /// Chats with a message since then, the one with the newest first. No more than `limit`.
    fn recent_chats(
        &self,
        bot: &BotKey,
        since: UnixMillis,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<KnownChat>>> {
        let bot = bot.clone();
        look(self, "find chats with traffic", move |view| chats::recent(view, &bot, since, limit))
    }

    /// Forgets a chat: the bot is not there any more.
    fn forget_chat(&self, bot: &BotKey, chat_id: &str) -> BoxFuture<'_, Result<()>> {
        let (bot, chat_id) = (bot.clone(), chat_id.to_owned());
        change(self, Change::to("forget a chat"), move |view| chats::forget(view, &bot, &chat_id))
    }

    /// Forgets every chat that belongs to a scope.
    fn forget_scope(&self, bot: &BotKey, scope: &str) -> BoxFuture<'_, Result<()>> {
        let (bot, scope) = (bot.clone(), scope.to_owned());
        change(self, Change::to("forget a scope"), move |view| chats::forget_scope(view, &bot, &scope))
    }

    /// A chat has a new id: what the directory knows of it and the routes that
    /// name it move in one commit, and the old id leads to the new one. What was
    /// written under the old id stays there: ids of messages mean nothing in the new. A route
    /// that the new id has already stays as it is, and the old one goes: a place
    /// never falls to whoever asks last. Doing it again changes nothing. Answers why the
    /// routes could not follow, if they could not: everything else moved all the same.
    fn move_chat(
        &self,
        bot: &BotKey,
        from: &str,
        to: &str,
        by: &Actor,
    ) -> BoxFuture<'_, Result<Option<Error>>> {
        let (bot, from, to, by) = (bot.clone(), from.to_owned(), to.to_owned(), by.clone());
        change(self, Change::to("move a chat"), move |view| moves::move_chat(view, &bot, &from, &to, &by))
    }

    /// The further messages that a message was continued in, in order.
    fn pieces(&self, bot: &BotKey, chat_id: &str, message_id: &str) -> BoxFuture<'_, Result<Vec<String>>> {
        let (bot, chat_id, message_id) = (bot.clone(), chat_id.to_owned(), message_id.to_owned());
        look(self, "find the pieces of a message", move |view| pieces::of(view, &bot, &chat_id, &message_id))
    }

    /// Notes which further messages a message is continued in; none forgets it.
    fn keep_pieces(
        &self,
        bot: &BotKey,
        chat_id: &str,
        message_id: &str,
        pieces: Vec<String>,
    ) -> BoxFuture<'_, Result<()>> {
        let (bot, chat_id, message_id) = (bot.clone(), chat_id.to_owned(), message_id.to_owned());
        change(self, Change::to("keep the pieces of a message"), move |view| {
            pieces::keep(view, &bot, &chat_id, &message_id, &pieces)
        })
    }
}

impl<R: Records + ?Sized> DirectoryStore for R {}
