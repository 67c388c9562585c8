//! Instances: who may have which.

use super::{Subject, judge_instance};
use crate::error::{Error, Result};
use crate::inbox::{AckHabit, InstanceId};
use crate::records::View;
use crate::records::rows::{GatewayRow, InstanceRow};

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
