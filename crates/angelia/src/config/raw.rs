//! A value as it was given, in a file or in the environment, before it has a type.

use super::fault::Problem;
use super::secret_ref::SecretRef;
use toml::de::DeValue;

/// A value that is still to be read.
pub(super) enum Raw<'a> {
    /// From a file.
    Toml(&'a DeValue<'a>),
    /// From the environment, where everything is text.
    Text(&'a str),
    /// From the environment: a reference to a secret, spelled in the variable's name.
    Ref(SecretRef),
}

/// A value together with the setting it is for, which its problems name.
pub(super) struct Given<'a> {
    pub(super) key: String,
    pub(super) raw: Raw<'a>,
}

impl Given<'_> {
    /// A text.
    pub(super) fn text(&self) -> Result<&str, Problem> {
        match &self.raw {
            Raw::Toml(DeValue::String(text)) => Ok(text),
            Raw::Text(text) => Ok(text),
            _ => Err(self.wrong_type("a text in quotes")),
        }
    }

    /// `true` or `false`.
    pub(super) fn flag(&self) -> Result<bool, Problem> {
        match &self.raw {
            Raw::Toml(DeValue::Boolean(flag)) => Ok(*flag),
            Raw::Text("true") => Ok(true),
            Raw::Text("false") => Ok(false),
            _ => Err(self.wrong_type("true or false")),
        }
    }

    /// A whole number that is not negative.
    pub(super) fn count(&self) -> Result<u64, Problem> {
        let read = match &self.raw {
            Raw::Toml(DeValue::Integer(number)) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            Raw::Text(text) => text.parse().ok(),
            _ => None,
        };
        // The store counts with signed numbers.
        let read = read.filter(|number| i64::try_from(*number).is_ok());
        read.ok_or_else(|| self.wrong_type("a whole number without quotes, not negative"))
    }

    /// A list of texts; in the environment, separated by commas.
    pub(super) fn texts(&self) -> Result<Vec<&str>, Problem> {
        let wanted = "a list of texts";
        match &self.raw {
            Raw::Toml(DeValue::Array(items)) => items
                .iter()
                .map(|item| match item.get_ref() {
                    DeValue::String(text) => Ok(text.as_ref()),
                    other => Err(self.mismatch(wanted, name_of(other))),
                })
                .collect(),
            Raw::Text(text) => Ok(text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect()),
            _ => Err(self.wrong_type(wanted)),
        }
    }

    /// A reference to a secret. Whatever else was given may be the secret itself: it is not repeated.
    pub(super) fn secret(&self) -> Result<SecretRef, Problem> {
        let table = match &self.raw {
            Raw::Ref(reference) => return Ok(reference.clone()),
            Raw::Toml(DeValue::Table(table)) => table,
            _ => return Err(self.not_a_reference()),
        };
        let mut places = table.iter().map(|(place, value)| (place.get_ref().as_ref(), value.get_ref()));
        match (places.next(), places.next()) {
            (Some((place, DeValue::String(text))), None) => {
                secret_ref(place, text).ok_or_else(|| self.not_a_reference())
            }
            _ => Err(self.not_a_reference()),
        }
    }

    /// The value is no good; `message` continues "`key` …".
    pub(super) fn bad(&self, message: impl Into<String>) -> Problem {
        Problem::BadValue { key: self.key.clone(), message: message.into() }
    }

    fn not_a_reference(&self) -> Problem {
        self.bad(concat!(
            "is a secret and must be a reference to one place: ",
            "write { env = \"NAME\" } or { file = \"PATH\" }"
        ))
    }

    fn wrong_type(&self, wanted: &'static str) -> Problem {
        let found = match &self.raw {
            Raw::Toml(value) => name_of(value),
            Raw::Text(_) => "this text",
            Raw::Ref(_) => "a reference to a secret",
        };
        self.mismatch(wanted, found)
    }

    fn mismatch(&self, wanted: &'static str, found: &'static str) -> Problem {
        Problem::WrongType { key: self.key.clone(), wanted, found }
    }
}

/// The reference that `{ place = text }` is.
pub(super) fn secret_ref(place: &str, text: &str) -> Option<SecretRef> {
    match place {
        _ if text.is_empty() => None,
        "env" => Some(SecretRef::Env(text.to_owned())),
        "file" => Some(SecretRef::File(text.into())),
        _ => None,
    }
}

fn name_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "this number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
