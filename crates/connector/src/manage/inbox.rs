//! What waits, and what became of a message.

use super::admin::answer;
use super::gateways::gateway;
use crate::server::Server;
use angelia_core::audit::{Actor, Deed};
use angelia_core::error::{Error, Result};
use angelia_core::inbox::{InstanceId, Seq};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Entries in one listing.
const PAGE: usize = 1_000;

/// Which inbox, and which of its entries.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Selection {
    #[serde(default)]
    tenant: Option<String>,
    #[serde(default)]
    gateway: Option<String>,
    #[serde(default)]
    entry: Option<String>,
    #[serde(default)]
    dead: bool,
}

impl Selection {
    /// The instance of the named gateway; `None` if none is named.
    fn instance(&self, server: &Server) -> Result<Option<InstanceId>> {
        let record = |id| gateway(server, self.tenant.as_deref(), id);
        self.gateway.as_deref().map(record).transpose().map(|found| found.map(|record| record.instance))
    }

    /// Writes down what the operator did to how many entries.
    async fn note(&self, server: &Server, action: &'static str, count: u64) -> Result<()> {
        let (tenant, gateway) = (self.tenant.as_deref(), self.gateway.as_deref());
        let entry = self.entry.as_deref().unwrap_or("all dead letters");
        let deed =
            Deed::done(&Actor::operator(), action, tenant.unwrap_or_default(), gateway.unwrap_or_default());
        server.store.audit(deed.with(format!("{entry}: {count}"))).await
    }

    fn seq(&self) -> Result<Option<Seq>> {
        let Some(text) = &self.entry else { return Ok(None) };
        let seq = Seq::from_buffer_id(text);
        seq.map(Some).ok_or_else(|| Error::invalid(format!("{text:?} is not an entry; they look like b123")))
    }
}

pub(super) async fn list_inboxes(
    State(server): State<Arc<Server>>,
    Query(selection): Query<Selection>,
) -> Response {
    let list = async {
        let wanted = selection.instance(&server)?;
        let mut inboxes = server.store.inboxes().await?;
        inboxes.retain(|inbox| wanted.is_none_or(|instance| instance == inbox.instance));
        Ok(json!({ "inboxes": inboxes }))
    };
    answer(StatusCode::OK, list.await)
}

pub(super) async fn list_entries(
    State(server): State<Arc<Server>>,
    Query(selection): Query<Selection>,
) -> Response {
    let list = async {
        let instance = selection.instance(&server)?;
        let mut entries = server.store.entries(instance, selection.dead, PAGE).await?;
        if let Some(seq) = selection.seq()? {
            entries.retain(|entry| entry.seq == seq);
        }
        Ok(json!({ "entries": entries }))
    };
    answer(StatusCode::OK, list.await)
}

pub(super) async fn redrive(State(server): State<Arc<Server>>, Json(selection): Json<Selection>) -> Response {
    let redrive = async {
        let count = server.store.redrive(selection.instance(&server)?, selection.seq()?).await?;
        selection.note(&server, "inbox.redrive", count).await?;
        Ok(json!({ "redriven": count }))
    };
    answer(StatusCode::OK, redrive.await)
}

pub(super) async fn purge(State(server): State<Arc<Server>>, Json(selection): Json<Selection>) -> Response {
    let purge = async {
        let count = server.store.purge(selection.instance(&server)?, selection.seq()?).await?;
        selection.note(&server, "inbox.purge", count).await?;
        Ok(json!({ "purged": count }))
    };
    answer(StatusCode::OK, purge.await)
}

pub(super) async fn explain(State(server): State<Arc<Server>>, Path(message): Path<String>) -> Response {
    let explain = async {
        let messages = server.store.explain(&message).await?;
        let actions = server.store.explain_action(&message).await?;
        let drops = server.drops.of(&message);
        if messages.is_empty() && actions.is_empty() && drops.is_empty() {
            return Err(Error::not_found(format!(
                "nothing is known of message {message:?}; the journal goes back 72 hours"
            )));
        }
        Ok(json!({ "messages": messages, "actions": actions, "drops": drops }))
    };
    answer(StatusCode::OK, explain.await)
}
