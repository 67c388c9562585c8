//! Reading the audit log, and writing down who was refused.

use super::admin::answer;
use crate::server::Server;
use crate::telemetry::Counter;
use angelia_core::audit::{Actor, Deed};
use angelia_core::clock;
use angelia_core::error::{Error, Kind};
use angelia_core::identity::Attempts;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Lines in one answer, unless said otherwise and at the most.
const PAGE: usize = 100;
const MAX_PAGE: usize = 10_000;
/// Refusals written down in a minute, and in a day. Strangers decide how many
/// there are, and each is a row that stays; the others are counted.
const A_MINUTE: (usize, Duration) = (60, Duration::from_secs(60));
const A_DAY: (usize, Duration) = (2_000, Duration::from_secs(24 * 3600));

/// Which lines.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    #[serde(default)]
    tenant: Option<String>,
    #[serde(default)]
    limit: Option<usize>,
}

pub(super) async fn list(State(server): State<Arc<Server>>, Query(wanted): Query<Wanted>) -> Response {
    let limit = wanted.limit.unwrap_or(PAGE).min(MAX_PAGE);
    let lines = server.store.audit_lines(wanted.tenant.as_deref(), limit).await;
    answer(StatusCode::OK, lines.map(|lines| json!({ "audit": lines })))
}

/// How many refusals were written down lately.
pub(crate) struct RefusalLog(Mutex<[Attempts; 2]>);

impl Default for RefusalLog {
    fn default() -> Self {
        Self(Mutex::new([A_MINUTE, A_DAY].map(|(most, span)| Attempts::new(most, span))))
    }
}

impl RefusalLog {
    fn has_room(&self) -> bool {
        let mut spans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::mono();
        let room = spans.iter_mut().all(|span| span.has_room(now));
        room && spans.iter_mut().all(|span| span.note(now))
    }
}

impl Server {
    /// Counts a refusal and writes it down; the store being away is no refusal.
    pub(crate) async fn refused(
        &self,
        actor: &Actor,
        action: &'static str,
        tenant: &str,
        target: &str,
        error: &Error,
    ) {
        if matches!(error.kind(), Kind::Unavailable | Kind::Internal) {
            return;
        }
        self.metrics.count(Counter::AccessRefused);
        if self.refusals.has_room() {
            let deed = Deed::refused(actor, action, tenant, target, &error.to_string());
            if let Err(error) = self.store.audit(deed).await {
                tracing::warn!(%error, "a refusal could not be written down");
            }
        }
    }
}
