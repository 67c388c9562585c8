//! Discord: one bot, guild channels, threads, direct messages.

mod address;
mod check;
mod connection;
mod cursor;
mod descriptor;
mod ears;
mod fatal;
mod history;
mod ingest;
mod keeping;
mod learn;
mod link;
mod message;
mod normalize;
mod outage;
mod pace;
mod parse;
mod pieces;
mod platform;
mod rest;
mod send;
mod shard;
mod spot;
mod trouble;

pub use descriptor::descriptor;

use crate::directory::Directory;
use crate::health::Pulse;
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Result};
use angelia_core::secret::Secret;
use angelia_core::store::Store;
use ears::Ears;
use pace::Pace;
use pieces::Shown;
use rest::Rest;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The platform's name on the wire.
pub const NAME: &str = "discord";

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
}

/// One Discord bot.
pub struct Discord {
    config: Config,
    key: BotKey,
    store: Arc<dyn Store>,
    directory: Directory,
    rest: Rest,
    pulse: Pulse,
    ears: Ears,
    /// How often people may have the connector itself answer.
    pace: Pace,
    /// What the nonces of this store begin with.
    nonce: OnceCell<String>,
    shown: Shown,
}

impl Discord {
    /// The bot that `config` describes, over what `store` knows of its chats.
    pub fn new(config: Config, store: Arc<dyn Store>) -> Result<Arc<Self>> {
        if address::snowflake(&config.id).is_none() {
            return Err(Error::invalid(format!(
                "{:?} is not a Discord user id: write the bot's id as the developer portal shows it, digits only",
                config.id
            )));
        }
        if let Some(url) = &config.gateway_url
            && !cursor::is_address(url)
        {
            return Err(Error::invalid(format!("gateway_url {url:?} has to begin with ws:// or wss://")));
        }
        let key = BotKey::new(NAME, &config.id);
        let rest = Rest::new(config.api_url.as_deref(), &config.token)?;
        let directory = Directory::new(key.clone(), store.clone());
        let (pulse, ears, pace, nonce, shown) = Default::default();
        Ok(Arc::new(Self { config, key, store, directory, rest, pulse, ears, pace, nonce, shown }))
    }

    /// The bot's own user id.
    fn own_id(&self) -> &str {
        &self.config.id
    }
}
