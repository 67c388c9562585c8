//! Writing down who was refused, as often as the audit log can bear it.

use crate::telemetry::{Counter, Metrics};
use angelia_core::audit::{Actor, AuditEntry, FoldedRefusals};
use angelia_core::clock::{self, Mono};
use angelia_core::error::{Error, Kind};
use angelia_core::identity::GatewayRecord;
use angelia_core::records::Records;
use angelia_core::store::AuditStore;
use futures_util::future::join_all;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// How long a server that stops waits for its last lines: not for a broken disk.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Which refusals were written down lately, and which were only counted. Each node folds its own:
/// the log of several has a line of each at the most.
pub(crate) struct RefusalLog {
    records: Arc<dyn Records>,
    metrics: Arc<Metrics>,
    refusals: Mutex<FoldedRefusals>,
}

impl RefusalLog {
    pub(crate) fn new(records: Arc<dyn Records>, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self { records, metrics, refusals: Mutex::default() })
    }

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
        let entry = AuditEntry::refused(actor, action, tenant, target, &error.to_string());
        self.write_down(self.with(|log, now| log.note(now, entry))).await;
    }

    /// The same, of a gateway that is known.
    pub(crate) async fn refused_gateway(&self, record: &GatewayRecord, action: &'static str, error: &Error) {
        let GatewayRecord { tenant, gateway_id, .. } = record;
        self.refused(&Actor::gateway(tenant, gateway_id), action, tenant, gateway_id, error).await;
    }

    /// The same, of somebody who proved nothing.
    pub(crate) async fn refused_stranger(&self, action: &'static str, target: &str, error: &Error) {
        self.refused(&Actor::stranger(), action, "", target, error).await;
    }

    /// Writes how many refusals were only counted, of those whose time is over.
    pub(crate) async fn tell(&self) {
        self.write_down(self.with(FoldedRefusals::due)).await;
    }

    /// The same for all of them, before the server stops.
    pub(crate) async fn close(&self) {
        let written = self.write_down(self.with(FoldedRefusals::close));
        if tokio::time::timeout(LAST_LINES, written).await.is_err() {
            tracing::warn!("how many refusals were only counted could not be written down in time");
        }
    }

    fn with(&self, change: impl FnOnce(&mut FoldedRefusals, Mono) -> Vec<AuditEntry>) -> Vec<AuditEntry> {
        change(&mut self.refusals.lock(), clock::mono())
    }

    async fn write_down(&self, lines: Vec<AuditEntry>) {
        // All at once, which the store makes one commit of.
        for written in join_all(lines.into_iter().map(|line| self.records.audit(line))).await {
            if let Err(error) = written {
                tracing::warn!(%error, "a refusal could not be written down");
            }
        }
    }
}
