//! What a gateway asks a connector to do, and the answer to it.
//!
//! The enum is the union of every generation's operations. Unknown operations
//! and unreadable bodies are values, not errors: each one still has to be
//! answered, or the gateway waits half a minute for nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::lenient;

mod hints;
mod read;

pub use crate::result::{ActionResult, ChatInfo, EGRESS_DECLINED};
pub use hints::METADATA_KEYS;
pub use read::{LIMITS, MAX_ID, MAX_REST, MAX_SESSION_KEY, MAX_TEXT};

/// Hints beside an action; an open map by contract.
pub type Metadata = Map<String, Value>;

/// One operation, told apart on the wire by `op`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case", remote = "Self")]
pub enum Action {
    /// Post a message.
    Send {
        /// Where to.
        chat_id: String,
        /// The text, of any length: the connector splits.
        #[serde(default)]
        content: String,
        /// The message this answers.
        #[serde(default)]
        reply_to: Option<String>,
        /// Hints.
        #[serde(default)]
        metadata: Metadata,
    },
    /// Replace the text of a sent message.
    Edit {
        /// Where it is.
        chat_id: String,
        /// Which one.
        message_id: String,
        /// The whole new text.
        #[serde(default)]
        content: String,
        /// Hints.
        #[serde(default)]
        metadata: Metadata,
    },
    /// Show that an answer is being written.
    Typing {
        /// Where.
        chat_id: String,
        /// Absent: the default indicator. Text: a status. Empty: clear it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        /// Hints.
        #[serde(default)]
        metadata: Metadata,
    },
    /// Use a capability the connector keeps for a session.
    FollowUp {
        /// The session it is bound to.
        session_key: String,
        /// Which capability, such as `discord.interaction_token`.
        kind: String,
        /// The text.
        #[serde(default)]
        content: String,
        /// Hints.
        #[serde(default)]
        metadata: Metadata,
    },
    /// Ask for the name and type of a chat.
    GetChatInfo {
        /// Which chat.
        chat_id: String,
    },
    /// Post a file.
    SendMedia {
        /// Where to.
        chat_id: String,
        /// `image`, `voice`, `audio`, `video` or `document`.
        media_kind: String,
        /// Where the file is fetched.
        source_url: String,
        /// The caption; may be empty.
        #[serde(default)]
        content: String,
        /// What to call the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
        /// The message this answers.
        #[serde(default)]
        reply_to: Option<String>,
        /// Hints.
        #[serde(default)]
        metadata: Metadata,
    },
    /// Ask a question with buttons.
    Prompt {
        /// Where to.
        chat_id: String,
        /// `approval` or `clarify`.
        prompt_kind: String,
        /// The id a press is reported with.
        prompt_id: String,
        /// The question.
        #[serde(default)]
        content: String,
        /// The buttons, in order.
        #[serde(default)]
        options: Vec<PromptOption>,
        /// Seconds the gateway waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_s: Option<f64>,
        /// The message this answers.
        #[serde(default)]
        reply_to: Option<String>,
        /// Hints.
        #[serde(default)]
        metadata: Metadata,
    },
    /// Add or take away a reaction.
    React {
        /// Where the message is.
        chat_id: String,
        /// Which message.
        message_id: String,
        /// The reaction.
        emoji: String,
        /// Whether to take it away.
        #[serde(default)]
        remove: bool,
        /// Hints.
        #[serde(default)]
        metadata: Metadata,
    },
    /// Open a thread.
    ThreadCreate {
        /// The channel it hangs below.
        chat_id: String,
        /// Its name.
        #[serde(default)]
        thread_name: String,
        /// The message it starts from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// Hints.
        #[serde(default)]
        metadata: Metadata,
    },
    /// Rename a thread, under guards the connector enforces.
    ThreadRename {
        /// The channel or the thread itself.
        chat_id: String,
        /// The thread.
        message_id: String,
        /// The new name.
        #[serde(default)]
        thread_name: String,
        /// Rename only while this is the name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        only_if_current_name: Option<String>,
        /// Rename only while the name is the one the connector gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        only_if_connector_created: Option<bool>,
        /// Hints.
        #[serde(default)]
        metadata: Metadata,
    },
    /// Grow a message while it is being written.
    Draft {
        /// Where.
        chat_id: String,
        /// Which draft; an integer on the wire.
        draft_id: i64,
        /// Everything written so far.
        #[serde(default)]
        content: String,
        /// Whether this seals the draft into a message.
        #[serde(default, rename = "final")]
        is_final: bool,
        /// Hints.
        #[serde(default)]
        metadata: Metadata,
    },
    /// Show the steps of a turn.
    TaskCard {
        /// Where.
        chat_id: String,
        /// Which card.
        card_id: String,
        /// The steps.
        #[serde(default)]
        chunks: Vec<TaskChunk>,
        /// Hints.
        #[serde(default)]
        metadata: Metadata,
    },
    /// Close a card; doing so twice is fine.
    TaskCardStop {
        /// Where.
        chat_id: String,
        /// Which card.
        card_id: String,
        /// Hints.
        #[serde(default)]
        metadata: Metadata,
    },
    /// Delete a message.
    Delete {
        /// Where it is.
        chat_id: String,
        /// Which one.
        message_id: String,
        /// Hints.
        #[serde(default)]
        metadata: Metadata,
    },
    /// An operation this crate does not know.
    #[serde(skip)]
    Other {
        /// Its name.
        op: String,
        /// Its chat, if it names one.
        chat_id: Option<String>,
        /// What else to write. Of one that was read only the hints: nobody here could use more.
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

/// The hints of an action, borrowed as it is.
macro_rules! metadata_of {
    ($action:expr, |$body:pat_param| $of_unknown:expr) => {
        match $action {
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
            Self::Other { body: $body, .. } => $of_unknown,
            Self::GetChatInfo { .. } | Self::Unreadable { .. } => None,
        }
    };
}

impl Action {
    /// Reads an action; whatever it is, the result can be answered.
    pub fn from_value(value: Value) -> Self {
        // Reading from a value cannot fail: every shape is some action.
        Self::deserialize(value).unwrap_or_else(|error| Self::unreadable(None, error.to_string()))
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

    /// What people are to read of it; empty if it has no text.
    pub fn content(&self) -> &str {
        match self {
            Self::Send { content, .. }
            | Self::Edit { content, .. }
            | Self::FollowUp { content, .. }
            | Self::SendMedia { content, .. }
            | Self::Prompt { content, .. }
            | Self::Draft { content, .. } => content,
            Self::Typing { content, .. } => content.as_deref().unwrap_or_default(),
            _ => "",
        }
    }

    /// The bytes of its texts, hints included: what it takes to keep it.
    pub fn size(&self) -> usize {
        let own = match self {
            Self::Send { chat_id, content, reply_to, .. } => chat_id.len() + content.len() + len(reply_to),
            Self::Edit { chat_id, message_id, content, .. } => {
                chat_id.len() + message_id.len() + content.len()
            }
            Self::Typing { chat_id, content, .. } => chat_id.len() + len(content),
            Self::FollowUp { session_key, kind, content, .. } => {
                session_key.len() + kind.len() + content.len()
            }
            Self::GetChatInfo { chat_id } => chat_id.len(),
            Self::SendMedia { chat_id, media_kind, source_url, content, filename, reply_to, .. } => {
                let named = [chat_id, media_kind, source_url, content].map(String::len);
                named.iter().sum::<usize>() + len(filename) + len(reply_to)
            }
            Self::Prompt { chat_id, prompt_kind, prompt_id, content, options, reply_to, .. } => {
                let named = [chat_id, prompt_kind, prompt_id, content].map(String::len);
                let buttons = options.iter().map(|it| it.id.len() + it.label.len() + len(&it.style));
                named.iter().sum::<usize>() + buttons.sum::<usize>() + len(reply_to)
            }
            Self::React { chat_id, message_id, emoji, .. } => chat_id.len() + message_id.len() + emoji.len(),
            Self::ThreadCreate { chat_id, thread_name, message_id, .. } => {
                chat_id.len() + thread_name.len() + len(message_id)
            }
            Self::ThreadRename { chat_id, message_id, thread_name, only_if_current_name, .. } => {
                chat_id.len() + message_id.len() + thread_name.len() + len(only_if_current_name)
            }
            Self::Draft { chat_id, content, .. } => chat_id.len() + content.len(),
            Self::TaskCard { chat_id, card_id, chunks, .. } => {
                let steps = chunks.iter().map(|it| {
                    it.id.len() + it.title.len() + it.status.len() + len(&it.details) + len(&it.output)
                });
                chat_id.len() + card_id.len() + steps.sum::<usize>()
            }
            Self::TaskCardStop { chat_id, card_id, .. } => chat_id.len() + card_id.len(),
            Self::Delete { chat_id, message_id, .. } => chat_id.len() + message_id.len(),
            Self::Other { op, chat_id, .. } => op.len() + len(chat_id),
            Self::Unreadable { op, reason } => len(op) + reason.len(),
        };
        own + self.metadata().map_or(0, metadata_size)
    }

    /// Drops the hints that nobody is going to read.
    pub fn keep_hints(&mut self, keys: &[&str]) {
        if let Some(metadata) = self.metadata_mut() {
            metadata.retain(|key, _| keys.contains(&key.as_str()));
        }
    }

    fn metadata_mut(&mut self) -> Option<&mut Metadata> {
        metadata_of!(self, |_| None)
    }

    /// The hints beside it, if the operation has any.
    pub fn metadata(&self) -> Option<&Metadata> {
        metadata_of!(self, |body| body.get("metadata").and_then(Value::as_object))
    }
}

fn len(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

/// Bytes of the keys and values, with what it takes to keep them apart.
fn metadata_size(metadata: &Metadata) -> usize {
    /// An entry of a map beside its texts.
    const ENTRY: usize = 64;
    let value = |value: &Value| match value {
        Value::String(text) => text.len(),
        Value::Object(nested) => metadata_size(nested),
        // Those that are read have no lists.
        Value::Array(_) => value.to_string().len(),
        _ => 0,
    };
    metadata.iter().map(|(key, it)| ENTRY + key.len() + value(it)).sum()
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
