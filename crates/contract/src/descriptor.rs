//! What a connector announces about the platform behind it.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::CONTRACT_VERSION;
use crate::length::LenUnit;
use crate::lenient;

/// The limit assumed when a descriptor gives none that makes sense.
pub const DEFAULT_MAX_MESSAGE_LENGTH: u32 = 4096;
/// The display emoji of a platform that announces none.
pub const DEFAULT_EMOJI: &str = "🔌";
/// Operations a gateway assumes when `supported_ops` is empty.
pub const ASSUMED_OPS: [&str; 4] = ["send", "edit", "typing", "follow_up"];

/// Keys whose absence ends the read loop of every known gateway.
pub const REQUIRED_KEYS: [&str; 9] = [
    "contract_version",
    "platform",
    "label",
    "max_message_length",
    "supports_draft_streaming",
    "supports_edit",
    "supports_threads",
    "markdown_dialect",
    "len_unit",
];

/// The answer to a hello.
///
/// Writing always writes every key: gateways drop what they do not know, and
/// a key that is missing may be one that they cannot live without.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Descriptor {
    /// Version of the contract, additive-only within one number.
    pub contract_version: u32,
    /// Platform name, as in `source.platform`.
    #[serde(deserialize_with = "lenient::text_or_empty")]
    pub platform: String,
    /// Platform name for people.
    #[serde(deserialize_with = "lenient::text_or_empty")]
    pub label: String,
    /// Longest message, counted in `len_unit`; never 0 on the wire.
    #[serde(deserialize_with = "limit")]
    #[schemars(range(min = 1))]
    pub max_message_length: u32,
    /// Whether `draft` is really offered.
    #[serde(deserialize_with = "lenient::flag")]
    pub supports_draft_streaming: bool,
    /// Whether sent messages can be edited.
    #[serde(deserialize_with = "lenient::flag")]
    pub supports_edit: bool,
    /// Whether threads can be opened.
    #[serde(deserialize_with = "lenient::flag")]
    pub supports_threads: bool,
    /// Which markup the platform reads.
    #[serde(deserialize_with = "lenient::text_or_empty")]
    pub markdown_dialect: String,
    /// Unit of `max_message_length`.
    pub len_unit: LenUnit,
    /// Emoji shown beside the platform's name.
    #[serde(default = "emoji", deserialize_with = "emoji_or_default")]
    pub emoji: String,
    /// A sentence about the platform for the model.
    #[serde(default, deserialize_with = "lenient::text_or_empty")]
    pub platform_hint: String,
    /// Whether personal data is kept out of session descriptions.
    #[serde(default, deserialize_with = "lenient::flag")]
    pub pii_safe: bool,
    /// Whether events may carry earlier messages of the chat.
    #[serde(default, deserialize_with = "lenient::flag")]
    pub supports_context: bool,
    /// Operations offered; when empty, gateways assume [`ASSUMED_OPS`].
    #[serde(default, deserialize_with = "lenient::texts")]
    pub supported_ops: Vec<String>,
    /// Whether a turn can go on inside the channel it began in.
    #[serde(default, deserialize_with = "lenient::flag")]
    pub supports_inchannel_continuable: bool,
    /// Whether block formatting hints are honoured.
    #[serde(default, deserialize_with = "lenient::flag")]
    pub supports_block_formatting: bool,
}

impl Default for Descriptor {
    fn default() -> Self {
        Self {
            contract_version: CONTRACT_VERSION,
            platform: crate::source::RELAY.to_owned(),
            label: "Relay".to_owned(),
            max_message_length: DEFAULT_MAX_MESSAGE_LENGTH,
            supports_draft_streaming: false,
            supports_edit: false,
            supports_threads: false,
            markdown_dialect: "plain".to_owned(),
            len_unit: LenUnit::Chars,
            emoji: emoji(),
            platform_hint: String::new(),
            pii_safe: false,
            supports_context: false,
            supported_ops: Vec::new(),
            supports_inchannel_continuable: false,
            supports_block_formatting: false,
        }
    }
}

/// Why a descriptor cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptorError {
    /// It is not a JSON object.
    #[error("the descriptor is not an object")]
    NotAnObject,
    /// One of [`REQUIRED_KEYS`] is missing.
    #[error("the descriptor has no `{0}`")]
    Missing(&'static str),
    /// A key holds something of another type.
    #[error("the descriptor is malformed: {0}")]
    Malformed(String),
}

impl Descriptor {
    /// Reads a descriptor, naming the first required key it lacks.
    pub fn from_value(value: Value) -> Result<Self, DescriptorError> {
        let Value::Object(map) = value else {
            return Err(DescriptorError::NotAnObject);
        };
        if let Some(key) = missing_key(&map) {
            return Err(DescriptorError::Missing(key));
        }
        serde_json::from_value(Value::Object(map)).map_err(|e| DescriptorError::Malformed(e.to_string()))
    }

    /// Whether a gateway may send `op` to this platform.
    pub fn offers(&self, op: &str) -> bool {
        if self.supported_ops.is_empty() {
            ASSUMED_OPS.contains(&op)
        } else {
            self.supported_ops.iter().any(|offered| offered == op)
        }
    }
}

fn missing_key(map: &Map<String, Value>) -> Option<&'static str> {
    REQUIRED_KEYS.into_iter().find(|key| !map.contains_key(*key))
}

fn emoji() -> String {
    DEFAULT_EMOJI.to_owned()
}

fn emoji_or_default<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    Ok(lenient::opt_text(d)?.unwrap_or_else(emoji))
}

/// Zero, negative numbers and garbage all mean "unknown".
fn limit<'de, D: Deserializer<'de>>(d: D) -> Result<u32, D::Error> {
    let value = Value::deserialize(d)?;
    let number = match &value {
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    Ok(number.filter(|n| *n > 0).map_or(DEFAULT_MAX_MESSAGE_LENGTH, |n| u32::try_from(n).unwrap_or(u32::MAX)))
}

/// Python's `int()` of a positive float.
fn whole(number: f64) -> Option<u64> {
    // A float-to-int `as` saturates, which is what an absurd limit deserves.
    (number >= 1.0).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn minimal() -> Value {
        json!({
            "contract_version": 1, "platform": "discord", "label": "Discord",
            "max_message_length": 2000, "supports_draft_streaming": false,
            "supports_edit": true, "supports_threads": true,
            "markdown_dialect": "discord", "len_unit": "chars"
        })
    }

    #[test]
    fn every_required_key_is_required() {
        for key in REQUIRED_KEYS {
            let mut value = minimal();
            value.as_object_mut().unwrap().remove(key);
            assert_eq!(Descriptor::from_value(value), Err(DescriptorError::Missing(key)));
        }
    }

    #[test]
    fn optional_keys_have_defaults_and_are_all_written() {
        let read = Descriptor::from_value(minimal()).unwrap();
        assert_eq!(read.emoji, "🔌");
        assert!(read.offers("edit") && !read.offers("prompt"));
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(written.as_object().unwrap().len(), 16);
    }

    #[test]
    fn nonsense_limits_read_as_the_default() {
        for (given, expected) in [
            (json!(0), 4096),
            (json!(-5), 4096),
            (json!("many"), 4096),
            (json!(null), 4096),
            (json!([]), 4096),
            (json!(0.5), 4096),
            (json!(1.0e300), u32::MAX),
            (json!("2000"), 2000),
            (json!(2000.9), 2000),
        ] {
            let mut value = minimal();
            value["max_message_length"] = given;
            assert_eq!(Descriptor::from_value(value).unwrap().max_message_length, expected);
        }
    }
}
