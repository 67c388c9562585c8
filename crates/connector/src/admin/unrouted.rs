//! Where people write and nobody listens.

use super::Admin;
use super::router::answer;
use angelia_core::admission::Routes;
use angelia_platforms::PLACES;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

/// `GET /admin/routes/unrouted`: where people write and nobody listens.
pub(super) async fn unrouted(State(admin): State<Arc<Admin>>) -> Response {
    let known = admin.identities.now();
    let rows: Vec<Value> = admin
        .drops
        .unrouted()
        .into_iter()
        // Somebody may have taken care of it since.
        .filter(|((place, bot), _)| !is_routed(known.routes(), place, bot))
        .map(|((place, bot), heard)| {
            json!({
                "add": add_command(&place),
                "place": place,
                "bot": bot,
                "count": heard.count,
                "last_at": heard.last_at,
            })
        })
        .collect();
    answer(StatusCode::OK, Ok(json!({ "unrouted": rows })))
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
