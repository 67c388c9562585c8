//! What lets gateways enrol by themselves: OAuth clients and enrolment tokens.

use super::Admin;
use super::router::answer;
use angelia_core::audit::Actor;
use angelia_core::clock;
use angelia_core::error::{Error, Result};
use angelia_core::identity::{MAX_ENROLL_TOKEN, check_name};
use angelia_core::secret::{Secret, fingerprint, random_hex};
use angelia_core::store::{AccessStore, Client, EnrollToken};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How long an enrolment token is good unless said otherwise: a coffee and a call.
const TOKEN_FOR: Duration = Duration::from_secs(3600);

/// A client to be made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateClient {
    tenant: String,
}

pub(super) async fn create(State(admin): State<Arc<Admin>>, Json(body): Json<CreateClient>) -> Response {
    let create = async {
        check_name("tenant", &body.tenant)?;
        let secret = Secret::mint();
        let client = Client {
            client_id: format!("client-{}", random_hex::<8>()),
            tenant: body.tenant,
            secret: fingerprint(secret.expose()),
            created_at: clock::wall(),
            revoked_at: None,
        };
        admin.ports.records.create_client(client.clone(), &Actor::operator()).await?;
        Ok(with_secret(&admin, &client, &secret))
    };
    answer(StatusCode::CREATED, create.await)
}

/// The one answer that shows a client's secret, with the lines an agent needs.
fn with_secret(admin: &Admin, client: &Client, secret: &Secret) -> Value {
    let token_url = format!("{}/oauth/token", admin.public_url);
    let env = [
        format!("GATEWAY_RELAY_URL={}", admin.public_url),
        format!("GATEWAY_RELAY_IDP_TOKEN_URL={token_url}"),
        format!("GATEWAY_RELAY_IDP_CLIENT_ID={}", client.client_id),
        format!("GATEWAY_RELAY_IDP_CLIENT_SECRET={}", secret.expose()),
    ];
    json!({
        "client_id": client.client_id,
        "client_secret": secret.expose(),
        "tenant": client.tenant,
        "token_url": token_url,
        "env": env,
    })
}

/// Whose clients.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Of {
    #[serde(default)]
    tenant: Option<String>,
}

pub(super) async fn list(State(admin): State<Arc<Admin>>, Query(of): Query<Of>) -> Response {
    let clients = admin.ports.records.clients().await.map(|mut clients| {
        clients.retain(|client| of.tenant.as_ref().is_none_or(|tenant| *tenant == client.tenant));
        json!({ "clients": clients })
    });
    answer(StatusCode::OK, clients)
}

pub(super) async fn rotate(State(admin): State<Arc<Admin>>, Path(id): Path<String>) -> Response {
    let rotate = admin.change(move |admin| async move {
        let secret = Secret::mint();
        let client =
            admin.ports.records.rotate_client(&id, fingerprint(secret.expose()), &Actor::operator()).await?;
        Ok(with_secret(&admin, &client, &secret))
    });
    answer(StatusCode::OK, rotate.await)
}

pub(super) async fn revoke(State(admin): State<Arc<Admin>>, Path(id): Path<String>) -> Response {
    // Whoever enrols looks at its client once more under the same lock.
    let revoke =
        |admin: Arc<Admin>| async move { admin.ports.records.revoke_client(&id, &Actor::operator()).await };
    answer(StatusCode::OK, admin.change(revoke).await)
}

/// An enrolment token to be made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MintToken {
    tenant: String,
    #[serde(default)]
    gateway: Option<String>,
    /// Seconds until it expires.
    #[serde(default)]
    expires_in: Option<u64>,
}

pub(super) async fn mint_token(State(admin): State<Arc<Admin>>, Json(body): Json<MintToken>) -> Response {
    let mint = async {
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
        Ok(json!({
            "token": token.expose(),
            "expires_at": expires_at,
            "tenant": body.tenant,
            "gateway": body.gateway,
            "replaces": replaces,
            "url": admin.public_url,
        }))
    };
    answer(StatusCode::CREATED, mint.await)
}

fn life(seconds: Option<u64>) -> Result<Duration> {
    let life = seconds.map_or(TOKEN_FOR, Duration::from_secs);
    if life.is_zero() || life > MAX_ENROLL_TOKEN {
        let days = MAX_ENROLL_TOKEN.as_secs() / 86_400;
        return Err(Error::invalid(format!("an enrolment token lives for a second to {days} days")));
    }
    Ok(life)
}
