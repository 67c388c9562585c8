//! Routes.

use super::super::audit::write as audit;
use super::super::txn::Txn;
use super::tenants::{exists as tenant_exists, no_tenant};
use angelia_core::admission::{Allow, Route};
use angelia_core::audit::{Actor, Deed};
use angelia_core::error::{Error, Result};
use angelia_core::inbox::InstanceId;
use rusqlite::{Connection, Row, params};

/// Adds a route and the tenant it names; a conflict if the place is taken.
pub(in super::super) fn add_route(
    txn: &Txn<'_>,
    route: &Route,
    action: &'static str,
    by: &Actor,
) -> rusqlite::Result<Result<()>> {
    let place = route.place.to_string();
    let bot = route.bot.as_deref().unwrap_or_default();
    if !tenant_exists(txn, &route.tenant)? {
        return Ok(Err(no_tenant(&route.tenant)));
    }
    let taken: bool = txn.query_row(
        "SELECT EXISTS (SELECT 1 FROM routes WHERE place = ? AND bot = ?)",
        [place.as_str(), bot],
        |row| row.get(0),
    )?;
    if taken {
        return Ok(Err(Error::conflict(format!("{place} already has a route; remove it first"))));
    }
    let allow = match &route.allow {
        Allow::Any => None,
        Allow::People(people) => Some(serde_json::json!(people).to_string()),
    };
    txn.execute(
        "INSERT INTO routes (place, bot, tenant, instance, allow, free) VALUES (?, ?, ?, ?, ?, ?)",
        params![place, bot, route.tenant, route.instance.map(|i| i.0), allow, route.free],
    )?;
    let detail = match &route.allow {
        Allow::Any => "allow any".to_owned(),
        Allow::People(people) => format!("allow {}", people.join(",")),
    };
    audit(txn, &Deed::done(by, action, &route.tenant, &place).with(detail))?;
    Ok(Ok(()))
}

/// Removes a route; `false` if the place has none.
pub(super) fn remove(txn: &Txn<'_>, place: &str, bot: &str, by: &Actor) -> rusqlite::Result<bool> {
    let tenants: Vec<String> = txn
        .prepare_cached("DELETE FROM routes WHERE place = ? AND bot = ? RETURNING tenant")?
        .query_map([place, bot], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for tenant in &tenants {
        audit(txn, &Deed::done(by, "route.remove", tenant, place))?;
    }
    Ok(!tenants.is_empty())
}

/// Every route.
pub(super) fn list(db: &Connection) -> rusqlite::Result<Vec<Route>> {
    db.prepare("SELECT place, bot, tenant, instance, allow, free FROM routes ORDER BY place, bot")?
        .query_map([], route)?
        .collect()
}

fn route(row: &Row<'_>) -> rusqlite::Result<Route> {
    let place: String = row.get(0)?;
    let bot: String = row.get(1)?;
    let allow = match row.get::<_, Option<String>>(4)? {
        None => Allow::Any,
        Some(list) => Allow::People(parse_allow(4, &list)?),
    };
    Ok(Route {
        place: place.parse().map_err(|e| unreadable(0, &e))?,
        bot: (!bot.is_empty()).then_some(bot),
        tenant: row.get(2)?,
        instance: row.get::<_, Option<i64>>(3)?.map(InstanceId),
        allow,
        free: row.get(5)?,
    })
}

/// Reads a stored JSON array of texts.
pub(in super::super) fn parse_allow(column: usize, list: &str) -> rusqlite::Result<Vec<String>> {
    serde_json::from_str(list).map_err(|e| unreadable(column, &e))
}

fn unreadable(column: usize, error: &dyn std::fmt::Display) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error.to_string().into())
}
