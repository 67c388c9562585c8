//! What people are told by the connector itself, once.

use super::BoxFuture;
use crate::directory::BotKey;
use crate::error::Result;
use crate::inbox::InstanceId;
use crate::notices;
use crate::records::{Change, Records, change, look};
use crate::words::words;

words! {
    /// What a notice is about.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum NoticeKind {
        /// The agent is away and the message is kept; once per outage and chat.
        Away = "away",
        /// Why nothing answers here; once per place.
        Hint = "hint",
        /// Messages of the chat were dropped because too much waited; once per chat until
        /// the inbox was empty.
        Lost = "lost",
    }
}

/// A chat that lost messages because too much waited, and does not know it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untold {
    /// For which instance they waited.
    pub instance: InstanceId,
    /// The bot that received them.
    pub bot: BotKey,
    /// The chat they came from.
    pub chat_id: String,
    /// The thread or topic of that chat, from the event.
    pub thread_id: Option<String>,
    /// The first of them, by the provider's id.
    pub message_id: String,
}

/// Telling people things once: the rules of [`crate::notices`], asked of any records.
pub trait NoticeStore: Records {
    /// Notes that a chat is told something; `false` if it was before. Notices
    /// of an instance end with [`NoticeStore::end_notices`].
    fn notice(
        &self,
        kind: NoticeKind,
        bot: &BotKey,
        chat_id: &str,
        instance: Option<InstanceId>,
    ) -> BoxFuture<'_, Result<bool>> {
        let (bot, chat_id) = (bot.clone(), chat_id.to_owned());
        change(self, Change::to("note what a chat is told"), move |view| {
            notices::note(view, kind, &bot, &chat_id, instance)
        })
    }

    /// Forgets that a chat was told something, because it could not be.
    fn clear_notice(&self, kind: NoticeKind, bot: &BotKey, chat_id: &str) -> BoxFuture<'_, Result<()>> {
        let (bot, chat_id) = (bot.clone(), chat_id.to_owned());
        change(self, Change::to("forget what a chat was told"), move |view| {
            notices::forget(view, kind, &bot, &chat_id)
        })
    }

    /// An instance's outage is over: its chats are told again in the next one.
    fn end_notices(&self, instance: InstanceId) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            while change(self, Change::to("end an outage"), move |view| notices::end(view, instance)).await? {
            }
            Ok(())
        })
    }

    /// Instances with chats that were told of an outage.
    fn noticed(&self) -> BoxFuture<'_, Result<Vec<InstanceId>>> {
        look(self, "find told outages", notices::instances)
    }

    /// Chats that lost something and were not told.
    fn untold(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Untold>>> {
        look(self, "find who lost something", move |view| notices::untold(view, limit))
    }

    /// A chat knows what it lost, or cannot be told.
    fn told(&self, untold: &Untold) -> BoxFuture<'_, Result<()>> {
        let (instance, chat_id) = (untold.instance, untold.chat_id.clone());
        change(self, Change::to("note that a loss was told"), move |view| {
            notices::told(view, instance, &chat_id)
        })
    }
}

impl<R: Records + ?Sized> NoticeStore for R {}
