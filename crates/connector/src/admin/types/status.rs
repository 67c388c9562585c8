//! How the server is doing.

use super::Clock;
use angelia_core::space::Report;
use angelia_core::store::ActionTrace;
use angelia_platforms::BotState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the server is doing.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Status {
    /// Tenants that use much of the memory they may.
    pub memory: Vec<Heavy>,
    /// Answers that may or may not have been sent; repeating them could double them.
    pub ambiguous: Vec<ActionTrace>,
    /// Bots that do not hear at the moment.
    pub bots: Vec<UnwellBot>,
    /// Their gateways may not come in: what was sealed for them does not open.
    pub damaged: Vec<DamagedGateway>,
    /// A leap that nobody has confirmed: nothing is dropped for its age meanwhile.
    pub clock: Clock,
    /// What a check of the database found after a server that did not end by itself.
    pub database_damage: Option<String>,
    /// How the disk is doing.
    pub disk: Report,
    /// Whether messages are taken in.
    pub ready: bool,
    /// Sockets open.
    pub sockets: u64,
    /// Entries written to sockets since the start.
    pub pushed: u64,
    /// Entries settled since the start.
    pub settled: u64,
    /// Every gateway.
    pub gateways: Vec<GatewayStatus>,
    /// Tenants whose messages wait for their first gateway.
    pub awaiting_first: Vec<AwaitingFirst>,
}

/// A tenant that uses much of the memory it may.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Heavy {
    /// Its name.
    pub tenant: String,
    /// What it holds, in bytes.
    pub held: u64,
    /// What it may hold.
    pub of: u64,
}

/// A bot that does not hear.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UnwellBot {
    /// Its platform.
    pub platform: String,
    /// Its name here.
    pub name: String,
    /// How it is.
    pub state: BotState,
    /// What is wrong, and what to do about it.
    pub why: Option<String>,
}

/// A gateway that may not come in.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DamagedGateway {
    /// Its tenant.
    pub tenant: String,
    /// Its id.
    pub gateway_id: String,
    /// What of it does not open.
    pub kind: String,
    /// Why.
    pub error: String,
}

/// How a gateway is doing.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GatewayStatus {
    /// Its tenant.
    pub tenant: String,
    /// Its id.
    pub gateway_id: String,
    /// Whether its socket is open.
    pub connected: bool,
    /// Whether it said that it goes idle.
    pub idle: bool,
    /// It says hello for these platforms, and nothing here could bring it anything from them.
    pub not_served: Vec<String>,
    /// What is known of its habit of acknowledging.
    pub acknowledges: String,
    /// Entries that wait for it.
    pub waiting: u64,
    /// Its dead letters.
    pub dead: u64,
    /// Messages that it lost to the quota.
    pub lost: u64,
}

/// A tenant whose messages wait for its first gateway.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AwaitingFirst {
    /// Its name.
    pub tenant: String,
    /// How many wait.
    pub waiting: u64,
    /// How many were lost to the quota.
    pub lost: u64,
}
