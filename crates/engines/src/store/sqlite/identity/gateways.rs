//! Gateways, their secrets and the instances they serve.

use super::super::Sqlite;
use super::super::audit::write as audit;
use super::super::txn::{Txn, now};
use super::tenants::{exists as tenant_exists, no_tenant};
use angelia_core::audit::{Actor, Deed};
use angelia_core::clock::UnixMillis;
use angelia_core::error::{Error, Result};
use angelia_core::identity::making::MAX_GATEWAYS_PER_TENANT;
use angelia_core::identity::{Subject, judge_instance};
use angelia_core::inbox::InstanceId;
use angelia_core::space::Class;
use angelia_core::store::{GatewayChange, Later, NewGateway, StoredGateway, StoredSecret};
use rusqlite::{Connection, OptionalExtension, params};

impl Sqlite {
    /// Changes one gateway and answers what it is then; not found if there is none.
    pub(super) fn change(
        &self,
        class: Class,
        tenant: &str,
        gateway_id: &str,
        change: impl FnOnce(&Txn<'_>, &str, &str) -> rusqlite::Result<Result<()>> + Send + 'static,
    ) -> Later<'_, StoredGateway> {
        let (tenant, gateway_id) = (tenant.to_owned(), gateway_id.to_owned());
        self.writer.write_as(class, "change a gateway", move |txn| {
            if find(txn, &tenant, &gateway_id)?.is_none() {
                return Ok(Err(Error::not_found(format!("tenant {tenant:?} has no gateway {gateway_id:?}"))));
            }
            if let Err(refused) = change(txn, &tenant, &gateway_id)? {
                return Ok(Err(refused));
            }
            let changed = find(txn, &tenant, &gateway_id)?;
            Ok(changed.ok_or_else(|| Error::internal("the gateway is gone")))
        })
    }
}

/// Enrols a gateway, with its instance where that is new.
pub(in super::super) fn create_gateway(
    txn: &Txn<'_>,
    new: NewGateway,
    action: &'static str,
    by: &Actor,
) -> rusqlite::Result<Result<StoredGateway>> {
    if !tenant_exists(txn, &new.tenant)? {
        return Ok(Err(no_tenant(&new.tenant)));
    }
    if find(txn, &new.tenant, &new.gateway_id)?.is_some() {
        return Ok(Err(Error::conflict(format!(
            "tenant {:?} already has a gateway {:?}; choose another id",
            new.tenant, new.gateway_id
        ))));
    }
    let name = new.instance.clone().unwrap_or_else(|| new.gateway_id.clone());
    let joins = match new.instance {
        Some(_) => may_join(txn, &new.tenant, &name, new.subject.as_ref())?,
        None => may_own(txn, &new.tenant, &name, new.subject.as_ref())?,
    };
    if let Err(refused) = joins.and(has_room(txn, &new.tenant, new.most)?) {
        return Ok(Err(refused));
    }
    let at = now();
    let subject = new.subject.as_ref().map(Subject::as_str);
    let instance = instance(txn, &new.tenant, &name, subject)?;
    if new.subject.is_none() && new.instance.is_none() {
        // It may have been somebody's who left it: it is the operator's now.
        txn.execute("UPDATE instances SET subject = NULL WHERE instance = ?", [instance])?;
    }
    txn.execute(
        "INSERT INTO gateways (tenant, gateway_id, instance, wake_url, created_at, subject, display_name)
         VALUES (?, ?, ?, ?, ?, ?, ?)",
        params![new.tenant, new.gateway_id, instance, new.wake_url, at, subject, new.display_name],
    )?;
    add_secret(txn, &new.tenant, &new.gateway_id, &new.sealed_secret)?;
    audit(txn, &Deed::done(by, action, &new.tenant, &new.gateway_id))?;
    settle_default(txn, &new.tenant)?;
    let made = find(txn, &new.tenant, &new.gateway_id)?;
    Ok(made.ok_or_else(|| Error::internal("the gateway is gone")))
}

/// Gives a gateway a new secret. The one before goes on until `old_until`, or is
/// void at once; older ones go: whoever rotates twice means the first one too.
pub(in super::super) fn renew_secret(
    txn: &Txn<'_>,
    tenant: &str,
    gateway_id: &str,
    sealed: &[u8],
    old_until: Option<UnixMillis>,
) -> rusqlite::Result<()> {
    txn.execute(
        "DELETE FROM gateway_secrets
         WHERE tenant = ? AND gateway_id = ? AND (valid_until IS NOT NULL OR ? IS NULL)",
        params![tenant, gateway_id, old_until.map(|until| until.0)],
    )?;
    txn.execute(
        "UPDATE gateway_secrets SET valid_until = ? WHERE tenant = ? AND gateway_id = ?",
        params![old_until.map(|until| until.0), tenant, gateway_id],
    )?;
    add_secret(txn, tenant, gateway_id, sealed)
}

fn add_secret(txn: &Txn<'_>, tenant: &str, gateway_id: &str, sealed: &[u8]) -> rusqlite::Result<()> {
    txn.execute(
        "INSERT INTO gateway_secrets (tenant, gateway_id, sealed, created_at) VALUES (?, ?, ?, ?)",
        params![tenant, gateway_id, sealed, now()],
    )?;
    Ok(())
}

fn has_room(txn: &Txn<'_>, tenant: &str, most: u64) -> rusqlite::Result<Result<()>> {
    let (all, living): (u64, u64) = txn
        .prepare_cached("SELECT count(*), count(*) - count(revoked_at) FROM gateways WHERE tenant = ?")?
        .query_row([tenant], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(if all >= MAX_GATEWAYS_PER_TENANT {
        Err(Error::conflict(format!(
            "tenant {tenant:?} has {all} gateways already, with those that were revoked within 90 days; \
             ask again when some of them are forgotten"
        )))
    } else if living >= most {
        Err(Error::conflict(format!(
            "tenant {tenant:?} has {living} gateways already; revoke some (angelia gateway revoke), or raise \
             limits.gateways_per_tenant"
        )))
    } else {
        Ok(())
    })
}

/// Sees to it that a tenant's default is an instance that somebody serves: the
/// only one there is, if it was not. Between several the operator chooses.
pub(in super::super) fn settle_default(txn: &Txn<'_>, tenant: &str) -> rusqlite::Result<()> {
    let now: Option<i64> = default_instance(txn, tenant)?;
    let is_served = |instance: i64| -> rusqlite::Result<bool> {
        txn.prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM gateways WHERE instance = ? AND revoked_at IS NULL)",
        )?
        .query_row([instance], |row| row.get(0))
    };
    if let Some(now) = now
        && is_served(now)?
    {
        return Ok(());
    }
    let served: Vec<(i64, String)> = txn
        .prepare_cached(
            "SELECT DISTINCT i.instance, i.name FROM gateways g JOIN instances i USING (instance)
             WHERE g.tenant = ? AND g.revoked_at IS NULL LIMIT 2",
        )?
        .query_map([tenant], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let next = match served.as_slice() {
        [(only, _)] => Some(*only),
        _ => None,
    };
    if next != now {
        txn.execute("UPDATE tenants SET default_instance = ? WHERE tenant = ?", params![next, tenant])?;
        let name = next.and_then(|_| served.first()).map_or("", |(_, name)| name);
        audit(txn, &Deed::done(&Actor::server(), "gateway.default", tenant, name))?;
    }
    Ok(())
}

/// The instance that gets what nothing else assigns.
pub(super) fn default_instance(db: &Connection, tenant: &str) -> rusqlite::Result<Option<i64>> {
    db.query_row("SELECT default_instance FROM tenants WHERE tenant = ?", [tenant], |row| row.get(0))
        .optional()
        .map(Option::flatten)
}

/// Whether a new gateway may have the instance of its own name. One that is
/// there already is somebody's, unless nobody serves it and the same subject made it.
fn may_own(
    txn: &Txn<'_>,
    tenant: &str,
    name: &str,
    subject: Option<&Subject>,
) -> rusqlite::Result<Result<()>> {
    let found: Option<(Option<String>, bool)> = txn
        .query_row(
            "SELECT subject, EXISTS (SELECT 1 FROM gateways g WHERE g.instance = i.instance)
             FROM instances i WHERE tenant = ? AND name = ?",
            [tenant, name],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    Ok(match found {
        None => Ok(()),
        Some((owner, false)) if owner.as_deref() == subject.map(Subject::as_str) => Ok(()),
        // What was abandoned the operator may take.
        Some((_, false)) if subject.is_none() => Ok(()),
        Some(_) => match subject {
            Some(subject) => judge_instance(None, false, subject),
            None => Err(Error::conflict(format!(
                "an instance of tenant {tenant:?} is called {name:?} already, and other gateways serve it; \
                 choose another id"
            ))),
        },
    })
}

/// Whether `subject` may let a gateway serve the tenant's instance of that name; the operator always may.
fn may_join(
    txn: &Txn<'_>,
    tenant: &str,
    name: &str,
    subject: Option<&Subject>,
) -> rusqlite::Result<Result<()>> {
    let Some(subject) = subject else { return Ok(Ok(())) };
    if find(txn, tenant, name)?.is_some_and(|gateway| gateway.subject.as_ref() != Some(subject)) {
        return Ok(judge_instance(None, false, subject));
    }
    let found: Option<(Option<String>, bool)> = txn
        .query_row(
            "SELECT subject, EXISTS (SELECT 1 FROM gateways g WHERE g.instance = i.instance)
                    AND NOT EXISTS (SELECT 1 FROM gateways g WHERE g.instance = i.instance AND revoked_at IS NULL)
             FROM instances i WHERE tenant = ? AND name = ?",
            [tenant, name],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    Ok(found.map_or(Ok(()), |(owner, revoked)| {
        judge_instance(owner.map(Subject::stored).as_ref(), revoked, subject)
    }))
}

/// The tenant's instance of that name, made if there is none.
fn instance(txn: &Txn<'_>, tenant: &str, name: &str, subject: Option<&str>) -> rusqlite::Result<i64> {
    txn.query_row(
        "INSERT INTO instances (tenant, name, subject, tail)
         VALUES (?, ?, ?, coalesce((SELECT CAST(value AS INTEGER) FROM notes WHERE name = 'log_base'), 0))
         ON CONFLICT (tenant, name) DO UPDATE SET name = excluded.name RETURNING instance",
        params![tenant, name, subject],
        |row| row.get(0),
    )
}

/// Changes what a gateway cannot tell itself.
pub(super) fn change(
    txn: &Txn<'_>,
    tenant: &str,
    gateway_id: &str,
    change: &GatewayChange,
    by: &Actor,
) -> rusqlite::Result<Result<()>> {
    if let Some(name) = &change.instance
        && let Some(waiting) = would_be_left(txn, tenant, gateway_id, name)?
    {
        return Ok(Err(Error::conflict(format!(
            "{waiting} messages wait for the instance that gateway {gateway_id:?} serves now, and nobody else \
             would fetch them; let it connect first, or purge them (angelia inbox purge)"
        ))));
    }
    if let Some(name) = &change.instance
        && let Err(refused) = may_join(txn, tenant, name, change.subject.as_ref())?
    {
        return Ok(Err(refused));
    }
    let mut set = Vec::new();
    if let Some(url) = &change.wake_url {
        txn.execute(
            "UPDATE gateways SET wake_url = ? WHERE tenant = ? AND gateway_id = ?",
            params![url, tenant, gateway_id],
        )?;
        set.push("wake_url".to_owned());
    }
    if let Some(name) = &change.display_name {
        txn.execute(
            "UPDATE gateways SET display_name = ? WHERE tenant = ? AND gateway_id = ?",
            params![name, tenant, gateway_id],
        )?;
        set.push("display_name".to_owned());
    }
    if let Some(name) = &change.instance {
        let subject = change.subject.as_ref().map(Subject::as_str);
        let instance = instance(txn, tenant, name, subject)?;
        // The default goes along with the last gateway that served it.
        txn.execute(
            "UPDATE tenants SET default_instance = ?1 WHERE tenant = ?2 AND default_instance =
                 (SELECT instance FROM gateways WHERE tenant = ?2 AND gateway_id = ?3)
             AND NOT EXISTS (SELECT 1 FROM gateways WHERE instance = default_instance
                             AND revoked_at IS NULL AND gateway_id <> ?3)",
            params![instance, tenant, gateway_id],
        )?;
        inherit(txn, tenant, gateway_id, instance)?;
        txn.execute(
            "UPDATE gateways SET instance = ? WHERE tenant = ? AND gateway_id = ?",
            params![instance, tenant, gateway_id],
        )?;
        set.push(format!("instance {name}"));
    }
    audit(txn, &Deed::done(by, "gateway.set", tenant, gateway_id).with(set.join(", ")))?;
    settle_default(txn, tenant)?;
    Ok(Ok(()))
}

/// A gateway declares its policies and bots when it starts, not when it is
/// moved: an instance that has none gets those of the one it serves now.
fn inherit(txn: &Txn<'_>, tenant: &str, gateway_id: &str, to: i64) -> rusqlite::Result<()> {
    for (table, columns) in [
        ("policies", "platform, require_address, free_scopes, allow_other_bots"),
        ("fronts", "platform, bot"),
    ] {
        txn.execute(
            &format!(
                "INSERT INTO {table} (instance, {columns}) SELECT ?1, {columns} FROM {table}
                 WHERE instance = (SELECT instance FROM gateways WHERE tenant = ?2 AND gateway_id = ?3)
                 AND NOT EXISTS (SELECT 1 FROM {table} WHERE instance = ?1)"
            ),
            params![to, tenant, gateway_id],
        )?;
    }
    Ok(())
}

/// How many messages nobody would fetch any more if the gateway served `name` instead.
fn would_be_left(txn: &Txn<'_>, tenant: &str, gateway_id: &str, name: &str) -> rusqlite::Result<Option<u64>> {
    let waiting: u64 = txn
        .query_row(
            "SELECT count(*) FROM gateways g JOIN instances i USING (instance)
             JOIN inbox USING (instance)
             WHERE g.tenant = ?1 AND g.gateway_id = ?2 AND i.name <> ?3 AND dead_at IS NULL
             AND NOT EXISTS (SELECT 1 FROM gateways o WHERE o.instance = g.instance
                             AND o.revoked_at IS NULL AND o.gateway_id <> g.gateway_id)",
            [tenant, gateway_id, name],
            |row| row.get(0),
        )
        .optional()?
        .unwrap_or_default();
    Ok((waiting > 0).then_some(waiting))
}

/// The gateway with this tenant and id.
pub(in super::super) fn find(
    db: &Connection,
    tenant: &str,
    gateway_id: &str,
) -> rusqlite::Result<Option<StoredGateway>> {
    list(db, Some((tenant, gateway_id))).map(|mut found| found.pop())
}

/// All gateways, or the one with this tenant and id.
pub(super) fn list(db: &Connection, named: Option<(&str, &str)>) -> rusqlite::Result<Vec<StoredGateway>> {
    let only = if named.is_some() { "WHERE g.tenant = ?1 AND g.gateway_id = ?2" } else { "" };
    let (tenant, gateway_id) = named.unzip();
    let values: Vec<&str> = tenant.into_iter().chain(gateway_id).collect();
    let mut gateways: Vec<StoredGateway> = db
        .prepare_cached(&format!(
            "SELECT g.tenant, g.gateway_id, g.instance, i.name, g.wake_url, g.created_at, g.revoked_at,
                    g.subject, g.display_name
             FROM gateways g JOIN instances i USING (instance) {only} ORDER BY g.rowid"
        ))?
        .query_map(rusqlite::params_from_iter(values), |row| {
            Ok(StoredGateway {
                tenant: row.get(0)?,
                gateway_id: row.get(1)?,
                instance: InstanceId(row.get(2)?),
                instance_name: row.get(3)?,
                wake_url: row.get(4)?,
                created_at: UnixMillis(row.get(5)?),
                revoked_at: row.get::<_, Option<i64>>(6)?.map(UnixMillis),
                subject: row.get::<_, Option<String>>(7)?.map(Subject::stored),
                display_name: row.get(8)?,
                secrets: Vec::new(),
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut secrets = db.prepare_cached(
        "SELECT sealed, valid_until, created_at FROM gateway_secrets
         WHERE tenant = ? AND gateway_id = ? ORDER BY id DESC",
    )?;
    for gateway in &mut gateways {
        gateway.secrets = secrets
            .query_map([&gateway.tenant, &gateway.gateway_id], |row| {
                Ok(StoredSecret {
                    sealed: row.get(0)?,
                    valid_until: row.get::<_, Option<i64>>(1)?.map(UnixMillis),
                    created_at: UnixMillis(row.get(2)?),
                })
            })?
            .collect::<rusqlite::Result<_>>()?;
    }
    Ok(gateways)
}
