//! Bots, and what they could not read.

use angelia_core::store::{Missed, Quarantined};
use angelia_platforms::Health;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every bot.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Bots {
    /// In the order they are configured.
    pub bots: Vec<Bot>,
}

/// A bot, and how it is.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Bot {
    /// Its platform.
    pub platform: String,
    /// Its id there.
    pub id: String,
    /// Its name here.
    pub name: String,
    /// How it is; the web chat has nobody to listen to.
    pub health: Option<Health>,
    /// Updates that it could not read.
    pub quarantined: u64,
    /// The newest stretches that it could not read.
    pub missed: Vec<Missed>,
    /// Routes that lead to it.
    pub routes: u64,
}

/// Whose quarantine.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OfBot {
    /// Only of this bot: its name, its id, or `platform:id`.
    pub bot: Option<String>,
}

/// What bots could not read, without what is in it.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Quarantine {
    /// Newest first.
    pub quarantine: Vec<Quarantined>,
}

/// Something that could not be read, as the provider sent it.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OpenedUpdate {
    /// What is known of it.
    #[serde(flatten)]
    pub update: Quarantined,
    /// What was sent.
    pub raw: String,
}

/// What was thrown away.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Purged {
    /// How many.
    pub purged: u64,
}
