//! WeCom: one app of one company, each of its members a chat.
//!
//! People write to the app, and WeCom posts what they write here, signed and
//! encrypted; answers go out through its API. There are no groups, no threads
//! and no edits.

mod address;
mod api;
mod check;
pub mod crypto;
mod descriptor;
#[cfg(test)]
mod files_tests;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod manifest;
mod normalize;
mod platform;
mod send;
mod take;
pub mod verify;
mod watch;
mod webhook;
mod xml;

pub use descriptor::descriptor;
pub use manifest::MANIFEST;

use crate::kit::health::HealthRecord;
use crate::kit::{AccessToken, Account, Client};
use angelia_core::error::{Error, Result};
use angelia_core::limit::{GcraOf, LogThrottle};
use angelia_core::ports::Ports;
use angelia_core::secret::Secret;
use crypto::Key;
use std::sync::Arc;
use verify::Keys;

/// The platform's name on the wire.
pub const NAME: &str = "wecom";

/// A WeCom app, as an operator configures it.
#[derive(Clone, Debug)]
pub struct Config {
    /// The company, `ww…`.
    pub corp_id: String,
    /// The app's number in it.
    pub agent_id: String,
    /// What the operator calls it; part of its webhook's path, and of places.
    pub name: String,
    /// The app's secret, which fetches access tokens.
    pub secret: Secret,
    /// The token that signs callbacks.
    pub callback_token: Secret,
    /// The key that encrypts callbacks, 43 characters.
    pub encoding_aes_key: Secret,
    /// Another address than WeCom's: scheme, host and port.
    pub api_url: Option<String>,
}

/// People remembered as told something by the connector.
const MAX_TOLD: usize = 20_000;

/// One app on WeCom.
pub struct Wecom {
    config: Config,
    agent: u64,
    account: Account,
    keys: Keys,
    client: Client,
    token: AccessToken,
    /// When somebody was told that signatures are not of our time.
    stale: parking_lot::Mutex<LogThrottle>,
    /// Who was told something by the connector.
    told: parking_lot::Mutex<GcraOf<String>>,
}

impl Wecom {
    /// The app that `config` describes. Before it first calls WeCom, the process must have a
    /// TLS provider.
    pub fn new(config: Config, ports: Ports) -> Result<Arc<Self>> {
        let (agent, key) = checked(&config)?;
        // Company and app, with a `/` between.
        let id = format!("{}/{}", config.corp_id, config.agent_id);
        Ok(Arc::new(Self {
            account: Account::new(NAME, &id, &config.name, HealthRecord::default(), &ports),
            client: Client::new(&api::WECOM, config.api_url.as_deref())?,
            token: AccessToken::default(),
            keys: Keys { token: config.callback_token.clone(), key, corp_id: config.corp_id.clone() },
            stale: parking_lot::Mutex::new(LogThrottle::hourly()),
            told: parking_lot::Mutex::new(GcraOf::new(MAX_TOLD)),
            agent,
            config,
        }))
    }
}

/// The app's number and its key, if they can be such.
fn checked(config: &Config) -> Result<(u64, Key)> {
    let wrong = |what: &str| Error::invalid(format!("{what} of the wecom app {:?}", config.name));
    if !manifest::is_company(&config.corp_id) {
        return Err(wrong(
            "the id must begin with the company's (My Company, Company ID), which looks like ww1a2b3c",
        ));
    }
    let agent = manifest::app_number(&config.agent_id)
        .ok_or_else(|| wrong("the id must end with the app's AgentId, which is a number,"))?;
    let key = Key::parse(config.encoding_aes_key.expose()).ok_or_else(|| {
        wrong("encoding_aes_key must be the 43 letters and digits that the app's page shows under Receive Messages, EncodingAESKey,")
    })?;
    Ok((agent, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_is_configured_right_or_told_how() {
        let with = |corp: &str, agent: &str, key: &str| {
            let config = Config {
                corp_id: corp.into(),
                agent_id: agent.into(),
                name: "main".into(),
                secret: Secret::new("hunter2"),
                callback_token: Secret::new("hunter2"),
                encoding_aes_key: Secret::new(key),
                api_url: None,
            };
            checked(&config).map(|(agent, _)| agent)
        };
        let key = "hunter2hunter2hunter2hunter2hunter2hunter2h";
        assert_eq!(with("ww1a", "1000002", key).unwrap(), 1_000_002);
        assert!(with("wpAb_c-D", "1", key).is_ok(), "as service providers see companies");
        for (corp, agent, key) in [
            ("", "1", key),
            ("ww/1", "1", key),
            (&"w".repeat(65), "1", key),
            ("ww1", "", key),
            ("ww1", "01", key),
            ("ww1", "app", key),
            ("ww1", "1", "hunter2"),
        ] {
            let told = with(corp, agent, key).unwrap_err().to_string();
            assert!(told.contains("\"main\"") && !told.contains("hunter2"), "{told}");
        }
    }
}
