//! Tokens that let one gateway enrol, once.

use super::{gateways, instances, tenants};
use crate::audit::{Actor, AuditEntry};
use crate::clock::UnixMillis;
use crate::error::{Error, Result};
use crate::records::View;
use crate::records::rows::{EnrollTokenRow, GatewayRow, InstanceRow};
use crate::store::{EnrollToken, Fingerprint, NewGateway, StoredGateway};

/// Keeps a token; answers whether it is to replace a gateway that exists.
pub fn mint(view: &mut View<'_>, token: &EnrollToken, by: &Actor) -> Result<bool> {
    tenants::find(view, &token.tenant)?;
    let existing = match &token.gateway_id {
        Some(id) => view.get::<GatewayRow>((&token.tenant, id))?,
        None => None,
    };
    if existing.as_ref().is_some_and(|gateway| gateway.revoked_at.is_some()) {
        return Err(Error::conflict("this gateway was revoked and stays so; choose another id"));
    }
    let replaces = existing.is_some();
    view.add(&EnrollTokenRow {
        fingerprint: token.fingerprint,
        tenant: token.tenant.clone(),
        gateway_id: token.gateway_id.clone(),
        replaces,
        expires_at: token.expires_at,
    })?;
    let target = token.gateway_id.as_deref().unwrap_or_default();
    let detail = if replaces { "replaces the gateway" } else { "" };
    view.audit(&AuditEntry::done(by, "enroll_token.create", &token.tenant, target).with(detail));
    Ok(replaces)
}

/// Uses up a token and enrols a gateway, or gives it a new secret where the token
/// was made to replace it. A refusal uses nothing up.
pub fn enroll(
    view: &mut View<'_>,
    token: &Fingerprint,
    new: &NewGateway,
    old_until: UnixMillis,
    by: &Actor,
) -> Result<StoredGateway> {
    let now = view.now();
    let found = view.get::<EnrollTokenRow>((token,))?;
    // Another tenant's token and no token at all get the same answer.
    let Some(token) = found.filter(|token| token.expires_at > now && token.tenant == new.tenant) else {
        return Err(Error::forbidden(
            "this enrolment token is unknown, used or expired; ask the operator for a new one (angelia enroll-token)",
        ));
    };
    if token.gateway_id.as_ref().is_some_and(|only| *only != new.gateway_id) {
        return Err(Error::forbidden("this enrolment token is for another gateway id"));
    }
    let enrolled = match view.get::<GatewayRow>((&new.tenant, &new.gateway_id))? {
        None => gateways::create(view, new, "gateway.enroll", by)?,
        Some(known) if known.revoked_at.is_some() => {
            return Err(Error::forbidden("this gateway was revoked; choose another id"));
        }
        Some(known) if token.replaces => replace(view, known, new, old_until, by)?,
        Some(known) => {
            let id = known.gateway_id;
            return Err(Error::conflict(format!(
                "there is a gateway {id:?} already; choose another id, or ask the operator for a token that \
                 replaces it (angelia enroll-token --gateway {id})"
            )));
        }
    };
    view.delete(&token);
    Ok(enrolled)
}

/// Hands a gateway and its instance over to the subject that enrols it now.
fn replace(
    view: &mut View<'_>,
    mut row: GatewayRow,
    new: &NewGateway,
    old_until: UnixMillis,
    by: &Actor,
) -> Result<StoredGateway> {
    let sharing = view.find::<GatewayRow>(&["instance"], (row.instance,))?.into_iter().find(|other| {
        other.gateway_id != row.gateway_id && other.revoked_at.is_none() && other.subject != new.subject
    });
    if let Some(GatewayRow { gateway_id: other, .. }) = sharing {
        return Err(Error::conflict(format!(
            "gateway {other:?} serves the same instance and is somebody else's; ask the operator to revoke or \
             move it first"
        )));
    }
    gateways::renew_secret(view, &row, &new.sealed_secret, Some(old_until))?;
    row.subject.clone_from(&new.subject);
    view.put(&row);
    if let Some(mut instance) = view.get::<InstanceRow>((row.instance,))? {
        instance.subject.clone_from(&new.subject);
        view.put(&instance);
    }
    view.audit(&AuditEntry::done(by, "gateway.enroll", &row.tenant, &row.gateway_id).with("replaced"));
    instances::settle_default(view, &row.tenant)?;
    gateways::whole(view, row)
}
