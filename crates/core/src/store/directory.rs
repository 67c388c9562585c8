//! The directory of chats, as it rests.

use super::Later;
use crate::audit::Actor;
use crate::clock::UnixMillis;
use crate::directory::{BotKey, KnownChat};

/// Chats a bot knows.
pub trait DirectoryStore: Send + Sync {
    /// A chat of a bot.
    fn chat(&self, bot: &BotKey, chat_id: &str) -> Later<'_, Option<KnownChat>>;

    /// Chats with a message since then, the one with the newest first. No more than `limit`.
    fn recent_chats(&self, bot: &BotKey, since: UnixMillis, limit: usize) -> Later<'_, Vec<KnownChat>>;

    /// Forgets a chat: the bot is not there any more.
    fn forget_chat(&self, bot: &BotKey, chat_id: &str) -> Later<'_, ()>;

    /// Forgets every chat that belongs to a scope.
    fn forget_scope(&self, bot: &BotKey, scope: &str) -> Later<'_, ()>;

    /// A chat has a new id: what the directory knows of it and the routes that
    /// name it move in one commit, and the old id leads to the new one. What was
    /// written under the old id stays there: ids of messages mean nothing in the new. A route
    /// that the new id has already stays as it is, and the old one goes: a place
    /// never falls to whoever asks last. Doing it again changes nothing.
    fn move_chat(&self, bot: &BotKey, from: &str, to: &str, by: &Actor) -> Later<'_, ()>;

    /// The further messages that a message was continued in, in order.
    fn pieces(&self, bot: &BotKey, chat_id: &str, message_id: &str) -> Later<'_, Vec<String>>;

    /// Notes which further messages a message is continued in; none forgets it.
    fn keep_pieces(
        &self,
        bot: &BotKey,
        chat_id: &str,
        message_id: &str,
        pieces: Vec<String>,
    ) -> Later<'_, ()>;
}
