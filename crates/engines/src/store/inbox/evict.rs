//! Who gives way when there is too much: the oldest of the chat that holds most, as a gap
//! that its chat is told of.

use super::super::db::{Ask, Sql, values};
use super::super::footprint::{self, JOURNAL_LENGTHS};
use super::super::tenant_bytes;
use super::super::txn::Txn;
use super::list::thread_of;
use super::{close_journal, remove};
use angelia_core::inbox::outcome::OVER_QUOTA;
use angelia_core::inbox::{InstanceId, Seq};

/// Takes entries out while an inbox is over its quota, as counted gaps: the oldest of
/// the chat that holds most. `writer` is the chat that made it too much.
pub(in super::super) fn enforce_quota(txn: &mut dyn Txn, instance: InstanceId, writer: &str) -> Sql<()> {
    let (mut gone, quota) = (Vec::new(), txn.quota());
    while txn.usage(instance)?.exceeds(&quota) {
        let mut payer = None;
        txn.with_held(instance, &mut |held| payer = quota.who_pays(held, writer).map(str::to_owned))?;
        let Some(chat) = payer else { break };
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
    txn: &mut dyn Txn,
    tenant: &str,
    instance: InstanceId,
    writer: &str,
    before: u64,
) -> Sql<()> {
    if tenant_bytes::make_room(txn, tenant, 0)? {
        return Ok(());
    }
    let (mut gone, quota) = (Vec::new(), txn.quota());
    loop {
        let (stored, mut payer) = (txn.stored(tenant)?, None);
        txn.with_held(instance, &mut |held| {
            payer = quota.who_pays_for_disk(stored, before, held, writer).map(str::to_owned);
        })?;
        let Some(chat) = payer else { break };
        let Some((seq, journal)) = give_way(txn, instance, &chat)? else { break };
        forget(txn, tenant, journal)?;
        gone.push(seq);
    }
    txn.removed(instance, gone);
    Ok(())
}

/// Deletes what the journal says of an entry that is gone.
fn forget(txn: &mut dyn Txn, tenant: &str, journal: i64) -> Sql<()> {
    let bytes = txn.first(
        &format!("DELETE FROM journal WHERE id = $1 RETURNING {JOURNAL_LENGTHS}"),
        values![journal],
        |row| footprint::journal(&row, 0),
    )?;
    txn.store(tenant, 0, bytes.unwrap_or_default());
    Ok(())
}

/// Takes the oldest entry of a chat out, as a counted gap that it is told of.
/// Answers which, and its row of the journal.
fn give_way(txn: &mut dyn Txn, instance: InstanceId, chat: &str) -> Sql<Option<(Seq, i64)>> {
    let Some(seq) = oldest_waiting(txn, instance, chat)? else { return Ok(None) };
    remember_to_tell(txn, instance, seq)?;
    Ok(drop_as_gap(txn, instance, seq, OVER_QUOTA)?.map(|journal| (seq, journal)))
}

fn oldest_waiting(txn: &mut dyn Txn, instance: InstanceId, chat: &str) -> Sql<Option<Seq>> {
    txn.first(&oldest(&txn.by_index("inbox_by_chat")), values![instance, chat], |row| row.get(0).map(Seq))
}

/// SQLite would go by the numbers of the whole inbox, for the order.
fn oldest(by_index: &str) -> String {
    format!(
        "SELECT seq FROM inbox{by_index} WHERE instance = $1 AND chat_id = $2 AND dead_at IS NULL
         ORDER BY seq LIMIT 1"
    )
}

/// Notes that a chat has to be told of what it loses.
fn remember_to_tell(txn: &mut dyn Txn, instance: InstanceId, seq: Seq) -> Sql<()> {
    let body = "SELECT body FROM inbox WHERE instance = $1 AND seq = $2";
    let body: Option<Vec<u8>> = txn.first(body, values![instance, seq], |row| row.get(0))?;
    let thread = body.and_then(|body| thread_of(&body));
    txn.execute(
        "INSERT INTO untold_gaps (instance, chat_id, platform, bot, message_id, thread_id)
         SELECT instance, chat_id, platform, bot, message_id, $1 FROM inbox WHERE instance = $2 AND seq = $3
         ON CONFLICT DO NOTHING",
        values![thread, instance, seq],
    )?;
    Ok(())
}

/// Removes one entry and counts it in its chat's gap; answers its row of the journal.
pub(in super::super) fn drop_as_gap(
    txn: &mut dyn Txn,
    instance: InstanceId,
    seq: Seq,
    outcome: &str,
) -> Sql<Option<i64>> {
    txn.lock(instance)?;
    let now = txn.now();
    txn.execute(
        "INSERT INTO gaps (instance, chat_id, lost, first_at, last_at, lost_at)
         SELECT instance, chat_id, 1, received_at, received_at, $1 FROM inbox WHERE instance = $2 AND seq = $3
         ON CONFLICT (instance, chat_id) DO UPDATE
         SET lost = gaps.lost + 1, last_at = excluded.last_at, lost_at = excluded.lost_at",
        values![now, instance, seq],
    )?;
    let Some(journal) = remove(txn, instance, seq)? else { return Ok(None) };
    close_journal(txn, journal, outcome)?;
    Ok(Some(journal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_a_chat_is_found_without_a_walk_through_the_inbox() {
        let db = rusqlite::Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("../sqlite/schema.sql")).unwrap();
        let explain = format!("EXPLAIN QUERY PLAN {}", oldest(" INDEXED BY inbox_by_chat"));
        let plan: String = db.query_row(&explain, (1, "chat"), |row| row.get(3)).unwrap();
        assert_eq!(plan, "SEARCH inbox USING INDEX inbox_by_chat (instance=? AND chat_id=?)");
    }
}
