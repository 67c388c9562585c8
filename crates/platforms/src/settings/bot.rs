//! A block of `[[bots]]`: what every bot has, and what its platform adds.

use super::{BadValue, Given, SecretRef, Shown};
use crate::Platform;
use angelia_core::error::Result;
use angelia_core::ports::Ports;
use angelia_core::secret::Secret;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What the bots of one platform are configured with.
pub struct Block {
    /// The platform: the word in the configuration, in places and on the wire.
    pub platform: &'static str,
    /// What people call the platform.
    pub title: &'static str,
    /// Whether a bot there can have this id.
    pub is_id: fn(&str) -> bool,
    /// What to write as its id, where the platform is known.
    pub id_form: &'static str,
    /// The same in a list of all platforms', up to the next one.
    pub id_hint: &'static str,
    /// The keys that not every bot has, in the order in which they are shown.
    pub keys: &'static [Key],
    /// Looks at a bot as a whole: the key that does not go with the others, and why.
    pub check: fn(&Bot) -> Result<(), (&'static str, String)>,
    /// If its provider posts to this server: the key by which it does, and what is told if
    /// it cannot. The text is this server's address, and how to give it another.
    pub unreachable: fn(&Bot, &str) -> Option<(&'static str, String)>,
    /// Whether its bots show slash commands.
    pub has_commands: bool,
    /// The bot that can be spoken through.
    pub make: Make,
    /// The block as the commented default file has it.
    pub sample: &'static str,
}

/// From a block to its bot.
pub type Make = fn(&Bot, Fetch<'_>, Ports) -> Result<Arc<dyn Platform>>;

/// How the secret of a key is got.
pub type Fetch<'a> = &'a dyn Fn(&'static str) -> Result<Secret>;

impl Block {
    /// One of its own keys.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.platform == other.platform
    }
}

impl Eq for Block {}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.platform)
    }
}

/// A key that not every bot has.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Why a bot must have it.
    pub required: Option<&'static str>,
    sort: Sort,
    unset: Unset,
    blank: Option<&'static str>,
}

/// How a value is read.
#[derive(Clone, Copy, Debug)]
enum Sort {
    Text(fn(&Given<'_>) -> Result<String, BadValue>),
    Texts(fn(&Given<'_>) -> Result<Vec<String>, BadValue>),
    Secret,
}

/// What holds where nothing is given.
#[derive(Clone, Copy, Debug)]
enum Unset {
    Note(&'static str),
    Default(fn() -> Value),
}

impl Key {
    /// A key whose value is a text.
    pub const fn text(name: &'static str, read: fn(&Given<'_>) -> Result<String, BadValue>) -> Self {
        Self::new(name, Sort::Text(read))
    }

    /// A key whose value is a list of texts.
    pub const fn texts(name: &'static str, read: fn(&Given<'_>) -> Result<Vec<String>, BadValue>) -> Self {
        Self::new(name, Sort::Texts(read))
    }

    /// A key that says where a secret is kept.
    pub const fn secret(name: &'static str) -> Self {
        Self::new(name, Sort::Secret)
    }

    const fn new(name: &'static str, sort: Sort) -> Self {
        Self { name, required: None, sort, unset: Unset::Note(""), blank: None }
    }

    /// A bot must have it.
    pub const fn required(self, why: &'static str) -> Self {
        Self { required: Some(why), ..self }
    }

    /// What is shown where it is not set.
    pub const fn unset(self, note: &'static str) -> Self {
        Self { unset: Unset::Note(note), ..self }
    }

    /// The value that holds where it is not set.
    pub const fn default(self, value: fn() -> Value) -> Self {
        Self { unset: Unset::Default(value), ..self }
    }

    /// Something of the secret's form that opens nothing.
    pub const fn blank(self, text: &'static str) -> Self {
        Self { blank: Some(text), ..self }
    }

    /// Whether it says where a secret is kept.
    pub fn is_secret(&self) -> bool {
        matches!(self.sort, Sort::Secret)
    }

    /// Reads a value.
    pub fn read(&self, given: &Given<'_>) -> Result<Value, BadValue> {
        match self.sort {
            Sort::Text(read) => read(given).map(Value::Text),
            Sort::Texts(read) => read(given).map(Value::Texts),
            Sort::Secret => given.secret().map(Value::Secret),
        }
    }

    /// The value of one of its platform's bots.
    pub fn show(&self, bot: &Bot) -> Shown {
        match (bot.values.get(self.name), self.unset) {
            (Some(value), _) => value.shown(),
            (None, Unset::Default(value)) => value().shown(),
            (None, Unset::Note(note)) => Shown::unset(note),
        }
    }

    /// Stands in for the secret where a bot is to say nothing to anybody.
    pub fn blank_for(&self, bot: &Bot) -> Secret {
        self.blank.map_or_else(|| Secret::new(format!("{}:none", bot.id)), Secret::new)
    }
}

/// The value of a key, as its platform read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
    /// Where a secret is kept.
    Secret(SecretRef),
}

impl Value {
    fn shown(&self) -> Shown {
        match self {
            Self::Text(text) => Shown::quoted(text),
            Self::Texts(texts) => Shown::bare(toml::Value::from(texts.clone())),
            Self::Secret(secret) => Shown::bare(secret),
        }
    }
}

/// One bot, as an operator configures it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bot {
    /// What the bots of its platform are configured with.
    pub block: &'static Block,
    /// Its id there.
    pub id: String,
    /// What the operator calls it, if that was given; see [`Bot::name`].
    pub name: Option<String>,
    /// Another address than the provider's: scheme, host and port.
    pub api_url: Option<String>,
    values: BTreeMap<&'static str, Value>,
}

impl Bot {
    /// A bot of which nothing is known yet but its platform.
    pub fn new(block: &'static Block) -> Self {
        Self { block, id: String::new(), name: None, api_url: None, values: BTreeMap::new() }
    }

    /// The platform it is on.
    pub fn platform(&self) -> &'static str {
        self.block.platform
    }

    /// What the operator calls it: the platform's name unless another was given.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.platform())
    }

    /// Gives it the value of a key.
    pub fn set(&mut self, key: &Key, value: Value) {
        self.values.insert(key.name, value);
    }

    /// Whether it has a value of its own.
    pub fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// The value of a key that is a text, if it was given.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a key that is a list of texts, if it was given.
    pub fn texts(&self, key: &str) -> Option<&[String]> {
        match self.values.get(key)? {
            Value::Texts(texts) => Some(texts),
            _ => None,
        }
    }

    /// Where the secret of a key is kept, if that was said.
    pub fn secret(&self, key: &str) -> Option<&SecretRef> {
        match self.values.get(key)? {
            Value::Secret(secret) => Some(secret),
            _ => None,
        }
    }

    /// Where all its secrets are kept.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretRef> {
        self.values.keys().filter_map(|key| self.secret(key))
    }
}
