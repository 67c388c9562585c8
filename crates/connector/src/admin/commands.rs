//! The commands of a bot: what its gateways declare, and what was registered.

use super::Admin;
use super::types::Nothing;
use crate::registrar;
use angelia_core::audit::{Actor, AuditEntry};
use angelia_core::commands::{CommandStore, Declared, Registered};
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Result};
use angelia_core::store::AuditStore;
use std::sync::Arc;

asked! {
    /// Of which bot.
    pub struct CommandsOf {
        /// As `platform:id`.
        pub bot: String,
    }

    /// What was registered at a provider.
    pub struct RegisteredCommands {
        /// For which bot, as `platform:id`.
        pub bot: String,
        /// The names, as the provider shows them.
        pub names: Vec<String>,
        /// What tells that list from others.
        pub form: String,
    }
}

answered! {
    /// The commands of a bot.
    pub struct DeclaredCommands {
        /// What its gateways declare, the most important first.
        pub declared: Vec<Declared>,
        /// The names that were registered before.
        pub registered: Vec<String>,
    }
}

/// Most names, and longest texts, that are taken: more than any provider has.
const MAX_NAMES: usize = 200;
const MAX_TEXT: usize = 256;

fn bot(text: &str) -> Result<BotKey> {
    let (platform, id) = text
        .split_once(':')
        .ok_or_else(|| Error::invalid("write the bot as platform:id; see: angelia bot list"))?;
    Ok(BotKey::new(platform, id))
}

pub(super) async fn show(admin: Arc<Admin>, of: CommandsOf) -> Result<DeclaredCommands> {
    let bot = bot(&of.bot)?;
    let declared = registrar::declared(&admin.identities.snapshot(), &bot);
    let registered = admin.ports.records.registered(&bot).await?.unwrap_or_default().names;
    Ok(DeclaredCommands { declared, registered })
}

/// Keeps what a command registered, so that the server does not register it again.
pub(super) async fn note(admin: Arc<Admin>, done: RegisteredCommands) -> Result<Nothing> {
    let RegisteredCommands { bot: text, names, form } = done;
    let bot = bot(&text)?;
    if names.len() > MAX_NAMES || names.iter().chain([&form]).any(|it| it.len() > MAX_TEXT) {
        return Err(Error::invalid("these are more commands than any provider shows"));
    }
    let entry = AuditEntry::done(&Actor::operator(), "bot.commands", "", &text);
    let entry = entry.with(format!("{} registered", names.len()));
    admin.ports.records.note_registered(&bot, Registered { names, form }).await?;
    admin.ports.records.audit(entry).await?;
    Ok(Nothing {})
}
