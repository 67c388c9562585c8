//! Tenants and routes, as an operator makes them.

use super::admin::{answer, failure};
use crate::server::{DEFAULT_TENANT, Server};
use angelia_core::admission::{Allow, Place, Route};
use angelia_core::error::{Error, Result};
use angelia_core::identity::{GatewayRecord, check_name};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateTenant {
    tenant: String,
}

pub(super) async fn create_tenant(
    State(server): State<Arc<Server>>,
    Json(body): Json<CreateTenant>,
) -> Response {
    let create = async {
        check_name("tenant", &body.tenant)?;
        server.store.create_tenant(&body.tenant).await?;
        Ok(json!({ "tenant": body.tenant }))
    };
    answer(StatusCode::CREATED, create.await)
}

pub(super) async fn list_tenants(State(server): State<Arc<Server>>) -> Response {
    let tenants = server.store.tenants().await;
    answer(StatusCode::OK, tenants.map(|tenants| json!({ "tenants": tenants })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddRoute {
    place: String,
    tenant: String,
    #[serde(default)]
    gateway: Option<String>,
    #[serde(default)]
    allow: Option<Vec<String>>,
    #[serde(default)]
    free: bool,
}

pub(super) async fn add_route(State(server): State<Arc<Server>>, Json(body): Json<AddRoute>) -> Response {
    let add = async {
        let _turn = server.changing.lock().await;
        check_name("tenant", &body.tenant)?;
        let place: Place = body.place.parse()?;
        let allow = match body.allow {
            Some(people) if people == ["any"] => Allow::Any,
            Some(people) if !people.is_empty() => Allow::People(people),
            _ => {
                return Err(Error::invalid(format!(
                    "say who may speak in {place}: --allow ID,… for some people, --allow any for everybody there"
                )));
            }
        };
        let route = route(&server, place, Some(&body.tenant), body.gateway.as_deref(), allow, body.free)?;
        let shown = show(&server, &route);
        store_route(&server, route).await?;
        Ok(shown)
    };
    answer(StatusCode::CREATED, add.await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveRoute {
    place: String,
}

pub(super) async fn remove_route(
    State(server): State<Arc<Server>>,
    Json(body): Json<RemoveRoute>,
) -> Response {
    let remove = async {
        let _turn = server.changing.lock().await;
        let place: Place = body.place.parse()?;
        if !server.store.remove_route(&place, None).await? {
            return Err(Error::not_found(format!("{place} has no route")));
        }
        server.roster.set_routes(server.store.routes().await?);
        Ok(json!({ "removed": place.to_string() }))
    };
    answer(StatusCode::OK, remove.await)
}

pub(super) async fn list_routes(State(server): State<Arc<Server>>) -> Response {
    match server.store.routes().await {
        Ok(routes) => {
            let routes: Vec<Value> = routes.iter().map(|route| show(&server, route)).collect();
            answer(StatusCode::OK, Ok(json!({ "routes": routes })))
        }
        Err(error) => failure(&error),
    }
}

/// The one gateway with this id, within `tenant` where that is given.
pub(super) fn gateway(server: &Server, tenant: Option<&str>, id: &str) -> Result<Arc<GatewayRecord>> {
    let mut records = server.roster.gateways(id);
    records.retain(|record| tenant.is_none_or(|tenant| tenant == record.tenant));
    match records.as_slice() {
        [] => Err(Error::not_found(format!("there is no gateway {id:?}"))),
        [record] => Ok(record.clone()),
        _ => Err(Error::conflict(format!("several tenants have a gateway {id:?}; add --tenant"))),
    }
}

/// A route to a tenant, or to one of its gateways.
pub(super) fn route(
    server: &Server,
    place: Place,
    tenant: Option<&str>,
    gateway_id: Option<&str>,
    allow: Allow,
    free: bool,
) -> Result<Route> {
    let record = gateway_id.map(|id| gateway(server, tenant, id)).transpose()?;
    let owner = record.as_ref().map(|record| record.tenant.as_str()).or(tenant);
    Ok(Route {
        place,
        bot: None,
        tenant: owner.unwrap_or(DEFAULT_TENANT).to_owned(),
        instance: record.map(|record| record.instance),
        allow,
        free,
    })
}

/// Makes a route durable and lets it count from now on.
pub(super) async fn store_route(server: &Server, route: Route) -> Result<()> {
    server.store.add_route(route).await?;
    server.roster.set_routes(server.store.routes().await?);
    Ok(())
}

fn show(server: &Server, route: &Route) -> Value {
    let gateway = route.instance.and_then(|instance| server.roster.serving(instance));
    let allow = match &route.allow {
        Allow::Any => vec!["any"],
        Allow::People(people) => people.iter().map(String::as_str).collect(),
    };
    json!({
        "place": route.place.to_string(),
        "tenant": route.tenant,
        "gateway": gateway.map(|record| record.gateway_id.clone()),
        "allow": allow,
        "free": route.free,
    })
}
