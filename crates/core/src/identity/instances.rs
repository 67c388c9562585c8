//! Instances: who may have which, and which one gets what no route of its tenant assigns: the default.
//!
//! A tenant has one from its beginning. It has no name and is nobody's yet: what people
//! write waits in it for the tenant's first gateway, which takes it over with everything
//! in it (docs/decisions/0034).

use super::{Subject, judge_instance};
use crate::audit::{Actor, AuditEntry};
use crate::clock::UnixMillis;
use crate::error::{Error, Result};
use crate::inbox::{AckHabit, InstanceId};
use crate::records::View;
use crate::records::rows::{GatewayRow, InstanceRow, TenantRow};

/// What is shown of an instance without a name where a name is expected. No name looks
/// like this: see [`check_name`](super::check_name).
pub const WAITS_FOR_FIRST: &str = "(waits for its first gateway)";

/// The name of an instance that waits for its tenant's first gateway. Nobody can give it.
pub const NAMELESS: &str = "";

/// Whether the instance of that name waits for its tenant's first gateway.
pub fn waits_for_first(name: &str) -> bool {
    name == NAMELESS
}

/// An instance of that name, as it is shown.
pub fn shown(name: String) -> String {
    if waits_for_first(&name) { WAITS_FOR_FIRST.to_owned() } else { name }
}

/// Makes the instance that waits for the tenant's first gateway.
pub fn await_first(view: &mut View<'_>, tenant: &str) -> Result<InstanceRow> {
    named_or_new(view, tenant, NAMELESS, None)
}

/// Gives the instance that waits for the tenant's first gateway to it, as if it had been
/// made for it; `None` if the tenant had a gateway before. It was nobody's until now, so
/// nobody gets what waited for somebody else.
pub fn take_over(
    view: &mut View<'_>,
    tenant: &str,
    name: &str,
    subject: Option<&Subject>,
) -> Result<Option<InstanceRow>> {
    let Some(mut first) = named(view, tenant, NAMELESS)? else { return Ok(None) };
    name.clone_into(&mut first.name);
    first.subject = subject.cloned();
    view.put(&first);
    Ok(Some(first))
}

/// The tenant's instance of that name.
pub fn named(view: &mut View<'_>, tenant: &str, name: &str) -> Result<Option<InstanceRow>> {
    view.find::<InstanceRow>(&["tenant", "name"], (tenant, name)).map(|mut found| found.pop())
}

/// The tenant's instance of that name, made if there is none.
pub fn named_or_new(
    view: &mut View<'_>,
    tenant: &str,
    name: &str,
    subject: Option<&Subject>,
) -> Result<InstanceRow> {
    if let Some(found) = named(view, tenant, name)? {
        return Ok(found);
    }
    let made = InstanceRow {
        instance: InstanceId(view.number::<InstanceRow>()?),
        tenant: tenant.to_owned(),
        name: name.to_owned(),
        subject: subject.cloned(),
        idle: false,
        ack_habit: AckHabit::default(),
        waiting: 0,
    };
    view.put(&made);
    Ok(made)
}

/// Whether a new gateway may have the instance of its own name. One that is
/// there already is somebody's, unless nobody serves it and the same subject made it.
pub fn may_own(view: &mut View<'_>, tenant: &str, name: &str, subject: Option<&Subject>) -> Result<()> {
    let Some(found) = named(view, tenant, name)? else { return Ok(()) };
    let gateways = view.count::<GatewayRow>(&["instance"], (found.instance,))?;
    match subject {
        _ if gateways == 0 && found.subject.as_ref() == subject => Ok(()),
        Some(subject) => judge_instance(None, false, subject),
        // What was abandoned the operator may take.
        None if gateways == 0 => Ok(()),
        None => Err(Error::conflict(format!(
            "an instance of tenant {tenant:?} is called {name:?} already, and other gateways serve it; \
             choose another id"
        ))),
    }
}

/// Whether `subject` may let a gateway serve the tenant's instance of that name; the operator always may.
pub fn may_join(view: &mut View<'_>, tenant: &str, name: &str, subject: Option<&Subject>) -> Result<()> {
    let Some(subject) = subject else { return Ok(()) };
    let namesake = view.get::<GatewayRow>((tenant, name))?;
    if namesake.is_some_and(|gateway| gateway.subject.as_ref() != Some(subject)) {
        return judge_instance(None, false, subject);
    }
    let Some(found) = named(view, tenant, name)? else { return Ok(()) };
    let gateways = view.find::<GatewayRow>(&["instance"], (found.instance,))?;
    let revoked = !gateways.is_empty() && gateways.iter().all(|gateway| gateway.revoked_at.is_some());
    judge_instance(found.subject.as_ref(), revoked, subject)
}

/// Makes an instance the default of its tenant.
pub fn set_default(view: &mut View<'_>, tenant: &str, instance: InstanceId, by: &Actor) -> Result<()> {
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
pub fn settle_default(view: &mut View<'_>, tenant: &str) -> Result<()> {
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
    if known.is_some_and(|row| waits_for_first(&row.name)) {
        return Ok(true);
    }
    let serving = view.find::<GatewayRow>(&["instance"], (instance,))?;
    Ok(serving.iter().any(|gateway| gateway.revoked_at.is_none()))
}
