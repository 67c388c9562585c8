//! Gateways, from their making to their revocation.

use super::admin::answer;
use super::identity::gateway;
use super::roster::bound_to;
use crate::server::{DEFAULT_TENANT, Server};
use angelia_core::clock;
use angelia_core::error::Error;
use angelia_core::identity::{GatewayRecord, ROTATION_WINDOW, check_name};
use angelia_core::secret::{Secret, random_hex};
use angelia_core::store::NewGateway;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    #[serde(default)]
    tenant: Option<String>,
    #[serde(default)]
    gateway_id: Option<String>,
    #[serde(default)]
    wake_url: Option<String>,
}

pub(super) async fn create(State(server): State<Arc<Server>>, Json(body): Json<Create>) -> Response {
    let create = async {
        let _turn = server.changing.lock().await;
        let tenant = body.tenant.unwrap_or_else(|| DEFAULT_TENANT.into());
        let gateway_id = body.gateway_id.unwrap_or_else(|| format!("gw-{}", random_hex::<4>()));
        check_name("tenant", &tenant)?;
        check_name("gateway id", &gateway_id)?;
        let secret = Secret::mint();
        let sealed_secret = server.options.master_key.seal(&secret, &bound_to(&tenant, &gateway_id))?;
        let new = NewGateway { tenant, gateway_id, sealed_secret, wake_url: body.wake_url };
        let stored = server.store.create_gateway(new).await?;
        let record = server.roster.put(stored, &server.options.master_key)?;
        Ok(with_secret(&server, &record, &secret))
    };
    answer(StatusCode::CREATED, create.await)
}

pub(super) async fn list(State(server): State<Arc<Server>>) -> Response {
    let gateways: Vec<Value> = server.roster.all().iter().map(|record| describe(&server, record)).collect();
    answer(StatusCode::OK, Ok(json!({ "gateways": gateways })))
}

/// Which of several gateways with one id, and what is to become of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    #[serde(default)]
    tenant: Option<String>,
    #[serde(default)]
    wake_url: Option<String>,
}

pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Json(body): Json<Change>,
) -> Response {
    let found = gateway(&server, body.tenant.as_deref(), &id);
    answer(StatusCode::OK, found.map(|record| describe(&server, &record)))
}

pub(super) async fn set(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Json(body): Json<Change>,
) -> Response {
    let set = async {
        let _turn = server.changing.lock().await;
        let record = gateway(&server, body.tenant.as_deref(), &id)?;
        let url = body.wake_url.ok_or_else(|| Error::invalid("say what to set: --wake-url URL"))?;
        let url = Some(url).filter(|url| !url.is_empty());
        let stored = server.store.set_wake_url(&record.tenant, &record.gateway_id, url).await?;
        let record = server.roster.put(stored, &server.options.master_key)?;
        server.wake.start_over(record.instance);
        Ok(describe(&server, &record))
    };
    answer(StatusCode::OK, set.await)
}

pub(super) async fn make_default(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Json(body): Json<Change>,
) -> Response {
    let make = async {
        let _turn = server.changing.lock().await;
        let record = gateway(&server, body.tenant.as_deref(), &id)?;
        server.store.set_default_instance(&record.tenant, record.instance).await?;
        server.roster.set_default(record.tenant.clone(), record.instance);
        Ok(describe(&server, &record))
    };
    answer(StatusCode::OK, make.await)
}

pub(super) async fn rotate(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Json(body): Json<Change>,
) -> Response {
    let rotate = async {
        let _turn = server.changing.lock().await;
        let record = gateway(&server, body.tenant.as_deref(), &id)?;
        if record.revoked_at.is_some() {
            return Err(Error::conflict(format!("gateway {id:?} is revoked; make a new one")));
        }
        let secret = Secret::mint();
        let bound_to = bound_to(&record.tenant, &record.gateway_id);
        let sealed = server.options.master_key.seal(&secret, &bound_to)?;
        let old_until = clock::wall().after(ROTATION_WINDOW);
        let stored =
            server.store.rotate_gateway(&record.tenant, &record.gateway_id, sealed, old_until).await?;
        let record = server.roster.put(stored, &server.options.master_key)?;
        Ok(with_secret(&server, &record, &secret))
    };
    answer(StatusCode::OK, rotate.await)
}

pub(super) async fn revoke(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Json(body): Json<Change>,
) -> Response {
    let revoke = async {
        let _turn = server.changing.lock().await;
        let record = gateway(&server, body.tenant.as_deref(), &id)?;
        let stored = server.store.revoke_gateway(&record.tenant, &record.gateway_id).await?;
        let record = server.roster.put(stored, &server.options.master_key)?;
        server.registry.revoke(record.instance);
        tracing::info!(tenant = %record.tenant, gateway = %record.gateway_id, "a gateway was revoked");
        Ok(describe(&server, &record))
    };
    answer(StatusCode::OK, revoke.await)
}

fn describe(server: &Server, record: &GatewayRecord) -> Value {
    json!({
        "tenant": record.tenant,
        "gateway_id": record.gateway_id,
        "instance": record.instance_name,
        "connected": server.registry.is_live(record.instance),
        "idle": server.registry.standing(record.instance).idle,
        "default": server.roster.is_default(&record.tenant, record.instance),
        "wake_url": record.wake_url,
        "revoked_at": record.revoked_at,
    })
}

/// The one answer that shows a secret, with the lines an agent needs.
fn with_secret(server: &Server, record: &GatewayRecord, secret: &Secret) -> Value {
    let env = [
        format!("GATEWAY_RELAY_URL={}", server.options.public_url),
        format!("GATEWAY_RELAY_ID={}", record.gateway_id),
        format!("GATEWAY_RELAY_SECRET={}", secret.expose()),
    ];
    json!({
        "tenant": record.tenant,
        "gateway_id": record.gateway_id,
        "secret": secret.expose(),
        "env": env,
    })
}
