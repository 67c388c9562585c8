//! Messages that their authors changed while they waited.

use super::super::footprint::{self, ENTRY_LENGTHS};
use super::super::tenant_bytes;
use super::super::writer::Txn;
use super::evict::enforce_quota;
use super::{ENTRY_COLUMNS, ENTRY_WIDTH, entry};
use angelia_core::error::Result;
use angelia_core::inbox::{InstanceId, refusal};
use angelia_core::ports::Hint;
use angelia_core::store::{Revised, Revision};
use rusqlite::{OptionalExtension, params};

/// An entry before the change.
struct Waiting {
    instance: InstanceId,
    seq: i64,
    bytes: usize,
    dead: bool,
    tenant: String,
    /// What it takes on the disk.
    footprint: u64,
}

/// Replaces what a waiting entry says, at its place in line. A dead letter is
/// changed too: it may be put back in line.
pub(in super::super) fn revise(txn: &mut Txn<'_>, new: &Revision) -> rusqlite::Result<Revised> {
    let old = waiting(txn, new)?;
    let revised = Revised::of(old.as_ref().map(|old| old.instance), new.instance);
    let Some(old) = old.filter(|_| revised == Revised::Replaced) else { return Ok(revised) };
    let (entry, footprint) = txn
        .prepare_cached(&format!(
            "UPDATE inbox SET kind = ?, body = ?, revision = revision + 1 WHERE instance = ? AND seq = ?
             RETURNING {ENTRY_COLUMNS}, {ENTRY_LENGTHS}"
        ))?
        .query_row(params![new.kind.as_str(), new.body.as_ref(), old.instance.0, old.seq], |row| {
            Ok((entry(row)?, footprint::entry(row, ENTRY_WIDTH)?))
        })?;
    txn.counted.stored.revised(txn.connection, old.instance, old.footprint, footprint)?;
    if !old.dead {
        txn.count(old.instance, |held| {
            held.remove(&new.chat_id, old.bytes);
            held.add(&new.chat_id, new.body.len());
        });
        txn.tell(Hint::Revised { instance: old.instance, entry });
        enforce_quota(txn, old.instance, &new.chat_id)?;
    }
    Ok(revised)
}

/// Whether what waits stays within the quotas if it says this from now on. If it does
/// not, what its author is told.
pub(in super::super) fn has_room(txn: &mut Txn<'_>, new: &Revision) -> rusqlite::Result<Result<()>> {
    let old = waiting(txn, new)?.filter(|old| old.instance == new.instance && !old.dead);
    let Some(old) = old else { return Ok(Ok(())) };
    let (quota, bytes) = (*txn.quota, new.body.len());
    let admits = quota.admits_change(txn.held(old.instance), &new.chat_id, old.bytes, bytes);
    let more = footprint::longer_body(old.bytes, bytes);
    let fits = admits && (more == 0 || tenant_bytes::make_room(txn, &old.tenant, more)?);
    Ok(refusal::judge(admits, fits))
}

/// The entry an event made, by the key under which it is seen once.
fn waiting(txn: &Txn<'_>, new: &Revision) -> rusqlite::Result<Option<Waiting>> {
    txn.prepare_cached(&format!(
        "SELECT w.instance, w.seq, w.bytes, w.dead, j.tenant, w.* FROM journal j JOIN (
             SELECT {ENTRY_LENGTHS}, instance, seq, length(body) AS bytes, dead_at IS NOT NULL AS dead FROM inbox
         ) w ON w.instance = j.instance AND w.seq = j.seq
         WHERE j.message_id = ? AND j.chat_id = ? AND j.platform = ? AND j.bot = ?
         AND j.kind IN ('message', 'stop')"
    ))?
    .query_row(params![new.message_id, new.chat_id, new.platform, new.bot], |row| {
        Ok(Waiting {
            instance: InstanceId(row.get(0)?),
            seq: row.get(1)?,
            bytes: row.get(2)?,
            dead: row.get(3)?,
            tenant: row.get(4)?,
            footprint: footprint::entry(row, 5)?,
        })
    })
    .optional()
}
