//! The instance that gets what no route of its tenant assigns.

use super::instances;
use crate::audit::{Actor, AuditEntry};
use crate::clock::UnixMillis;
use crate::error::Result;
use crate::inbox::InstanceId;
use crate::records::View;
use crate::records::rows::{GatewayRow, InstanceRow, TenantRow};

/// Makes an instance the default of its tenant.
pub fn set(view: &mut View<'_>, tenant: &str, instance: InstanceId, by: &Actor) -> Result<()> {
    if let Some(mut row) = view.get::<TenantRow>((tenant,))? {
        row.default_instance = Some(instance);
        view.put(&row);
    }
    let name = view.get::<InstanceRow>((instance,))?.map(|row| row.name).unwrap_or_default();
    view.audit(&AuditEntry::done(by, "gateway.default", tenant, &name));
    Ok(())
}

/// Sees to it that a tenant's default is an instance that somebody serves, or that waits for
/// its first gateway: the only one there is, if it was not. Between several the operator chooses.
pub fn settle(view: &mut View<'_>, tenant: &str) -> Result<()> {
    let Some(mut row) = view.get::<TenantRow>((tenant,))? else { return Ok(()) };
    if let Some(now) = row.default_instance
        && takes_messages(view, now)?
    {
        return Ok(());
    }
    let mut served: Vec<InstanceId> = view
        .find::<GatewayRow>(&["tenant", "revoked_at"], (tenant, None::<UnixMillis>))?
        .into_iter()
        .map(|gateway| gateway.instance)
        .collect();
    served.sort_unstable();
    served.dedup();
    let next = if let [only] = served[..] { Some(only) } else { None };
    if next == row.default_instance {
        return Ok(());
    }
    row.default_instance = next;
    view.put(&row);
    let name = match next {
        Some(next) => view.get::<InstanceRow>((next,))?.map(|row| row.name).unwrap_or_default(),
        None => String::new(),
    };
    view.audit(&AuditEntry::done(&Actor::server(), "gateway.default", tenant, &name));
    Ok(())
}

/// Whether what is for an instance may wait there: a gateway that was not revoked serves it,
/// or it waits for its first one.
fn takes_messages(view: &mut View<'_>, instance: InstanceId) -> Result<bool> {
    let known = view.get::<InstanceRow>((instance,))?;
    if known.is_some_and(|row| instances::waits_for_first(&row.name)) {
        return Ok(true);
    }
    let serving = view.find::<GatewayRow>(&["instance"], (instance,))?;
    Ok(serving.iter().any(|gateway| gateway.revoked_at.is_none()))
}
