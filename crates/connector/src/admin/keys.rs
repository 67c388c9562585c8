//! The master key and the admin token: looking at them, and changing them
//! under a running admin.

use super::Admin;
use super::rotation;
use super::router::answer;
use angelia_core::audit::{Actor, AuditEntry};
use angelia_core::error::{Error, Result};
use angelia_core::seal::Keys;
use angelia_core::store::{AuditStore, SealedValue};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Opens everything that is sealed, and tells how much there is of what.
pub(super) async fn check(State(admin): State<Arc<Admin>>) -> Response {
    answer(StatusCode::OK, look(&admin).await)
}

async fn look(admin: &Admin) -> Result<Value> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut damaged: Vec<Value> = Vec::new();
    let mut pages = rotation::Pages::default();
    while let Some(page) = pages.next(admin).await? {
        // After it was read: a change of keys may have begun in between.
        let keys = admin.keys.keys();
        for value in &page {
            *counts.entry(value.kind).or_default() += 1;
            damaged.extend(damage(&keys, value));
        }
    }
    let sealed: Vec<Value> =
        counts.iter().map(|(kind, count)| json!({ "kind": kind, "count": count })).collect();
    let keys = &admin.keys;
    Ok(json!({
        "key_id": keys.keys().current().id().to_string(),
        "retiring_key_id": keys.retiring().map(|id| id.to_string()),
        "sealed": sealed,
        "unreadable": damaged.len(),
        "damaged": damaged,
    }))
}

/// What does not open, by the name an operator knows it by.
fn damage(keys: &Keys, value: &SealedValue) -> Option<Value> {
    let error = keys.open(&value.sealed, &value.bound_to).err()?;
    // `gateway-secret/acme/gw` is the gateway acme/gw; what there is one of needs no name.
    let name = value.bound_to.split_once('/').map(|(_, name)| name);
    Some(json!({ "kind": value.kind, "name": name, "error": error.to_string() }))
}

/// A change of the master key.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rotate {
    /// Holds the key to change to; without it a new one is made, where keeping it is ours.
    #[serde(default)]
    file: Option<PathBuf>,
}

pub(super) async fn rotate(State(admin): State<Arc<Admin>>, Json(body): Json<Rotate>) -> Response {
    // A task of its own: a caller who hangs up must not leave it half done.
    let rotation = tokio::spawn(async move { rotation::change_key(&admin, body.file.as_deref()).await });
    let outcome = rotation.await.unwrap_or_else(|_| Err(Error::internal("the change of keys broke off")));
    answer(StatusCode::OK, outcome)
}

pub(super) async fn rotate_token(State(admin): State<Arc<Admin>>) -> Response {
    let rotate = async {
        let _turn = admin.identities.turn().await;
        admin.token.rotate()?;
        let deed = AuditEntry::done(&Actor::operator(), "admin-token.rotate", "", "");
        admin.ports.records.audit(deed).await?;
        Ok(json!({ "rotated": true }))
    };
    answer(StatusCode::OK, rotate.await)
}
