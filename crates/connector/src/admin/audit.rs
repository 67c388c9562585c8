//! Reading the audit log, and writing down who was refused.

use super::router::answer;
use crate::server::Server;
use crate::telemetry::Counter;
use angelia_core::audit::{Actor, AuditEntry, Refusals};
use angelia_core::clock::{self, Mono};
use angelia_core::error::{Error, Kind};
use angelia_core::store::AuditStore;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::future::join_all;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Lines in one answer, unless said otherwise and at the most.
const PAGE: usize = 100;
const MAX_PAGE: usize = 10_000;
/// How long a server that stops waits for its last lines: not for a broken disk.
const LAST_LINES: Duration = Duration::from_secs(1);

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
    let lines = server.ports.records.audit_lines(wanted.tenant.as_deref(), limit).await;
    answer(StatusCode::OK, lines.map(|lines| json!({ "audit": lines })))
}

/// Which refusals were written down lately, and which were only counted.
#[derive(Default)]
pub(crate) struct RefusalLog(Mutex<Refusals>);

impl RefusalLog {
    fn with(&self, change: impl FnOnce(&mut Refusals, Mono) -> Vec<AuditEntry>) -> Vec<AuditEntry> {
        change(&mut self.0.lock(), clock::mono())
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
        let deed = AuditEntry::refused(actor, action, tenant, target, &error.to_string());
        self.write_down(self.refusals.with(|log, now| log.note(now, deed))).await;
    }

    /// Writes how many refusals were only counted, of those whose time is over.
    pub(crate) async fn tell_refusals(&self) {
        self.write_down(self.refusals.with(Refusals::due)).await;
    }

    /// The same for all of them, before the server stops.
    pub(crate) async fn close_refusals(&self) {
        let written = self.write_down(self.refusals.with(Refusals::close));
        if tokio::time::timeout(LAST_LINES, written).await.is_err() {
            tracing::warn!("how many refusals were only counted could not be written down in time");
        }
    }

    async fn write_down(&self, lines: Vec<AuditEntry>) {
        // All at once, which the store makes one commit of.
        for written in join_all(lines.into_iter().map(|line| self.ports.records.audit(line))).await {
            if let Err(error) = written {
                tracing::warn!(%error, "a refusal could not be written down");
            }
        }
    }
}
