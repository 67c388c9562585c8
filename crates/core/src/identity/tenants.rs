//! Tenants, from their making to their removal.

use super::instances;
use crate::audit::{Actor, AuditEntry};
use crate::error::{Error, Result};
use crate::inbox::InstanceId;
use crate::records::rows::{
    EnrollTokenRow, GatewayRow, InstanceRow, PersonRow, RemovalRow, RouteRow, SecretRow, TenantRow,
};
use crate::records::{View, Write};
use crate::store::{Client, LinkCode, TenantBelongings, TenantIdentity};

/// The tenant of that name; not found if there is none.
pub fn find(view: &mut View<'_>, tenant: &str) -> Result<TenantRow> {
    view.get::<TenantRow>((tenant,))?.ok_or_else(|| {
        Error::not_found(format!(
            "there is no tenant {tenant:?}; make it with: angelia tenant create {tenant}"
        ))
    })
}

/// Makes a tenant, and what proves it; answers the instance in which messages wait for its
/// first gateway.
pub fn create(
    view: &mut View<'_>,
    tenant: &str,
    identity: Option<&TenantIdentity>,
    by: &Actor,
) -> Result<InstanceId> {
    if view.get::<TenantRow>((tenant,))?.is_some() {
        return Err(Error::conflict(format!("there is a tenant {tenant:?} already")));
    }
    if view.get::<RemovalRow>((tenant,))?.is_some() {
        return Err(Error::conflict(format!(
            "an earlier tenant {tenant:?} is still being deleted; try again in a minute"
        )));
    }
    let first = instances::await_first(view, tenant)?.instance;
    let made = TenantRow {
        tenant: tenant.to_owned(),
        created_at: view.now(),
        default_instance: Some(first),
        delivery_key: None,
    };
    view.put(&made);
    view.audit(&AuditEntry::done(by, "tenant.create", tenant, tenant));
    if let Some(identity) = identity {
        link(view, identity, by)?;
    }
    Ok(first)
}

/// Lets an issuer's claim prove a tenant.
pub fn link(view: &mut View<'_>, identity: &TenantIdentity, by: &Actor) -> Result<()> {
    let TenantIdentity { tenant, issuer, claim } = identity;
    if view.get::<TenantRow>((tenant,))?.is_none() {
        return Err(Error::not_found(format!("there is no tenant {tenant:?}")));
    }
    match proven_by(view, issuer, claim)? {
        Some(other) if other == *tenant => Ok(()),
        Some(other) => Err(Error::conflict(format!(
            "{claim:?} of {issuer} proves tenant {other:?} already; unlink it there first"
        ))),
        None => {
            view.put(identity);
            view.audit(
                &AuditEntry::done(by, "tenant.link", tenant, tenant).with(format!("{issuer} {claim}")),
            );
            Ok(())
        }
    }
}

/// Takes that back; `false` if it was not so.
pub fn unlink(view: &mut View<'_>, identity: &TenantIdentity, by: &Actor) -> Result<bool> {
    let TenantIdentity { tenant, issuer, claim } = identity;
    if proven_by(view, issuer, claim)?.as_ref() != Some(tenant) {
        return Ok(false);
    }
    view.delete(identity);
    view.audit(&AuditEntry::done(by, "tenant.unlink", tenant, tenant).with(format!("{issuer} {claim}")));
    Ok(true)
}

/// The tenant that an issuer's claim proves.
pub fn proven_by(view: &mut View<'_>, issuer: &str, claim: &str) -> Result<Option<String>> {
    Ok(view.get::<TenantIdentity>((issuer, claim))?.map(|row| row.tenant))
}

/// Keeps a delivery key for a tenant that has none; answers the one it has.
pub fn keep_delivery_key(view: &mut View<'_>, tenant: &str, sealed: Vec<u8>) -> Result<Vec<u8>> {
    let Some(mut row) = view.get::<TenantRow>((tenant,))? else { return Ok(sealed) };
    if let Some(kept) = row.delivery_key {
        return Ok(kept);
    }
    row.delivery_key = Some(sealed.clone());
    view.put(&row);
    Ok(sealed)
}

/// Takes all that makes a tenant one. Only what the audit log says of it stays; for a
/// while also its names in the change feed, and what it left until that is deleted too.
pub fn remove(view: &mut View<'_>, tenant: &str, rooms: &[String], by: &Actor) -> Result<TenantBelongings> {
    let Some(row) = view.get::<TenantRow>((tenant,))? else {
        return Err(Error::not_found(format!("there is no tenant {tenant:?}")));
    };
    let found = view.find::<InstanceRow>(&["tenant"], (tenant,))?;
    let instances: Vec<InstanceId> = found.iter().map(|instance| instance.instance).collect();
    view.delete_all::<SecretRow>(&["tenant"], (tenant,))?;
    let removed = TenantBelongings {
        waiting: found.iter().map(|instance| instance.waiting.unsigned_abs()).sum(),
        gateways: view.delete_all::<GatewayRow>(&["tenant"], (tenant,))?,
        routes: view.delete_all::<RouteRow>(&["tenant"], (tenant,))?,
        clients: view.delete_all::<Client>(&["tenant"], (tenant,))?,
    };
    found.iter().for_each(|instance| view.delete(instance));
    view.delete_all::<EnrollTokenRow>(&["tenant"], (tenant,))?;
    view.delete_all::<LinkCode>(&["tenant"], (tenant,))?;
    view.delete_all::<TenantIdentity>(&["tenant"], (tenant,))?;
    for room in rooms {
        view.delete_all::<PersonRow>(&["room"], (room,))?;
    }
    view.delete(&row);
    view.also(Write::LeaveBehind { tenant: tenant.to_owned(), instances, rooms: rooms.to_vec() });
    let TenantBelongings { gateways, routes, clients, waiting } = &removed;
    let had = format!("gateways: {gateways}, routes: {routes}, clients: {clients}, waiting: {waiting}");
    view.audit(&AuditEntry::done(by, "tenant.remove", tenant, tenant).with(had));
    Ok(removed)
}
