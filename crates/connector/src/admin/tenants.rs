//! Tenants, as an operator makes, links and removes them.

use super::Admin;
use super::router::answer;
use crate::relay::Ending;
use angelia_core::audit::Actor;
use angelia_core::error::{Error, Result};
use angelia_core::identity::{MAX_NAME, check_name};
use angelia_core::store::{AccessStore, IdentityStore, TenantIdentity};
use angelia_platforms::webchat;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Longest issuer URL kept.
const MAX_ISSUER: usize = 512;

/// How long whoever removes a tenant waits until its data is deleted; the command gives up after 30 s.
const DELETED_WITHIN: Duration = Duration::from_secs(20);

/// A tenant to be made, and as whom an issuer knows it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateTenant {
    tenant: String,
    #[serde(default)]
    issuer: Option<String>,
    #[serde(default)]
    claim: Option<String>,
}

pub(super) async fn create(State(admin): State<Arc<Admin>>, Json(body): Json<CreateTenant>) -> Response {
    let create = admin.change(move |admin| async move {
        check_name("tenant", &body.tenant)?;
        let identity = first_identity(&admin, &body)?;
        admin.ports.records.create_tenant(&body.tenant, identity.clone(), &Actor::operator()).await?;
        let identities: Vec<TenantIdentity> = identity.into_iter().collect();
        Ok(json!({ "tenant": body.tenant, "identities": identities }))
    });
    answer(StatusCode::CREATED, create.await)
}

/// Where one external issuer is configured, a tenant is known to it by its
/// own name unless the operator says otherwise.
fn first_identity(admin: &Admin, body: &CreateTenant) -> Result<Option<TenantIdentity>> {
    let only = || match admin.bearers.issuers().as_slice() {
        [only] => Some((*only).to_owned()),
        _ => None,
    };
    let Some(issuer) = body.issuer.clone().or_else(only) else {
        return match &body.claim {
            None => Ok(None),
            Some(_) => Err(Error::invalid("say whose claim it is: --issuer URL")),
        };
    };
    let claim = body.claim.clone().unwrap_or_else(|| body.tenant.clone());
    identity(body.tenant.clone(), issuer, claim).map(Some)
}

fn identity(tenant: String, issuer: String, claim: String) -> Result<TenantIdentity> {
    let printable = |text: &str| !text.is_empty() && !text.chars().any(|c| c.is_control());
    if !printable(&issuer) || issuer.len() > MAX_ISSUER || issuer.contains(char::is_whitespace) {
        return Err(Error::invalid(format!(
            "{issuer:?} cannot be an issuer; give its URL as its tokens name it"
        )));
    }
    if !printable(&claim) || claim.len() > MAX_NAME {
        return Err(Error::invalid(format!("the claim must have 1 to {MAX_NAME} bytes")));
    }
    Ok(TenantIdentity { tenant, issuer, claim })
}

pub(super) async fn list(State(admin): State<Arc<Admin>>) -> Response {
    let list = async {
        let tenants = admin.ports.records.tenants().await?;
        let identities = admin.ports.records.tenant_identities().await?;
        Ok(json!({ "tenants": tenants, "identities": identities }))
    };
    answer(StatusCode::OK, list.await)
}

pub(super) async fn show(State(admin): State<Arc<Admin>>, Path(tenant): Path<String>) -> Response {
    let show = async {
        if !admin.ports.records.tenants().await?.contains(&tenant) {
            return Err(Error::not_found(format!("there is no tenant {tenant:?}")));
        }
        let known = admin.identities.now();
        let gateways = known.of_tenant(&tenant).len();
        let routes = known.routes().iter().filter(|route| route.tenant == tenant).count();
        let clients =
            admin.ports.records.clients().await?.iter().filter(|client| client.tenant == tenant).count();
        let inboxes = admin.ports.inboxes.inboxes().await?;
        let waiting: u64 =
            inboxes.iter().filter(|inbox| inbox.tenant == tenant).map(|inbox| inbox.waiting).sum();
        Ok(json!({
            "tenant": tenant, "gateways": gateways, "routes": routes, "clients": clients, "waiting": waiting,
        }))
    };
    answer(StatusCode::OK, show.await)
}

/// As whom an issuer knows a tenant.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    issuer: String,
    claim: String,
}

pub(super) async fn link(
    State(admin): State<Arc<Admin>>,
    Path(tenant): Path<String>,
    Json(body): Json<Link>,
) -> Response {
    let link = async {
        let identity = identity(tenant, body.issuer, body.claim)?;
        admin.ports.records.link_tenant(identity.clone(), &Actor::operator()).await?;
        Ok(json!({ "linked": identity }))
    };
    answer(StatusCode::OK, link.await)
}

pub(super) async fn unlink(
    State(admin): State<Arc<Admin>>,
    Path(tenant): Path<String>,
    Json(body): Json<Link>,
) -> Response {
    let unlink = admin.change(move |admin| async move {
        let identity = identity(tenant, body.issuer, body.claim)?;
        if !admin.ports.records.unlink_tenant(identity.clone(), &Actor::operator()).await? {
            return Err(Error::not_found(format!(
                "tenant {:?} is not known to {} as {:?}",
                identity.tenant, identity.issuer, identity.claim
            )));
        }
        Ok(json!({ "unlinked": identity }))
    });
    answer(StatusCode::OK, unlink.await)
}

/// Its name once more, so that a slip takes nothing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Remove {
    confirm: String,
}

pub(super) async fn remove(
    State(admin): State<Arc<Admin>>,
    Path(tenant): Path<String>,
    Json(body): Json<Remove>,
) -> Response {
    let remove = admin.change(move |admin| async move {
        if body.confirm != tenant {
            return Err(Error::invalid(format!("to remove tenant {tenant:?}, confirm with its name")));
        }
        let rooms = rooms_of(&admin, &tenant).await?;
        // The routes go first: nothing new may be admitted while the rows go.
        let gone = admin.identities.now().of_tenant(&tenant);
        let operator = Actor::operator();
        let removal = admin.ports.records.remove_tenant(&tenant, rooms.clone(), &operator);
        let removed = admin.identities.close_to(&tenant, removal).await?;
        for record in gone {
            admin.sessions.end(&record, Ending::Revoked);
            admin.sessions.forget(record.instance);
        }
        admin.hub.close(&rooms);
        tracing::info!(%tenant, "a tenant was removed");
        Ok(json!({
            "removed": tenant,
            "gateways": removed.gateways,
            "routes": removed.routes,
            "clients": removed.clients,
            "waiting": removed.waiting,
        }))
    });
    let mut removed = remove.await;
    if let Ok(removed) = &mut removed {
        removed["deleted"] = delete_the_rest(&admin).await.into();
    }
    answer(StatusCode::OK, removed)
}

/// Deletes what a removed tenant left, so that the disk has it back. What takes
/// longer, or fails, goes on in the upkeep.
async fn delete_the_rest(admin: &Admin) -> bool {
    match tokio::time::timeout(DELETED_WITHIN, admin.ports.upkeep.tend()).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::warn!(%error, "what a removed tenant left could not all be deleted yet");
            false
        }
        Err(_) => false,
    }
}

/// The web-chat rooms that belong to a tenant now, by their routes.
async fn rooms_of(admin: &Admin, tenant: &str) -> Result<Vec<String>> {
    let known = admin.identities.now();
    let routes = known.routes();
    let belongs = |room: &String| {
        let owner = routes.resolve(webchat::NAME, webchat::BOT, &[room.as_str(), "*"]);
        owner.is_some_and(|route| route.tenant == tenant)
    };
    Ok(admin.ports.lines.rooms().await?.into_iter().filter(belongs).collect())
}
