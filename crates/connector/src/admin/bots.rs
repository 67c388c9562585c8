//! The bots, as an operator sees them: how they are, what they missed, and what
//! they could not read.

use super::Admin;
use super::router::answer;
use angelia_core::admission::Routes;
use angelia_core::audit::{Actor, AuditEntry};
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Result};
use angelia_core::seal;
use angelia_core::store::{AuditStore, Quarantined, StreamStore};
use angelia_platforms::Platform;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Quarantined updates in one listing; the store keeps no more per bot.
const PAGE: usize = 1_000;
/// Stretches that could not be read, shown per bot: the newest tell what to look for.
const MISSED: usize = 20;

pub(super) async fn list(State(admin): State<Arc<Admin>>) -> Response {
    let list = async {
        let known = admin.identities.now();
        let routes = known.routes();
        let mut bots = Vec::new();
        for bot in admin.bots.all() {
            bots.push(describe(&admin, &**bot, routes).await?);
        }
        Ok(json!({ "bots": bots }))
    };
    answer(StatusCode::OK, list.await)
}

async fn describe(admin: &Admin, bot: &dyn Platform, routes: &Routes) -> Result<Value> {
    let key = BotKey::new(bot.platform(), bot.id());
    let leads_here = |route_bot: Option<&str>| route_bot.is_none_or(|named| named == bot.id());
    let routes = routes
        .iter()
        .filter(|route| route.place.platform() == bot.platform() && leads_here(route.bot.as_deref()))
        .count();
    Ok(json!({
        "platform": bot.platform(),
        "id": bot.id(),
        "name": bot.name(),
        // The web chat has nobody to listen to.
        "health": bot.health(),
        "quarantined": admin.ports.records.quarantine(Some(&key), PAGE).await?.len(),
        "missed": admin.ports.records.missed(&key, MISSED).await?,
        "routes": routes,
    }))
}

/// Whose quarantine.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Whose {
    #[serde(default)]
    bot: Option<String>,
}

pub(super) async fn quarantine(State(admin): State<Arc<Admin>>, Query(whose): Query<Whose>) -> Response {
    let list = async {
        let bots = whose.bot.as_deref().map(|text| meant(&admin, text)).transpose()?;
        let mut rows: Vec<Quarantined> = match bots {
            None => admin.ports.records.quarantine(None, PAGE).await?,
            Some(bots) => {
                let mut rows = Vec::new();
                for bot in &bots {
                    rows.extend(admin.ports.records.quarantine(Some(bot), PAGE).await?);
                }
                rows
            }
        };
        rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.id));
        rows.truncate(PAGE);
        Ok(json!({ "quarantine": rows }))
    };
    answer(StatusCode::OK, list.await)
}

/// The bots that a name, an id or `platform:id` means. The last also for a
/// bot that is not configured any more: what it left behind is still there.
fn meant(admin: &Admin, text: &str) -> Result<Vec<BotKey>> {
    if let Some((platform, id)) = text.split_once(':') {
        return Ok(vec![BotKey::new(platform, id)]);
    }
    let named = admin.bots.all().iter().filter(|bot| bot.name() == text || bot.id() == text);
    let keys: Vec<BotKey> = named.map(|bot| BotKey::new(bot.platform(), bot.id())).collect();
    if keys.is_empty() {
        return Err(Error::not_found(format!(
            "there is no bot {text:?}; see angelia bot list, or write platform:id for one that is not \
             configured any more"
        )));
    }
    Ok(keys)
}

/// Shows what a provider sent, as it came: people's words may be in it, so it is
/// written down who looked.
pub(super) async fn open(State(admin): State<Arc<Admin>>, Path(id): Path<String>) -> Response {
    let open = async {
        let number = number(&id)?;
        let (row, sealed) = admin.ports.records.quarantined(number).await?.ok_or_else(|| gone(number))?;
        let bound_to = seal::quarantine(&row.platform, &row.bot);
        let raw = admin.keys.open(&sealed, &bound_to)?;
        let deed = AuditEntry::done(&Actor::operator(), "quarantine.show", "", &number.to_string());
        admin.ports.records.audit(deed.with(&row.what)).await?;
        let mut shown = json!(row);
        shown["raw"] = raw.expose().into();
        Ok(shown)
    };
    answer(StatusCode::OK, open.await)
}

pub(super) async fn purge(State(admin): State<Arc<Admin>>) -> Response {
    let purged = admin.ports.records.purge_quarantine(None, &Actor::operator()).await;
    answer(StatusCode::OK, purged.map(|count| json!({ "purged": count })))
}

pub(super) async fn purge_one(State(admin): State<Arc<Admin>>, Path(id): Path<String>) -> Response {
    let purge = async {
        let number = number(&id)?;
        match admin.ports.records.purge_quarantine(Some(number), &Actor::operator()).await? {
            0 => Err(gone(number)),
            count => Ok(json!({ "purged": count })),
        }
    };
    answer(StatusCode::OK, purge.await)
}

fn number(text: &str) -> Result<i64> {
    text.parse().map_err(|_| {
        Error::invalid(format!("{text:?} is not a number; angelia bot quarantine list shows them"))
    })
}

fn gone(number: i64) -> Error {
    Error::not_found(format!(
        "nothing in quarantine has the number {number}; it was thrown away or never here: \
         angelia bot quarantine list"
    ))
}
