//! Tenants, and what lets their gateways enrol: clients and tokens.

use angelia_core::clock::UnixMillis;
use angelia_core::store::{Client, TenantBelongings, TenantIdentity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A tenant to be made, and as whom an issuer knows it.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTenant {
    /// Its name.
    pub tenant: String,
    /// Whose claim proves it.
    pub issuer: Option<String>,
    /// What the issuer calls it.
    pub claim: Option<String>,
}

/// A tenant that was made.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CreatedTenant {
    /// Its name.
    pub tenant: String,
    /// As whom issuers know it.
    pub identities: Vec<TenantIdentity>,
}

/// Every tenant.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tenants {
    /// Their names.
    pub tenants: Vec<String>,
    /// As whom issuers know them.
    pub identities: Vec<TenantIdentity>,
}

/// What belongs to a tenant, in numbers.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TenantCounts {
    /// Its name.
    pub tenant: String,
    /// What belongs to it.
    #[serde(flatten)]
    pub has: TenantBelongings,
}

/// As whom an issuer knows a tenant.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The issuer, as its tokens name it.
    pub issuer: String,
    /// What it calls the tenant.
    pub claim: String,
}

/// What proves a tenant from now on.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Linked {
    /// As whom the issuer knows it.
    pub linked: TenantIdentity,
}

/// What does not prove a tenant any more.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Unlinked {
    /// As whom the issuer knew it.
    pub unlinked: TenantIdentity,
}

/// Its name once more, so that a slip takes nothing.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveTenant {
    /// The tenant's name.
    pub confirm: String,
}

/// A tenant that is gone, and what went with it.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RemovedTenant {
    /// Its name.
    pub removed: String,
    /// What went with it.
    #[serde(flatten)]
    pub has: TenantBelongings,
    /// Whether the disk has its space back; else it is still being deleted.
    pub deleted: bool,
}

/// Whose clients.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OfTenant {
    /// Only those of this tenant.
    pub tenant: Option<String>,
}

/// OAuth clients.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Clients {
    /// Oldest first.
    pub clients: Vec<Client>,
}

/// A client to be made.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateClient {
    /// Whose it is.
    pub tenant: String,
}

/// The one answer that shows a client's secret.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClientSecret {
    /// Its id.
    pub client_id: String,
    /// The secret; it is not shown again.
    pub client_secret: String,
    /// The tenant it proves.
    pub tenant: String,
    /// Where it gets its tokens.
    pub token_url: String,
    /// The lines an agent needs.
    pub env: Vec<String>,
}

/// An enrolment token to be made.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MintToken {
    /// Whose gateway.
    pub tenant: String,
    /// The only gateway it is good for.
    pub gateway: Option<String>,
    /// Seconds until it expires.
    pub expires_in: Option<u64>,
}

/// The one answer that shows an enrolment token.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MintedToken {
    /// The token; it is not shown again.
    pub token: String,
    /// Until when it is good.
    pub expires_at: UnixMillis,
    /// Whose gateway.
    pub tenant: String,
    /// The only gateway it is good for.
    pub gateway: Option<String>,
    /// Whether that gateway exists, and gets a new secret.
    pub replaces: bool,
    /// Where the agent finds the server.
    pub url: String,
}
