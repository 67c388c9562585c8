//! The admin API: the operator's hands, on `admin_listen` only.
//!
//! The command line uses the same routes, through the socket while a server
//! runs and in its own process when none does.

use super::{gateways, identity};
use crate::server::Server;
use crate::telemetry::Counter;
use angelia_core::admission::{Allow, Place};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::identity::check_name;
use angelia_core::inbox::{InstanceId, Seq};
use angelia_core::secret::{Secret, fingerprint};
use angelia_core::store::Person;
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// Entries in one listing.
const PAGE: usize = 1_000;

/// The admin routes.
pub fn router(server: Arc<Server>) -> Router {
    let guarded = Router::new()
        .route("/admin/status", get(status))
        .route("/admin/tenants", get(identity::list_tenants).post(identity::create_tenant))
        .route("/admin/routes", get(identity::list_routes).post(identity::add_route))
        .route("/admin/routes/remove", post(identity::remove_route))
        .route("/admin/gateways", get(gateways::list).post(gateways::create))
        .route("/admin/gateways/{id}/show", post(gateways::show))
        .route("/admin/gateways/{id}/set", post(gateways::set))
        .route("/admin/gateways/{id}/default", post(gateways::make_default))
        .route("/admin/gateways/{id}/rotate", post(gateways::rotate))
        .route("/admin/gateways/{id}/revoke", post(gateways::revoke))
        .route("/admin/inbox", get(list_inboxes))
        .route("/admin/inbox/entries", get(list_entries))
        .route("/admin/inbox/redrive", post(redrive))
        .route("/admin/inbox/purge", post(purge))
        .route("/admin/explain/{message}", get(explain))
        .route("/admin/webchat/invites", post(invite))
        .layer(middleware::from_fn_with_state(server.clone(), authenticate));
    Router::new().route("/metrics", get(metrics)).merge(guarded).with_state(server)
}

async fn authenticate(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = header.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    if server.options.admin_token.matches(token) {
        return next.run(request).await;
    }
    failure(&Error::new(
        Kind::Unauthorized,
        "wrong admin token; it is in the data directory, file admin-token",
    ))
}

async fn metrics(State(server): State<Arc<Server>>) -> Response {
    let text = server.metrics.render(server.registry.open(), server.store.healthy());
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

/// What `angelia status` shows.
async fn status(State(server): State<Arc<Server>>) -> Response {
    let status = async {
        let inboxes = server.store.inboxes().await?;
        let gateways: Vec<Value> = server
            .roster
            .all()
            .iter()
            .map(|record| {
                let inbox = inboxes.iter().find(|inbox| inbox.instance == record.instance);
                json!({
                    "tenant": record.tenant,
                    "gateway_id": record.gateway_id,
                    "connected": server.registry.is_live(record.instance),
                    "idle": server.registry.standing(record.instance).idle,
                    "acknowledges": server.registry.standing(record.instance).habit.as_str(),
                    "waiting": inbox.map_or(0, |inbox| inbox.waiting),
                    "dead": inbox.map_or(0, |inbox| inbox.dead),
                    "lost": inbox.map_or(0, |inbox| inbox.gaps.iter().map(|gap| gap.lost).sum::<u64>()),
                })
            })
            .collect();
        Ok(json!({
            "ready": server.store.healthy() && !server.is_stopping(),
            "sockets": server.registry.open(),
            "pushed": server.metrics.get(Counter::Pushed),
            "settled": server.metrics.get(Counter::Settled),
            "gateways": gateways,
        }))
    };
    answer(StatusCode::OK, status.await)
}

/// Which inbox, and which of its entries.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Selection {
    #[serde(default)]
    tenant: Option<String>,
    #[serde(default)]
    gateway: Option<String>,
    #[serde(default)]
    entry: Option<String>,
    #[serde(default)]
    dead: bool,
}

impl Selection {
    /// The instance of the named gateway; `None` if none is named.
    fn instance(&self, server: &Server) -> Result<Option<InstanceId>> {
        let record = |gateway| identity::gateway(server, self.tenant.as_deref(), gateway);
        self.gateway.as_deref().map(record).transpose().map(|found| found.map(|record| record.instance))
    }

    fn seq(&self) -> Result<Option<Seq>> {
        let Some(text) = &self.entry else { return Ok(None) };
        let seq = Seq::from_buffer_id(text);
        seq.map(Some).ok_or_else(|| Error::invalid(format!("{text:?} is not an entry; they look like b123")))
    }
}

async fn list_inboxes(State(server): State<Arc<Server>>, Query(selection): Query<Selection>) -> Response {
    let list = async {
        let wanted = selection.instance(&server)?;
        let mut inboxes = server.store.inboxes().await?;
        inboxes.retain(|inbox| wanted.is_none_or(|instance| instance == inbox.instance));
        Ok(json!({ "inboxes": inboxes }))
    };
    answer(StatusCode::OK, list.await)
}

async fn list_entries(State(server): State<Arc<Server>>, Query(selection): Query<Selection>) -> Response {
    let list = async {
        let instance = selection.instance(&server)?;
        let mut entries = server.store.entries(instance, selection.dead, PAGE).await?;
        if let Some(seq) = selection.seq()? {
            entries.retain(|entry| entry.seq == seq);
        }
        Ok(json!({ "entries": entries }))
    };
    answer(StatusCode::OK, list.await)
}

async fn redrive(State(server): State<Arc<Server>>, Json(selection): Json<Selection>) -> Response {
    let redrive = async {
        let count = server.store.redrive(selection.instance(&server)?, selection.seq()?).await?;
        Ok(json!({ "redriven": count }))
    };
    answer(StatusCode::OK, redrive.await)
}

async fn purge(State(server): State<Arc<Server>>, Json(selection): Json<Selection>) -> Response {
    let purge = async {
        let count = server.store.purge(selection.instance(&server)?, selection.seq()?).await?;
        Ok(json!({ "purged": count }))
    };
    answer(StatusCode::OK, purge.await)
}

async fn explain(State(server): State<Arc<Server>>, Path(message): Path<String>) -> Response {
    let explain = async {
        let messages = server.store.explain(&message).await?;
        let actions = server.store.explain_action(&message).await?;
        if messages.is_empty() && actions.is_empty() {
            return Err(Error::not_found(format!(
                "nothing is known of message {message:?}; the journal goes back 72 hours"
            )));
        }
        Ok(json!({ "messages": messages, "actions": actions }))
    };
    answer(StatusCode::OK, explain.await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Invite {
    room: String,
    user: String,
    #[serde(default)]
    gateway: Option<String>,
    #[serde(default)]
    tenant: Option<String>,
}

async fn invite(State(server): State<Arc<Server>>, Json(invite): Json<Invite>) -> Response {
    let invite = async {
        check_name("room", &invite.room)?;
        check_name("user", &invite.user)?;
        let place: Place = format!("webchat:{}", invite.room).parse()?;
        let turn = server.changing.lock().await;
        assign_room(&server, place, &invite).await?;
        drop(turn);
        let key = Secret::mint();
        let person = Person { room: invite.room.clone(), user: invite.user.clone() };
        server.store.invite(person, fingerprint(key.expose())).await?;
        let url =
            format!("{}/chat/api/rooms/{}", server.options.public_url.trim_end_matches('/'), invite.room);
        Ok(json!({ "room": invite.room, "user": invite.user, "key": key.expose(), "url": url }))
    };
    answer(StatusCode::CREATED, invite.await)
}

/// Gives a room to the gateway or tenant named in its invitation.
async fn assign_room(server: &Server, place: Place, invite: &Invite) -> Result<()> {
    if invite.gateway.is_none() && invite.tenant.is_none() {
        return Ok(());
    }
    let tenant = invite.tenant.as_deref();
    let route = identity::route(server, place, tenant, invite.gateway.as_deref(), Allow::Any, true)?;
    let existing = server.roster.routes().iter().find(|known| known.place == route.place).cloned();
    match existing {
        Some(known) if known == route => Ok(()),
        Some(_) => Err(Error::conflict(format!("room {:?} already belongs to another gateway", invite.room))),
        None => identity::store_route(server, route).await,
    }
}

pub(super) fn answer<T: Serialize>(status: StatusCode, result: Result<T>) -> Response {
    match result {
        Ok(body) => (status, Json(body)).into_response(),
        Err(error) => failure(&error),
    }
}

pub(super) fn failure(error: &Error) -> Response {
    let status =
        StatusCode::from_u16(error.kind().http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(json!({ "error": error.to_string() }))).into_response()
}
