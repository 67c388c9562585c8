//! What Discord sends, as far as it matters here.
//!
//! Discord's models grow and lose fields. Whatever is not needed to bring a
//! message to the right place may be missing or of another type: it is then
//! taken for absent, so that one odd field never makes a guild unheard.

use crate::kit::{Lenient, List};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::ops::Deref;

/// A gateway message: what it is, and its data untouched.
#[derive(Deserialize)]
pub(super) struct Envelope<'a> {
    pub(super) op: u8,
    pub(super) s: Lenient<u64>,
    pub(super) t: Lenient<String>,
    #[serde(borrow)]
    pub(super) d: Option<&'a RawValue>,
}

/// A message. Without an id, a channel and an author there is none.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Message {
    pub(super) id: Id,
    pub(super) channel_id: Id,
    pub(super) author: User,
    pub(super) member: Lenient<Member>,
    /// The one field that is not forgiven: a text that cannot be read must not
    /// be taken for silence.
    pub(super) content: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: Lenient<u64>,
    pub(super) flags: Lenient<u64>,
    pub(super) mentions: List<User>,
    pub(super) mention_roles: List<Id>,
    pub(super) attachments: List<Attachment>,
    pub(super) referenced_message: Lenient<Referenced>,
    pub(super) message_reference: Lenient<Reference>,
    pub(super) webhook_id: Lenient<Id>,
    pub(super) sticker_items: List<Sticker>,
    #[serde(default)]
    pub(super) poll: Value,
    /// What was forwarded, as it was then.
    pub(super) message_snapshots: List<Snapshot>,
}

/// A sticker.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sticker {
    pub(super) id: Lenient<Id>,
    pub(super) format_type: Lenient<u64>,
    pub(super) name: String,
}

/// A message that was forwarded.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Snapshot {
    pub(super) message: Forwarded,
}

/// What a forwarded message said and showed.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Forwarded {
    pub(super) content: Lenient<String>,
    pub(super) attachments: List<Attachment>,
    pub(super) sticker_items: List<Sticker>,
}

/// What an update of a message says before it is known to be an edit.
#[derive(Deserialize)]
pub(super) struct Update {
    pub(super) author: Lenient<Value>,
    pub(super) content: Lenient<Value>,
    pub(super) edited_timestamp: Lenient<String>,
}

/// Messages that were deleted, one or many at once.
#[derive(Deserialize)]
pub(super) struct Deleted {
    pub(super) channel_id: Id,
    pub(super) id: Lenient<Id>,
    pub(super) ids: List<Id>,
}

/// A new session: the guilds that the bot is in, as far as it says.
#[derive(Default, Deserialize)]
pub(super) struct Ready {
    #[serde(default, deserialize_with = "optional_list")]
    pub(super) guilds: Option<Vec<Object>>,
}

/// Something of which no more matters than which it is; and of a channel, what was last
/// said there.
#[derive(Clone, Deserialize)]
pub(super) struct Object {
    pub(super) id: Id,
    pub(super) last_message_id: Lenient<Id>,
}

/// Somebody.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct User {
    pub(super) id: Id,
    pub(super) username: Lenient<String>,
    pub(super) global_name: Lenient<String>,
    pub(super) bot: Lenient<bool>,
}

impl User {
    /// How people see them, without a guild's say.
    pub(super) fn name(&self) -> Option<&str> {
        self.global_name.as_deref().or(self.username.as_deref()).filter(|name| !name.is_empty())
    }
}

/// What somebody is in a guild.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Member {
    pub(super) nick: Lenient<String>,
    pub(super) roles: List<Id>,
}

/// A file.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Attachment {
    pub(super) url: String,
    pub(super) filename: Lenient<String>,
    pub(super) content_type: Lenient<String>,
    pub(super) size: Lenient<u64>,
}

/// The message that another one answers, as it comes along with it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Referenced {
    pub(super) id: Id,
    pub(super) author: Lenient<User>,
    pub(super) content: Lenient<String>,
    pub(super) attachments: List<Attachment>,
    pub(super) flags: Lenient<u64>,
    pub(super) webhook_id: Lenient<Id>,
}

/// Which message another one refers to.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Reference {
    pub(super) message_id: Lenient<Id>,
    pub(super) channel_id: Lenient<Id>,
    #[serde(rename = "type")]
    pub(super) kind: Lenient<u64>,
}

/// A channel or thread.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Channel {
    pub(super) id: Id,
    #[serde(rename = "type")]
    pub(super) kind: u64,
    pub(super) guild_id: Lenient<Id>,
    pub(super) parent_id: Lenient<Id>,
    pub(super) name: Lenient<String>,
    pub(super) topic: Lenient<String>,
    pub(super) recipients: List<User>,
    pub(super) owner_id: Lenient<Id>,
}

/// A guild. Its channels stay unread, so that one of them cannot hide the others.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Guild {
    pub(super) id: Id,
    pub(super) name: Lenient<String>,
    pub(super) owner_id: Lenient<Id>,
    pub(super) unavailable: Lenient<bool>,
    #[serde(default, deserialize_with = "optional_list")]
    pub(super) roles: Option<Vec<Role>>,
    pub(super) channels: List<Value>,
    pub(super) threads: List<Value>,
}

/// A role of a guild.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Role {
    pub(super) id: Id,
    pub(super) permissions: Lenient<Id>,
    pub(super) tags: Lenient<RoleTags>,
}

/// What a role is for.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RoleTags {
    pub(super) bot_id: Lenient<Id>,
}

/// A change of one role.
#[derive(Deserialize)]
pub(super) struct RoleChange {
    pub(super) guild_id: Id,
    pub(super) role: Lenient<Role>,
    pub(super) role_id: Lenient<Id>,
}

/// The threads of a guild that the bot has come to see.
#[derive(Deserialize)]
pub(super) struct ThreadList {
    pub(super) guild_id: Id,
    pub(super) threads: List<Value>,
}

/// Where to connect, and how often.
#[derive(Debug, Deserialize)]
pub(super) struct GatewayBot {
    pub(super) url: String,
    pub(super) shards: u32,
    pub(super) session_start_limit: StartLimit,
}

/// How many sessions may still be begun.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct StartLimit {
    pub(super) total: u32,
    pub(super) remaining: u32,
    /// Milliseconds.
    pub(super) reset_after: u64,
    pub(super) max_concurrency: u16,
}

/// Reads something; an error is why it cannot be read, without any text of it.
pub(super) fn read<T: DeserializeOwned>(raw: &str) -> Result<T, String> {
    serde_json::from_str(raw).map_err(|error| unreadable(&error))
}

/// Why something cannot be read, without any text of it: what serde says may quote.
pub(super) fn unreadable(error: &serde_json::Error) -> String {
    let kind = match error.classify() {
        serde_json::error::Category::Data => "a field is missing or of another type",
        _ => "it is not JSON",
    };
    format!("{kind} (line {}, column {})", error.line(), error.column())
}

/// An id. Discord's are strings; some peers write them as numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Id(pub(super) String);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let id = id_of(&Value::deserialize(deserializer)?);
        id.map(Self).ok_or_else(|| D::Error::custom("an id is neither text nor a number"))
    }
}

impl Deref for Id {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

pub(super) fn id_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => number.as_u64().map(|number| number.to_string()),
        _ => None,
    }
}

/// Those of a list that can be read, if it is one.
fn optional_list<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let Value::Array(items) = Value::deserialize(deserializer)? else { return Ok(None) };
    Ok(Some(items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect()))
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
