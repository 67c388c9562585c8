//! SMS through Twilio: one phone number, each person a chat.

mod address;
mod api;
mod check;
mod date;
mod descriptor;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod keyword;
mod link;
mod manifest;
mod normalize;
mod parse;
mod platform;
mod read_back;
mod receipt;
mod refusal;
mod segments;
mod send;
mod take;
pub mod verify;
mod webhook;

pub use descriptor::descriptor;
pub use manifest::MANIFEST;

use crate::kit::health::{HealthRecord, Silence};
use crate::kit::{Account, Position};
use angelia_core::error::{Error, Result};
use angelia_core::limit::LogThrottle;
use angelia_core::ports::{Ports, Under};
use angelia_core::secret::Secret;
use api::Api;
use link::Pace;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore, watch};

/// The platform's name on the wire.
pub const NAME: &str = "sms";

/// How old the last sign of Twilio's life may be: two looks at what was received, and a little.
const SILENCE: Silence = Silence {
    after: Duration::from_secs(11 * 60),
    provider: "Twilio",
    next: "see whether it can be reached from here",
};

/// A phone number at Twilio, as an operator configures it.
#[derive(Clone, Debug)]
pub struct Config {
    /// The number, `+` and digits.
    pub id: String,
    /// What the operator calls it; part of its webhook's path.
    pub name: String,
    /// The account it belongs to, `AC…`.
    pub account_sid: String,
    /// The account's auth token: signs webhooks, and opens the API.
    pub auth_token: Secret,
    /// A shared key that signs webhooks instead, with its id.
    pub signing_key: Option<(String, Secret)>,
    /// Another address than Twilio's: scheme, host and port.
    pub api_url: Option<String>,
}

/// One number at Twilio.
pub struct Sms {
    config: Config,
    account: Account,
    api: Api,
    ports: Ports,
    /// How often people are answered by the connector itself.
    pace: Pace,
    /// Where Twilio reaches this server; known once it listens.
    public_url: OnceLock<Arc<str>>,
    /// Whether Twilio refused that address for receipts.
    no_receipts: AtomicBool,
    /// How far messages were read; held while one is settled that reaches nobody.
    reading: Mutex<Option<(Option<Under>, Position)>>,
    /// Whether the list was looked at since the start.
    looked: watch::Sender<bool>,
    /// When somebody was told that another number's messages come here.
    elsewhere: parking_lot::Mutex<LogThrottle>,
    /// Room for receipts that are earlier than their messages.
    early: Arc<Semaphore>,
}

impl Sms {
    /// The number that `config` describes. Before it first calls Twilio, the process must have
    /// a TLS provider.
    pub fn new(config: Config, ports: Ports) -> Result<Arc<Self>> {
        check_config(&config)?;
        let health = HealthRecord::with_silence(SILENCE);
        Ok(Arc::new(Self {
            account: Account::new(NAME, &config.id, &config.name, health, &ports),
            api: Api::new(&config)?,
            ports,
            config,
            pace: Pace::default(),
            public_url: OnceLock::new(),
            no_receipts: AtomicBool::new(false),
            reading: Mutex::default(),
            looked: watch::Sender::new(false),
            elsewhere: parking_lot::Mutex::new(LogThrottle::hourly()),
            early: Arc::new(Semaphore::new(receipt::EARLY)),
        }))
    }
}

/// The id keys everything that is kept of a number, and the account stands in
/// every path at Twilio.
fn check_config(config: &Config) -> Result<()> {
    if !address::is_number(&config.id) {
        return Err(Error::invalid(format!(
            "the id of the sms bot {:?} must be its number with the country code and nothing else, such as +15550100",
            config.name
        )));
    }
    let account = &config.account_sid;
    if account.starts_with("AC") && parse::sid(Some(account)).is_some() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "account_sid of the sms bot {:?} is not one: it begins with AC and is shown in Twilio's console, Account Info",
        config.name
    )))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod config_tests {
    use super::*;

    #[test]
    fn the_id_is_a_number_and_the_account_is_named() {
        let check = |id: &str, account_sid: &str| {
            check_config(&Config {
                id: id.into(),
                name: "main".into(),
                account_sid: account_sid.into(),
                auth_token: Secret::new("hunter2"),
                signing_key: None,
                api_url: None,
            })
        };
        assert!(check("+15550100", "AC0123456789abcdef0123456789abcdef").is_ok());
        for (id, account) in [
            ("15550100", "AC1"),
            ("+1 555", "AC1"),
            ("+15550100", "SK1"),
            ("+15550100", "AC/../1"),
            ("+15550100", ""),
        ] {
            let error = check(id, account).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
