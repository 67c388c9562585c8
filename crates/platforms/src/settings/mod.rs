//! Settings: how a value is read and shown, and what an operator may write of a bot.
//!
//! The binary reads the file and the environment, and knows where each value stands;
//! what a value means is said here, and by each platform for its own
//! (docs/decisions/0039).

mod bot;
mod given;
mod secret_command;
mod secret_ref;
pub mod values;

pub use bot::{Block, Bot, Fetch, Key, Make, Value};
pub use given::{BadValue, Given, Raw};
pub use secret_ref::{SecretRef, SecretRefError};

use crate::webchat;

/// How a setting appears in `angelia config print`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The value in force, as TOML.
    Value(String),
    /// It is not set: what holds instead.
    Unset(String),
}

impl Shown {
    /// A value that is TOML as it is.
    pub fn bare(value: impl ToString) -> Self {
        Self::Value(value.to_string())
    }

    /// A text.
    pub fn quoted(value: impl ToString) -> Self {
        Self::bare(toml::Value::String(value.to_string()))
    }

    /// A list of texts that need no escaping.
    pub fn listed(values: &[impl std::fmt::Display]) -> Self {
        let values: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
        Self::bare(format_args!("[{}]", values.join(", ")))
    }

    /// It is not set, and this holds instead.
    pub fn unset(instead: impl Into<String>) -> Self {
        Self::Unset(instead.into())
    }
}

/// The settings of platforms that are served without a bot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuiltIn {
    /// The web chat.
    pub webchat: webchat::Settings,
}

/// A setting of a platform that has a section of its own.
#[derive(Clone, Copy, Debug)]
pub struct SectionKey {
    /// The section.
    pub section: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// Reads a value.
    pub read: fn(&mut BuiltIn, &Given<'_>) -> Result<(), BadValue>,
    /// The value in force.
    pub show: fn(&BuiltIn) -> Shown,
}
