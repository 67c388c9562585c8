//! Discord: one bot, guild channels, threads, direct messages.

mod address;
mod answer;
mod api_error;
mod check;
mod command_lines;
mod commands;
mod descriptor;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod ingest;
mod interaction;
mod learn;
mod link;
mod locate;
mod manifest;
mod message;
mod normalize;
mod parse;
mod pieces;
mod platform;
mod rest;
mod sanitize;
mod send;
mod shard;
mod take_interaction;
pub mod verify;
mod webhook;

pub use commands::default_commands;
pub use descriptor::descriptor;
pub use manifest::MANIFEST;

use crate::health::HealthRecord;
use crate::kit::{Account, IdSeed, SentMessages};
use angelia_core::error::{Error, Result};
use angelia_core::inbox::Rendering;
use angelia_core::ports::Ports;
use angelia_core::secret::Secret;
use link::Pace;
use pieces::GonePieces;
use rest::Rest;
use shard::ShardHealth;
use std::sync::Arc;

use verify::PublicKey;

/// The platform's name on the wire.
pub const NAME: &str = "discord";

/// Messages of which is remembered what they show. A stream edits a few.
const REMEMBERED: usize = 4_096;
/// The kind of an interaction's token in the vault, as `follow_up` names it.
pub const INTERACTION_TOKEN: &str = "discord.interaction_token";

/// A Discord bot, as an operator configures it.
#[derive(Clone, Debug)]
pub struct Config {
    /// The bot's user id.
    pub id: String,
    /// What the operator calls it.
    pub name: String,
    /// Its token.
    pub token: Secret,
    /// Another address than Discord's for REST calls: scheme, host and port.
    pub api_url: Option<String>,
    /// Another address than Discord's for the gateway: `ws://` or `wss://`.
    pub gateway_url: Option<String>,
    /// The key Discord signs interactions with, 64 hexadecimal digits; without it
    /// none are taken over HTTP.
    pub public_key: Option<String>,
    /// How interactions go to gateways.
    pub interactions: Rendering,
    /// Slash commands to register.
    pub commands: Vec<Command>,
}

/// A slash command, as an operator configures it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// What is typed, without the slash.
    pub name: String,
    /// What Discord shows beside it.
    pub description: String,
    /// The text that may follow: its name, what Discord shows beside it, and
    /// whether it has to be there.
    pub option: Option<(String, String, bool)>,
}

/// One Discord bot.
pub struct Discord {
    config: Config,
    account: Account,
    /// The key of those interactions that come over HTTP.
    public_key: Option<PublicKey>,
    ports: Ports,
    rest: Rest,
    shards: ShardHealth,
    /// How often people may have the connector itself answer.
    pace: Pace,
    /// What the nonces of this store begin with.
    nonce: IdSeed,
    /// What its messages show.
    sent: SentMessages<String>,
    gone: GonePieces,
}

impl Discord {
    /// The bot that `config` describes, over what is known of its chats.
    pub fn new(config: Config, ports: Ports) -> Result<Arc<Self>> {
        if address::snowflake(&config.id).is_none() {
            return Err(Error::invalid(format!(
                "{:?} is not a Discord user id: write the bot's id as the developer portal shows it, digits only",
                config.id
            )));
        }
        if let Some(url) = &config.gateway_url
            && !shard::is_address(url)
        {
            return Err(Error::invalid(format!("gateway_url {url:?} has to begin with ws:// or wss://")));
        }
        commands::check(&config.commands)?;
        let public_key = config.public_key.as_deref().map(PublicKey::parse).transpose()?;
        let account = Account::new(NAME, &config.id, &config.name, HealthRecord::default(), &ports);
        let rest = Rest::new(config.api_url.as_deref(), &config.token)?;
        let (shards, pace, nonce, gone) = Default::default();
        let sent = SentMessages::new(REMEMBERED);
        Ok(Arc::new(Self { config, account, public_key, ports, rest, shards, pace, nonce, sent, gone }))
    }

    /// The bot's own user id.
    fn own_id(&self) -> &str {
        &self.config.id
    }
}
