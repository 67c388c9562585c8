//! Reading what Python gateways really write.
//!
//! Gateways serialise with `json.dumps`, which happily emits lone surrogate
//! escapes and the words `NaN` and `Infinity`. Dropping a socket over either
//! would lose a conversation, so the reader repairs and tries again. The field
//! helpers below forgive the other habit: ids sent as JSON numbers, and `null`
//! where a key could have been left out.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Parses one JSON text, repairing Python's deviations only when it must.
pub(crate) fn parse(line: &[u8]) -> Result<Value, serde_json::Error> {
    read(line, |text| serde_json::from_str(text))
}

/// Reads one JSON text with `parse`, and once more, repaired, if it must.
pub(crate) fn read<T>(
    line: &[u8],
    parse: impl Fn(&str) -> Result<T, serde_json::Error>,
) -> Result<T, serde_json::Error> {
    let text = String::from_utf8_lossy(line);
    match parse(&text) {
        Ok(value) => Ok(value),
        // The repair keeps lengths close to the input's, so a second pass over
        // a hostile line costs at most as much as the first one did.
        Err(first) => match repair(&text) {
            Cow::Borrowed(_) => Err(first),
            Cow::Owned(text) => parse(&text),
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
        Value::Null => Err(NULL),
        Value::Bool(_) => Err(BOOLEAN),
        Value::Array(_) => Err(ARRAY),
        Value::Object(_) => Err(OBJECT),
    }
}

const NULL: &str = "null where a string is needed";
pub(crate) const BOOLEAN: &str = "a boolean where a string is needed";
const ARRAY: &str = "an array where a string is needed";
const OBJECT: &str = "an object where a string is needed";

/// What stands where a text may stand. It is read as it comes, without a tree
/// of values: what is of another shape, or too long, is passed over.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Word {
    /// Nothing, or null.
    #[default]
    Absent,
    /// A string.
    Text(String),
    /// A number, in decimal.
    Number(String),
    /// True or false.
    Flag(bool),
    /// Something else; what is wrong with it.
    Wrong(&'static str),
    /// A string with more bytes than are taken.
    TooLong,
}

/// Reads a [`Word`] of at most so many bytes.
pub(crate) struct UpTo(pub(crate) usize);

impl<'de> DeserializeSeed<'de> for UpTo {
    type Value = Word;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Word, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UpTo {
    type Value = Word;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<Word, E> {
        Ok(if text.len() > self.0 { Word::TooLong } else { Word::Text(text.to_owned()) })
    }

    fn visit_string<E>(self, text: String) -> Result<Word, E> {
        Ok(if text.len() > self.0 { Word::TooLong } else { Word::Text(text) })
    }

    fn visit_u64<E>(self, number: u64) -> Result<Word, E> {
        Ok(Word::Number(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Word, E> {
        Ok(Word::Number(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Word, E> {
        Ok(Word::Number(Value::from(number).to_string()))
    }

    fn visit_unit<E>(self) -> Result<Word, E> {
        Ok(Word::Absent)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Word, E> {
        Ok(Word::Flag(flag))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Word, A::Error> {
        skip_seq(items).map(|_| Word::Wrong(ARRAY))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Word, A::Error> {
        skip_map(entries).map(|_| Word::Wrong(OBJECT))
    }
}

/// Something that is read from an object, entry by entry.
pub(crate) trait FromMap<'de>: Sized {
    /// What is read.
    type Value;

    /// Reads the object.
    fn map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error>;

    /// Something else stood there, and was passed over.
    fn other(self, is_null: bool) -> Self::Value;
}

/// Reads a [`FromMap`] from whatever stands there.
pub(crate) struct MapOr<T>(pub(crate) T);

impl<'de, T: FromMap<'de>> DeserializeSeed<'de> for MapOr<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<T::Value, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de, T: FromMap<'de>> Visitor<'de> for MapOr<T> {
    type Value = T::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<T::Value, A::Error> {
        self.0.map(entries)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<T::Value, A::Error> {
        skip_seq(items).map(|_| self.0.other(false))
    }

    fn visit_unit<E>(self) -> Result<T::Value, E> {
        Ok(self.0.other(true))
    }

    fn visit_bool<E>(self, _: bool) -> Result<T::Value, E> {
        Ok(self.0.other(false))
    }

    fn visit_i64<E>(self, _: i64) -> Result<T::Value, E> {
        Ok(self.0.other(false))
    }

    fn visit_u64<E>(self, _: u64) -> Result<T::Value, E> {
        Ok(self.0.other(false))
    }

    fn visit_f64<E>(self, _: f64) -> Result<T::Value, E> {
        Ok(self.0.other(false))
    }

    fn visit_str<E>(self, _: &str) -> Result<T::Value, E> {
        Ok(self.0.other(false))
    }
}

/// Passes over a list; tells whether there was anything in it.
pub(crate) fn skip_seq<'de, A: SeqAccess<'de>>(mut items: A) -> Result<bool, A::Error> {
    let mut any = false;
    while items.next_element::<IgnoredAny>()?.is_some() {
        any = true;
    }
    Ok(any)
}

/// Passes over an object; tells whether there was anything in it.
pub(crate) fn skip_map<'de, A: MapAccess<'de>>(mut entries: A) -> Result<bool, A::Error> {
    let mut any = false;
    while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
        any = true;
    }
    Ok(any)
}

/// A required string; numbers are read as their decimal text.
pub(crate) fn text<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    opt_text(d)?.ok_or_else(|| D::Error::custom(NULL))
}

/// A string that may be null, which reads as the empty string.
pub(crate) fn text_or_empty<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    Ok(opt_text(d)?.unwrap_or_default())
}

/// An optional string; null is none.
pub(crate) fn opt_text<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    match UpTo(usize::MAX).deserialize(d)? {
        Word::Absent => Ok(None),
        Word::Text(text) | Word::Number(text) => Ok(Some(text)),
        Word::Flag(_) => Err(D::Error::custom(BOOLEAN)),
        Word::Wrong(why) => Err(D::Error::custom(why)),
        Word::TooLong => Err(D::Error::custom("longer than memory")),
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

/// Python's truth of a JSON value: the gateways test flags with a bare `if`.
pub(crate) fn truthy(value: &Value) -> bool {
    // Reading from a value that is there cannot fail.
    flag(value).unwrap_or_default()
}

/// The same of what is being read; `None` for null.
struct Truth;

impl<'de> Visitor<'de> for Truth {
    type Value = Option<bool>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E>(self) -> Result<Option<bool>, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Option<bool>, E> {
        Ok(Some(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Option<bool>, E> {
        Ok(Some(number != 0))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Option<bool>, E> {
        Ok(Some(number != 0))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Option<bool>, E> {
        Ok(Some(number != 0.0))
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<bool>, E> {
        Ok(Some(!text.is_empty()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Option<bool>, A::Error> {
        skip_seq(items).map(Some)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Option<bool>, A::Error> {
        skip_map(entries).map(Some)
    }
}

/// A flag, read by Python's truth.
pub(crate) fn flag<'de, D: Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
    Ok(opt_flag(d)?.unwrap_or_default())
}

/// An optional flag; null is none.
pub(crate) fn opt_flag<'de, D: Deserializer<'de>>(d: D) -> Result<Option<bool>, D::Error> {
    d.deserialize_any(Truth)
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
