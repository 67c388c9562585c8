//! The clock: whether it can be trusted, and the operator's word that it can.

use super::Admin;
use super::router::answer;
use angelia_core::audit::Actor;
use angelia_core::clock;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) async fn show(State(admin): State<Arc<Admin>>) -> Response {
    answer(StatusCode::OK, Ok(describe(&admin)))
}

pub(super) async fn accept(State(admin): State<Arc<Admin>>) -> Response {
    let accept = async {
        let accepted = admin.ports.upkeep.accept_clock(&Actor::operator()).await?;
        if let Some(leap) = accepted {
            tracing::info!(leap = leap.words(), "the clock was accepted as it is");
        }
        let mut shown = describe(&admin);
        shown["accepted"] = json!(accepted.map(|leap| leap.words()));
        Ok(shown)
    };
    answer(StatusCode::OK, accept.await)
}

/// What the clock shows, and the leap that nobody has confirmed.
pub(super) fn describe(admin: &Admin) -> Value {
    let leap = admin.ports.upkeep.leap();
    json!({
        "now": clock::wall(),
        "leap": leap.map(|leap| leap.words()),
        "ahead_ms": leap.map(|leap| leap.ahead_ms),
    })
}
