//! Where people write and nobody listens.

use super::Admin;
use super::types::{Nothing, Unrouted, UnroutedPlace};
use crate::ingress::{Heard, Spot};
use angelia_core::admission::Routes;
use angelia_core::error::Result;
use angelia_platforms::PLACES;
use std::sync::Arc;

pub(super) async fn unrouted(admin: Arc<Admin>, _: Nothing) -> Result<Unrouted> {
    let known = admin.identities.now();
    let mut heard = admin.drops.unrouted();
    // Somebody may have taken care of it since.
    heard.retain(|((place, bot), _)| !is_routed(known.routes(), place, bot));
    let row = |((place, bot), heard): (Spot, Heard)| UnroutedPlace {
        add: add_command(&place),
        place,
        bot,
        count: heard.count,
        last_at: heard.last_at,
    };
    Ok(Unrouted { unrouted: heard.into_iter().map(row).collect() })
}

/// Whether the place, one around it or the whole platform has a route by now.
fn is_routed(routes: &Routes, place: &str, bot: &str) -> bool {
    let Some((platform, path)) = place.split_once(':') else { return false };
    let around = path.split_once('/').map_or(path, |(around, _)| around);
    routes.resolve(platform, bot, &[path, around, "*"]).is_some()
}

/// The command that gives a place to a tenant.
fn add_command(place: &str) -> String {
    let private = PLACES.read(place).is_ok_and(|place| PLACES.private_person(&place).is_some());
    // In a private chat that person is meant unless somebody else is named.
    let allow = if private { "" } else { "--allow ID,… " };
    format!("angelia route add --tenant TENANT {allow}{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_asks_who_may_speak_where_that_is_a_choice() {
        let command = add_command("discord:10/20");
        assert_eq!(command, "angelia route add --tenant TENANT --allow ID,… discord:10/20");
        assert_eq!(add_command("webchat:dm:ann"), "angelia route add --tenant TENANT webchat:dm:ann");
    }
}
