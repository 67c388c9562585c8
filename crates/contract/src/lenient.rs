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
const BOOLEAN: &str = "a boolean where a string is needed";
const ARRAY: &str = "an array where a string is needed";
const OBJECT: &str = "an object where a string is needed";

/// What stands where something is read, unless that is an object.
pub(crate) enum Other<'a> {
    /// Null.
    Null,
    /// True or false.
    Flag(bool),
    /// A number.
    Number(Value),
    /// A string.
    Text(Cow<'a, str>),
    /// A list, which was passed over; whether there was anything in it.
    List(bool),
}

/// Something that is read from whatever stands there, as it comes and without a tree of values.
pub(crate) trait FromAny<'de>: Sized {
    /// What is read.
    type Value;

    /// Reads an object, entry by entry.
    fn map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error>;

    /// Something else stands there.
    fn other(self, found: Other<'_>) -> Self::Value;
}

/// Reads a [`FromAny`].
pub(crate) struct Any<T>(pub(crate) T);

impl<'de, T: FromAny<'de>> DeserializeSeed<'de> for Any<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<T::Value, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de, T: FromAny<'de>> Visitor<'de> for Any<T> {
    type Value = T::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<T::Value, A::Error> {
        self.0.map(entries)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<T::Value, A::Error> {
        let mut any = false;
        while items.next_element::<IgnoredAny>()?.is_some() {
            any = true;
        }
        Ok(self.0.other(Other::List(any)))
    }

    fn visit_unit<E>(self) -> Result<T::Value, E> {
        Ok(self.0.other(Other::Null))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<T::Value, E> {
        Ok(self.0.other(Other::Flag(flag)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<T::Value, E> {
        Ok(self.0.other(Other::Number(number.into())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<T::Value, E> {
        Ok(self.0.other(Other::Number(number.into())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<T::Value, E> {
        Ok(self.0.other(Other::Number(number.into())))
    }

    fn visit_str<E>(self, text: &str) -> Result<T::Value, E> {
        Ok(self.0.other(Other::Text(text.into())))
    }

    fn visit_string<E>(self, text: String) -> Result<T::Value, E> {
        Ok(self.0.other(Other::Text(text.into())))
    }
}

/// What stands where a text may stand.
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

/// What is wrong with a word.
pub(crate) enum Unfit {
    /// It is something else.
    Shape(&'static str),
    /// It has more bytes than are taken.
    TooLong,
}

impl Word {
    /// The text, if one is there; the decimal text of a number.
    pub(crate) fn into_text(self) -> Result<Option<String>, Unfit> {
        match self {
            Self::Absent => Ok(None),
            Self::Text(text) | Self::Number(text) => Ok(Some(text)),
            Self::Flag(_) => Err(Unfit::Shape(BOOLEAN)),
            Self::Wrong(why) => Err(Unfit::Shape(why)),
            Self::TooLong => Err(Unfit::TooLong),
        }
    }
}

/// Reads a [`Word`] of at most so many bytes; what is of another shape, or too long, is passed over.
pub(crate) struct UpTo(pub(crate) usize);

impl<'de> FromAny<'de> for UpTo {
    type Value = Word;

    fn map<A: MapAccess<'de>>(self, entries: A) -> Result<Word, A::Error> {
        skip_map(entries).map(|_| Word::Wrong(OBJECT))
    }

    fn other(self, found: Other<'_>) -> Word {
        match found {
            Other::Null => Word::Absent,
            Other::Flag(flag) => Word::Flag(flag),
            Other::Number(number) => Word::Number(number.to_string()),
            Other::Text(text) if text.len() > self.0 => Word::TooLong,
            Other::Text(text) => Word::Text(text.into_owned()),
            Other::List(_) => Word::Wrong(ARRAY),
        }
    }
}

/// The keys of an object that hold a text, and most bytes of each.
pub(crate) type Keys<const N: usize> = [(&'static str, usize); N];

/// What stood under such keys. Of a key that comes twice the last one counts.
pub(crate) struct Texts<const N: usize>([Word; N]);

impl<const N: usize> Default for Texts<N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Word::Absent))
    }
}

impl<const N: usize> Texts<N> {
    /// Reads what stands under a key, if it is one of them; answers which.
    pub(crate) fn read<'de, A: MapAccess<'de>>(
        &mut self,
        keys: &Keys<N>,
        key: &str,
        entries: &mut A,
    ) -> Result<Option<&'static str>, A::Error> {
        let Some(place) = place(keys, key) else { return Ok(None) };
        let (name, max) = keys[place];
        self.0[place] = entries.next_value_seed(Any(UpTo(max)))?;
        Ok(Some(name))
    }

    /// What stood under a key.
    pub(crate) fn take(&mut self, keys: &Keys<N>, key: &str) -> Word {
        place(keys, key).map(|place| std::mem::take(&mut self.0[place])).unwrap_or_default()
    }
}

fn place<const N: usize>(keys: &Keys<N>, key: &str) -> Option<usize> {
    keys.iter().position(|(name, _)| *name == key)
}

/// Most bytes that are taken under a key.
pub(crate) fn bound<const N: usize>(keys: &Keys<N>, key: &str) -> usize {
    place(keys, key).map_or(0, |place| keys[place].1)
}

/// Passes over an object; tells whether there was anything in it.
fn skip_map<'de, A: MapAccess<'de>>(mut entries: A) -> Result<bool, A::Error> {
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
    let word = Any(UpTo(usize::MAX)).deserialize(d)?;
    word.into_text().map_err(|unfit| match unfit {
        Unfit::Shape(why) => D::Error::custom(why),
        Unfit::TooLong => D::Error::custom("longer than memory"),
    })
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
pub(crate) struct Truth;

impl<'de> FromAny<'de> for Truth {
    type Value = Option<bool>;

    fn map<A: MapAccess<'de>>(self, entries: A) -> Result<Option<bool>, A::Error> {
        skip_map(entries).map(Some)
    }

    fn other(self, found: Other<'_>) -> Option<bool> {
        match found {
            Other::Null => None,
            Other::Flag(flag) => Some(flag),
            Other::Number(number) => Some(number.as_f64() != Some(0.0)),
            Other::Text(text) => Some(!text.is_empty()),
            Other::List(any) => Some(any),
        }
    }
}

/// A flag, read by Python's truth.
pub(crate) fn flag<'de, D: Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
    Ok(opt_flag(d)?.unwrap_or_default())
}

/// An optional flag; null is none.
pub(crate) fn opt_flag<'de, D: Deserializer<'de>>(d: D) -> Result<Option<bool>, D::Error> {
    Any(Truth).deserialize(d)
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
