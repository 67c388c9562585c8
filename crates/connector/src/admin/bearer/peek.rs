//! What a signed token says of itself, before anything is proven: good for
//! choosing who proves it and for turning it away, never for letting it in.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// The header; `None` if the bearer does not look like a signed token.
pub(super) fn header(bearer: &str) -> Option<Value> {
    part(bearer, 0)
}

/// The claims; `None` if the bearer does not look like a signed token.
pub(super) fn claims(bearer: &str) -> Option<Value> {
    part(bearer, 1)
}

fn part(bearer: &str, index: usize) -> Option<Value> {
    let text = bearer.split('.').nth(index)?;
    let value: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    value.is_object().then_some(value)
}
