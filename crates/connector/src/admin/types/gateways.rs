//! Gateways.

use angelia_core::clock::UnixMillis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A gateway to be made.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateGateway {
    /// Whose it is; the default tenant's if not said.
    pub tenant: Option<String>,
    /// Its id; made up if not given.
    pub gateway_id: Option<String>,
    /// Where to poke it when it sleeps and something waits.
    pub wake_url: Option<String>,
    /// What people see it called.
    pub display_name: Option<String>,
}

/// Which of several gateways with one id, and what is to become of it.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeGateway {
    /// Its tenant, where ids collide.
    pub tenant: Option<String>,
    /// Empty to take it away.
    pub wake_url: Option<String>,
    /// Empty to take it away.
    pub display_name: Option<String>,
    /// The inbox it serves.
    pub instance: Option<String>,
}

/// Which of several gateways with one id, and what becomes of its old secrets.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateGateway {
    /// Its tenant, where ids collide.
    pub tenant: Option<String>,
    /// Void the old secrets at once and close the sockets that they opened.
    #[serde(default)]
    pub now: bool,
}

/// The one answer that shows a gateway's secret.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GatewaySecret {
    /// Its tenant.
    pub tenant: String,
    /// Its id.
    pub gateway_id: String,
    /// The secret; it is not shown again.
    pub secret: String,
    /// The lines an agent needs.
    pub env: Vec<String>,
}

/// Every gateway.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Gateways {
    /// By tenant and id.
    pub gateways: Vec<Gateway>,
}

/// A gateway.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Gateway {
    /// Its tenant.
    pub tenant: String,
    /// Its id.
    pub gateway_id: String,
    /// The inbox it serves.
    pub instance: String,
    /// Whether its socket is open.
    pub connected: bool,
    /// Whether it said that it goes idle.
    pub idle: bool,
    /// Whether it receives what no route assigns.
    pub default: bool,
    /// Where it is poked when it sleeps and something waits.
    pub wake_url: Option<String>,
    /// What people see it called.
    pub display_name: Option<String>,
    /// Who enrolled it; `null` for the operator.
    pub subject: Option<String>,
    /// The bots it says it answers for.
    pub fronts: Vec<Front>,
    /// When it was revoked.
    pub revoked_at: Option<UnixMillis>,
}

/// A bot that a gateway answers for.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Front {
    /// Its platform.
    pub platform: String,
    /// Its id there.
    pub bot: String,
}
