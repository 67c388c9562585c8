//! Letting people into the web chat.

use super::Admin;
use super::router::answer;
use super::routes;
use angelia_core::admission::{Allow, Place, Route};
use angelia_core::audit::Actor;
use angelia_core::error::{Error, Result};
use angelia_core::secret::fingerprint;
use angelia_core::store::{Person, RoomStore};
use angelia_platforms::{PLACES, webchat};
use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Somebody to be let in. Without a room it is a private chat with the agent.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Invite {
    user: String,
    #[serde(default)]
    room: Option<String>,
    #[serde(default)]
    gateway: Option<String>,
    #[serde(default)]
    tenant: Option<String>,
}

pub(super) async fn invite(State(admin): State<Arc<Admin>>, Json(invite): Json<Invite>) -> Response {
    let invite = async {
        let room = invite.room.clone().unwrap_or_else(|| webchat::private_room(&invite.user));
        webchat::check_invitation(&room, &invite.user)?;
        let place = webchat::place(&room)?;
        let mut route = None;
        if invite.gateway.is_some() || invite.tenant.is_some() {
            let (gateway, tenant) = (invite.gateway.clone(), invite.tenant.clone());
            let assign =
                admin.change(move |admin| async move { assign_room(&admin, place, gateway, tenant).await });
            route = Some(assign.await?);
        }
        let key = webchat::mint_key();
        let person = Person { room: room.clone(), user: invite.user.clone() };
        admin.ports.records.invite(person, fingerprint(key.expose()), &Actor::operator()).await?;
        let public = &admin.public_url;
        let mut made = json!({
            "room": room,
            "user": invite.user,
            "key": key.expose(),
            // Behind the number sign: browsers keep that to themselves, so no log on the way has it.
            "link": format!("{public}/chat#{}", key.expose()),
            "url": format!("{public}/chat/api/rooms/{room}"),
        });
        if let Some(route) = route {
            // Who may speak there is not only whoever was invited now.
            made["route"] = routes::show(&admin, &route);
        }
        Ok(made)
    };
    answer(StatusCode::CREATED, invite.await)
}

/// Which room's people.
#[derive(Deserialize)]
pub(super) struct Of {
    #[serde(default)]
    room: Option<String>,
}

pub(super) async fn people(State(admin): State<Arc<Admin>>, Query(of): Query<Of>) -> Response {
    let people = admin.ports.records.people(of.room.as_deref()).await;
    answer(StatusCode::OK, people.map(|people| json!({ "people": people })))
}

/// Somebody whose keys are to be void. Without a room those of their private chat.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Revoke {
    user: String,
    #[serde(default)]
    room: Option<String>,
}

pub(super) async fn revoke(State(admin): State<Arc<Admin>>, Json(revoke): Json<Revoke>) -> Response {
    let revoke = async {
        let room = revoke.room.unwrap_or_else(|| webchat::private_room(&revoke.user));
        let person = Person { room: room.clone(), user: revoke.user.clone() };
        admin.ports.records.uninvite(person, &Actor::operator()).await?;
        // Whoever else follows the room comes back by themselves.
        admin.hub.close(std::slice::from_ref(&room));
        Ok(json!({ "room": room, "user": revoke.user }))
    };
    answer(StatusCode::OK, revoke.await)
}

/// Gives a room to the gateway or tenant named in its invitation; answers the
/// route that does.
async fn assign_room(
    admin: &Admin,
    place: Place,
    gateway: Option<String>,
    tenant: Option<String>,
) -> Result<Route> {
    let allow = PLACES.default_allow(&place).unwrap_or(Allow::Any);
    let route = routes::route(admin, place, tenant.as_deref(), gateway.as_deref(), allow, true)?;
    let existing = admin.identities.now().routes().at(&route.place.to_string()).first().cloned();
    match existing {
        Some(known)
            if known.tenant == route.tenant && (gateway.is_none() || known.instance == route.instance) =>
        {
            Ok(known)
        }
        Some(known) => Err(Error::conflict(format!(
            "{} belongs to tenant {:?}, or to another of its gateways; see angelia route list",
            route.place, known.tenant
        ))),
        None => routes::store_route(admin, route.clone()).await.map(|()| route),
    }
}
