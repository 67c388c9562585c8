//! Room on the disk for one more write of a tenant, and what is forgotten for it.

use super::stored::Stored;
use super::writer::Txn;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::store::NewAction;
use rusqlite::params;

/// Finished actions that are forgotten at once to make room.
const FORGET: u64 = 1_000;

/// Makes room for actions of one tenant: what is only remembered of its finished
/// ones goes first. Refuses if that is not enough.
pub(super) fn for_actions(txn: &mut Txn<'_>, actions: &[NewAction]) -> rusqlite::Result<Result<()>> {
    let Some(first) = actions.first() else { return Ok(Ok(())) };
    let needed = actions.iter().map(|action| Stored::action(action.body.len())).sum();
    if fits(txn, &first.tenant, needed) {
        return Ok(Ok(()));
    }
    forget_finished(txn, &first.tenant)?;
    Ok(match fits(txn, &first.tenant, needed) {
        true => Ok(()),
        false => Err(full(txn, &first.tenant)),
    })
}

/// Whether so many bytes more of a tenant are within its quota.
pub(super) fn fits(txn: &Txn<'_>, tenant: &str, bytes: u64) -> bool {
    txn.stored_of(tenant).saturating_add(bytes) <= txn.quota.tenant_bytes
}

/// What a tenant that has no room left is told.
pub(super) fn full(txn: &Txn<'_>, tenant: &str) -> Error {
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
