//! How platforms count the length of a text.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// The unit a descriptor announces for its message limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LenUnit {
    /// Unicode scalar values, what Python's `len` counts.
    #[default]
    Chars,
    /// UTF-16 code units, what Telegram counts.
    Utf16,
}

impl LenUnit {
    /// Length of `text` in this unit.
    pub fn measure(self, text: &str) -> usize {
        Unit::from(self).measure(text)
    }
}

// Gateways compare with `utf16` and count characters otherwise; so do we.
impl<'de> Deserialize<'de> for LenUnit {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(d)?;
        Ok(match value.as_str() {
            Some("utf16") => Self::Utf16,
            _ => Self::Chars,
        })
    }
}

/// The unit a text is cut by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Unicode scalar values.
    Chars,
    /// UTF-16 code units.
    Utf16,
    /// Bytes of UTF-8.
    Bytes,
}

impl Unit {
    /// Length of `text` in this unit.
    pub fn measure(self, text: &str) -> usize {
        match self {
            Self::Chars => text.chars().count(),
            Self::Utf16 => text.chars().map(char::len_utf16).sum(),
            Self::Bytes => text.len(),
        }
    }

    /// Length of one character in this unit.
    pub fn of_char(self, c: char) -> usize {
        match self {
            Self::Chars => 1,
            Self::Utf16 => c.len_utf16(),
            Self::Bytes => c.len_utf8(),
        }
    }
}

impl From<LenUnit> for Unit {
    fn from(unit: LenUnit) -> Self {
        match unit {
            LenUnit::Chars => Self::Chars,
            LenUnit::Utf16 => Self::Utf16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_differ_where_they_should() {
        let text = "aé😀";
        assert_eq!(Unit::Chars.measure(text), 3);
        assert_eq!(Unit::Utf16.measure(text), 4);
        assert_eq!(Unit::Bytes.measure(text), 7);
        assert_eq!(LenUnit::Utf16.measure(text), 4);
    }
}
