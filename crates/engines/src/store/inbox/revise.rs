//! Messages that their authors changed while they waited.

use super::super::db::{Ask, Sql, values};
use super::super::footprint::{self, ENTRY_LENGTHS};
use super::super::txn::Txn;
use super::super::{openings, tenant_bytes};
use super::evict::enforce_quota;
use super::{ENTRY_COLUMNS, ENTRY_WIDTH, entry};
use angelia_core::error::Result;
use angelia_core::inbox::{Entry, InstanceId, Seq, refusal};
use angelia_core::ports::Hint;
use angelia_core::store::{Revised, Revision};
use angelia_core::threads;

/// An entry before the change.
struct Waiting {
    instance: InstanceId,
    seq: Seq,
    bytes: usize,
    dead: bool,
    is_final: bool,
    tenant: String,
    /// What it takes on the disk.
    footprint: u64,
}

/// Replaces what a waiting entry says, at its place in line. A dead letter is
/// changed too: it may be put back in line.
pub(in super::super) fn revise(txn: &mut dyn Txn, new: &Revision) -> Sql<Revised> {
    if let Some(revised) = openings::revise(txn, new)? {
        return Ok(revised);
    }
    // What took up other lines stays as it is.
    let old = waiting(txn, new)?.filter(|old| !old.is_final);
    let revised = Revised::of(old.as_ref().map(|old| old.instance), new.instance);
    let Some(old) = old.filter(|_| revised == Revised::Replaced) else { return Ok(revised) };
    let body = "SELECT body FROM inbox WHERE instance = $1 AND seq = $2";
    let before: Vec<u8> = txn.one(body, values![old.instance, old.seq], |row| row.get(0))?;
    let body = threads::keep_place(&before, &new.body).unwrap_or_else(|| new.body.clone());
    let (entry, footprint) = txn.one(
        &format!(
            "UPDATE inbox SET kind = $1, body = $2, revision = revision + 1 WHERE instance = $3 AND seq = $4
             RETURNING {ENTRY_COLUMNS}, {ENTRY_LENGTHS}"
        ),
        values![new.kind.as_str(), body, old.instance, old.seq],
        |row| Ok((entry(row)?, footprint::entry(&row, ENTRY_WIDTH)?)),
    )?;
    txn.store(&old.tenant, footprint, old.footprint);
    if !old.dead {
        let chat_id = entry.chat_id.clone();
        txn.count_out(old.instance, &chat_id, old.bytes)?;
        txn.count_in(old.instance, &chat_id, body.len())?;
        txn.tell(Hint::Revised { instance: old.instance, entry });
        enforce_quota(txn, old.instance, &chat_id)?;
    }
    Ok(revised)
}

/// Whether what waits stays within the quotas if it says this from now on. If it does
/// not, what its author is told.
pub(in super::super) fn has_room(txn: &mut dyn Txn, new: &Revision) -> Sql<Result<()>> {
    let old = waiting(txn, new)?.filter(|old| old.instance == new.instance && !old.dead);
    let Some(old) = old else { return Ok(Ok(())) };
    let (quota, bytes) = (txn.quota(), new.body.len());
    let held = txn.held_with(old.instance, &new.chat_id)?;
    let admits = quota.admits_change(&held, &new.chat_id, old.bytes, bytes);
    let more = footprint::longer_body(old.bytes, bytes);
    let fits = admits && (more == 0 || tenant_bytes::make_room(txn, &old.tenant, more)?);
    Ok(refusal::judge(admits, fits))
}

/// The entry an event made, by the key under which it is seen once. Nobody else changes it
/// from now on.
fn waiting(txn: &mut dyn Txn, new: &Revision) -> Sql<Option<Waiting>> {
    let Some(found) = find(txn, new)? else { return Ok(None) };
    txn.lock(found.instance)?;
    find(txn, new)
}

fn find(txn: &mut dyn Txn, new: &Revision) -> Sql<Option<Waiting>> {
    txn.first(
        &format!(
            "SELECT w.instance, w.seq, w.bytes, w.dead, j.tenant, w.revision, w.* FROM journal j JOIN (
                 SELECT {ENTRY_LENGTHS}, instance, seq, length(body) AS bytes, dead_at IS NOT NULL AS dead,
                 revision FROM inbox
             ) w ON w.instance = j.instance AND w.seq = j.seq
             WHERE j.message_id = $1 AND j.chat_id = $2 AND j.platform = $3 AND j.bot = $4
             AND j.kind IN ('message', 'stop')"
        ),
        values![new.message_id, new.chat_id, new.platform, new.bot],
        |row| {
            Ok(Waiting {
                instance: InstanceId(row.get(0)?),
                seq: Seq(row.get(1)?),
                bytes: row.get(2)?,
                dead: row.get(3)?,
                tenant: row.get(4)?,
                is_final: row.get::<u32>(5)? == Entry::FINAL,
                footprint: footprint::entry(&row, 6)?,
            })
        },
    )
}
