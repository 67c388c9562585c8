//! The hints beside an action: an open map by contract, of which those that are
//! named are kept, each a word, a number or a flag.

use super::Metadata;
use super::read::{Field, MAX_ID, too_long};
use crate::lenient::{Any, FromAny, Other, Unfit, UpTo, Word};
use serde::de::{IgnoredAny, MapAccess};
use serde_json::Value;
use std::borrow::Cow;

/// The hints that the contract names; others are passed over.
pub const METADATA_KEYS: [&str; 22] = [
    "notify",
    "thread_id",
    "thread_ts",
    "user_id",
    "scope_id",
    "guild_id",
    "message_id",
    "reply_to_message_id",
    "profile",
    "expect_edits",
    "non_conversational",
    "format_hints",
    "unfurl_links",
    "unfurl_media",
    "slack_team_id",
    "recipient_team_id",
    "recipient_user_id",
    "direct_messages_topic_id",
    "telegram_reply_to_message_id",
    "telegram_dm_topic_reply_fallback",
    "channel_id",
    "chat_type",
];

/// Hints that are objects.
const NESTED_HINTS: [&str; 1] = ["format_hints"];
/// What such a hint may have in it.
const MAX_NESTED_HINTS: usize = 16;

/// The hints: those that the contract names, each short.
pub(super) struct Hints;

impl<'de> FromAny<'de> for Hints {
    type Value = Field<Metadata>;

    fn map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let (mut hints, mut fault) = (Metadata::new(), None);
        while let Some(key) = entries.next_key::<Cow<'de, str>>()? {
            if !METADATA_KEYS.contains(&&*key) {
                entries.next_value::<IgnoredAny>()?;
                continue;
            }
            let read = if NESTED_HINTS.contains(&&*key) {
                entries.next_value_seed(Any(NestedHint))?
            } else {
                hint(entries.next_value_seed(Any(UpTo(MAX_ID)))?)
            };
            match read {
                Ok(value) => drop(hints.insert(key.into_owned(), value)),
                // Left out it would mean something else: a message without a thread, say.
                Err(Unfit::Shape(why)) => fault = Some(format!("metadata.{key}: {why}")),
                Err(Unfit::TooLong) => fault = Some(format!("metadata.{}", too_long(&key, MAX_ID))),
            }
        }
        Ok(Some(fault.map_or(Ok(hints), Err)))
    }

    fn other(self, found: Other<'_>) -> Self::Value {
        (!matches!(found, Other::Null)).then(|| Err("metadata: an object is needed".to_owned()))
    }
}

/// A hint is a word, a number or a flag. A short text can be a large tree, which
/// would take many times the memory it is counted with.
fn hint(word: Word) -> Result<Value, Unfit> {
    Ok(match word {
        Word::Text(text) => text.into(),
        Word::Number(number) => serde_json::from_str(&number).unwrap_or_default(),
        Word::Flag(flag) => flag.into(),
        Word::Absent => Value::Null,
        Word::Wrong(why) => return Err(Unfit::Shape(why)),
        Word::TooLong => return Err(Unfit::TooLong),
    })
}

/// The one hint that is an object: of flags and words, and of a few.
struct NestedHint;

impl<'de> FromAny<'de> for NestedHint {
    type Value = Result<Value, Unfit>;

    fn map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let (mut nested, mut too_long) = (Metadata::new(), false);
        while let Some(key) = entries.next_key::<Cow<'de, str>>()? {
            match hint(entries.next_value_seed(Any(UpTo(MAX_ID)))?) {
                Ok(_) if nested.len() >= MAX_NESTED_HINTS || key.len() > MAX_ID => too_long = true,
                Ok(value) => drop(nested.insert(key.into_owned(), value)),
                // How something is shown changes nothing of where it goes.
                Err(Unfit::Shape(_)) => {}
                Err(Unfit::TooLong) => too_long = true,
            }
        }
        Ok(if too_long { Err(Unfit::TooLong) } else { Ok(Value::Object(nested)) })
    }

    fn other(self, _: Other<'_>) -> Self::Value {
        Ok(Value::Null)
    }
}
