//! Dead letters: entries on which sockets kept ending.

use super::super::db::{Ask, Sql, values};
use super::super::records::audit;
use super::super::txn::Txn;
use super::{ENTRY_COLUMNS, ENTRY_WIDTH, close_journal, entry, remove};
use angelia_core::audit::Actor;
use angelia_core::inbox::{Entry, InstanceId, Mark, Seq, is_dead, outcome};
use angelia_core::ports::{Hint, HintKind};
use std::sync::Arc;

pub(super) fn strike(txn: &mut dyn Txn, instance: InstanceId, seq: Seq) -> Sql<Option<Seq>> {
    let struck: Option<(u32, usize, String, i64)> = txn.first(
        "UPDATE inbox SET strikes = strikes + 1 WHERE instance = $1 AND seq = $2 AND dead_at IS NULL
         RETURNING strikes, length(body), chat_id, journal",
        values![instance, seq],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    )?;
    let Some((strikes, bytes, chat, journal)) = struck else { return Ok(None) };
    if !is_dead(strikes) {
        return Ok(None);
    }
    let now = txn.now();
    txn.execute(
        "UPDATE inbox SET dead_at = $1 WHERE instance = $2 AND seq = $3",
        values![now, instance, seq],
    )?;
    txn.count_out(instance, &chat, bytes)?;
    close_journal(txn, journal, outcome::DEAD_LETTER)?;
    txn.removed(instance, vec![seq]);
    Ok(Some(seq))
}

/// Puts dead letters back in line: of one instance or of all, one of them or all.
pub(super) fn redrive(txn: &mut dyn Txn, instance: Option<InstanceId>, seq: Option<Seq>) -> Sql<u64> {
    let dead = "SELECT DISTINCT instance FROM inbox WHERE dead_at IS NOT NULL
         AND ($1 IS NULL OR instance = $1) AND ($2 IS NULL OR seq = $2) ORDER BY instance";
    let instances = txn.all(dead, values![instance, seq], |row| row.get(0).map(InstanceId))?;
    let mut count = 0;
    for instance in instances {
        count += redrive_of(txn, instance, seq)?;
    }
    Ok(count)
}

fn redrive_of(txn: &mut dyn Txn, instance: InstanceId, seq: Option<Seq>) -> Sql<u64> {
    txn.lock(instance)?;
    let rows: Vec<(Entry, i64)> = txn.all(
        &format!(
            "UPDATE inbox SET dead_at = NULL, strikes = 0, ahead = 1
             WHERE dead_at IS NOT NULL AND instance = $1 AND ($2 IS NULL OR seq = $2)
             RETURNING {ENTRY_COLUMNS}, journal"
        ),
        values![instance, seq],
        |row| Ok((entry(row)?, row.get(ENTRY_WIDTH)?)),
    )?;
    let count = rows.len() as u64;
    for (entry, journal) in rows {
        let chat: Arc<str> = entry.chat_id.clone();
        txn.count_in(instance, &chat, entry.body.len())?;
        txn.execute("UPDATE journal SET settled_at = NULL, outcome = NULL WHERE id = $1", values![journal])?;
        let before = txn.mark(instance)?;
        let mark = Mark { redrives: before.redrives + 1, ..before };
        txn.set_mark(instance, mark)?;
        // Its place in the queue is long past: it goes ahead of what waits now.
        txn.tell(Hint::Log { instance, mark, entry, kind: HintKind::Redriven });
    }
    Ok(count)
}

/// Deletes one entry, or as many dead letters as fit one step; answers how many,
/// and whether there are more.
pub(super) fn purge(txn: &mut dyn Txn, instance: Option<InstanceId>, one: Option<Seq>) -> Sql<(u64, bool)> {
    let rows: Vec<(InstanceId, Seq, u64)> = txn.all(
        "SELECT instance, seq, length(body) FROM inbox
         WHERE ($1 IS NULL OR instance = $1) AND (seq = $2 OR ($2 IS NULL AND dead_at IS NOT NULL))
         ORDER BY instance, seq",
        values![instance, one],
        |row| Ok((InstanceId(row.get(0)?), Seq(row.get(1)?), row.get(2)?)),
    )?;
    let (mut budget, mut count) = (txn.budget(), 0);
    for (instance, seq, bytes) in rows {
        if !budget.allows(bytes) {
            return Ok((count, true));
        }
        txn.lock(instance)?;
        if one.is_none() && !is_dead_letter(txn, instance, seq)? {
            // It was put back in line meanwhile.
            continue;
        }
        if let Some(journal) = remove(txn, instance, seq)? {
            close_journal(txn, journal, outcome::PURGED)?;
        }
        txn.removed(instance, vec![seq]);
        count += 1;
    }
    Ok((count, false))
}

fn is_dead_letter(txn: &mut dyn Txn, instance: InstanceId, seq: Seq) -> Sql<bool> {
    txn.says(
        "SELECT EXISTS (SELECT 1 FROM inbox WHERE instance = $1 AND seq = $2 AND dead_at IS NOT NULL)",
        values![instance, seq],
    )
}

/// Writes down what the operator did to how many entries, in the same commit;
/// nothing if there were none. Answers the number.
pub(super) fn note(
    txn: &mut dyn Txn,
    by: &Actor,
    action: &'static str,
    instance: Option<InstanceId>,
    seq: Option<Seq>,
    count: u64,
) -> Sql<u64> {
    let owner: Option<(String, String)> = match instance {
        Some(instance) => {
            txn.first("SELECT tenant, name FROM instances WHERE instance = $1", values![instance], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
        }
        None => None,
    };
    if let Some(entry) = outcome::audit_entry(by, action, owner, seq, count) {
        audit(txn, &entry)?;
    }
    Ok(count)
}
