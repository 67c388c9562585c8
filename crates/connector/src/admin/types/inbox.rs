//! What waits, and what became of a message.

use angelia_core::clock::UnixMillis;
use angelia_core::ports::{Listed, ListedInbox};
use angelia_core::store::{ActionTrace, MessageTrace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which inboxes, and which of their entries.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// One entry, such as b123.
    pub entry: Option<String>,
    /// The inbox of this gateway.
    pub gateway: Option<String>,
    /// All inboxes of a tenant, or whose gateway it is.
    pub tenant: Option<String>,
    /// Only dead letters.
    #[serde(default)]
    pub dead: bool,
}

/// What waits, per instance.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Inboxes {
    /// One for each instance.
    pub inboxes: Vec<ListedInbox>,
}

/// Entries, without their text.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Entries {
    /// The oldest first.
    pub entries: Vec<Listed>,
}

/// Dead letters that are in line again.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Redriven {
    /// How many.
    pub redriven: u64,
}

/// Which way a message took.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Explained {
    /// As it was received.
    pub messages: Vec<ExplainedMessage>,
    /// As an agent wrote it.
    pub actions: Vec<ExplainedAction>,
    /// Why it reached nobody.
    pub drops: Vec<Dropped>,
}

/// The way of one received message, and what was answered.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedMessage {
    /// Its way.
    #[serde(flatten)]
    pub message: MessageTrace,
    /// What the agent wrote in answer.
    pub replies: Vec<ExplainedAction>,
}

/// The way of one outbound action, and how often its message was changed since.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedAction {
    /// Its way.
    #[serde(flatten)]
    pub action: ActionTrace,
    /// How often its message was changed.
    pub edits: u64,
    /// When it was changed last.
    pub last_edit_at: Option<UnixMillis>,
}

/// An event that reached nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Dropped {
    /// When.
    pub at: UnixMillis,
    /// The platform it came from.
    pub platform: String,
    /// The bot that received it.
    pub bot: String,
    /// The chat it came from.
    pub chat_id: String,
    /// Its place.
    pub place: String,
    /// The provider's id.
    pub message_id: String,
    /// Who wrote it.
    pub author: String,
    /// Why it reached nobody, in a word.
    pub reason: String,
}
