//! Slash commands: what gateways declare, what operators add to it, what a provider is to show
//! of both, and what becomes of a command that somebody typed (docs/decisions/0050).
//!
//! | Question | File |
//! |---|---|
//! | What is taken of a gateway's manifest? | `declared.rs` |
//! | What do the gateways of a bot declare together, and what of it can a provider show? | `merge.rs` |
//! | What has to change at the provider? | `plan.rs` |
//! | What does a gateway get of a command that it does not know? | `typed.rs` |
//! | What was registered? | `registered.rs` |

mod declared;
mod merge;
mod plan;
mod registered;
#[cfg(test)]
mod tests;
mod typed;

pub use declared::{LIMITS, MAX_COMMANDS, Manifest, read};
pub use merge::{Declared, Declaring, LeftOut, Listed, MAX_NAMED, Rules, Wanted, union, wanted};
pub use plan::{Change, Elsewhere, Plan, Planned, Shown, plan};
pub use registered::{CommandStore, Registered, form_of};
pub use typed::{ASK, is_only_own, reworded};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest name of a command, and of an option.
pub const MAX_NAME: usize = 32;

/// An option that is a text, in the numbers of the contract.
pub const TEXT: u8 = 3;
/// An option that is a command below a command.
pub const BELOW: u8 = 1;
/// An option that is a group of such.
pub const GROUP: u8 = 2;

/// One command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Command {
    /// What is typed, without the slash.
    pub name: String,
    /// What is shown beside it.
    #[serde(default)]
    pub description: String,
    /// What may follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<CommandOption>,
}

/// Something that may follow a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandOption {
    /// What it is, in the contract's numbers.
    #[serde(rename = "type", default = "text")]
    pub kind: u8,
    /// What it is called.
    pub name: String,
    /// What is shown beside it.
    #[serde(default)]
    pub description: String,
    /// Whether it has to be there.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// What it may be; nothing for anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// Of a command below a command: what may follow that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<CommandOption>,
}

/// One of the values that an option may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// What people see.
    pub name: String,
    /// What is meant: a text or a number.
    pub value: Value,
}

impl Default for CommandOption {
    fn default() -> Self {
        Self {
            kind: TEXT,
            name: String::new(),
            description: String::new(),
            required: false,
            choices: Vec::new(),
            options: Vec::new(),
        }
    }
}

/// Whether it can be the name of a command, or of what follows one.
pub fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_plain)
}

/// The name as it is where no hyphen is allowed.
fn without_hyphens(name: &str) -> String {
    name.replace('-', "_")
}

fn text() -> u8 {
    TEXT
}

fn is_false(flag: &bool) -> bool {
    !flag
}
