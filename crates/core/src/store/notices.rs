//! What people are told by the connector itself, once.

use super::Later;
use crate::directory::{BotKey, ChatKind};
use crate::inbox::{InstanceId, Seq};
use std::time::Duration;

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoticeKind {
    /// The agent is away and the message is kept; once per outage and chat.
    Away,
    /// Why nothing answers here; once per place.
    Hint,
    /// Messages of the chat were dropped because too much waited; once per chat until
    /// the inbox was empty.
    Lost,
}

impl NoticeKind {
    /// The word the store keeps.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Away => "away",
            Self::Hint => "hint",
            Self::Lost => "lost",
        }
    }
}

/// A message that waits for too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// Its place in the log.
    pub seq: Seq,
    /// The bot that received it.
    pub bot: BotKey,
    /// The chat it came from.
    pub chat_id: String,
    /// The thread or topic of that chat, from the event.
    pub thread_id: Option<String>,
    /// The provider's id.
    pub message_id: String,
    /// What the chat is, if the directory knows it.
    pub kind: Option<ChatKind>,
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

/// Telling people things once.
pub trait NoticeStore: Send + Sync {
    /// Notes that a chat is told something; `false` if it was before. Notices
    /// of an instance end with [`NoticeStore::end_notices`].
    fn notice(
        &self,
        kind: NoticeKind,
        bot: &BotKey,
        chat_id: &str,
        instance: Option<InstanceId>,
    ) -> Later<'_, bool>;

    /// Forgets that a chat was told something, because it could not be.
    fn unnotice(&self, kind: NoticeKind, bot: &BotKey, chat_id: &str) -> Later<'_, ()>;

    /// An instance's outage is over: its chats are told again in the next one.
    fn end_notices(&self, instance: InstanceId) -> Later<'_, ()>;

    /// Instances with chats that were told of an outage.
    fn noticed(&self) -> Later<'_, Vec<InstanceId>>;

    /// Chats that lost something and were not told.
    fn untold(&self, limit: usize) -> Later<'_, Vec<Untold>>;

    /// A chat knows what it lost, or cannot be told.
    fn told(&self, untold: &Untold) -> Later<'_, ()>;

    /// Messages of an instance after `after` that wait for `waited` or longer, in order.
    /// Interactions are none: who waits behind one sees that already, and is told
    /// in that same place if no answer comes.
    fn overdue(
        &self,
        instance: InstanceId,
        after: Seq,
        waited: Duration,
        limit: usize,
    ) -> Later<'_, Vec<Overdue>>;
}
