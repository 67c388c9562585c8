//! Reading what providers send: their models grow and lose fields, and one odd field
//! must never make a bot deaf.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::ops::{Deref, DerefMut};

/// A field that is taken for absent if it is missing or not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lenient<T>(pub(crate) Option<T>);

/// A list without what is not what it should be; empty if it is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An option may be missing, so this may.
        let value = Option::<Value>::deserialize(deserializer)?;
        Ok(Self(value.and_then(|value| serde_json::from_value(value).ok())))
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Lenient(items) = Lenient::<Vec<Value>>::deserialize(deserializer)?;
        let read = items.into_iter().flatten().filter_map(|item| serde_json::from_value(item).ok());
        Ok(Self(read.collect()))
    }
}

impl<T> Default for Lenient<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Deref for Lenient<T> {
    type Target = Option<T>;

    fn deref(&self) -> &Option<T> {
        &self.0
    }
}

impl<T: PartialEq> PartialEq<Option<T>> for Lenient<T> {
    fn eq(&self, other: &Option<T>) -> bool {
        self.0 == *other
    }
}

impl<T> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T> Deref for List<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> DerefMut for List<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Odd {
        id: u8,
        name: Lenient<String>,
        tags: List<u8>,
    }

    #[test]
    fn what_is_missing_or_odd_is_absent_and_hides_nothing_else() {
        let read = |value: Value| serde_json::from_value::<Odd>(value);
        let full = Odd { id: 1, name: Lenient(Some("a".into())), tags: List(vec![1, 2]) };
        assert_eq!(read(json!({"id": 1, "name": "a", "tags": [1, "x", null, 2, 300]})).unwrap(), full);
        let bare = Odd { id: 1, name: Lenient(None), tags: List(vec![]) };
        for odd in [
            json!({"id": 1}),
            json!({"id": 1, "name": null, "tags": null}),
            json!({"id": 1, "name": 7, "tags": {}}),
        ] {
            assert_eq!(read(odd).unwrap(), bare);
        }
        assert!(read(json!({"name": "a"})).is_err(), "the rest is as strict as ever");
        let borrowed: Odd = serde_json::from_str(r#"{"id": 1, "tags": 5}"#).unwrap();
        assert_eq!(borrowed, bare);
    }
}
