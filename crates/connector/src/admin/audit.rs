//! Reading the audit log.

use super::Admin;
use super::router::answer;
use angelia_core::store::AuditStore;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Lines in one answer, unless said otherwise and at the most.
const PAGE: usize = 100;
const MAX_PAGE: usize = 10_000;

/// Which lines.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    #[serde(default)]
    tenant: Option<String>,
    #[serde(default)]
    limit: Option<usize>,
}

pub(super) async fn list(State(admin): State<Arc<Admin>>, Query(wanted): Query<Wanted>) -> Response {
    let limit = wanted.limit.unwrap_or(PAGE).min(MAX_PAGE);
    let lines = admin.ports.records.audit_lines(wanted.tenant.as_deref(), limit).await;
    answer(StatusCode::OK, lines.map(|lines| json!({ "audit": lines })))
}
