//! Tenants, from their making to their removal.

use super::super::audit::write as audit;
use super::super::footprint::{self, ENTRY_LENGTHS};
use super::super::txn::{Txn, now};
use super::removal;
use angelia_core::audit::{Actor, Deed};
use angelia_core::error::{Error, Result};
use angelia_core::inbox::{Held, InstanceId, Seq};
use angelia_core::store::TenantIdentity;
use rusqlite::{Connection, OptionalExtension, params};

/// What to say when there is none.
pub(in super::super) fn no_tenant(tenant: &str) -> Error {
    Error::not_found(format!("there is no tenant {tenant:?}; make it with: angelia tenant create {tenant}"))
}

/// Whether there is such a tenant.
pub(in super::super) fn exists(db: &Connection, tenant: &str) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT EXISTS (SELECT 1 FROM tenants WHERE tenant = ?)")?
        .query_row([tenant], |row| row.get(0))
}

pub(super) fn create(
    txn: &Txn<'_>,
    tenant: &str,
    identity: Option<&TenantIdentity>,
    by: &Actor,
) -> rusqlite::Result<Result<()>> {
    if exists(txn, tenant)? {
        return Ok(Err(Error::conflict(format!("there is a tenant {tenant:?} already"))));
    }
    if removal::is_under_way(txn, tenant)? {
        return Ok(Err(Error::conflict(format!(
            "an earlier tenant {tenant:?} is still being deleted; try again in a minute"
        ))));
    }
    if let Some(identity) = identity
        && let Some(other) = proves(txn, identity)?
    {
        return Ok(Err(taken(identity, &other)));
    }
    txn.execute("INSERT INTO tenants (tenant, created_at) VALUES (?, ?)", params![tenant, now()])?;
    audit(txn, &Deed::done(by, "tenant.create", tenant, tenant))?;
    if let Some(identity) = identity {
        insert(txn, identity, by)?;
    }
    Ok(Ok(()))
}

pub(super) fn link(txn: &Txn<'_>, identity: &TenantIdentity, by: &Actor) -> rusqlite::Result<Result<()>> {
    if !exists(txn, &identity.tenant)? {
        return Ok(Err(Error::not_found(format!("there is no tenant {:?}", identity.tenant))));
    }
    match proves(txn, identity)? {
        Some(other) if other == identity.tenant => Ok(Ok(())),
        Some(other) => Ok(Err(taken(identity, &other))),
        None => insert(txn, identity, by).map(Ok),
    }
}

fn proves(txn: &Txn<'_>, identity: &TenantIdentity) -> rusqlite::Result<Option<String>> {
    txn.query_row(
        "SELECT tenant FROM tenant_identities WHERE issuer = ? AND claim = ?",
        [&identity.issuer, &identity.claim],
        |row| row.get(0),
    )
    .optional()
}

fn taken(identity: &TenantIdentity, other: &str) -> Error {
    let TenantIdentity { issuer, claim, .. } = identity;
    Error::conflict(format!("{claim:?} of {issuer} proves tenant {other:?} already; unlink it there first"))
}

fn insert(txn: &Txn<'_>, identity: &TenantIdentity, by: &Actor) -> rusqlite::Result<()> {
    let TenantIdentity { tenant, issuer, claim } = identity;
    txn.execute(
        "INSERT INTO tenant_identities (issuer, claim, tenant) VALUES (?, ?, ?)",
        [issuer, claim, tenant],
    )?;
    audit(txn, &Deed::done(by, "tenant.link", tenant, tenant).with(format!("{issuer} {claim}")))
}

/// The tenant's sealed delivery key.
pub(super) fn delivery_key(db: &Connection, tenant: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    db.query_row("SELECT delivery_key FROM tenants WHERE tenant = ?", [tenant], |row| row.get(0))
        .optional()
        .map(Option::flatten)
}

/// Forgets an instance and what belongs to it; answers how many messages waited.
pub(in super::super) fn forget_instance(txn: &mut Txn<'_>, instance: InstanceId) -> rusqlite::Result<u64> {
    let waiting: Vec<(i64, bool, u64)> = txn
        .prepare(&format!(
            "DELETE FROM inbox WHERE instance = ? RETURNING seq, dead_at IS NULL, {ENTRY_LENGTHS}"
        ))?
        .query_map([instance.0], |row| Ok((row.get(0)?, row.get(1)?, footprint::entry(row, 2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let (db, stored) = txn.stored();
    stored.removed(db, instance, waiting.iter().map(|(_, _, bytes)| bytes).sum())?;
    stored.forgot_instance(instance);
    for table in
        ["gaps", "untold_gaps", "fronts", "policies", "conversations", "notices", "capabilities", "instances"]
    {
        txn.execute(&format!("DELETE FROM {table} WHERE instance = ?"), [instance.0])?;
    }
    txn.count(instance, |held| *held = Held::default());
    let live = waiting.iter().filter(|(_, live, _)| *live).count() as u64;
    txn.removed(instance, waiting.into_iter().map(|(seq, ..)| Seq(seq)).collect());
    Ok(live)
}
