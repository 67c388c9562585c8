//! Commands that gateways declare, and those that were registered, as they are kept.

use crate::clock::UnixMillis;
use crate::commands::Command;
use crate::inbox::InstanceId;
use crate::records::rows::Names;
use crate::records::table::{field, record};

/// Commands that are kept in one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commands(pub Vec<Command>);

// What a later release may keep is read as far as this one knows it, or not at all: it is only shown.
field!(Commands as String, |commands| serde_json::json!(commands.0).to_string(), |text| Some(Commands(
    serde_json::from_str(&text).unwrap_or_default()
)));

record! {
    /// The commands that the gateway of an instance declared.
    pub struct ManifestRow in "manifests", key 1, fed ["instance"], finds [["instance"]] {
        /// The instance.
        instance: InstanceId,
        /// The commands, as a JSON array.
        commands: Commands,
    }
}

record! {
    /// The commands that were registered for a bot at its provider.
    pub struct RegisteredRow in "registered_commands", key 2 {
        /// The platform.
        platform: String,
        /// The bot.
        bot: String,
        /// Their names, as a JSON array.
        names: Names,
        /// What tells that list from others.
        form: String,
        /// When.
        registered_at: UnixMillis,
    }
}
