//! Taking an entry in: its number, its place in line, and who gives way for it.

use super::super::footprint::{self, JOURNAL_LENGTHS};
use super::super::tenant_bytes;
use super::super::writer::{Txn, now};
use super::settle::{Gone, close_journal, remove};
use angelia_core::error::Result;
use angelia_core::identity::instances::NAMELESS;
use angelia_core::inbox::outcome::OVER_QUOTA;
use angelia_core::inbox::refusal::{self, Arrival};
use angelia_core::inbox::{CONVERSATION_REFRESH, Entry, InstanceId, Mark, Seq};
use angelia_core::ports::log::{Appended, NewEntry};
use angelia_core::ports::{Hint, HintKind};
use rusqlite::{OptionalExtension, params};

/// Whether what is for an instance may wait there: a gateway that is not revoked
/// serves it, or it has no name yet and waits for its tenant's first one. Whoever
/// was admitted to it asks in the transaction that writes: its gateway may have
/// moved or gone since, and nobody would fetch the message.
pub(in super::super) fn takes_messages(txn: &Txn<'_>, instance: InstanceId) -> rusqlite::Result<bool> {
    txn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM gateways WHERE instance = ?1 AND revoked_at IS NULL)
             OR EXISTS (SELECT 1 FROM instances WHERE instance = ?1 AND name = ?2)",
    )?
    .query_row(params![instance.0, NAMELESS], |row| row.get(0))
}

/// Appends one entry in the open transaction, for an instance that is there.
pub(in super::super) fn append(txn: &mut Txn<'_>, new: NewEntry) -> rusqlite::Result<Appended> {
    let appended_at = now();
    let before = txn.mark(new.instance)?;
    let seq = Seq(before.tail.0 + 1);
    let inserted = txn
        .prepare_cached(
            "INSERT INTO journal
                 (message_id, kind, platform, bot, chat_id, tenant, instance, received_at, appended_at, seq)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            new.message_id,
            new.kind.as_str(),
            new.platform,
            new.bot,
            new.chat_id,
            new.tenant,
            new.instance.0,
            new.received_at.0,
            appended_at,
            seq.0
        ])?;
    if inserted == 0 {
        let seq = txn
            .prepare_cached(
                "SELECT seq FROM journal
                 WHERE message_id = ? AND chat_id = ? AND platform = ? AND bot = ? AND kind = ?",
            )?
            .query_row(
                params![new.message_id, new.chat_id, new.platform, new.bot, new.kind.as_str()],
                |row| row.get(0),
            )?;
        return Ok(Appended::Seen(Seq(seq)));
    }
    let mark = Mark { tail: seq, ..before };
    txn.set_mark(new.instance, mark);
    insert_waiting(txn, seq, txn.last_insert_rowid(), &new)?;
    remember_conversation(txn, &new, appended_at)?;
    txn.count(new.instance, |held| held.add(&new.chat_id, new.body.len()));
    let kept = txn.counted.stored.of(&new.tenant);
    let (waiting, journal) = footprint::new_entry(&new);
    txn.counted.stored.appended(&new.tenant, new.instance, waiting + journal);
    let chat = new.chat_id.clone();
    let entry = Entry {
        seq,
        kind: new.kind,
        platform: new.platform,
        bot: new.bot,
        chat_id: new.chat_id,
        session_key: new.session_key,
        body: new.body,
        revision: 0,
    };
    let kind = if new.ahead { HintKind::Ahead } else { HintKind::Appended };
    txn.tell(Hint::Log { instance: new.instance, mark, entry, kind });
    enforce_quota(txn, new.instance, &chat)?;
    enforce_disk(txn, &new.tenant, new.instance, &chat, kept)?;
    Ok(Appended::New(seq))
}

/// Whether an entry is taken: there is room, or room is made for it, or it came before.
/// If it is not, what whoever sent it is told.
pub(in super::super) fn has_room(txn: &mut Txn<'_>, new: &NewEntry) -> rusqlite::Result<Result<()>> {
    let (quota, (waiting, journal)) = (*txn.quota, footprint::new_entry(new));
    let admits = quota.admits(txn.held(new.instance), &new.chat_id, new.body.len());
    let fits = quota.fits_disk(txn.counted.stored.of(&new.tenant), waiting + journal);
    if (Arrival { when_full: new.when_full, admits, fits }).is_taken() || came_before(txn, new)? {
        return Ok(Ok(()));
    }
    let fits = admits && tenant_bytes::make_room(txn, &new.tenant, waiting + journal)?;
    Ok(refusal::judge(admits, fits))
}

fn came_before(txn: &Txn<'_>, new: &NewEntry) -> rusqlite::Result<bool> {
    txn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM journal
         WHERE message_id = ? AND chat_id = ? AND platform = ? AND bot = ? AND kind = ?)",
    )?
    .query_row(params![new.message_id, new.chat_id, new.platform, new.bot, new.kind.as_str()], |row| {
        row.get(0)
    })
}

fn insert_waiting(txn: &Txn<'_>, seq: Seq, journal: i64, new: &NewEntry) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "INSERT INTO inbox (instance, seq, kind, platform, bot, chat_id, message_id, session_key, ahead,
                            received_at, body, journal)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        new.instance.0,
        seq.0,
        new.kind.as_str(),
        new.platform,
        new.bot,
        new.chat_id,
        new.message_id,
        new.session_key,
        new.ahead,
        new.received_at.0,
        new.body.as_ref(),
        journal
    ])?;
    Ok(())
}

fn remember_conversation(txn: &Txn<'_>, new: &NewEntry, at: i64) -> rusqlite::Result<()> {
    let refresh = CONVERSATION_REFRESH.as_millis() as i64;
    txn.prepare_cached(
        "INSERT INTO conversations (tenant, session_key, instance, chat_id, last_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (tenant, session_key) DO UPDATE
         SET instance = ?3, chat_id = ?4, last_at = ?5
         WHERE instance <> ?3 OR chat_id <> ?4 OR last_at < ?5 - ?6",
    )?
    .execute(params![new.tenant, new.session_key, new.instance.0, new.chat_id, at, refresh])?;
    Ok(())
}

/// Takes entries out while an inbox is over its quota, as counted gaps: the oldest of
/// the chat that holds most. `writer` is the chat that made it too much.
pub(super) fn enforce_quota(txn: &mut Txn<'_>, instance: InstanceId, writer: &str) -> rusqlite::Result<()> {
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
fn enforce_disk(
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
         ON CONFLICT DO NOTHING",
        THREAD = super::overdue::THREAD
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
    let Some(Gone { journal }) = remove(txn, instance, seq)? else { return Ok(None) };
    close_journal(txn, journal, outcome)?;
    Ok(Some(journal))
}
