//! Who gives way when there is too much: the oldest of the chat that holds most, as a gap
//! that its chat is told of.

use super::super::footprint::{self, JOURNAL_LENGTHS};
use super::super::tenant_bytes;
use super::super::writer::{Txn, now};
use super::list::THREAD;
use super::{close_journal, remove};
use angelia_core::inbox::outcome::OVER_QUOTA;
use angelia_core::inbox::{InstanceId, Seq};
use rusqlite::{OptionalExtension, params};

/// Takes entries out while an inbox is over its quota, as counted gaps: the oldest of
/// the chat that holds most. `writer` is the chat that made it too much.
pub(in super::super) fn enforce_quota(
    txn: &mut Txn<'_>,
    instance: InstanceId,
    writer: &str,
) -> rusqlite::Result<()> {
    let (mut gone, quota) = (Vec::new(), *txn.quota);
    while let Some(chat) = quota.who_pays(txn.held(instance), writer).map(str::to_owned) {
        let Some((seq, _)) = give_way(txn, instance, &chat)? else { break };
        gone.push(seq);
    }
    if !gone.is_empty() {
        txn.removed(instance, gone);
    }
    Ok(())
}

/// Takes out as much as was written, of the chat that holds most, if the tenant has
/// used up its disk and nothing that is only remembered of it can be forgotten. What
/// goes for that leaves no row in the journal: each would take the tenant a little
/// further beyond its share.
pub(in super::super) fn enforce_disk(
    txn: &mut Txn<'_>,
    tenant: &str,
    instance: InstanceId,
    writer: &str,
    before: u64,
) -> rusqlite::Result<()> {
    if tenant_bytes::make_room(txn, tenant, 0)? {
        return Ok(());
    }
    let (mut gone, quota) = (Vec::new(), *txn.quota);
    loop {
        let stored = txn.counted.stored.of(tenant);
        let payer = quota.who_pays_for_disk(stored, before, txn.held(instance), writer).map(str::to_owned);
        let Some(chat) = payer else { break };
        let Some((seq, journal)) = give_way(txn, instance, &chat)? else { break };
        forget(txn, tenant, journal)?;
        gone.push(seq);
    }
    txn.removed(instance, gone);
    Ok(())
}

/// Deletes what the journal says of an entry that is gone.
fn forget(txn: &mut Txn<'_>, tenant: &str, journal: i64) -> rusqlite::Result<()> {
    let bytes = txn
        .prepare_cached(&format!("DELETE FROM journal WHERE id = ? RETURNING {JOURNAL_LENGTHS}"))?
        .query_row([journal], |row| footprint::journal(row, 0))
        .optional()?;
    txn.counted.stored.subtract(tenant, bytes.unwrap_or_default());
    Ok(())
}

/// Takes the oldest entry of a chat out, as a counted gap that it is told of.
/// Answers which, and its row of the journal.
fn give_way(txn: &mut Txn<'_>, instance: InstanceId, chat: &str) -> rusqlite::Result<Option<(Seq, i64)>> {
    let Some(seq) = oldest_waiting(txn, instance, chat)? else { return Ok(None) };
    remember_to_tell(txn, instance, seq)?;
    Ok(drop_as_gap(txn, instance, seq, OVER_QUOTA)?.map(|journal| (seq, journal)))
}

fn oldest_waiting(txn: &Txn<'_>, instance: InstanceId, chat: &str) -> rusqlite::Result<Option<Seq>> {
    txn.prepare_cached(
        "SELECT seq FROM inbox INDEXED BY inbox_by_chat
         WHERE instance = ? AND chat_id = ? AND dead_at IS NULL ORDER BY seq LIMIT 1",
    )?
    .query_row(params![instance.0, chat], |row| row.get(0).map(Seq))
    .optional()
}

/// Notes that a chat has to be told of what it loses.
fn remember_to_tell(txn: &Txn<'_>, instance: InstanceId, seq: Seq) -> rusqlite::Result<()> {
    txn.prepare_cached(&format!(
        "INSERT INTO untold_gaps (instance, chat_id, platform, bot, message_id, thread_id)
         SELECT instance, chat_id, platform, bot, message_id, {THREAD} FROM inbox i WHERE instance = ? AND seq = ?
         ON CONFLICT DO NOTHING"
    ))?
    .execute(params![instance.0, seq.0])?;
    Ok(())
}

/// Removes one entry and counts it in its chat's gap; answers its row of the journal.
pub(in super::super) fn drop_as_gap(
    txn: &mut Txn<'_>,
    instance: InstanceId,
    seq: Seq,
    outcome: &str,
) -> rusqlite::Result<Option<i64>> {
    txn.prepare_cached(
        "INSERT INTO gaps (instance, chat_id, lost, first_at, last_at, lost_at)
         SELECT instance, chat_id, 1, received_at, received_at, ? FROM inbox WHERE instance = ? AND seq = ?
         ON CONFLICT (instance, chat_id) DO UPDATE
         SET lost = lost + 1, last_at = excluded.last_at, lost_at = excluded.lost_at",
    )?
    .execute(params![now(), instance.0, seq.0])?;
    let Some(journal) = remove(txn, instance, seq)? else { return Ok(None) };
    close_journal(txn, journal, outcome)?;
    Ok(Some(journal))
}
