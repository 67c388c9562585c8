//! What lets gateways enrol by themselves: OAuth clients and enrolment tokens.

use super::Admin;
use super::types::Nothing;
use angelia_core::audit::Actor;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::error::{Error, Result};
use angelia_core::identity::{MAX_ENROLL_TOKEN, check_name};
use angelia_core::secret::{Secret, fingerprint, random_hex};
use angelia_core::store::{AccessStore, Client, EnrollToken};
use std::sync::Arc;
use std::time::Duration;

asked! {
    /// Whose clients.
    pub struct OfTenant {
        /// Only those of this tenant.
        pub tenant: Option<String>,
    }

    /// A client to be made.
    pub struct CreateClient {
        /// Whose it is.
        pub tenant: String,
    }

    /// An enrolment token to be made.
    pub struct MintToken {
        /// Whose gateway.
        pub tenant: String,
        /// The only gateway it is good for.
        pub gateway: Option<String>,
        /// Seconds until it expires.
        pub expires_in: Option<u64>,
    }
}

answered! {
    /// OAuth clients.
    pub struct Clients {
        /// Oldest first.
        pub clients: Vec<Client>,
    }

    /// The one answer that shows a client's secret.
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

    /// The one answer that shows an enrolment token.
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
}

/// How long an enrolment token is good unless said otherwise: a coffee and a call.
const TOKEN_FOR: Duration = Duration::from_secs(3600);

pub(super) async fn create(admin: Arc<Admin>, body: CreateClient) -> Result<ClientSecret> {
    check_name("tenant", &body.tenant)?;
    let secret = Secret::mint();
    let client = Client {
        client_id: format!("client-{}", random_hex::<8>()),
        tenant: body.tenant,
        secret_fingerprint: fingerprint(secret.expose()),
        created_at: clock::wall(),
        revoked_at: None,
    };
    admin.ports.records.create_client(client.clone(), &Actor::operator()).await?;
    Ok(with_secret(&admin, &client, &secret))
}

/// The one answer that shows a client's secret, with the lines an agent needs.
fn with_secret(admin: &Admin, client: &Client, secret: &Secret) -> ClientSecret {
    let token_url = format!("{}/oauth/token", admin.public_url);
    let env = [
        format!("GATEWAY_RELAY_URL={}", admin.public_url),
        format!("GATEWAY_RELAY_IDP_TOKEN_URL={token_url}"),
        format!("GATEWAY_RELAY_IDP_CLIENT_ID={}", client.client_id),
        format!("GATEWAY_RELAY_IDP_CLIENT_SECRET={}", secret.expose()),
    ];
    ClientSecret {
        client_id: client.client_id.clone(),
        client_secret: secret.expose().to_owned(),
        tenant: client.tenant.clone(),
        token_url,
        env: env.to_vec(),
    }
}

pub(super) async fn list(admin: Arc<Admin>, of: OfTenant) -> Result<Clients> {
    let mut clients = admin.ports.records.clients().await?;
    clients.retain(|client| of.tenant.as_ref().is_none_or(|tenant| *tenant == client.tenant));
    Ok(Clients { clients })
}

pub(super) async fn rotate(admin: Arc<Admin>, id: String, _: Nothing) -> Result<ClientSecret> {
    let secret = Secret::mint();
    let client =
        admin.ports.records.rotate_client(&id, fingerprint(secret.expose()), &Actor::operator()).await?;
    Ok(with_secret(&admin, &client, &secret))
}

/// Within a change: whoever enrols looks at its client once more under the same lock.
pub(super) async fn revoke(admin: Arc<Admin>, id: String, _: Nothing) -> Result<Client> {
    admin.ports.records.revoke_client(&id, &Actor::operator()).await
}

pub(super) async fn mint_token(admin: Arc<Admin>, body: MintToken) -> Result<MintedToken> {
    check_name("tenant", &body.tenant)?;
    if let Some(id) = &body.gateway {
        check_name("gateway id", id)?;
    }
    let token = Secret::mint();
    let expires_at = clock::wall().after(life(body.expires_in)?);
    let new = EnrollToken {
        fingerprint: fingerprint(token.expose()),
        tenant: body.tenant.clone(),
        gateway_id: body.gateway.clone(),
        expires_at,
    };
    let replaces = admin.ports.records.mint_enroll_token(new, &Actor::operator()).await?;
    Ok(MintedToken {
        token: token.expose().to_owned(),
        expires_at,
        tenant: body.tenant,
        gateway: body.gateway,
        replaces,
        url: admin.public_url.clone(),
    })
}

fn life(seconds: Option<u64>) -> Result<Duration> {
    let life = seconds.map_or(TOKEN_FOR, Duration::from_secs);
    if life.is_zero() || life > MAX_ENROLL_TOKEN {
        let days = MAX_ENROLL_TOKEN.as_secs() / 86_400;
        return Err(Error::invalid(format!("an enrolment token lives for a second to {days} days")));
    }
    Ok(life)
}
