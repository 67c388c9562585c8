//! Room for more of what a tenant stores, within its share of the disk.

use super::db::{Ask, Sql, values};
use super::footprint::{self, ACTION_LENGTHS};
use super::txn::Txn;
use angelia_core::error::Result;
use angelia_core::inbox::refusal;
use angelia_core::store::NewAction;

/// Finished actions are forgotten by the hundred.
const FORGET: u64 = 100;
/// Few enough to hold up nobody.
const ROUNDS: usize = 10;

/// Makes room for actions of one tenant; refuses if there is none.
pub(super) fn make_room_for(txn: &mut dyn Txn, actions: &[NewAction]) -> Sql<Result<()>> {
    let Some(first) = actions.first() else { return Ok(Ok(())) };
    let needed = actions.iter().map(footprint::new_action).sum();
    let made = make_room(txn, &first.tenant, needed)?;
    Ok(if made { Ok(()) } else { Err(refusal::tenant_full(&first.tenant, txn.quota().tenant_bytes)) })
}

/// Whether there is room for so many bytes more of a tenant. What is only remembered
/// of its finished actions is forgotten for that.
pub(super) fn make_room(txn: &mut dyn Txn, tenant: &str, bytes: u64) -> Sql<bool> {
    if fits(txn, tenant, bytes)? {
        return Ok(true);
    }
    let wanted = txn.quota().spared_for(bytes);
    for _ in 0..ROUNDS {
        if !forget_finished(txn, tenant)? || fits(txn, tenant, wanted)? {
            break;
        }
    }
    fits(txn, tenant, bytes)
}

fn fits(txn: &mut dyn Txn, tenant: &str, bytes: u64) -> Sql<bool> {
    Ok(txn.quota().fits_disk(txn.stored(tenant)?, bytes))
}

/// Forgets the oldest finished actions of a tenant; `false` if there are none. Nothing
/// depends on them but `angelia explain`.
fn forget_finished(txn: &mut dyn Txn, tenant: &str) -> Sql<bool> {
    let gone = txn.all(
        &format!(
            "DELETE FROM actions WHERE id IN (
                 SELECT id FROM actions WHERE tenant = $1 AND state NOT IN ('accepted', 'sending')
                 ORDER BY id LIMIT $2)
             RETURNING {ACTION_LENGTHS}"
        ),
        values![tenant, FORGET],
        |row| footprint::action(&row, 0),
    )?;
    let gone: u64 = gone.into_iter().sum();
    txn.store(tenant, 0, gone);
    Ok(gone > 0)
}
