//! Dead letters: entries on which sockets kept ending.

use super::super::records::audit;
use super::super::space::Budget;
use super::super::writer::{Txn, now};
use super::{ENTRY_COLUMNS, ENTRY_WIDTH, close_journal, entry, remove};
use angelia_core::audit::Actor;
use angelia_core::inbox::{Entry, InstanceId, Mark, Seq, is_dead, outcome};
use angelia_core::ports::{Hint, HintKind};
use rusqlite::{OptionalExtension, params};

pub(super) fn strike(txn: &mut Txn<'_>, instance: InstanceId, seq: Seq) -> rusqlite::Result<Option<Seq>> {
    let struck: Option<(u32, usize, String, i64)> = txn
        .prepare_cached(
            "UPDATE inbox SET strikes = strikes + 1 WHERE instance = ? AND seq = ? AND dead_at IS NULL
             RETURNING strikes, length(body), chat_id, journal",
        )?
        .query_row(params![instance.0, seq.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .optional()?;
    let Some((strikes, bytes, chat, journal)) = struck else { return Ok(None) };
    if !is_dead(strikes) {
        return Ok(None);
    }
    txn.prepare_cached("UPDATE inbox SET dead_at = ? WHERE instance = ? AND seq = ?")?.execute(params![
        now(),
        instance.0,
        seq.0
    ])?;
    txn.count(instance, |held| held.remove(&chat, bytes));
    close_journal(txn, journal, outcome::DEAD_LETTER)?;
    txn.removed(instance, vec![seq]);
    Ok(Some(seq))
}

pub(super) fn redrive(
    txn: &mut Txn<'_>,
    instance: Option<InstanceId>,
    seq: Option<Seq>,
) -> rusqlite::Result<u64> {
    let rows: Vec<(InstanceId, Entry, i64)> = txn
        .prepare_cached(&format!(
            "UPDATE inbox SET dead_at = NULL, strikes = 0, ahead = 1
             WHERE dead_at IS NOT NULL AND (?1 IS NULL OR instance = ?1) AND (?2 IS NULL OR seq = ?2)
             RETURNING {ENTRY_COLUMNS}, instance, journal"
        ))?
        .query_map(params![instance.map(|i| i.0), seq.map(|s| s.0)], |row| {
            Ok((InstanceId(row.get(ENTRY_WIDTH)?), entry(row)?, row.get(ENTRY_WIDTH + 1)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    let count = rows.len() as u64;
    for (instance, entry, journal) in rows {
        txn.count(instance, |held| held.add(&entry.chat_id, entry.body.len()));
        txn.prepare_cached("UPDATE journal SET settled_at = NULL, outcome = NULL WHERE id = ?")?
            .execute([journal])?;
        let before = txn.mark(instance)?;
        let mark = Mark { redrives: before.redrives + 1, ..before };
        txn.set_mark(instance, mark);
        // Its place in the queue is long past: it goes ahead of what waits now.
        txn.tell(Hint::Log { instance, mark, entry, kind: HintKind::Redriven });
    }
    Ok(count)
}

/// Deletes one entry, or as many dead letters as fit one step; answers how many,
/// and whether there are more.
pub(super) fn purge(
    txn: &mut Txn<'_>,
    instance: Option<InstanceId>,
    seq: Option<Seq>,
) -> rusqlite::Result<(u64, bool)> {
    let rows: Vec<(InstanceId, Seq, u64)> = txn
        .prepare_cached(
            "SELECT instance, seq, length(body) FROM inbox
             WHERE (?1 IS NULL OR instance = ?1) AND (seq = ?2 OR (?2 IS NULL AND dead_at IS NOT NULL))",
        )?
        .query_map(params![instance.map(|i| i.0), seq.map(|s| s.0)], |row| {
            Ok((InstanceId(row.get(0)?), Seq(row.get(1)?), row.get(2)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    let (mut budget, mut count) = (Budget::of(txn.space), 0);
    for (instance, seq, bytes) in rows {
        if !budget.allows(bytes) {
            return Ok((count, true));
        }
        if let Some(journal) = remove(txn, instance, seq)? {
            close_journal(txn, journal, outcome::PURGED)?;
        }
        txn.removed(instance, vec![seq]);
        count += 1;
    }
    Ok((count, false))
}

/// Writes down what the operator did to how many entries, in the same commit;
/// nothing if there were none. Answers the number.
pub(super) fn note(
    txn: &Txn<'_>,
    by: &Actor,
    action: &'static str,
    instance: Option<InstanceId>,
    seq: Option<Seq>,
    count: u64,
) -> rusqlite::Result<u64> {
    let owner: Option<(String, String)> = match instance {
        Some(instance) => txn
            .query_row("SELECT tenant, name FROM instances WHERE instance = ?", [instance.0], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?,
        None => None,
    };
    if let Some(entry) = outcome::audit_entry(by, action, owner, seq, count) {
        audit(txn, &entry)?;
    }
    Ok(count)
}
