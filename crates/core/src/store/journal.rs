//! The journal: which steps a message took, and when. Never its text.

use super::{ActionId, BoxFuture};
use crate::clock::UnixMillis;
use crate::error::Result;
use crate::inbox::{InstanceId, Seq};
use crate::journal;
use crate::records::{Records, look};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The way of one received message.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MessageTrace {
    /// Its place in the log.
    pub seq: Seq,
    /// What it was.
    pub kind: String,
    /// The platform it came from.
    pub platform: String,
    /// The bot that received it.
    pub bot: String,
    /// The chat it came from.
    pub chat_id: String,
    /// The provider's id.
    pub message_id: String,
    /// The tenant it belongs to.
    pub tenant: String,
    /// The instance it was for.
    pub instance: InstanceId,
    /// The instance's name.
    pub instance_name: String,
    /// When it reached us.
    pub received_at: UnixMillis,
    /// When it was durable.
    pub appended_at: UnixMillis,
    /// When it was first pushed.
    pub pushed_at: Option<UnixMillis>,
    /// On how many sockets it was pushed.
    pub pushes: u32,
    /// When it left the inbox.
    pub settled_at: Option<UnixMillis>,
    /// How it left the inbox, in words.
    pub outcome: Option<String>,
    /// What the agent wrote in answer; whoever shows it says how often that was changed.
    #[serde(skip)]
    pub replies: Vec<ActionTrace>,
}

/// The way of one outbound action.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ActionTrace {
    /// Its number in the ledger.
    pub id: ActionId,
    /// The operation.
    pub op: String,
    /// The chat written to.
    pub chat_id: String,
    /// The message it answers.
    pub reply_to: Option<String>,
    /// When it was accepted.
    pub accepted_at: UnixMillis,
    /// When it was finished.
    pub finished_at: Option<UnixMillis>,
    /// How far it came.
    pub state: String,
    /// The id the provider gave.
    pub message_id: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// What the provider says became of the message.
    pub receipt: Option<String>,
}

/// How often an agent changed one of its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// The changes that were made.
    pub count: u64,
    /// When the last one was.
    pub last_at: Option<UnixMillis>,
}

/// Asking what happened, of any records.
pub trait JournalStore: Records {
    /// Messages with this provider id, or of this log number, with their replies.
    fn explain(&self, message: &str) -> BoxFuture<'_, Result<Vec<MessageTrace>>> {
        let message = message.to_owned();
        look(self, "read the journal", move |view| journal::explain(view, &message))
    }

    /// Actions of which nobody knows whether the provider has them, newest first.
    fn ambiguous_actions(&self, limit: usize) -> BoxFuture<'_, Result<Vec<ActionTrace>>> {
        look(self, "read the ledger", move |view| journal::ambiguous(view, limit))
    }

    /// Actions that produced this message id.
    fn explain_action(&self, message: &str) -> BoxFuture<'_, Result<Vec<ActionTrace>>> {
        let message = message.to_owned();
        look(self, "read the ledger", move |view| journal::actions(view, &message))
    }

    /// The changes of a message of a chat.
    fn edits(&self, chat_id: &str, message_id: &str) -> BoxFuture<'_, Result<Edits>> {
        let (chat_id, message_id) = (chat_id.to_owned(), message_id.to_owned());
        look(self, "read the ledger", move |view| journal::edits(view, &chat_id, &message_id))
    }
}

impl<R: Records + ?Sized> JournalStore for R {}
