//! Inboxes as an operator sees them, and what an operator does to them; what waits there for so
//! long that people are told; and the conversations that an interrupt is looked up in.

use super::BoxFuture;
use crate::audit::Actor;
use crate::clock::UnixMillis;
use crate::directory::{BotKey, ChatKind};
use crate::error::Result;
use crate::inbox::{InstanceId, Seq};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A place a conversation was last delivered to, as the store remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// The key a gateway builds for it.
    pub session_key: String,
    /// The instance that was given its last message.
    pub instance: InstanceId,
    /// Its chat.
    pub chat_id: String,
}

/// A summary of one inbox.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ListedInbox {
    /// Its number.
    pub instance: InstanceId,
    /// The tenant.
    pub tenant: String,
    /// The instance's name.
    pub name: String,
    /// Entries waiting.
    pub waiting: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Dead letters.
    pub dead: u64,
    /// When the oldest waiting entry was received.
    pub oldest_at: Option<UnixMillis>,
    /// Whether the gateway said it goes idle.
    pub idle: bool,
    /// Messages lost to quotas, chat by chat.
    pub gaps: Vec<Gap>,
}

/// Entries that went because an inbox was over its quota.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Gap {
    /// The chat that lost them.
    pub chat_id: String,
    /// How many.
    pub lost: u64,
    /// When the first of them had been received.
    pub first_at: UnixMillis,
    /// When the last of them had been received.
    pub last_at: UnixMillis,
}

/// One entry as an operator sees it: never with its text.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Listed {
    /// Its place in the log of its instance.
    pub seq: Seq,
    /// The instance's number.
    pub instance: InstanceId,
    /// The tenant.
    pub tenant: String,
    /// The instance's name.
    pub name: String,
    /// What it is.
    pub kind: String,
    /// The platform it came from.
    pub platform: String,
    /// The chat it came from.
    pub chat_id: String,
    /// The provider's id.
    pub message_id: String,
    /// Its size.
    pub bytes: u64,
    /// When it was received.
    pub received_at: UnixMillis,
    /// Sockets that ended on it.
    pub strikes: u32,
    /// When it became a dead letter.
    pub dead_at: Option<UnixMillis>,
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

/// Looking at inboxes, and putting them right.
pub trait Inboxes: Send + Sync {
    /// All inboxes with something to tell.
    fn inboxes(&self) -> BoxFuture<'_, Result<Vec<ListedInbox>>>;

    /// Entries of one inbox, or of all; `dead` chooses dead letters.
    fn entries(
        &self,
        instance: Option<InstanceId>,
        dead: bool,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Listed>>>;

    /// The entries with this number, dead or waiting: one for each instance that has one.
    fn numbered(&self, seq: Seq) -> BoxFuture<'_, Result<Vec<Listed>>>;

    /// Puts dead letters back in line; all of them, or one. Answers how many.
    fn redrive(
        &self,
        instance: Option<InstanceId>,
        seq: Option<Seq>,
        by: &Actor,
    ) -> BoxFuture<'_, Result<u64>>;

    /// Throws entries away: dead letters only, unless one is named. Answers how many.
    fn purge(&self, instance: Option<InstanceId>, seq: Option<Seq>, by: &Actor)
    -> BoxFuture<'_, Result<u64>>;

    /// The conversation a tenant's key was last delivered to.
    fn conversation(&self, tenant: &str, session_key: &str) -> BoxFuture<'_, Result<Option<Conversation>>>;

    /// A tenant's most recent conversations, newest first.
    fn recent_conversations(&self, tenant: &str, limit: usize) -> BoxFuture<'_, Result<Vec<Conversation>>>;

    /// Messages of an instance after `after` that wait for `waited` or longer, in order.
    /// Interactions are none: who waits behind one sees that already, and is told
    /// in that same place if no answer comes.
    fn overdue(
        &self,
        instance: InstanceId,
        after: Seq,
        waited: Duration,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Overdue>>>;
}
