//! Messages that their authors changed while they waited.

use super::super::writer::Txn;
use super::append::enforce_quota;
use super::{ENTRY_COLUMNS, entry};
use angelia_core::inbox::InstanceId;
use angelia_core::store::{Revised, Revision};
use rusqlite::{OptionalExtension, params};

/// An entry before the change.
struct Waiting {
    instance: InstanceId,
    seq: i64,
    bytes: usize,
    dead: bool,
}

/// Replaces what a waiting entry says, at its place in line. A dead letter is
/// changed too: it may be put back in line.
pub(in super::super) fn revise(txn: &mut Txn<'_>, new: &Revision) -> rusqlite::Result<Revised> {
    let Some(old) = waiting(txn, new)? else { return Ok(Revised::NotWaiting) };
    if old.instance != new.instance {
        return Ok(Revised::Elsewhere);
    }
    let revised = txn
        .prepare_cached(&format!(
            "UPDATE inbox SET kind = ?, body = ?, revision = revision + 1 WHERE instance = ? AND seq = ?
             RETURNING {ENTRY_COLUMNS}"
        ))?
        .query_row(params![new.kind.as_str(), new.body.as_ref(), old.instance.0, old.seq], entry)?;
    let (db, stored) = txn.stored();
    stored.revised(db, old.instance, old.bytes, new.body.len())?;
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

/// Whether what waits stays within the quota if it says this from now on.
pub(in super::super) fn has_room(txn: &mut Txn<'_>, new: &Revision) -> rusqlite::Result<bool> {
    let Some(old) = waiting(txn, new)?.filter(|old| old.instance == new.instance && !old.dead) else {
        return Ok(true);
    };
    let quota = *txn.quota;
    txn.count(old.instance, |held| held.remove(&new.chat_id, old.bytes));
    let admits = quota.admits(txn.held(old.instance), &new.chat_id, new.body.len());
    txn.count(old.instance, |held| held.add(&new.chat_id, old.bytes));
    Ok(admits || new.body.len() <= old.bytes)
}

/// The entry an event made, by the key under which it is seen once.
fn waiting(txn: &Txn<'_>, new: &Revision) -> rusqlite::Result<Option<Waiting>> {
    txn.prepare_cached(
        "SELECT i.instance, i.seq, length(i.body), i.dead_at IS NOT NULL
         FROM journal j JOIN inbox i ON i.instance = j.instance AND i.seq = j.seq
         WHERE j.message_id = ? AND j.chat_id = ? AND j.platform = ? AND j.bot = ?
         AND j.kind IN ('message', 'stop')",
    )?
    .query_row(params![new.message_id, new.chat_id, new.platform, new.bot], |row| {
        Ok(Waiting {
            instance: InstanceId(row.get(0)?),
            seq: row.get(1)?,
            bytes: row.get(2)?,
            dead: row.get(3)?,
        })
    })
    .optional()
}
