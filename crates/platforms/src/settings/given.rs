//! A value as it was given, in a file or in the environment, before it has a type.

use super::SecretRef;
use toml::de::DeValue;

/// A value that is still to be read.
pub enum Raw<'a> {
    /// From a file.
    Toml(&'a DeValue<'a>),
    /// From the environment, where everything is text.
    Text(&'a str),
    /// From the environment: a reference to a secret, spelled in the variable's name.
    Ref(SecretRef),
}

/// A value together with the setting it is for, which its problems name.
pub struct Given<'a> {
    /// The setting, as its problems name it.
    pub key: String,
    /// The value.
    pub raw: Raw<'a>,
}

/// A value that is no good. What was given is not in it where that may be a secret.
#[derive(Debug, thiserror::Error)]
#[error("`{key}` {message}")]
pub struct BadValue {
    /// The setting.
    pub key: String,
    /// Why, and what to write instead.
    pub message: String,
}

impl Given<'_> {
    /// A text.
    pub fn text(&self) -> Result<&str, BadValue> {
        match &self.raw {
            Raw::Toml(DeValue::String(text)) => Ok(text),
            Raw::Text(text) => Ok(text),
            _ => Err(self.wrong_type("a text in quotes")),
        }
    }

    /// `true` or `false`.
    pub fn flag(&self) -> Result<bool, BadValue> {
        match &self.raw {
            Raw::Toml(DeValue::Boolean(flag)) => Ok(*flag),
            Raw::Text("true") => Ok(true),
            Raw::Text("false") => Ok(false),
            _ => Err(self.wrong_type("true or false")),
        }
    }

    /// A whole number that is not negative.
    pub fn count(&self) -> Result<u64, BadValue> {
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
    pub fn texts(&self) -> Result<Vec<&str>, BadValue> {
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
    pub fn secret(&self) -> Result<SecretRef, BadValue> {
        let table = match &self.raw {
            Raw::Ref(reference) => return Ok(reference.clone()),
            Raw::Toml(DeValue::Table(table)) => table,
            _ => return Err(self.not_a_reference()),
        };
        let mut places = table.iter().map(|(place, value)| (place.get_ref().as_ref(), value.get_ref()));
        match (places.next(), places.next()) {
            (Some((place, DeValue::String(text))), None) => {
                SecretRef::of(place, text).ok_or_else(|| self.not_a_reference())
            }
            _ => Err(self.not_a_reference()),
        }
    }

    /// The same, or a command that prints it, for what is read once at the start.
    pub fn secret_or_command(&self) -> Result<SecretRef, BadValue> {
        let words = match &self.raw {
            Raw::Toml(DeValue::Table(table)) if table.len() == 1 => {
                table.iter().find(|(place, _)| place.get_ref() == "command").map(|(_, words)| words.get_ref())
            }
            _ => None,
        };
        let Some(words) = words else {
            let or = concat!(
                "is a secret and must be a reference to one place: write { env = \"NAME\" }, ",
                "{ file = \"PATH\" } or { command = [\"PROGRAM\", \"ARGUMENT\"] }"
            );
            return self.secret().map_err(|_| self.bad(or));
        };
        let DeValue::Array(words) = words else { return Err(self.not_a_command()) };
        let word = |word: &DeValue<'_>| match word {
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.not_a_command()),
        };
        let words = words.iter().map(|it| word(it.get_ref())).collect::<Result<Vec<_>, _>>()?;
        match words.first() {
            Some(program) if !program.is_empty() => Ok(SecretRef::Command(words)),
            _ => Err(self.not_a_command()),
        }
    }

    fn not_a_command(&self) -> BadValue {
        self.bad(
            "needs a command as a list of its words, for no shell: { command = [\"PROGRAM\", \"ARGUMENT\"] }",
        )
    }

    /// The value is no good; `message` continues "`key` …".
    pub fn bad(&self, message: impl Into<String>) -> BadValue {
        BadValue { key: self.key.clone(), message: message.into() }
    }

    fn not_a_reference(&self) -> BadValue {
        self.bad(concat!(
            "is a secret and must be a reference to one place: ",
            "write { env = \"NAME\" } or { file = \"PATH\" }"
        ))
    }

    fn wrong_type(&self, wanted: &str) -> BadValue {
        let found = match &self.raw {
            Raw::Toml(value) => name_of(value),
            Raw::Text(_) => "this text",
            Raw::Ref(_) => "a reference to a secret",
        };
        self.mismatch(wanted, found)
    }

    fn mismatch(&self, wanted: &str, found: &str) -> BadValue {
        self.bad(format!("needs {wanted}, not {found}"))
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
