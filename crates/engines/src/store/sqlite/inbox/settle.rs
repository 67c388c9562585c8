//! Letting entries go: acknowledged, acknowledged late, or left behind by a socket.

use super::super::footprint::{self, ENTRY_LENGTHS};
use super::super::writer::{Txn, now};
use angelia_core::clock::UnixMillis;
use angelia_core::inbox::outcome::{ACKNOWLEDGED_LATE, OVER_QUOTA};
use angelia_core::inbox::{Epoch, InstanceId, Seq, SettledBy};
use angelia_core::ports::log::{Ownership, Settlement};
use rusqlite::{OptionalExtension, params};
use std::sync::LazyLock;

/// An entry that was taken out.
pub(super) struct Gone {
    /// Its row of the journal.
    pub(super) journal: i64,
}

/// Deletes a waiting entry and its share of the usage; `None` if it was gone.
pub(super) fn remove(txn: &mut Txn<'_>, instance: InstanceId, seq: Seq) -> rusqlite::Result<Option<Gone>> {
    // Read and then deleted: a statement that returns what it deletes keeps a table for
    // that, and costs more than two.
    static QUERY: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT length(body), dead_at IS NOT NULL, chat_id, journal, {ENTRY_LENGTHS}
             FROM inbox WHERE instance = ? AND seq = ?"
        )
    });
    let gone: Option<(usize, bool, String, i64, u64)> = txn
        .prepare_cached(&QUERY)?
        .query_row(params![instance.0, seq.0], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, footprint::entry(row, 4)?))
        })
        .optional()?;
    let Some((bytes, dead, chat, journal, footprint)) = gone else { return Ok(None) };
    txn.prepare_cached("DELETE FROM inbox WHERE instance = ? AND seq = ?")?
        .execute(params![instance.0, seq.0])?;
    txn.counted.stored.removed(txn.connection, instance, footprint)?;
    if !dead {
        txn.count(instance, |held| held.remove(&chat, bytes));
    }
    Ok(Some(Gone { journal }))
}

pub(super) fn close_journal(txn: &Txn<'_>, journal: i64, outcome: &str) -> rusqlite::Result<()> {
    txn.prepare_cached("UPDATE journal SET settled_at = ?, outcome = ? WHERE id = ?")?.execute(params![
        now(),
        outcome,
        journal
    ])?;
    Ok(())
}

/// Whether an instance is drained under this epoch still; one that is gone is not.
pub(super) fn ownership(txn: &Txn<'_>, instance: InstanceId, epoch: Epoch) -> rusqlite::Result<Ownership> {
    let last: Option<Epoch> = txn
        .prepare_cached("SELECT epoch FROM instances WHERE instance = ?")?
        .query_row([instance.0], |row| row.get(0).map(Epoch))
        .optional()?;
    Ok(Ownership::of(last, epoch))
}

pub(super) fn settle(
    txn: &mut Txn<'_>,
    instance: InstanceId,
    settlement: &Settlement,
) -> rusqlite::Result<()> {
    let Some(gone) = remove(txn, instance, settlement.seq)? else {
        return restore_gap(txn, instance, settlement.seq, "");
    };
    let outcome = settlement.by.as_str();
    txn.prepare_cached(
        "UPDATE journal SET settled_at = ?1, outcome = ?2, pushed_at = coalesce(pushed_at, ?3),
         pushes = pushes + (?3 IS NOT NULL) WHERE id = ?4",
    )?
    .execute(params![now(), outcome, settlement.pushed_at.map(|at| at.0), gone.journal])?;
    Ok(())
}

/// Settles an entry that an earlier socket pushed; `false` if there is none. Numbers
/// can be made up: what was never pushed is not done.
pub(super) fn settle_late(txn: &mut Txn<'_>, instance: InstanceId, seq: Seq) -> rusqlite::Result<bool> {
    let pushed: Option<bool> = txn
        .prepare_cached(
            "SELECT pushed_at IS NOT NULL FROM inbox i JOIN journal j ON j.id = i.journal
             WHERE i.instance = ? AND i.seq = ?",
        )?
        .query_row(params![instance.0, seq.0], |row| row.get(0))
        .optional()?;
    match pushed {
        None => restore_gap(txn, instance, seq, "AND pushed_at IS NOT NULL").map(|()| false),
        Some(false) => Ok(false),
        Some(true) => match remove(txn, instance, seq)? {
            Some(gone) => close_journal(txn, gone.journal, ACKNOWLEDGED_LATE).map(|()| true),
            None => Ok(false),
        },
    }
}

/// An entry that went for the quota while it was in flight, and was
/// acknowledged after all, is not lost; if `pushed` holds.
fn restore_gap(txn: &Txn<'_>, instance: InstanceId, seq: Seq, pushed: &str) -> rusqlite::Result<()> {
    let chat: Option<String> = txn
        .prepare_cached(&format!(
            "UPDATE journal SET outcome = ?
             WHERE instance = ? AND seq = ? AND outcome = '{OVER_QUOTA}' {pushed} RETURNING chat_id"
        ))?
        .query_row(params![SettledBy::Ack.as_str(), instance.0, seq.0], |row| row.get(0))
        .optional()?;
    let Some(chat) = chat else { return Ok(()) };
    txn.prepare_cached("UPDATE gaps SET lost = lost - 1 WHERE instance = ? AND chat_id = ?")?
        .execute(params![instance.0, chat])?;
    txn.prepare_cached("DELETE FROM gaps WHERE instance = ? AND chat_id = ? AND lost <= 0")?
        .execute(params![instance.0, chat])?;
    txn.prepare_cached(
        "DELETE FROM untold_gaps WHERE instance = ?1 AND chat_id = ?2
         AND NOT EXISTS (SELECT 1 FROM gaps WHERE instance = ?1 AND chat_id = ?2)",
    )?
    .execute(params![instance.0, chat])?;
    Ok(())
}

/// Notes when an entry that waits was pushed; `counts` if a socket ended with it.
pub(super) fn note_push(
    txn: &Txn<'_>,
    instance: InstanceId,
    seq: Seq,
    pushed_at: UnixMillis,
    counts: bool,
) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "UPDATE journal SET pushed_at = coalesce(pushed_at, ?), pushes = pushes + ?
         WHERE id = (SELECT journal FROM inbox WHERE instance = ? AND seq = ?)",
    )?
    .execute(params![pushed_at.0, counts, instance.0, seq.0])?;
    Ok(())
}
