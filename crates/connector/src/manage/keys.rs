//! The master key and the admin token: looking at them, and changing them
//! under a running server.
//!
//! A change of the master key is one commit of the store. The new key is
//! written down before it and put in force after it, so that whenever the
//! process ends, the key that opens the store is there: see [`KeyKeeper`].

use super::admin::answer;
use crate::server::Server;
use angelia_core::audit::{Actor, Deed};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::fail;
use angelia_core::seal::MasterKey;
use angelia_core::store::{Resealed, SealedValue};
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
use std::time::Duration;

#[cfg(doc)]
use super::KeyKeeper;

/// What the bindings of quarantined updates begin with.
const QUARANTINE: &str = "quarantine/";
/// How often sealing everything anew is begun, and the pause in between: what was
/// sealed meanwhile is committed within it.
const RESEAL_TRIES: u32 = 40;
const RESEAL_PAUSE: Duration = Duration::from_millis(50);
const PURGE: &str = "; angelia bot quarantine purge throws such updates away";

/// Opens everything that is sealed, and tells how much there is of what.
pub(super) async fn check(State(server): State<Arc<Server>>) -> Response {
    let check = async {
        // Between a change's commit and the key that goes with it nothing would open.
        let _turn = server.changing.lock().await;
        let key = server.options.master_key.current();
        let values = server.store.sealed_values().await?;
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        values.iter().for_each(|value| *counts.entry(value.kind).or_default() += 1);
        let sealed: Vec<Value> =
            counts.iter().map(|(kind, count)| json!({ "kind": kind, "count": count })).collect();
        let damaged: Vec<Value> = values.iter().filter_map(|value| damage(&key, value)).collect();
        Ok(json!({
            "key_id": key.id(), "sealed": sealed, "unreadable": damaged.len(), "damaged": damaged,
        }))
    };
    answer(StatusCode::OK, check.await)
}

/// What does not open, by the name an operator knows it by.
fn damage(key: &MasterKey, value: &SealedValue) -> Option<Value> {
    let error = key.open(&value.sealed, &value.bound_to).err()?;
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

pub(super) async fn rotate(State(server): State<Arc<Server>>, Json(body): Json<Rotate>) -> Response {
    // A task of its own: a caller who hangs up must not leave it half done.
    let rotation = tokio::spawn(async move { change_key(&server, body.file).await });
    let outcome = rotation.await.unwrap_or_else(|_| Err(Error::internal("the change of keys broke off")));
    answer(StatusCode::OK, outcome)
}

async fn change_key(server: &Server, file: Option<PathBuf>) -> Result<Value> {
    let _turn = server.changing.lock().await;
    let keys = &server.options.master_key;
    let old = keys.current();
    let next = keys.keeper.next(file.as_deref())?;
    if next.id() == old.id() {
        return Err(Error::conflict(format!("the key {} is in use already", old.id())));
    }
    let (count, erased) = reseal_all(server, &old, &next).await?;
    fail::point("key_resealed");
    let (old_id, new_id) = (old.id(), next.id());
    keys.replace(next);
    // From here on there is no way back: the store opens with the new key only.
    let next_step = keys.keeper.adopt().unwrap_or_else(|error| {
        tracing::error!(%error, "the new master key is staged, but not in its place; the next start puts it there");
        Some(format!("{error}; the next start tries again"))
    });
    tracing::info!(old = %old_id, new = %new_id, count, "the master key was changed");
    Ok(json!({
        "old_key_id": old_id,
        "key_id": new_id,
        "resealed": count,
        "old_erased": erased,
        "next_step": next_step,
    }))
}

/// Seals everything anew. What bots receive meanwhile is sealed too, so they are
/// held back for a moment if it does not come to an end otherwise.
async fn reseal_all(server: &Server, old: &MasterKey, next: &MasterKey) -> Result<(usize, bool)> {
    let keys = &server.options.master_key;
    let mut hold = None;
    for tries in 1..=RESEAL_TRIES {
        let values = server.store.sealed_values().await?;
        let resealed: Vec<Resealed> =
            values.into_iter().map(|value| reseal(old, next, value)).collect::<Result<_>>()?;
        let count = resealed.len();
        keys.keeper.stage(next)?;
        fail::point("key_staged");
        match server.store.reseal(resealed, &next.id(), &Actor::operator()).await {
            Err(error) if error.kind() == Kind::Conflict && tries < RESEAL_TRIES => {
                hold.get_or_insert_with(|| keys.hold());
                tokio::time::sleep(RESEAL_PAUSE).await;
            }
            done => return done.map(|erased| (count, erased)),
        }
    }
    Err(Error::internal("the change of keys came to no end"))
}

fn reseal(old: &MasterKey, next: &MasterKey, value: SealedValue) -> Result<Resealed> {
    let secret = old.open(&value.sealed, &value.bound_to).map_err(|error| {
        // One that was set aside in the very moment of an earlier change may never open.
        let next = if value.bound_to.starts_with(QUARANTINE) { PURGE } else { "" };
        Error::new(
            Kind::Conflict,
            format!("nothing was changed: the {} ({}): {error}{next}", value.kind, value.bound_to),
        )
    })?;
    Ok(Resealed { sealed: next.seal(&secret, &value.bound_to)?, old: value })
}

pub(super) async fn rotate_token(State(server): State<Arc<Server>>) -> Response {
    let rotate = async {
        let _turn = server.changing.lock().await;
        server.options.admin_token.rotate()?;
        server.store.audit(Deed::done(&Actor::operator(), "admin-token.rotate", "", "")).await?;
        Ok(json!({ "rotated": true }))
    };
    answer(StatusCode::OK, rotate.await)
}
