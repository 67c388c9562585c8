//! Reading what Python gateways really write.
//!
//! Gateways serialise with `json.dumps`, which happily emits lone surrogate
//! escapes and the words `NaN` and `Infinity`. Dropping a socket over either
//! would lose a conversation, so the reader repairs and tries again. The field
//! helpers below forgive the other habit: ids sent as JSON numbers, and `null`
//! where a key could have been left out.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Parses one JSON text, repairing Python's deviations only when it must.
pub(crate) fn parse(line: &[u8]) -> Result<Value, serde_json::Error> {
    let text = String::from_utf8_lossy(line);
    match serde_json::from_str(&text) {
        Ok(value) => Ok(value),
        // The repair keeps lengths close to the input's, so a second pass over
        // a hostile line costs at most as much as the first one did.
        Err(first) => match repair(&text) {
            Cow::Borrowed(_) => Err(first),
            Cow::Owned(text) => serde_json::from_str(&text),
        },
    }
}

/// Replaces lone surrogate escapes and non-finite numbers; borrows if none.
fn repair(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut copied, mut at, mut in_string) = (0, 0, false);
    while at < bytes.len() {
        let fix = match bytes[at] {
            b'"' => {
                in_string = !in_string;
                at += 1;
                continue;
            }
            b'\\' if in_string => match surrogate(&bytes[at..]) {
                Surrogate::Lone => Some((6, "\\ufffd")),
                Surrogate::Pair => {
                    at += 12;
                    continue;
                }
                Surrogate::None => {
                    at += 2;
                    continue;
                }
            },
            b'N' | b'I' | b'-' if !in_string => non_finite(&bytes[at..]).map(|n| (n, "null")),
            _ => None,
        };
        match fix {
            Some((len, replacement)) => {
                out.push_str(&text[copied..at]);
                out.push_str(replacement);
                at += len;
                copied = at;
            }
            None => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

enum Surrogate {
    None,
    Pair,
    Lone,
}

/// Classifies the escape that `bytes` starts with.
fn surrogate(bytes: &[u8]) -> Surrogate {
    match escape(bytes) {
        Some(0xD800..=0xDBFF) => match bytes.get(6..).and_then(escape) {
            Some(0xDC00..=0xDFFF) => Surrogate::Pair,
            _ => Surrogate::Lone,
        },
        Some(0xDC00..=0xDFFF) => Surrogate::Lone,
        _ => Surrogate::None,
    }
}

/// The code unit of a `\uXXXX` escape at the start of `bytes`.
fn escape(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Length of the non-finite number word at the start of `bytes`.
fn non_finite(bytes: &[u8]) -> Option<usize> {
    ["NaN", "Infinity", "-Infinity"]
        .iter()
        .find(|word| bytes.starts_with(word.as_bytes()))
        .map(|word| word.len())
}

/// The text of a JSON string, or the decimal text of a JSON number.
pub(crate) fn as_text(value: Value) -> Result<String, &'static str> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        Value::Null => Err("null where a string is needed"),
        Value::Bool(_) => Err("a boolean where a string is needed"),
        Value::Array(_) => Err("an array where a string is needed"),
        Value::Object(_) => Err("an object where a string is needed"),
    }
}

/// A required string; numbers are read as their decimal text.
pub(crate) fn text<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    as_text(Value::deserialize(d)?).map_err(D::Error::custom)
}

/// A string that may be null, which reads as the empty string.
pub(crate) fn text_or_empty<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    Ok(opt_text(d)?.unwrap_or_default())
}

/// An optional string; null is none.
pub(crate) fn opt_text<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(d)? {
        Value::Null => Ok(None),
        value => as_text(value).map(Some).map_err(D::Error::custom),
    }
}

/// A list of strings; null is the empty list.
pub(crate) fn texts<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    match Value::deserialize(d)? {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items
            .into_iter()
            .filter(|item| !item.is_null())
            .map(|item| as_text(item).map_err(D::Error::custom))
            .collect(),
        _ => Err(D::Error::custom("a list of strings is needed")),
    }
}

/// An open map; null is the empty map.
pub(crate) fn map<'de, D: Deserializer<'de>>(d: D) -> Result<Map<String, Value>, D::Error> {
    match Value::deserialize(d)? {
        Value::Null => Ok(Map::new()),
        Value::Object(map) => Ok(map),
        _ => Err(D::Error::custom("an object is needed")),
    }
}

/// Python's truth of a JSON value: the gateways test flags with a bare `if`.
pub(crate) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// A flag, read by Python's truth.
pub(crate) fn flag<'de, D: Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
    Ok(truthy(&Value::deserialize(d)?))
}

/// An optional flag; null is none.
pub(crate) fn opt_flag<'de, D: Deserializer<'de>>(d: D) -> Result<Option<bool>, D::Error> {
    let value = Value::deserialize(d)?;
    Ok((!value.is_null()).then(|| truthy(&value)))
}

/// A list of typed items; null, and items of another shape, are left out.
///
/// For lists that enrich a message and must never cost it: a bad row of a
/// context block is no reason to lose the turn.
pub(crate) fn forgiving_list<'de, D, T>(d: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    match Value::deserialize(d)? {
        Value::Array(items) => {
            Ok(items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect())
        }
        _ => Ok(Vec::new()),
    }
}

/// A required object; derived readers alone would take an array as well.
pub(crate) fn object<'de, D, T>(d: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let map = Map::deserialize(d)?;
    serde_json::from_value(Value::Object(map)).map_err(D::Error::custom)
}

/// An optional object; anything that does not fit is read as absent.
pub(crate) fn forgiving_object<'de, D, T>(d: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    match Value::deserialize(d)? {
        value @ Value::Object(_) => Ok(serde_json::from_value(value).ok()),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn repairs_what_python_writes() {
        let read = |text: &str| parse(text.as_bytes()).unwrap();
        assert_eq!(read(r#"{"a":"x\ud800y"}"#), json!({"a": "x\u{fffd}y"}));
        assert_eq!(read(r#"["\udc00\ud83d\ude00"]"#), json!(["\u{fffd}😀"]));
        assert_eq!(read(r#"["\ud83d\ud83d\ude00"]"#), json!(["\u{fffd}😀"]));
        assert_eq!(read("[NaN, -Infinity, Infinity]"), json!([null, null, null]));
        assert_eq!(read(r#"["NaN \\ud800 \" Infinity", NaN]"#), json!(["NaN \\ud800 \" Infinity", null]));
        assert_eq!(parse(b"[\"\xff\"]").unwrap(), json!(["\u{fffd}"]));
    }

    #[test]
    fn leaves_the_hopeless_alone() {
        for text in ["", "{", "NaNa", r#"["\ud8"]"#, r#"["\"#, "-"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = "[".repeat(100_000);
        assert!(parse(deep.as_bytes()).is_err());
    }
}
