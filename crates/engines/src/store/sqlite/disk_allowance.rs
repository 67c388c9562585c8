//! Room on the disk for one more write of a tenant, and what is forgotten for it.

use super::footprint::{self, ACTION_LENGTHS};
use super::writer::Txn;
use angelia_core::error::Result;
use angelia_core::inbox::refusal;
use angelia_core::store::NewAction;
use rusqlite::params;

/// Finished actions are forgotten by the hundred.
const FORGET: u64 = 100;
/// Few enough to hold up nobody.
const ROUNDS: usize = 10;

/// Makes room for actions of one tenant; refuses if there is none.
pub(super) fn for_actions(txn: &mut Txn<'_>, actions: &[NewAction]) -> rusqlite::Result<Result<()>> {
    let Some(first) = actions.first() else { return Ok(Ok(())) };
    let needed = actions.iter().map(footprint::new_action).sum();
    let made = made(txn, &first.tenant, needed)?;
    Ok(if made { Ok(()) } else { Err(refusal::tenant_full(&first.tenant, txn.quota.tenant_bytes)) })
}

/// Whether there is room for so many bytes more of a tenant. What is only remembered
/// of its finished actions is forgotten for that.
pub(super) fn made(txn: &mut Txn<'_>, tenant: &str, bytes: u64) -> rusqlite::Result<bool> {
    if fits(txn, tenant, bytes) {
        return Ok(true);
    }
    let wanted = txn.quota.spared_for(bytes);
    for _ in 0..ROUNDS {
        if !forget_finished(txn, tenant)? || fits(txn, tenant, wanted) {
            break;
        }
    }
    Ok(fits(txn, tenant, bytes))
}

fn fits(txn: &Txn<'_>, tenant: &str, bytes: u64) -> bool {
    txn.quota.fits_disk(txn.counted.stored.of(tenant), bytes)
}

/// Forgets the oldest finished actions of a tenant; `false` if there are none. Nothing
/// depends on them but `angelia explain`.
fn forget_finished(txn: &mut Txn<'_>, tenant: &str) -> rusqlite::Result<bool> {
    let gone = txn
        .prepare_cached(&format!(
            "DELETE FROM actions WHERE id IN (
                 SELECT id FROM actions WHERE tenant = ? AND state NOT IN ('accepted', 'sending')
                 ORDER BY id LIMIT ?)
             RETURNING {ACTION_LENGTHS}"
        ))?
        .query_map(params![tenant, FORGET], |row| footprint::action(row, 0))?
        .sum::<rusqlite::Result<u64>>()?;
    txn.counted.stored.forgot(tenant, gone);
    Ok(gone > 0)
}
