//! The directory of chats, as it rests.

use super::BoxFuture;
use crate::audit::Actor;
use crate::clock::UnixMillis;
use crate::directory::{BotKey, KnownChat, chats, moves, pieces};
use crate::error::Error;
use crate::error::Result;
use crate::records::{Change, Records, change, look};

/// Chats a bot knows: the rules of [`crate::directory`], asked of any records. What a bot
/// learns of chats is committed with what it received, by
/// [`Ingest::take_in`](super::Ingest::take_in).
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
