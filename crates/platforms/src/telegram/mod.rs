//! Telegram: one bot, private chats, groups, topics, channels.

mod address;
mod api;
mod check;
mod commands;
mod descriptor;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod health_record;
mod ingest;
mod learn;
mod locate;
mod media;
mod moves;
mod normalize;
mod parse;
mod pieces;
mod platform;
mod refusal;
pub mod render;
mod replies;
mod send;
mod sent_messages;
mod service;
mod take;
mod update;
mod verify;
mod webhook;

pub use descriptor::descriptor;

use crate::admission::Admission;
use crate::directory::Directory;
use address::Me;
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Result};
use angelia_core::ports::Ports;
use angelia_core::secret::Secret;
use api::Api;
use health_record::HealthRecord;
use moves::Moves;
use replies::{Answer, Words};
use sent_messages::{Floods, Shown};
use std::sync::{Arc, OnceLock};
use tokio::sync::Mutex;

/// The platform's name.
pub const NAME: &str = "telegram";
/// The one stream of updates a bot has.
const STREAM: &str = "updates";

/// A Telegram bot, as an operator configures it.
#[derive(Clone, Debug)]
pub struct Config {
    /// The bot's user id: what stands before the colon of its token.
    pub id: String,
    /// What the operator calls it.
    pub name: String,
    /// Its token.
    pub token: Secret,
    /// Another address than Telegram's: scheme, host and port.
    pub api_url: Option<String>,
    /// How updates come.
    pub ingest: Ingest,
    /// What `/start` is answered with; there is a default.
    pub greeting: Option<String>,
}

/// How updates come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ingest {
    /// The connector asks for them.
    #[default]
    Poll,
    /// Telegram posts them to `/webhooks/telegram/{name}`.
    Webhook,
}

/// One bot on Telegram.
pub struct Telegram {
    config: Config,
    bot: BotKey,
    api: Api,
    webhook_secret: Secret,
    ports: Ports,
    directory: Directory,
    health: HealthRecord,
    /// Who it is; known once Telegram said so.
    me: OnceLock<Me>,
    /// Whom to tell that a chat has a new id; known once it listens.
    admission: OnceLock<Arc<dyn Admission>>,
    /// Held while updates are taken in, one after the other; the number of the
    /// last one that was posted.
    reading: Mutex<Option<i64>>,
    /// The last update that the connector did something about, and what it
    /// answers to it.
    settled: Mutex<Option<(i64, Option<Answer>)>>,
    shown: Shown,
    words: Words,
    floods: Floods,
    moves: Moves,
}

impl Telegram {
    /// The bot that `config` describes. Before it first calls Telegram, the process must have a
    /// TLS provider.
    pub fn new(config: Config, ports: Ports) -> Result<Arc<Self>> {
        check_id(&config)?;
        let bot = BotKey::new(NAME, &config.id);
        Ok(Arc::new(Self {
            api: Api::new(config.api_url.as_deref(), &config.token)?,
            webhook_secret: verify::webhook_secret(&config.token),
            directory: Directory::new(bot.clone(), ports.records.clone()),
            bot,
            ports,
            config,
            health: HealthRecord::default(),
            me: OnceLock::new(),
            admission: OnceLock::new(),
            reading: Mutex::default(),
            settled: Mutex::default(),
            shown: Shown::default(),
            words: Words::default(),
            floods: Floods::default(),
            moves: Moves::default(),
        }))
    }

    fn me(&self) -> Option<Me> {
        self.me.get().cloned()
    }
}

/// The id keys everything that is kept of a bot, so it has to be the token's.
fn check_id(config: &Config) -> Result<()> {
    let Some((id, _)) = config.token.expose().split_once(':') else {
        return Err(Error::invalid(format!(
            "the token of telegram bot {:?} is not one: it looks like 123456:ABC-DEF, ask @BotFather for it",
            config.name
        )));
    };
    let is_number = config.id.parse::<u64>().is_ok_and(|number| number.to_string() == config.id);
    if is_number && id == config.id {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the id of telegram bot {:?} must be what stands before the colon of its token",
        config.name
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_the_tokens() {
        let check = |id: &str, token: &str| {
            let config = Config {
                id: id.into(),
                name: "main".into(),
                token: Secret::new(token),
                api_url: None,
                ingest: Ingest::Poll,
                greeting: None,
            };
            check_id(&config)
        };
        assert!(check("77", "77:secret").is_ok());
        for (id, token) in
            [("78", "77:secret"), ("077", "077:secret"), ("77", "secret"), ("x", "x:secret"), ("", ":s")]
        {
            let error = check(id, token).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
