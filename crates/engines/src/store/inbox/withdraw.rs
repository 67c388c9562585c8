//! Messages that were deleted where they were written, while they waited.

use super::super::db::{Ask, Sql, values};
use super::super::openings;
use super::super::txn::Txn;
use super::{close_journal, remove};
use angelia_core::inbox::outcome::WITHDRAWN;
use angelia_core::inbox::{Entry, InstanceId, Seq};
use angelia_core::ports::log::{Settlement, Withdrawal};

/// Takes an entry out that nobody was given; `false` if there is none.
pub(in super::super) fn withdraw(txn: &mut dyn Txn, gone: &Withdrawal) -> Sql<bool> {
    if openings::withdraw(txn, gone)? {
        return Ok(true);
    }
    let Some((instance, _)) = unseen(txn, gone)? else { return Ok(false) };
    // Looked at again once nobody else changes it.
    txn.lock(instance)?;
    let Some((instance, seq)) = unseen(txn, gone)? else { return Ok(false) };
    let Some(journal) = remove(txn, instance, seq)? else { return Ok(false) };
    close_journal(txn, journal, WITHDRAWN)?;
    txn.removed(instance, vec![seq]);
    Ok(true)
}

/// The entry of a message that waits and was not pushed, as far as that was noted: with the turn
/// it opened, with the next look at what is in flight, or at the end of its socket.
fn unseen(txn: &mut dyn Txn, gone: &Withdrawal) -> Sql<Option<(InstanceId, Seq)>> {
    txn.first(
        "SELECT w.instance, w.seq FROM journal j
         JOIN inbox w ON w.instance = j.instance AND w.seq = j.seq
         WHERE j.message_id = $1 AND j.chat_id = $2 AND j.platform = $3 AND j.bot = $4
         AND j.kind IN ('message', 'stop') AND j.pushed_at IS NULL AND w.revision <> $5
         AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.instance = w.instance AND t.seq = w.seq)",
        values![gone.message_id, gone.chat_id, gone.platform, gone.bot, Entry::FINAL],
        |row| Ok((InstanceId(row.get(0)?), Seq(row.get(1)?))),
    )
}

/// An entry that was in flight when it was taken out was received after all.
pub(super) fn was_too_late(txn: &mut dyn Txn, instance: InstanceId, settlement: &Settlement) -> Sql<()> {
    let Settlement { seq, by, pushed_at } = settlement;
    txn.execute(
        "UPDATE journal SET outcome = $1, pushed_at = $2,
         pushes = pushes + CASE WHEN $2 IS NULL THEN 0 ELSE 1 END
         WHERE instance = $3 AND seq = $4 AND outcome = $5",
        values![by.as_str(), pushed_at, instance, seq, WITHDRAWN],
    )?;
    Ok(())
}
