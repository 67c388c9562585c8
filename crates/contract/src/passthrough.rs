//! A webhook request on its way through to a gateway (`passthrough_forward`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::lenient;

/// A verified and stripped webhook request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassthroughForward {
    /// The platform that called.
    #[serde(default, deserialize_with = "lenient::text_or_empty")]
    pub platform: String,
    /// The bot it called for.
    #[serde(default, rename = "botId", deserialize_with = "lenient::text_or_empty")]
    pub bot_id: String,
    /// The HTTP method.
    #[serde(default, deserialize_with = "lenient::text_or_empty")]
    pub method: String,
    /// The path that was called.
    #[serde(default, deserialize_with = "lenient::text_or_empty")]
    pub path: String,
    /// Header names and values, in order, as pairs.
    #[serde(default, deserialize_with = "headers")]
    pub headers: Vec<(String, String)>,
    /// The body; base64 with padding on the wire.
    #[serde(default, rename = "bodyB64", with = "body")]
    #[schemars(with = "String")]
    pub body: Vec<u8>,
    /// The gateway profile it is meant for.
    #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// Pairs of texts; rows of another shape are left out, as gateways do.
fn headers<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<(String, String)>, D::Error> {
    let Value::Array(rows) = Value::deserialize(d)? else {
        return Ok(Vec::new());
    };
    Ok(rows.into_iter().filter_map(header).collect())
}

fn header(row: Value) -> Option<(String, String)> {
    let Value::Array(row) = row else { return None };
    let [name, value] = <[Value; 2]>::try_from(row).ok()?;
    Some((lenient::as_text(name).ok()?, lenient::as_text(value).ok()?))
}

mod body {
    use super::*;
    use serde::de::Error as _;

    pub(super) fn serialize<S: Serializer>(body: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(body))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u8>, D::Error> {
        let text = lenient::text_or_empty(d)?;
        STANDARD.decode(text).map_err(|_| D::Error::custom("bodyB64 is not padded standard base64"))
    }
}
