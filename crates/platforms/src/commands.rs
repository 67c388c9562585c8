//! Commands that a platform shows to whoever types a slash.

use serde::{Deserialize, Serialize};

/// One command, as the platform has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlashCommand {
    /// What is typed, without the slash.
    pub name: String,
    /// What is shown beside it.
    #[serde(default)]
    pub description: String,
    /// What may follow.
    #[serde(default)]
    pub options: Vec<SlashOption>,
}

/// Something that may follow a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlashOption {
    /// What it is called.
    pub name: String,
    /// What is shown beside it.
    #[serde(default)]
    pub description: String,
    /// Whether it has to be there.
    #[serde(default)]
    pub required: bool,
}
