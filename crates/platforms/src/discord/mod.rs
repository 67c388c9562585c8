//! Discord: one bot, guild channels, threads, direct messages.

mod address;
mod answer;
mod api;
mod api_error;
mod chats;
mod check;
mod commands;
mod descriptor;
mod files;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod identify;
mod ingest;
mod interaction;
mod link;
mod manifest;
mod normalize;
mod parse;
mod pieces;
mod platform;
mod press;
mod react;
mod sanitize;
mod send;
mod send_media;
mod shard;
mod spread;
mod take;
mod take_interaction;
mod threads;
pub mod verify;
mod webhook;

pub use descriptor::descriptor;
pub use manifest::MANIFEST;

use crate::commands::{BotCommands, FromGateways};
use crate::health::HealthRecord;
use crate::kit::{Account, IdSeed, SentMessages};
use angelia_core::commands::Command;
use angelia_core::error::Result;
use angelia_core::inbox::Rendering;
use angelia_core::ports::Ports;
use angelia_core::secret::Secret;
use api::Api;
use link::Pace;
use pieces::GonePieces;
use shard::ShardHealth;
use std::sync::Arc;

use verify::PublicKey;

/// The platform's name on the wire.
pub const NAME: &str = "discord";

/// Messages of which is remembered what they show. A stream edits a few.
const REMEMBERED: usize = 4_096;
/// The kind of an interaction's token in the vault, as `follow_up` names it.
pub const INTERACTION_TOKEN: &str = "discord.interaction_token";

/// A Discord bot, as an operator configures it; the manifest has checked what is written there.
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
    /// The operator's own slash commands.
    pub commands: Vec<Command>,
    /// What becomes of those that gateways declare.
    pub gateway_commands: FromGateways,
}

/// One Discord bot.
pub struct Discord {
    config: Config,
    account: Account,
    commands: BotCommands,
    /// The key of those interactions that come over HTTP.
    public_key: Option<PublicKey>,
    ports: Ports,
    api: Api,
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
        let public_key = config.public_key.as_deref().map(PublicKey::parse).transpose()?;
        let account = Account::new(NAME, &config.id, &config.name, HealthRecord::default(), &ports);
        let api = Api::new(config.api_url.as_deref(), &config.token, ports.shared)?;
        let (shards, pace, nonce, gone) = Default::default();
        let (own, from_gateways) = (config.commands.clone(), config.gateway_commands);
        let commands = BotCommands { own, from_gateways, rules: commands::RULES };
        let sent = SentMessages::new(REMEMBERED);
        Ok(Arc::new(Self {
            config,
            account,
            commands,
            public_key,
            ports,
            api,
            shards,
            pace,
            nonce,
            sent,
            gone,
        }))
    }

    /// The bot's own user id.
    fn own_id(&self) -> &str {
        &self.config.id
    }
}
