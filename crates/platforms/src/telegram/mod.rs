//! Telegram: one bot, private chats, groups, topics, channels.

mod address;
mod albums;
mod api;
mod check;
mod command_list;
mod commands;
mod descriptor;
mod draft;
mod echoes;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod ingest;
mod learn;
mod locate;
mod manifest;
mod media;
mod moves;
mod normalize;
mod parse;
mod platform;
mod press;
mod react;
pub mod render;
mod replies;
mod send;
mod send_media;
mod sent_messages;
mod take;
mod topics;
mod verify;
mod webhook;

pub(crate) use albums::LIMITS as ALBUM_LIMITS;
pub use descriptor::descriptor;
pub use manifest::MANIFEST;

use crate::admission::Admission;
use crate::commands::{BotCommands, FromGateways};
use crate::health::{HealthRecord, Silence};
use crate::kit::{Account, SentMessages};
use address::Me;
use albums::Albums;
use angelia_core::commands::Command;
use angelia_core::error::{Error, Result};
use angelia_core::ports::Ports;
use angelia_core::secret::Secret;
use api::Api;
use echoes::SharedEchoes;
use moves::Moves;
use replies::{Answer, Words};
use send::Floods;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Mutex;

/// The platform's name.
pub const NAME: &str = "telegram";
/// The one stream of updates a bot has.
const STREAM: &str = "updates";

/// A question for updates is answered within a minute, however quiet it is, and a
/// webhook is looked at as often.
const SILENCE: Silence = Silence {
    after: Duration::from_secs(120),
    provider: "Telegram",
    next: "see whether this server has enough processor time, and restart it if it stays so",
};

/// Messages of which is remembered what they show, some 100 bytes each. What is
/// forgotten costs a call that Telegram answers with "not modified".
const REMEMBERED: usize = 20_000;

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
    /// The operator's own commands.
    pub commands: Vec<Command>,
    /// What becomes of those that gateways declare.
    pub gateway_commands: FromGateways,
}

/// How updates come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ingest {
    /// The connector asks for them.
    Poll,
    /// Telegram posts them to `/webhooks/telegram/{name}`.
    Webhook,
}

/// One bot on Telegram.
pub struct Telegram {
    config: Config,
    account: Account,
    commands: BotCommands,
    api: Api,
    webhook_secret: Secret,
    ports: Ports,
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
    /// What its messages show, by chat and id.
    sent: SentMessages<(String, String)>,
    /// What it wrote in channels, for bots on other nodes.
    echoes: SharedEchoes,
    words: Words,
    floods: Floods,
    moves: Moves,
    albums: Albums,
}

impl Telegram {
    /// The bot that `config` describes. Before it first calls Telegram, the process must have a
    /// TLS provider.
    pub fn new(config: Config, ports: Ports) -> Result<Arc<Self>> {
        check_id(&config)?;
        let health = HealthRecord::with_silence(SILENCE);
        Ok(Arc::new(Self {
            api: Api::new(config.api_url.as_deref(), &config.token)?,
            webhook_secret: verify::webhook_secret(&config.token),
            account: Account::new(NAME, &config.id, &config.name, health, &ports),
            ports,
            commands: BotCommands {
                own: config.commands.clone(),
                from_gateways: config.gateway_commands,
                rules: command_list::RULES,
            },
            config,
            me: OnceLock::new(),
            admission: OnceLock::new(),
            reading: Mutex::default(),
            settled: Mutex::default(),
            sent: SentMessages::new(REMEMBERED),
            echoes: SharedEchoes::default(),
            words: Words::default(),
            floods: Floods::default(),
            moves: Moves::default(),
            albums: Albums::default(),
        }))
    }
}

/// The id keys everything that is kept of a bot, so it has to be the token's.
fn check_id(config: &Config) -> Result<()> {
    // What stands before the colon is no secret: it is the id of the bot it is for.
    let id = config.token.expose().split_once(':').map(|(id, _)| id);
    if id == Some(&config.id) && manifest::is_person(&config.id) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the token of the telegram bot {} is not one of bot {}: a token begins with its bot's id and a colon; copy it \
         again from @BotFather, or correct `id`",
        config.name, config.id
    )))
}

/// As if another process had written everything.
#[cfg(test)]
pub(crate) fn forget_echoes() {
    sent_messages::echoes().clear();
}

/// The secret that Telegram posts with to the bot of a token.
#[cfg(test)]
pub(crate) fn webhook_secret_of(token: &str) -> String {
    verify::webhook_secret(&Secret::new(token)).expose().to_owned()
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
                commands: Vec::new(),
                gateway_commands: FromGateways::default(),
            };
            check_id(&config)
        };
        assert!(check("77", "77:secret").is_ok());
        for (id, token) in [
            ("78", "77:secret"),
            ("7", "77:secret"),
            ("077", "077:secret"),
            ("77", "secret"),
            ("x", "x:secret"),
            ("", ":s"),
        ] {
            let error = check(id, token).unwrap_err().to_string();
            assert!(error.contains("telegram bot main is not one of bot"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
