//! Messages that were deleted where they were written, while they waited.

use super::super::writer::Txn;
use super::{close_journal, remove};
use angelia_core::inbox::outcome::WITHDRAWN;
use angelia_core::inbox::{Entry, InstanceId, Seq};
use angelia_core::ports::log::{Settlement, Withdrawal};
use rusqlite::{OptionalExtension, params};

/// Takes an entry out that nobody was given; `false` if there is none.
pub(in super::super) fn withdraw(txn: &mut Txn<'_>, gone: &Withdrawal) -> rusqlite::Result<bool> {
    let Some((instance, seq)) = unseen(txn, gone)? else { return Ok(false) };
    let Some(journal) = remove(txn, instance, seq)? else { return Ok(false) };
    close_journal(txn, journal, WITHDRAWN)?;
    txn.removed(instance, vec![seq]);
    Ok(true)
}

/// The entry of a message that waits and was not pushed, as far as that was noted: with the turn
/// it opened, with the next look at what is in flight, or at the end of its socket.
fn unseen(txn: &Txn<'_>, gone: &Withdrawal) -> rusqlite::Result<Option<(InstanceId, Seq)>> {
    txn.prepare_cached(
        "SELECT w.instance, w.seq FROM journal j
         JOIN inbox w ON w.instance = j.instance AND w.seq = j.seq
         WHERE j.message_id = ? AND j.chat_id = ? AND j.platform = ? AND j.bot = ?
         AND j.kind IN ('message', 'stop') AND j.pushed_at IS NULL AND w.revision <> ?
         AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.instance = w.instance AND t.seq = w.seq)",
    )?
    .query_row(params![gone.message_id, gone.chat_id, gone.platform, gone.bot, Entry::FINAL], |row| {
        Ok((InstanceId(row.get(0)?), Seq(row.get(1)?)))
    })
    .optional()
}

/// An entry that was in flight when it was taken out was received after all.
pub(super) fn was_too_late(
    txn: &Txn<'_>,
    instance: InstanceId,
    settlement: &Settlement,
) -> rusqlite::Result<()> {
    let Settlement { seq, by, pushed_at } = settlement;
    txn.prepare_cached(
        "UPDATE journal SET outcome = ?1, pushed_at = ?2, pushes = pushes + (?2 IS NOT NULL)
         WHERE instance = ?3 AND seq = ?4 AND outcome = ?5",
    )?
    .execute(params![by.as_str(), pushed_at.map(|at| at.0), instance.0, seq.0, WITHDRAWN])?;
    Ok(())
}
