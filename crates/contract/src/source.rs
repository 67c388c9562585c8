//! Where a message comes from: the session source.
//!
//! Two traps shape this type. Older gateways end their read loop when a
//! `chat_type` is null or an id is a number, so neither can be written here.
//! And the scope of a chat is called `guild_id` by the oldest gateways and
//! `scope_id` by all later ones, so both are always written.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::lenient;

/// Chat types a gateway knows; the field stays text because it is a key slot.
pub mod chat_type {
    /// A conversation of two.
    pub const DM: &str = "dm";
    /// A room with several people; also every Discord guild channel.
    pub const GROUP: &str = "group";
    /// A broadcast or workspace channel.
    pub const CHANNEL: &str = "channel";
    /// A thread below a channel.
    pub const THREAD: &str = "thread";
    /// A chat that consists of topics.
    pub const FORUM: &str = "forum";
}

/// The source of an event, as it travels inside `event.source`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Source {
    /// Platform name; a gateway reads an unknown one as `relay`.
    #[serde(deserialize_with = "platform")]
    pub platform: String,
    /// The conversation's id; a session-key slot.
    #[serde(deserialize_with = "lenient::text_or_empty")]
    pub chat_id: String,
    /// One of [`chat_type`]; never null on the wire.
    #[serde(deserialize_with = "chat_type_or_dm")]
    pub chat_type: String,
    /// Name of the chat for people.
    #[serde(deserialize_with = "lenient::opt_text")]
    pub chat_name: Option<String>,
    /// The author's id; a session-key slot.
    #[serde(deserialize_with = "lenient::opt_text")]
    pub user_id: Option<String>,
    /// The author's name.
    #[serde(deserialize_with = "lenient::opt_text")]
    pub user_name: Option<String>,
    /// Thread or topic id; a session-key slot.
    #[serde(deserialize_with = "lenient::opt_text")]
    pub thread_id: Option<String>,
    /// Topic or description of the chat.
    #[serde(deserialize_with = "lenient::opt_text")]
    pub chat_topic: Option<String>,
    /// Guild, workspace or server; written as `scope_id` and `guild_id`.
    #[serde(flatten, with = "scope")]
    #[schemars(with = "scope::Wire")]
    pub scope_id: Option<String>,
    /// The author's display name, preferred over `user_name` where read.
    #[serde(deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub user_display_name: Option<String>,
    /// The author's handle.
    #[serde(deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub user_handle: Option<String>,
    /// A stabler id of the author; wins over `user_id` in session keys.
    #[serde(deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub user_id_alt: Option<String>,
    /// Another id of the chat.
    #[serde(deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub chat_id_alt: Option<String>,
    /// The channel a thread hangs below.
    #[serde(deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub parent_chat_id: Option<String>,
    /// The triggering message: anchor of replies and reactions.
    #[serde(deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The gateway profile this event is meant for.
    #[serde(deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Whether a bot or webhook wrote the message.
    #[serde(deserialize_with = "lenient::opt_flag", skip_serializing_if = "Option::is_none")]
    pub is_bot: Option<bool>,
    /// Whether the event reports an edit.
    #[serde(deserialize_with = "lenient::opt_flag", skip_serializing_if = "Option::is_none")]
    pub message_is_edit: Option<bool>,
    /// Set only when exactly two parties are known to be in the chat.
    #[serde(deserialize_with = "lenient::opt_flag", skip_serializing_if = "Option::is_none")]
    pub one_to_one_verified: Option<bool>,
    /// Whether the connector opened the thread for this very message.
    #[serde(deserialize_with = "lenient::opt_flag", skip_serializing_if = "Option::is_none")]
    pub auto_thread_created: Option<bool>,
    /// The name such a thread was opened with.
    #[serde(deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub auto_thread_initial_name: Option<String>,
    /// The thread the answer will be put into, if it is known beforehand.
    #[serde(deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub prospective_thread_id: Option<String>,
    /// Keys this crate does not know, kept as they came.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Default for Source {
    fn default() -> Self {
        Self {
            platform: RELAY.to_owned(),
            chat_id: String::new(),
            chat_type: chat_type::DM.to_owned(),
            chat_name: None,
            user_id: None,
            user_name: None,
            thread_id: None,
            chat_topic: None,
            scope_id: None,
            user_display_name: None,
            user_handle: None,
            user_id_alt: None,
            chat_id_alt: None,
            parent_chat_id: None,
            message_id: None,
            profile: None,
            is_bot: None,
            message_is_edit: None,
            one_to_one_verified: None,
            auto_thread_created: None,
            auto_thread_initial_name: None,
            prospective_thread_id: None,
            extra: Map::new(),
        }
    }
}

/// The platform name that stands for "whatever the connector fronts".
pub const RELAY: &str = "relay";

fn platform<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    Ok(lenient::opt_text(d)?.unwrap_or_else(|| RELAY.to_owned()))
}

fn chat_type_or_dm<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    Ok(lenient::opt_text(d)?.unwrap_or_else(|| chat_type::DM.to_owned()))
}

/// One Rust field, two wire keys.
mod scope {
    use super::*;

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Wire {
        /// Scope of the chat, read by every gateway but the oldest.
        #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
        scope_id: Option<String>,
        /// The same value under the name the oldest gateways read.
        #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
        guild_id: Option<String>,
    }

    pub(super) fn serialize<S: Serializer>(scope: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = Wire { scope_id: scope.clone(), guild_id: scope.clone() };
        wire.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<String>, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        Ok(wire.scope_id.or(wire.guild_id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_scope_names_are_written_and_either_is_read() {
        let written =
            serde_json::to_value(Source { scope_id: Some("900".into()), ..Source::default() }).unwrap();
        assert_eq!(written["scope_id"], "900");
        assert_eq!(written["guild_id"], "900");
        let read = |value| serde_json::from_value::<Source>(value).unwrap();
        assert_eq!(read(json!({"guild_id": 7})).scope_id.as_deref(), Some("7"));
        let both = read(json!({"guild_id": "old", "scope_id": "new"}));
        assert_eq!(both.scope_id.as_deref(), Some("new"));
        assert!(both.extra.is_empty());
    }

    #[test]
    fn always_present_keys_are_always_written() {
        let written = serde_json::to_value(Source::default()).unwrap();
        let keys: Vec<_> = written.as_object().unwrap().keys().cloned().collect();
        let mut expected = [
            "platform",
            "chat_id",
            "chat_type",
            "chat_name",
            "user_id",
            "user_name",
            "thread_id",
            "chat_topic",
        ];
        expected.sort_unstable();
        let mut keys: Vec<_> = keys.iter().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, expected);
        assert_eq!(written["chat_type"], "dm");
    }

    #[test]
    fn nulls_numbers_and_strangers_are_read() {
        let source: Source = serde_json::from_value(json!({
            "platform": "telegram", "chat_id": -1002, "chat_type": null,
            "user_id": 5, "is_bot": null, "tomorrow": {"a": 1}
        }))
        .unwrap();
        assert_eq!((source.chat_id.as_str(), source.chat_type.as_str()), ("-1002", "dm"));
        assert_eq!(source.user_id.as_deref(), Some("5"));
        assert_eq!(source.extra["tomorrow"], json!({"a": 1}));
    }
}
