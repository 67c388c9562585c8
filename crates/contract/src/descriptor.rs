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
/// The dialect of a platform that shows texts as they were typed.
pub const PLAIN: &str = "plain";
/// The dialect where several are read, none of them plain.
const MARKDOWN: &str = "markdown";
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
            markdown_dialect: PLAIN.to_owned(),
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

    /// What is true of all platforms at once, for whoever is told of one and serves several;
    /// of one alone, its own. `None` if there is none.
    pub fn common<'a>(platforms: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut seen = Vec::new();
        platforms.into_iter().fold(None, |common: Option<Self>, next| {
            if seen.contains(&&next.platform) {
                return common;
            }
            seen.push(&next.platform);
            Some(common.map_or_else(|| next.clone(), |common| common.and(next)))
        })
    }

    /// What holds for both: whatever fits the one with less fits the other.
    fn and(self, other: &Self) -> Self {
        Self {
            contract_version: self.contract_version.min(other.contract_version),
            platform: crate::source::RELAY.to_owned(),
            label: format!("{}, {}", self.label, other.label),
            max_message_length: self.max_message_length.min(other.max_message_length),
            supports_draft_streaming: self.supports_draft_streaming && other.supports_draft_streaming,
            supports_edit: self.supports_edit && other.supports_edit,
            supports_threads: self.supports_threads && other.supports_threads,
            markdown_dialect: common_dialect(&self.markdown_dialect, &other.markdown_dialect).to_owned(),
            // No text has fewer UTF-16 units than characters.
            len_unit: if self.len_unit == other.len_unit { self.len_unit } else { LenUnit::Utf16 },
            emoji: emoji(),
            platform_hint: format!("{} {}", self.platform_hint, other.platform_hint).trim().to_owned(),
            pii_safe: self.pii_safe && other.pii_safe,
            // Lines that one platform brings are to be read, whatever the others bring.
            supports_context: self.supports_context || other.supports_context,
            supported_ops: self.common_ops(other),
            supports_inchannel_continuable: self.supports_inchannel_continuable
                && other.supports_inchannel_continuable,
            supports_block_formatting: self.supports_block_formatting && other.supports_block_formatting,
        }
    }

    fn common_ops(&self, other: &Self) -> Vec<String> {
        let assumed = || ASSUMED_OPS.map(str::to_owned).to_vec();
        let mut ops = if self.supported_ops.is_empty() { assumed() } else { self.supported_ops.clone() };
        ops.retain(|op| other.offers(op));
        // An empty list would mean the assumed ones.
        if ops.is_empty() { vec![ASSUMED_OPS[0].to_owned()] } else { ops }
    }

    /// Whether markup is shown as such. Where it is not, people read its signs.
    pub fn reads_markdown(&self) -> bool {
        self.markdown_dialect != PLAIN && !self.markdown_dialect.is_empty()
    }

    /// Whether texts can be shown while they are written.
    pub fn shows_drafts(&self) -> bool {
        self.supports_draft_streaming && self.offers("draft")
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

fn common_dialect<'a>(one: &'a str, other: &'a str) -> &'a str {
    match (one, other) {
        (same, other) if same == other => same,
        (PLAIN, _) | (_, PLAIN) => PLAIN,
        _ => MARKDOWN,
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
    fn what_is_common_to_several_fits_each_of_them() {
        let of = |platform: &str, length: u32, len_unit, dialect: &str, ops: &[&str]| Descriptor {
            platform: platform.into(),
            label: platform.to_uppercase(),
            max_message_length: length,
            len_unit,
            markdown_dialect: dialect.into(),
            supports_edit: ops.contains(&"edit"),
            pii_safe: platform != "discord",
            emoji: "🎮".into(),
            platform_hint: format!("{platform}."),
            supported_ops: ops.iter().map(|op| (*op).to_owned()).collect(),
            ..Descriptor::default()
        };
        let discord =
            of("discord", 2000, LenUnit::Chars, "discord", &["send", "edit", "typing", "follow_up"]);
        let telegram = of("telegram", 4096, LenUnit::Utf16, "markdown_v2", &["send", "edit", "typing"]);
        let sms = of("sms", 1600, LenUnit::Chars, "plain", &["send"]);

        assert_eq!(Descriptor::common([]), None);
        assert_eq!(Descriptor::common([&discord, &discord]).as_ref(), Some(&discord), "two bots of one");
        let both = Descriptor::common([&discord, &telegram]).unwrap();
        let expected = Descriptor {
            platform: "relay".into(),
            emoji: DEFAULT_EMOJI.into(),
            pii_safe: false,
            ..of("", 2000, LenUnit::Utf16, "markdown", &["send", "edit", "typing"])
        };
        let labels = Descriptor {
            label: "DISCORD, TELEGRAM".into(),
            platform_hint: "discord. telegram.".into(),
            ..expected
        };
        assert_eq!(both, labels);
        let all = Descriptor::common([&discord, &telegram, &sms, &telegram]).unwrap();
        assert_eq!((all.max_message_length, all.markdown_dialect.as_str()), (1600, "plain"));
        assert_eq!(
            (all.supports_edit, all.supported_ops, all.label.as_str()),
            (false, vec!["send".to_owned()], "DISCORD, TELEGRAM, SMS")
        );
        assert!(Descriptor::common([&telegram, &sms]).unwrap().pii_safe);
        let odd = of("odd", 5, LenUnit::Chars, "plain", &["draft"]);
        assert!(
            !Descriptor::common([&sms, &odd]).unwrap().offers("edit"),
            "nothing in common is not everything"
        );
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
