//! Room on the disk for one more write of a tenant, and what is forgotten for it.

use super::stored::Stored;
use super::writer::Txn;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::store::NewAction;
use rusqlite::params;

/// Finished actions that are forgotten at once to make room.
const FORGET: u64 = 1_000;

/// Makes room for actions of one tenant; refuses if there is none.
pub(super) fn for_actions(txn: &mut Txn<'_>, actions: &[NewAction]) -> rusqlite::Result<Result<()>> {
    let Some(first) = actions.first() else { return Ok(Ok(())) };
    let needed = actions.iter().map(|action| Stored::action(action.body.len())).sum();
    let made = made(txn, &first.tenant, needed)?;
    Ok(if made { Ok(()) } else { Err(full(txn, &first.tenant)) })
}

/// Whether there is room for so many bytes more of a tenant. What is only remembered
/// of its finished actions is forgotten for that.
pub(super) fn made(txn: &mut Txn<'_>, tenant: &str, bytes: u64) -> rusqlite::Result<bool> {
    if fits(txn, tenant, bytes) {
        return Ok(true);
    }
    forget_finished(txn, tenant)?;
    Ok(fits(txn, tenant, bytes))
}

/// Whether so many bytes more of a tenant are within its quota.
pub(super) fn fits(txn: &Txn<'_>, tenant: &str, bytes: u64) -> bool {
    txn.stored_of(tenant).saturating_add(bytes) <= txn.quota.tenant_bytes
}

/// What a tenant that has no room left is told.
fn full(txn: &Txn<'_>, tenant: &str) -> Error {
    let most = txn.quota.tenant_bytes;
    Error::new(
        Kind::TooMany,
        format!(
            "too much is kept of tenant {tenant:?}: its share of the disk, {most} bytes, is used up. \
             Nothing was written. Let its agents fetch what waits, or raise limits.tenant_disk"
        ),
    )
}

/// Forgets the oldest finished actions of a tenant. Nothing depends on them but
/// `angelia explain`.
fn forget_finished(txn: &mut Txn<'_>, tenant: &str) -> rusqlite::Result<()> {
    let gone = txn
        .prepare_cached(
            "DELETE FROM actions WHERE id IN (
                 SELECT id FROM actions WHERE tenant = ? AND state NOT IN ('accepted', 'sending')
                 ORDER BY id LIMIT ?)",
        )?
        .execute(params![tenant, FORGET])?;
    txn.stored().1.forgot_actions(tenant, gone as u64);
    Ok(())
}
