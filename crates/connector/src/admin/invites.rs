//! Letting people into the web chat.

use super::Admin;
use super::routes::{self, Route};
use angelia_core::admission::{self, Allow, Place};
use angelia_core::audit::Actor;
use angelia_core::error::{Error, Result};
use angelia_core::ports::Invited;
use angelia_core::secret::fingerprint;
use angelia_core::store::{Person, RoomStore};
use angelia_platforms::{PLACES, webchat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

asked! {
    /// Somebody to be let in. Without a room it is a private chat with the agent.
    pub struct Invite {
        /// Their name.
        pub user: String,
        /// The room.
        pub room: Option<String>,
        /// The gateway that answers there.
        pub gateway: Option<String>,
        /// The tenant the room belongs to.
        pub tenant: Option<String>,
    }

    /// Somebody whose keys are to be void. Without a room those of their private chat.
    pub struct RevokePerson {
        /// Their name.
        pub user: String,
        /// The room.
        pub room: Option<String>,
    }
}

/// Which room's people.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub struct OfRoom {
    /// Only of this room.
    pub room: Option<String>,
}

answered! {
    /// The one answer that shows an invitation.
    pub struct Invitation {
        /// The room.
        pub room: String,
        /// Who was invited.
        pub user: String,
        /// The key; it is not shown again.
        pub key: String,
        /// The link that signs them in.
        pub link: String,
        /// The room, for scripts.
        pub url: String,
        /// The route of the room, where one was asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub route: Option<Route>,
    }

    /// Who has keys of rooms.
    pub struct People {
        /// By room and name.
        pub people: Vec<Invited>,
    }

    /// Somebody whose keys of a room are void.
    pub struct RevokedPerson {
        /// The room.
        pub room: String,
        /// Who they are.
        pub user: String,
    }
}

pub(super) async fn invite(admin: Arc<Admin>, invite: Invite) -> Result<Invitation> {
    let room = invite.room.clone().unwrap_or_else(|| webchat::private_room(&invite.user));
    webchat::check_invitation(&room, &invite.user)?;
    let place = webchat::place(&room)?;
    let mut route = None;
    if invite.gateway.is_some() || invite.tenant.is_some() {
        let assigned = assign_room(admin.clone(), place, invite.gateway, invite.tenant);
        route = Some(admin.identities.change(assigned).await?);
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
    let records = admin.ports.records.clone();
    let void = async move { records.uninvite(person, &Actor::operator()).await };
    // Other nodes hear of it, and have their readers show their keys.
    admin.identities.change(void).await?;
    // Whoever else follows the room comes back by themselves.
    admin.hub.close(std::slice::from_ref(&room));
    Ok(RevokedPerson { room, user: revoke.user })
}

/// Gives a room to the gateway or tenant named in its invitation; answers the
/// route that does.
async fn assign_room(
    admin: Arc<Admin>,
    place: Place,
    gateway: Option<String>,
    tenant: Option<String>,
) -> Result<admission::Route> {
    let allow = PLACES.default_allow(&place).unwrap_or(Allow::Any);
    let route = routes::route(&admin, place, tenant.as_deref(), gateway.as_deref(), allow, true)?;
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
        None => routes::store_route(&admin, route.clone()).await.map(|()| route),
    }
}
