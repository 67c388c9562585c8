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
    #[serde(deserialize_with = "id")]
    pub(super) id: String,
    #[serde(deserialize_with = "id")]
    pub(super) channel_id: String,
    pub(super) author: User,
    pub(super) member: Lenient<Member>,
    /// The one field that is not forgiven: a text that cannot be read must not
    /// be taken for silence.
    pub(super) content: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: Lenient<u64>,
    pub(super) flags: Lenient<u64>,
    pub(super) mentions: List<User>,
    #[serde(default, deserialize_with = "ids")]
    pub(super) mention_roles: Vec<String>,
    pub(super) attachments: List<Attachment>,
    pub(super) referenced_message: Lenient<Referenced>,
    pub(super) message_reference: Lenient<Reference>,
    #[serde(default, deserialize_with = "opt_id")]
    pub(super) webhook_id: Option<String>,
    pub(super) sticker_items: List<Sticker>,
    #[serde(default)]
    pub(super) poll: Value,
    /// What was forwarded, as it was then.
    pub(super) message_snapshots: List<Snapshot>,
}

/// A sticker.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sticker {
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
    #[serde(deserialize_with = "id")]
    pub(super) id: String,
    #[serde(default, deserialize_with = "opt_id")]
    pub(super) last_message_id: Option<String>,
}

/// Somebody.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct User {
    #[serde(deserialize_with = "id")]
    pub(super) id: String,
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
    #[serde(default, deserialize_with = "ids")]
    pub(super) roles: Vec<String>,
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
    #[serde(deserialize_with = "id")]
    pub(super) id: String,
    pub(super) author: Lenient<User>,
    pub(super) content: Lenient<String>,
}

/// Which message another one refers to.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Reference {
    #[serde(default, deserialize_with = "opt_id")]
    pub(super) message_id: Option<String>,
    #[serde(default, deserialize_with = "opt_id")]
    pub(super) channel_id: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: Lenient<u64>,
}

/// A channel or thread.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Channel {
    #[serde(deserialize_with = "id")]
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: u64,
    #[serde(default, deserialize_with = "opt_id")]
    pub(super) guild_id: Option<String>,
    #[serde(default, deserialize_with = "opt_id")]
    pub(super) parent_id: Option<String>,
    pub(super) name: Lenient<String>,
    pub(super) topic: Lenient<String>,
    pub(super) recipients: List<User>,
}

/// A guild. Its channels stay unread, so that one of them cannot hide the others.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Guild {
    #[serde(deserialize_with = "id")]
    pub(super) id: String,
    pub(super) name: Lenient<String>,
    #[serde(default, deserialize_with = "opt_id")]
    pub(super) owner_id: Option<String>,
    pub(super) unavailable: Lenient<bool>,
    #[serde(default, deserialize_with = "optional_list")]
    pub(super) roles: Option<Vec<Role>>,
    pub(super) channels: List<Value>,
    pub(super) threads: List<Value>,
}

/// A role of a guild.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Role {
    #[serde(deserialize_with = "id")]
    pub(super) id: String,
    #[serde(default, deserialize_with = "opt_id")]
    pub(super) permissions: Option<String>,
    pub(super) tags: Lenient<RoleTags>,
}

/// What a role is for.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RoleTags {
    #[serde(default, deserialize_with = "opt_id")]
    pub(super) bot_id: Option<String>,
}

/// A change of one role.
#[derive(Deserialize)]
pub(super) struct RoleChange {
    #[serde(deserialize_with = "id")]
    pub(super) guild_id: String,
    pub(super) role: Lenient<Role>,
    #[serde(default, deserialize_with = "opt_id")]
    pub(super) role_id: Option<String>,
}

/// The threads of a guild that the bot has come to see.
#[derive(Deserialize)]
pub(super) struct ThreadList {
    #[serde(deserialize_with = "id")]
    pub(super) guild_id: String,
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
#[derive(Debug, Deserialize)]
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

/// Discord's ids are strings; some peers write them as numbers.
pub(super) fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let value = Value::deserialize(deserializer)?;
    id_of(&value).ok_or_else(|| D::Error::custom("an id is neither text nor a number"))
}

pub(super) fn opt_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(id_of(&Value::deserialize(deserializer)?))
}

fn ids<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(List::<Value>::deserialize(deserializer)?.iter().filter_map(id_of).collect())
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
