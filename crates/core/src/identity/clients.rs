//! OAuth clients of the built-in token endpoint.

use super::tenants;
use crate::audit::{Actor, AuditEntry};
use crate::error::{Error, Result};
use crate::records::View;
use crate::store::{Client, Fingerprint};

/// Makes a client.
pub fn create(view: &mut View<'_>, client: &Client, by: &Actor) -> Result<()> {
    tenants::find(view, &client.tenant)?;
    view.add(client)?;
    view.audit(&AuditEntry::done(by, "client.create", &client.tenant, &client.client_id));
    Ok(())
}

/// Revokes a client; it stays so.
pub fn revoke(view: &mut View<'_>, client_id: &str, by: &Actor) -> Result<Client> {
    let mut row = find(view, client_id)?;
    row.revoked_at = row.revoked_at.or(Some(view.now()));
    view.put(&row);
    view.audit(&AuditEntry::done(by, "client.revoke", &row.tenant, client_id));
    Ok(row)
}

/// Gives a client another secret; the one it had is void.
pub fn rotate(view: &mut View<'_>, client_id: &str, secret: Fingerprint, by: &Actor) -> Result<Client> {
    let mut row = find(view, client_id)?;
    if row.revoked_at.is_some() {
        return Err(Error::conflict(format!("client {client_id:?} is revoked; make a new one")));
    }
    row.secret_fingerprint = secret;
    view.put(&row);
    view.audit(&AuditEntry::done(by, "client.rotate", &row.tenant, client_id));
    Ok(row)
}

fn find(view: &mut View<'_>, client_id: &str) -> Result<Client> {
    let found = view.get::<Client>((client_id,))?;
    found.ok_or_else(|| Error::not_found(format!("there is no client {client_id:?}")))
}
