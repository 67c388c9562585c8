//! Letting people into the web chat.

use super::Admin;
use super::routes;
use super::types::{Invitation, Invite, OfRoom, People, RevokePerson, RevokedPerson};
use angelia_core::admission::{Allow, Place, Route};
use angelia_core::audit::Actor;
use angelia_core::error::{Error, Result};
use angelia_core::secret::fingerprint;
use angelia_core::store::{Person, RoomStore};
use angelia_platforms::{PLACES, webchat};
use std::sync::Arc;

pub(super) async fn invite(admin: Arc<Admin>, invite: Invite) -> Result<Invitation> {
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
    Ok(Invitation {
        // Behind the number sign: browsers keep that to themselves, so no log on the way has it.
        link: format!("{public}/chat#{}", key.expose()),
        url: format!("{public}/chat/api/rooms/{room}"),
        room,
        user: invite.user,
        key: key.expose().to_owned(),
        // Who may speak there is not only whoever was invited now.
        route: route.map(|route| routes::show(&admin, &route)),
    })
}

pub(super) async fn people(admin: Arc<Admin>, of: OfRoom) -> Result<People> {
    Ok(People { people: admin.ports.records.people(of.room.as_deref()).await? })
}

pub(super) async fn revoke(admin: Arc<Admin>, revoke: RevokePerson) -> Result<RevokedPerson> {
    let room = revoke.room.unwrap_or_else(|| webchat::private_room(&revoke.user));
    let person = Person { room: room.clone(), user: revoke.user.clone() };
    admin.ports.records.uninvite(person, &Actor::operator()).await?;
    // Whoever else follows the room comes back by themselves.
    admin.hub.close(std::slice::from_ref(&room));
    Ok(RevokedPerson { room, user: revoke.user })
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
