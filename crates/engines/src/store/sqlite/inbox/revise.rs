//! Messages that their authors changed while they waited.

use super::super::footprint::{self, ENTRY_LENGTHS};
use super::super::room;
use super::super::txn::Txn;
use super::append::{disk_full, enforce_quota, full};
use super::{ENTRY_COLUMNS, entry};
use angelia_core::error::Result;
use angelia_core::inbox::InstanceId;
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
    let Some(old) = waiting(txn, new)? else { return Ok(Revised::NotWaiting) };
    if old.instance != new.instance {
        return Ok(Revised::Elsewhere);
    }
    let (revised, footprint) = txn
        .prepare_cached(&format!(
            "UPDATE inbox SET kind = ?, body = ?, revision = revision + 1 WHERE instance = ? AND seq = ?
             RETURNING {ENTRY_COLUMNS}, {ENTRY_LENGTHS}"
        ))?
        .query_row(params![new.kind.as_str(), new.body.as_ref(), old.instance.0, old.seq], |row| {
            Ok((entry(row)?, footprint::entry(row, 8)?))
        })?;
    let (db, stored) = txn.stored();
    stored.revised(db, old.instance, old.footprint, footprint)?;
    if !old.dead {
        txn.count(old.instance, |held| {
            held.remove(&new.chat_id, old.bytes);
            held.add(&new.chat_id, new.body.len());
        });
        txn.revised(old.instance, revised);
        enforce_quota(txn, old.instance, &new.chat_id)?;
    }
    Ok(Revised::Replaced)
}

/// Whether what waits stays within the quotas if it says this from now on. If it does
/// not, what its author is told.
pub(in super::super) fn has_room(txn: &mut Txn<'_>, new: &Revision) -> rusqlite::Result<Result<()>> {
    let shorter = |old: &Waiting| new.body.len() <= old.bytes;
    let old = waiting(txn, new)?.filter(|old| old.instance == new.instance && !old.dead && !shorter(old));
    let Some(old) = old else { return Ok(Ok(())) };
    let quota = *txn.quota;
    txn.count(old.instance, |held| held.remove(&new.chat_id, old.bytes));
    let admits = quota.admits(txn.held(old.instance), &new.chat_id, new.body.len());
    txn.count(old.instance, |held| held.add(&new.chat_id, old.bytes));
    if !admits {
        return Ok(Err(full()));
    }
    let more = footprint::longer_body(old.bytes, new.body.len());
    Ok(if room::made(txn, &old.tenant, more)? { Ok(()) } else { Err(disk_full()) })
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
