//! The answer to an action.
//!
//! Gateways decide what to do about a failure by looking for words in its
//! text. The constructors exist so that nobody has to remember which words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lenient;

/// The code of a send that was refused because of where it would go.
pub const EGRESS_DECLINED: &str = "egress_declined";

/// What came of an action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActionResult {
    /// Whether it was done.
    #[serde(default, deserialize_with = "lenient::flag")]
    pub success: bool,
    /// The message it made; of several, the first.
    #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Why it was not done.
    #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The thread it opened.
    #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// The name that thread got; gateways need it together with the id.
    #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub auto_thread_name: Option<String>,
    /// A failure for machines.
    #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The answer to `get_chat_info`.
    #[serde(
        default,
        deserialize_with = "lenient::forgiving_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub chat_info: Option<ChatInfo>,
}

/// Name and type of a chat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChatInfo {
    /// Its name.
    #[serde(default, deserialize_with = "lenient::text_or_empty")]
    pub name: String,
    /// Its chat type.
    #[serde(default, rename = "type", deserialize_with = "lenient::text_or_empty")]
    pub chat_type: String,
}

impl ActionResult {
    /// Done, and this message is what came of it.
    pub fn sent(message_id: impl Into<String>) -> Self {
        Self { message_id: Some(message_id.into()), ..Self::ok() }
    }

    /// Done.
    pub fn ok() -> Self {
        Self { success: true, ..Self::default() }
    }

    /// Not done, for a reason that another attempt will not cure.
    ///
    /// Gateways answer such a failure of `send` with one more, plainer send.
    pub fn failed(error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::default() }
    }

    /// Perhaps done: the platform did not say. Gateways will not retry.
    pub fn timed_out(what: impl AsRef<str>) -> Self {
        Self::failed(format!("timed out: {}", what.as_ref()))
    }

    /// Certainly not done, and worth another attempt. Gateways retry twice.
    pub fn network(what: impl AsRef<str>) -> Self {
        Self::failed(format!("network error: {}", what.as_ref()))
    }

    /// Refused because of where it would go.
    ///
    /// The text is the same whether the chat is another tenant's or nobody's:
    /// a refusal must not tell which chats exist.
    pub fn declined(platform: impl AsRef<str>) -> Self {
        Self {
            code: Some(EGRESS_DECLINED.to_owned()),
            ..Self::failed(format!(
                "{} egress declined: target is not an approved destination for this connection",
                platform.as_ref()
            ))
        }
    }

    /// The answer to `get_chat_info`.
    pub fn chat(name: impl Into<String>, chat_type: impl Into<String>) -> Self {
        Self { chat_info: Some(ChatInfo { name: name.into(), chat_type: chat_type.into() }), ..Self::ok() }
    }

    /// Reads a result, also one with the chat info laid directly into it.
    pub fn from_value(value: Value) -> Result<Self, serde_json::Error> {
        if !value.is_object() {
            return Err(serde::de::Error::custom("the result is not an object"));
        }
        let flat = match (&value["name"], &value["type"]) {
            (Value::Null, Value::Null) => None,
            (name, chat_type) => Some(ChatInfo {
                name: name.as_str().unwrap_or_default().to_owned(),
                chat_type: chat_type.as_str().unwrap_or_default().to_owned(),
            }),
        };
        let mut result: Self = serde_json::from_value(value)?;
        result.chat_info = result.chat_info.or(flat);
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn failures_carry_the_words_gateways_look_for() {
        let text = |result: ActionResult| result.error.unwrap();
        assert!(text(ActionResult::timed_out("discord")).contains("timed out"));
        assert!(text(ActionResult::network("reset")).contains("network"));
        assert!(!text(ActionResult::network("reset")).contains("timed out"));
        let declined = serde_json::to_value(ActionResult::declined("discord")).unwrap();
        assert_eq!(
            declined,
            json!({
                "success": false, "code": "egress_declined",
                "error": "discord egress declined: target is not an approved destination for this connection"
            })
        );
    }

    #[test]
    fn flat_chat_info_is_understood() {
        let read = ActionResult::from_value(json!({"success": true, "name": "ops", "type": "group"}));
        assert_eq!(read.unwrap(), ActionResult::chat("ops", "group"));
        assert!(ActionResult::from_value(json!([1])).is_err());
    }
}
