//! What a gateway asks a connector to do, and the answer to it.
//!
//! The enum is the union of every generation's operations. Unknown operations
//! and unreadable bodies are values, not errors: each one still has to be
//! answered, or the gateway waits half a minute for nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::lenient;

pub use crate::result::{ActionResult, ChatInfo, EGRESS_DECLINED};

/// Hints beside an action; an open map by contract.
pub type Metadata = Map<String, Value>;

/// One operation, told apart on the wire by `op`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case", remote = "Self")]
pub enum Action {
    /// Post a message.
    Send {
        /// Where to.
        #[serde(deserialize_with = "lenient::text")]
        chat_id: String,
        /// The text, of any length: the connector splits.
        #[serde(default, deserialize_with = "lenient::text_or_empty")]
        content: String,
        /// The message this answers.
        #[serde(default, deserialize_with = "lenient::opt_text")]
        reply_to: Option<String>,
        /// Hints.
        #[serde(default, deserialize_with = "lenient::map")]
        metadata: Metadata,
    },
    /// Replace the text of a sent message.
    Edit {
        /// Where it is.
        #[serde(deserialize_with = "lenient::text")]
        chat_id: String,
        /// Which one.
        #[serde(deserialize_with = "lenient::text")]
        message_id: String,
        /// The whole new text.
        #[serde(default, deserialize_with = "lenient::text_or_empty")]
        content: String,
        /// Hints.
        #[serde(default, deserialize_with = "lenient::map")]
        metadata: Metadata,
    },
    /// Show that an answer is being written.
    Typing {
        /// Where.
        #[serde(deserialize_with = "lenient::text")]
        chat_id: String,
        /// Absent: the default indicator. Text: a status. Empty: clear it.
        #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        /// Hints.
        #[serde(default, deserialize_with = "lenient::map")]
        metadata: Metadata,
    },
    /// Use a capability the connector keeps for a session.
    FollowUp {
        /// The session it is bound to.
        #[serde(deserialize_with = "lenient::text")]
        session_key: String,
        /// Which capability, such as `discord.interaction_token`.
        #[serde(deserialize_with = "lenient::text")]
        kind: String,
        /// The text.
        #[serde(default, deserialize_with = "lenient::text_or_empty")]
        content: String,
        /// Hints.
        #[serde(default, deserialize_with = "lenient::map")]
        metadata: Metadata,
    },
    /// Ask for the name and type of a chat.
    GetChatInfo {
        /// Which chat.
        #[serde(deserialize_with = "lenient::text")]
        chat_id: String,
    },
    /// Post a file.
    SendMedia {
        /// Where to.
        #[serde(deserialize_with = "lenient::text")]
        chat_id: String,
        /// `image`, `voice`, `audio`, `video` or `document`.
        #[serde(deserialize_with = "lenient::text")]
        media_kind: String,
        /// Where the file is fetched.
        #[serde(deserialize_with = "lenient::text")]
        source_url: String,
        /// The caption; may be empty.
        #[serde(default, deserialize_with = "lenient::text_or_empty")]
        content: String,
        /// What to call the file.
        #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
        /// The message this answers.
        #[serde(default, deserialize_with = "lenient::opt_text")]
        reply_to: Option<String>,
        /// Hints.
        #[serde(default, deserialize_with = "lenient::map")]
        metadata: Metadata,
    },
    /// Ask a question with buttons.
    Prompt {
        /// Where to.
        #[serde(deserialize_with = "lenient::text")]
        chat_id: String,
        /// `approval` or `clarify`.
        #[serde(deserialize_with = "lenient::text")]
        prompt_kind: String,
        /// The id a press is reported with.
        #[serde(deserialize_with = "lenient::text")]
        prompt_id: String,
        /// The question.
        #[serde(default, deserialize_with = "lenient::text_or_empty")]
        content: String,
        /// The buttons, in order.
        #[serde(default)]
        options: Vec<PromptOption>,
        /// Seconds the gateway waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_s: Option<f64>,
        /// The message this answers.
        #[serde(default, deserialize_with = "lenient::opt_text")]
        reply_to: Option<String>,
        /// Hints.
        #[serde(default, deserialize_with = "lenient::map")]
        metadata: Metadata,
    },
    /// Add or take away a reaction.
    React {
        /// Where the message is.
        #[serde(deserialize_with = "lenient::text")]
        chat_id: String,
        /// Which message.
        #[serde(deserialize_with = "lenient::text")]
        message_id: String,
        /// The reaction.
        #[serde(deserialize_with = "lenient::text")]
        emoji: String,
        /// Whether to take it away.
        #[serde(default, deserialize_with = "lenient::flag")]
        remove: bool,
        /// Hints.
        #[serde(default, deserialize_with = "lenient::map")]
        metadata: Metadata,
    },
    /// Open a thread.
    ThreadCreate {
        /// The channel it hangs below.
        #[serde(deserialize_with = "lenient::text")]
        chat_id: String,
        /// Its name.
        #[serde(default, deserialize_with = "lenient::text_or_empty")]
        thread_name: String,
        /// The message it starts from.
        #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// Hints.
        #[serde(default, deserialize_with = "lenient::map")]
        metadata: Metadata,
    },
    /// Rename a thread, under guards the connector enforces.
    ThreadRename {
        /// The channel or the thread itself.
        #[serde(deserialize_with = "lenient::text")]
        chat_id: String,
        /// The thread.
        #[serde(deserialize_with = "lenient::text")]
        message_id: String,
        /// The new name.
        #[serde(default, deserialize_with = "lenient::text_or_empty")]
        thread_name: String,
        /// Rename only while this is the name.
        #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
        only_if_current_name: Option<String>,
        /// Rename only while the name is the one the connector gave.
        #[serde(default, deserialize_with = "lenient::opt_flag", skip_serializing_if = "Option::is_none")]
        only_if_connector_created: Option<bool>,
        /// Hints.
        #[serde(default, deserialize_with = "lenient::map")]
        metadata: Metadata,
    },
    /// Grow a message while it is being written.
    Draft {
        /// Where.
        #[serde(deserialize_with = "lenient::text")]
        chat_id: String,
        /// Which draft; an integer on the wire.
        draft_id: i64,
        /// Everything written so far.
        #[serde(default, deserialize_with = "lenient::text_or_empty")]
        content: String,
        /// Whether this seals the draft into a message.
        #[serde(default, rename = "final", deserialize_with = "lenient::flag")]
        is_final: bool,
        /// Hints.
        #[serde(default, deserialize_with = "lenient::map")]
        metadata: Metadata,
    },
    /// Show the steps of a turn.
    TaskCard {
        /// Where.
        #[serde(deserialize_with = "lenient::text")]
        chat_id: String,
        /// Which card.
        #[serde(deserialize_with = "lenient::text")]
        card_id: String,
        /// The steps.
        #[serde(default)]
        chunks: Vec<TaskChunk>,
        /// Hints.
        #[serde(default, deserialize_with = "lenient::map")]
        metadata: Metadata,
    },
    /// Close a card; doing so twice is fine.
    TaskCardStop {
        /// Where.
        #[serde(deserialize_with = "lenient::text")]
        chat_id: String,
        /// Which card.
        #[serde(deserialize_with = "lenient::text")]
        card_id: String,
        /// Hints.
        #[serde(default, deserialize_with = "lenient::map")]
        metadata: Metadata,
    },
    /// Delete a message.
    Delete {
        /// Where it is.
        #[serde(deserialize_with = "lenient::text")]
        chat_id: String,
        /// Which one.
        #[serde(deserialize_with = "lenient::text")]
        message_id: String,
        /// Hints.
        #[serde(default, deserialize_with = "lenient::map")]
        metadata: Metadata,
    },
    /// An operation this crate does not know.
    #[serde(skip)]
    Other {
        /// Its name.
        op: String,
        /// Its chat, if it names one.
        chat_id: Option<String>,
        /// Everything else in it.
        body: Map<String, Value>,
    },
    /// A body that cannot be read; to be answered with a failure.
    #[serde(skip)]
    Unreadable {
        /// The operation, if at least that could be read.
        op: Option<String>,
        /// What is wrong with it.
        reason: String,
    },
}

/// A button of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptOption {
    /// The id a press is reported with.
    #[serde(deserialize_with = "lenient::text")]
    pub id: String,
    /// The text on the button.
    #[serde(default, deserialize_with = "lenient::text_or_empty")]
    pub label: String,
    /// `primary`, `danger`, `success` or none.
    #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub style: Option<String>,
}

/// A step of a task card.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskChunk {
    /// The step's id.
    #[serde(deserialize_with = "lenient::text")]
    pub id: String,
    /// What the step does.
    #[serde(default, deserialize_with = "lenient::text_or_empty")]
    pub title: String,
    /// How far it is.
    #[serde(default, deserialize_with = "lenient::text_or_empty")]
    pub status: String,
    /// More about it.
    #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// What came of it.
    #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// Every operation with a typed body.
pub const KNOWN_OPS: [&str; 14] = [
    "send",
    "edit",
    "typing",
    "follow_up",
    "get_chat_info",
    "send_media",
    "prompt",
    "react",
    "thread_create",
    "thread_rename",
    "draft",
    "task_card",
    "task_card_stop",
    "delete",
];

impl Action {
    /// Reads an action; whatever it is, the result can be answered.
    pub fn from_value(value: Value) -> Self {
        let Value::Object(mut map) = value else {
            return Self::unreadable(None, "the action is not an object");
        };
        let op = match map.get("op") {
            Some(Value::String(op)) => op.clone(),
            _ => return Self::unreadable(None, "the action has no op"),
        };
        if KNOWN_OPS.contains(&op.as_str()) {
            // Spelled out: the derived, stricter reader is an inherent function.
            return match Action::deserialize(Value::Object(map)) {
                Ok(action) => action,
                Err(error) => Self::unreadable(Some(op), error.to_string()),
            };
        }
        map.remove("op");
        let chat_id = match map.get("chat_id") {
            Some(id @ (Value::String(_) | Value::Number(_))) => lenient::as_text(id.clone()).ok(),
            _ => None,
        };
        if chat_id.is_some() {
            map.remove("chat_id");
        }
        Self::Other { op, chat_id, body: map }
    }

    fn unreadable(op: Option<String>, reason: impl Into<String>) -> Self {
        Self::Unreadable { op, reason: reason.into() }
    }

    /// The operation's wire name; empty if it could not be read.
    pub fn op(&self) -> &str {
        match self {
            Self::Send { .. } => "send",
            Self::Edit { .. } => "edit",
            Self::Typing { .. } => "typing",
            Self::FollowUp { .. } => "follow_up",
            Self::GetChatInfo { .. } => "get_chat_info",
            Self::SendMedia { .. } => "send_media",
            Self::Prompt { .. } => "prompt",
            Self::React { .. } => "react",
            Self::ThreadCreate { .. } => "thread_create",
            Self::ThreadRename { .. } => "thread_rename",
            Self::Draft { .. } => "draft",
            Self::TaskCard { .. } => "task_card",
            Self::TaskCardStop { .. } => "task_card_stop",
            Self::Delete { .. } => "delete",
            Self::Other { op, .. } => op,
            Self::Unreadable { op, .. } => op.as_deref().unwrap_or_default(),
        }
    }

    /// The chat it acts in, if it names one.
    pub fn chat_id(&self) -> Option<&str> {
        match self {
            Self::Send { chat_id, .. }
            | Self::Edit { chat_id, .. }
            | Self::Typing { chat_id, .. }
            | Self::GetChatInfo { chat_id }
            | Self::SendMedia { chat_id, .. }
            | Self::Prompt { chat_id, .. }
            | Self::React { chat_id, .. }
            | Self::ThreadCreate { chat_id, .. }
            | Self::ThreadRename { chat_id, .. }
            | Self::Draft { chat_id, .. }
            | Self::TaskCard { chat_id, .. }
            | Self::TaskCardStop { chat_id, .. }
            | Self::Delete { chat_id, .. } => Some(chat_id),
            Self::Other { chat_id, .. } => chat_id.as_deref(),
            Self::FollowUp { .. } | Self::Unreadable { .. } => None,
        }
    }

    /// The hints beside it, if the operation has any.
    pub fn metadata(&self) -> Option<&Metadata> {
        match self {
            Self::Send { metadata, .. }
            | Self::Edit { metadata, .. }
            | Self::Typing { metadata, .. }
            | Self::FollowUp { metadata, .. }
            | Self::SendMedia { metadata, .. }
            | Self::Prompt { metadata, .. }
            | Self::React { metadata, .. }
            | Self::ThreadCreate { metadata, .. }
            | Self::ThreadRename { metadata, .. }
            | Self::Draft { metadata, .. }
            | Self::TaskCard { metadata, .. }
            | Self::TaskCardStop { metadata, .. }
            | Self::Delete { metadata, .. } => Some(metadata),
            Self::Other { body, .. } => body.get("metadata").and_then(Value::as_object),
            Self::GetChatInfo { .. } | Self::Unreadable { .. } => None,
        }
    }
}

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from_value)
    }
}

impl Serialize for Action {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Other { op, chat_id, body } => {
                let mut map = body.clone();
                map.insert("op".to_owned(), op.clone().into());
                if let Some(chat_id) = chat_id {
                    map.insert("chat_id".to_owned(), chat_id.clone().into());
                }
                map.serialize(serializer)
            }
            Self::Unreadable { op, .. } => {
                let op = op.iter().map(|op| ("op", op.as_str()));
                serializer.collect_map(op)
            }
            known => Action::serialize(known, serializer),
        }
    }
}
