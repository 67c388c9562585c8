//! Gateways and their secrets: made, rotated, moved, revoked, forgotten.

use super::new_gateway_limits::MAX_GATEWAYS_PER_TENANT;
use super::{declared, instances, tenants};
use crate::audit::{Actor, AuditEntry};
use crate::clock::UnixMillis;
use crate::error::{Error, Result};
use crate::inbox::InstanceId;
use crate::records::rows::{
    FrontRow, GatewayRow, InstanceRow, ManifestRow, PolicyRow, RouteRow, SecretRow, TenantRow,
};
use crate::records::{View, Write};
use crate::store::{GatewayChange, NewGateway, StoredGateway};
use std::collections::HashMap;

/// The gateway with this tenant and id; not found if there is none.
pub fn find(view: &mut View<'_>, tenant: &str, gateway_id: &str) -> Result<GatewayRow> {
    let found = view.get::<GatewayRow>((tenant, gateway_id))?;
    found.ok_or_else(|| Error::not_found(format!("tenant {tenant:?} has no gateway {gateway_id:?}")))
}

/// A gateway with its secrets, as a server remembers it.
pub fn whole(view: &mut View<'_>, row: GatewayRow) -> Result<StoredGateway> {
    let secrets = view.find::<SecretRow>(&["tenant", "gateway_id"], (&row.tenant, &row.gateway_id))?;
    let instance = view.get::<InstanceRow>((row.instance,))?;
    Ok(together(row, instance.map(|it| it.name).unwrap_or_default(), secrets))
}

/// Every gateway, in the order they were made.
pub fn all(view: &mut View<'_>) -> Result<Vec<StoredGateway>> {
    let names: HashMap<InstanceId, String> =
        view.all::<InstanceRow>()?.into_iter().map(|row| (row.instance, row.name)).collect();
    let mut secrets = HashMap::<(String, String), Vec<SecretRow>>::new();
    for secret in view.all::<SecretRow>()? {
        let of = (secret.tenant.clone(), secret.gateway_id.clone());
        secrets.entry(of).or_default().push(secret);
    }
    let mut rows = view.all::<GatewayRow>()?;
    rows.sort_by_key(|row| (row.created_at, row.instance));
    let whole = rows.into_iter().map(|row| {
        let of = secrets.remove(&(row.tenant.clone(), row.gateway_id.clone())).unwrap_or_default();
        // Whoever is left out here counts as gone, and is told so for good.
        let name = names.get(&row.instance).cloned().unwrap_or_default();
        together(row, name, of)
    });
    Ok(whole.collect())
}

fn together(row: GatewayRow, instance_name: String, mut secrets: Vec<SecretRow>) -> StoredGateway {
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.id));
    StoredGateway {
        tenant: row.tenant,
        gateway_id: row.gateway_id,
        instance: row.instance,
        instance_name,
        secrets,
        created_at: row.created_at,
        revoked_at: row.revoked_at,
        wake_url: row.wake_url,
        display_name: row.display_name,
        while_busy: row.while_busy,
        shared_groups: row.shared_groups,
        subject: row.subject,
    }
}

/// Enrols a gateway, with its instance where that is new. The tenant's first one gets the
/// instance that waits for it, whatever it calls that.
pub fn create(
    view: &mut View<'_>,
    new: &NewGateway,
    action: &'static str,
    by: &Actor,
) -> Result<StoredGateway> {
    tenants::find(view, &new.tenant)?;
    if view.get::<GatewayRow>((&new.tenant, &new.gateway_id))?.is_some() {
        return Err(Error::conflict(format!(
            "tenant {:?} already has a gateway {:?}; choose another id",
            new.tenant, new.gateway_id
        )));
    }
    let subject = new.subject.as_ref();
    let name = new.instance.as_ref().unwrap_or(&new.gateway_id);
    match &new.instance {
        Some(name) => instances::may_join(view, &new.tenant, name, subject)?,
        None => instances::may_own(view, &new.tenant, name, subject)?,
    }
    has_room(view, &new.tenant, new.most)?;
    let first = instances::take_over(view, &new.tenant, name, subject)?;
    let is_first = first.is_some();
    let mut instance = match first {
        Some(first) => first,
        None => instances::named_or_new(view, &new.tenant, name, subject)?,
    };
    if subject.is_none() && new.instance.is_none() && instance.subject.is_some() {
        // It was somebody's who left it: it is the operator's now.
        instance.subject = None;
        view.put(&instance);
    }
    let row = GatewayRow {
        tenant: new.tenant.clone(),
        gateway_id: new.gateway_id.clone(),
        instance: instance.instance,
        wake_url: new.wake_url.clone(),
        created_at: view.now(),
        revoked_at: None,
        subject: new.subject.clone(),
        display_name: new.display_name.clone(),
        while_busy: new.while_busy,
        shared_groups: new.shared_groups,
    };
    view.put(&row);
    add_secret(view, &row, &new.sealed_secret)?;
    view.audit(&AuditEntry::done(by, action, &new.tenant, &new.gateway_id));
    if is_first {
        // It was the default before it had a name.
        view.audit(&AuditEntry::done(&Actor::server(), "gateway.default", &new.tenant, name));
    }
    instances::settle_default(view, &new.tenant)?;
    whole(view, row)
}

fn has_room(view: &mut View<'_>, tenant: &str, most: u64) -> Result<()> {
    let all = view.count::<GatewayRow>(&["tenant"], (tenant,))?;
    if all >= MAX_GATEWAYS_PER_TENANT {
        return Err(Error::conflict(format!(
            "tenant {tenant:?} has {all} gateways already, with those that were revoked within 90 days; \
             ask again when some of them are forgotten"
        )));
    }
    let living = view.count::<GatewayRow>(&["tenant", "revoked_at"], (tenant, None::<UnixMillis>))?;
    if living < most {
        return Ok(());
    }
    Err(Error::conflict(format!(
        "tenant {tenant:?} has {living} gateways already; revoke some (angelia gateway revoke), or raise \
         limits.gateways_per_tenant"
    )))
}

/// Gives a gateway a new secret, and says so.
pub fn rotate(
    view: &mut View<'_>,
    tenant: &str,
    gateway_id: &str,
    sealed: &[u8],
    old_until: Option<UnixMillis>,
    by: &Actor,
) -> Result<StoredGateway> {
    let row = find(view, tenant, gateway_id)?;
    renew_secret(view, &row, sealed, old_until)?;
    let entry = AuditEntry::done(by, "gateway.rotate", tenant, gateway_id);
    view.audit(&if old_until.is_none() { entry.with("now: every old secret is void") } else { entry });
    whole(view, row)
}

/// Gives a gateway a new secret. The one before goes on until `old_until`, or is
/// void at once; older ones go: whoever rotates twice means the first one too.
pub fn renew_secret(
    view: &mut View<'_>,
    row: &GatewayRow,
    sealed: &[u8],
    old_until: Option<UnixMillis>,
) -> Result<()> {
    for mut old in view.find::<SecretRow>(&["tenant", "gateway_id"], (&row.tenant, &row.gateway_id))? {
        if old.valid_until.is_some() || old_until.is_none() {
            view.delete(&old);
        } else {
            old.valid_until = old_until;
            view.put(&old);
        }
    }
    add_secret(view, row, sealed)
}

fn add_secret(view: &mut View<'_>, row: &GatewayRow, sealed: &[u8]) -> Result<()> {
    let secret = SecretRow {
        id: view.number::<SecretRow>()?,
        tenant: row.tenant.clone(),
        gateway_id: row.gateway_id.clone(),
        sealed: sealed.to_vec(),
        valid_until: None,
        created_at: view.now(),
    };
    view.put(&secret);
    Ok(())
}

/// Revokes a gateway; it stays so.
pub fn revoke(view: &mut View<'_>, tenant: &str, gateway_id: &str, by: &Actor) -> Result<StoredGateway> {
    let mut row = find(view, tenant, gateway_id)?;
    row.revoked_at = row.revoked_at.or(Some(view.now()));
    view.put(&row);
    view.audit(&AuditEntry::done(by, "gateway.revoke", tenant, gateway_id));
    instances::settle_default(view, tenant)?;
    whole(view, row)
}

/// Changes what a gateway cannot tell itself.
pub fn change(
    view: &mut View<'_>,
    tenant: &str,
    gateway_id: &str,
    change: &GatewayChange,
    by: &Actor,
) -> Result<StoredGateway> {
    let mut row = find(view, tenant, gateway_id)?;
    let mut set = Vec::new();
    if let Some(name) = &change.instance {
        nobody_is_left(view, &row, name)?;
        instances::may_join(view, tenant, name, change.subject.as_ref())?;
    }
    if let Some(url) = &change.wake_url {
        row.wake_url = url.clone();
        set.push("wake_url".to_owned());
    }
    if let Some(name) = &change.display_name {
        row.display_name = name.clone();
        set.push("display_name".to_owned());
    }
    if let Some(mode) = change.while_busy {
        row.while_busy = Some(mode);
        set.push(format!("while_busy {}", mode.as_str()));
    }
    if let Some(shared) = change.shared_groups {
        row.shared_groups = shared;
        set.push(format!("shared_groups {shared}"));
    }
    if let Some(name) = &change.instance {
        let to = instances::named_or_new(view, tenant, name, change.subject.as_ref())?;
        move_default(view, &row, to.instance)?;
        declared::inherit(view, row.instance, to.instance)?;
        row.instance = to.instance;
        set.push(format!("instance {name}"));
    }
    view.put(&row);
    view.audit(&AuditEntry::done(by, "gateway.set", tenant, gateway_id).with(set.join(", ")));
    instances::settle_default(view, tenant)?;
    whole(view, row)
}

/// The default goes along with the last gateway that served it.
fn move_default(view: &mut View<'_>, row: &GatewayRow, to: InstanceId) -> Result<()> {
    let Some(mut tenant) = view.get::<TenantRow>((&row.tenant,))? else { return Ok(()) };
    if tenant.default_instance == Some(row.instance) && !others_serve(view, row)? {
        tenant.default_instance = Some(to);
        view.put(&tenant);
    }
    Ok(())
}

/// Whether somebody else would fetch what waits where a gateway is now.
fn others_serve(view: &mut View<'_>, row: &GatewayRow) -> Result<bool> {
    let serving = view.find::<GatewayRow>(&["instance"], (row.instance,))?;
    Ok(serving.iter().any(|other| other.revoked_at.is_none() && other.gateway_id != row.gateway_id))
}

/// Refuses to move a gateway away from messages that nobody else would fetch.
fn nobody_is_left(view: &mut View<'_>, row: &GatewayRow, name: &str) -> Result<()> {
    let Some(now) = view.get::<InstanceRow>((row.instance,))? else { return Ok(()) };
    let GatewayRow { gateway_id, .. } = row;
    if now.name == name || now.waiting == 0 || others_serve(view, row)? {
        return Ok(());
    }
    Err(Error::conflict(format!(
        "{} messages wait for the instance that gateway {gateway_id:?} serves now, and nobody else \
         would fetch them; let it connect first, or purge them (angelia inbox purge)",
        now.waiting
    )))
}

/// Deletes a gateway with its secrets.
pub fn delete(view: &mut View<'_>, row: &GatewayRow) -> Result<()> {
    view.delete_all::<SecretRow>(&["tenant", "gateway_id"], (&row.tenant, &row.gateway_id))?;
    view.delete(row);
    Ok(())
}

/// Forgets a gateway that was revoked long ago, with its instance if nobody needs that.
pub fn forget(view: &mut View<'_>, tenant: &str, gateway_id: &str) -> Result<()> {
    let row = find(view, tenant, gateway_id)?;
    delete(view, &row)?;
    view.audit(&AuditEntry::done(&Actor::server(), "gateway.forget", tenant, gateway_id));
    // While a route names it, the place is nobody else's: it must not fall to another route.
    let needed = view.count::<GatewayRow>(&["instance"], (row.instance,))? > 0
        || view.count::<RouteRow>(&["instance"], (row.instance,))? > 0;
    if !needed && let Some(instance) = view.get::<InstanceRow>((row.instance,))? {
        view.delete_all::<PolicyRow>(&["instance"], (row.instance,))?;
        view.delete_all::<FrontRow>(&["instance"], (row.instance,))?;
        view.delete_all::<ManifestRow>(&["instance"], (row.instance,))?;
        // While it is known whose it was.
        view.also(Write::Forget(row.instance));
        view.delete(&instance);
    }
    instances::settle_default(view, tenant)
}
