//! Appending, draining, settling.

mod dead;
mod list;
mod revise;

pub(super) use revise::{has_room as has_room_for_revision, revise};

use super::Sqlite;
use super::queue::Owner;
use super::reader::page;
use super::room;
use super::stored::Stored;
use super::writer::{Txn, now};
use angelia_core::audit::Actor;
use angelia_core::clock::UnixMillis;
use angelia_core::error::Error;
use angelia_core::inbox::{AckHabit, Entry, EntryKind, InstanceId, Seq, Usage, WhenFull};
use angelia_core::space::Class;
use angelia_core::store::{
    Appended, InboxStore, Later, Listed, ListedInbox, NewEntry, Page, PageSize, Returned, Revised, Revision,
    Settlement,
};
use bytes::Bytes;
use rusqlite::{OptionalExtension, Row, params};
use std::time::Duration;

/// A conversation's row is refreshed at most this often; it only has to be roughly recent.
const CONVERSATION_REFRESH_MS: i64 = 3_600_000;
/// What the journal says of an entry that went for the quota.
const OVER_QUOTA: &str = "lost: the inbox was over its quota";
/// When whoever was refused may try again: an agent that is there reads some by then.
const TRY_AGAIN: Duration = Duration::from_secs(5);
const ENTRY_COLUMNS: &str = "seq, kind, platform, bot, chat_id, session_key, body, revision";

impl InboxStore for Sqlite {
    fn append(&self, entry: NewEntry) -> Later<'_, Appended> {
        angelia_core::fail::point("before_append");
        let (owner, bytes) = (Owner::Tenant(entry.tenant.as_str().into()), entry.body.len());
        self.writer.try_write_for(owner, bytes, "append", move |txn| {
            if !is_served(txn, entry.instance)? {
                return Ok(Err(Error::not_found("the instance this was for is gone: nothing was written")));
            }
            if !has_room(txn, &entry)? {
                return Ok(Err(full()));
            }
            append(txn, entry).map(Ok)
        })
    }

    fn revise(&self, revision: Revision) -> Later<'_, Revised> {
        self.writer.write("revise an entry", move |txn| revise(txn, &revision))
    }

    fn load(&self, instance: InstanceId, after: Seq, size: PageSize) -> Later<'_, Page<Entry>> {
        self.readers.read("read an inbox", move |db| {
            let mut waiting = db.prepare_cached(&format!(
                "SELECT {ENTRY_COLUMNS} FROM inbox
                 WHERE instance = ? AND seq > ? AND dead_at IS NULL AND ahead = 0 ORDER BY seq"
            ))?;
            page(waiting.query(params![instance.0, after.0])?, size, body_bytes, entry)
        })
    }

    fn load_ahead(&self, instance: InstanceId, size: PageSize) -> Later<'_, Page<Entry>> {
        self.readers.read("read an inbox", move |db| {
            let mut waiting = db.prepare_cached(&format!(
                "SELECT {ENTRY_COLUMNS} FROM inbox
                 WHERE instance = ? AND ahead = 1 AND dead_at IS NULL ORDER BY seq"
            ))?;
            page(waiting.query([instance.0])?, size, body_bytes, entry)
        })
    }

    fn settle(&self, instance: InstanceId, settled: Vec<Settlement>) -> Later<'_, ()> {
        self.writer.write_for(Owner::Instance(instance), 0, "settle", move |txn| {
            for settlement in &settled {
                settle(txn, instance, settlement)?;
            }
            Ok(())
        })
    }

    fn settle_late(&self, instance: InstanceId, seqs: Vec<Seq>) -> Later<'_, Vec<Seq>> {
        self.writer.write("settle late", move |txn| {
            let mut settled = Vec::new();
            for seq in seqs {
                if settle_late(txn, instance, seq)? {
                    settled.push(seq);
                }
            }
            Ok(settled)
        })
    }

    fn note_pushed(&self, pushed: Vec<(Seq, UnixMillis)>) -> Later<'_, ()> {
        self.writer.write("note pushes", move |txn| {
            let mut note =
                txn.prepare_cached("UPDATE journal SET pushed_at = coalesce(pushed_at, ?) WHERE seq = ?")?;
            for (seq, at) in &pushed {
                note.execute(params![at.0, seq.0])?;
            }
            Ok(())
        })
    }

    fn returned(&self, instance: InstanceId, returned: Returned) -> Later<'_, Option<Seq>> {
        self.writer.write_for(Owner::Instance(instance), 0, "note returned entries", move |txn| {
            for (seq, pushed_at) in &returned.entries {
                note_push(txn, *seq, Some(*pushed_at))?;
            }
            // Whoever was in flight and is not struck was not the obstacle this time.
            txn.prepare_cached(
                "UPDATE inbox SET strikes = 0 WHERE instance = ? AND strikes > 0 AND seq <> ?",
            )?
            .execute(params![instance.0, returned.strike.map_or(0, |seq| seq.0)])?;
            match returned.strike {
                Some(seq) => dead::strike(txn, instance, seq),
                None => Ok(None),
            }
        })
    }

    fn set_idle(&self, instance: InstanceId, idle: bool) -> Later<'_, ()> {
        self.writer.write("flip an instance", move |txn| {
            txn.prepare_cached("UPDATE instances SET idle = ? WHERE instance = ? AND idle <> ?1")?
                .execute(params![idle, instance.0])?;
            Ok(())
        })
    }

    fn set_habit(&self, instance: InstanceId, habit: AckHabit) -> Later<'_, ()> {
        self.writer.write("remember a habit", move |txn| {
            txn.prepare_cached("UPDATE instances SET ack_habit = ? WHERE instance = ?")?
                .execute(params![habit.as_str(), instance.0])?;
            Ok(())
        })
    }

    fn usage(&self, instance: InstanceId) -> Usage {
        self.usage_map().get(&instance).copied().unwrap_or_default()
    }

    fn waiting(&self) -> Vec<InstanceId> {
        self.usage_map().iter().filter(|(_, usage)| usage.entries > 0).map(|(id, _)| *id).collect()
    }

    fn inboxes(&self) -> Later<'_, Vec<ListedInbox>> {
        self.readers.read("list inboxes", list::inboxes)
    }

    fn entries(&self, instance: Option<InstanceId>, dead: bool, limit: usize) -> Later<'_, Vec<Listed>> {
        self.readers.read("list entries", move |db| {
            db.prepare_cached(&format!(
                "SELECT {} FROM inbox WHERE (?1 IS NULL OR instance = ?1) AND (dead_at IS NOT NULL) = ?2
                 ORDER BY seq LIMIT ?3",
                list::LISTED_COLUMNS
            ))?
            .query_map(params![instance.map(|i| i.0), dead, limit as i64], list::listed)?
            .collect()
        })
    }

    fn entry(&self, seq: Seq) -> Later<'_, Option<Listed>> {
        self.readers.read("find an entry", move |db| {
            // By way of the instances: the table is in their order.
            db.prepare_cached(&format!(
                "SELECT {} FROM inbox WHERE instance IN (SELECT instance FROM instances) AND seq = ?",
                list::LISTED_COLUMNS
            ))?
            .query_row([seq.0], list::listed)
            .optional()
        })
    }

    fn redrive(&self, instance: Option<InstanceId>, seq: Option<Seq>, by: &Actor) -> Later<'_, u64> {
        let by = by.clone();
        self.writer.write("redrive dead letters", move |txn| {
            let count = dead::redrive(txn, instance, seq)?;
            dead::note(txn, &by, "inbox.redrive", instance, seq, count)
        })
    }

    fn purge(&self, instance: Option<InstanceId>, seq: Option<Seq>, by: &Actor) -> Later<'_, u64> {
        let by = by.clone();
        Box::pin(async move {
            let mut purged = 0;
            loop {
                let by = by.clone();
                let step = move |txn: &mut Txn<'_>| {
                    let (count, more) = dead::purge(txn, instance, seq)?;
                    dead::note(txn, &by, "inbox.purge", instance, seq, count)?;
                    txn.then_make_room();
                    Ok(Ok((count, more)))
                };
                let (count, more) = self.writer.write_as(Class::Operator, "purge entries", step).await?;
                purged += count;
                if !more {
                    return Ok(purged);
                }
            }
        })
    }
}

/// Whether any gateway that is not revoked serves an instance. Whoever was
/// admitted to it asks in the transaction that writes: its gateway may have
/// moved or gone since, and nobody would fetch the message.
pub(super) fn is_served(txn: &Txn<'_>, instance: InstanceId) -> rusqlite::Result<bool> {
    txn.prepare_cached("SELECT EXISTS (SELECT 1 FROM gateways WHERE instance = ? AND revoked_at IS NULL)")?
        .query_row([instance.0], |row| row.get(0))
}

/// Appends one entry in the open transaction, for an instance that is there.
pub(super) fn append(txn: &mut Txn<'_>, new: NewEntry) -> rusqlite::Result<Appended> {
    let appended_at = now();
    let inserted = txn
        .prepare_cached(
            "INSERT INTO journal (message_id, kind, platform, bot, chat_id, tenant, instance, received_at, appended_at)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
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
            appended_at
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
    let seq = Seq(txn.last_insert_rowid());
    insert_waiting(txn, seq, &new)?;
    remember_conversation(txn, &new, appended_at)?;
    txn.count(new.instance, |held| held.add(&new.chat_id, new.body.len()));
    txn.stored().1.appended(&new.tenant, new.body.len());
    let (chat, bytes) = (new.chat_id.clone(), new.body.len());
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
    txn.appended(new.instance, entry, new.ahead);
    enforce_quota(txn, new.instance, &chat)?;
    enforce_disk(txn, &new.tenant, new.instance, &chat, bytes)?;
    Ok(Appended::New(seq))
}

/// Whether an entry is taken: there is room, or room is made for it, or it came before.
pub(super) fn has_room(txn: &mut Txn<'_>, new: &NewEntry) -> rusqlite::Result<bool> {
    let quota = *txn.quota;
    let fits = quota.admits(txn.held(new.instance), &new.chat_id, new.body.len())
        && room::fits(txn, &new.tenant, Stored::entry(new.body.len()));
    if new.when_full == WhenFull::MakeRoom || fits {
        return Ok(true);
    }
    txn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM journal
         WHERE message_id = ? AND chat_id = ? AND platform = ? AND bot = ? AND kind = ?)",
    )?
    .query_row(params![new.message_id, new.chat_id, new.platform, new.bot, new.kind.as_str()], |row| {
        row.get(0)
    })
}

/// What whoever is refused is told.
pub(super) fn full() -> Error {
    Error::unavailable(
        "more waits for the agent than is kept for it: nothing was written, try again when it has read some",
    )
    .retry_in(TRY_AGAIN)
}

fn insert_waiting(txn: &Txn<'_>, seq: Seq, new: &NewEntry) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "INSERT INTO inbox (instance, seq, kind, platform, bot, chat_id, message_id, session_key, ahead, received_at, body)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
        new.body.as_ref()
    ])?;
    Ok(())
}

fn remember_conversation(txn: &Txn<'_>, new: &NewEntry, at: i64) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "INSERT INTO conversations (tenant, session_key, instance, chat_id, last_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (tenant, session_key) DO UPDATE
         SET instance = ?3, chat_id = ?4, last_at = ?5
         WHERE instance <> ?3 OR chat_id <> ?4 OR last_at < ?5 - ?6",
    )?
    .execute(params![new.tenant, new.session_key, new.instance.0, new.chat_id, at, CONVERSATION_REFRESH_MS])?;
    Ok(())
}

/// Takes entries out while an inbox is over its quota, as counted gaps: the oldest of
/// the chat that holds most. `writer` is the chat that made it too much.
fn enforce_quota(txn: &mut Txn<'_>, instance: InstanceId, writer: &str) -> rusqlite::Result<()> {
    let (mut gone, quota) = (Vec::new(), *txn.quota);
    while let Some(chat) = quota.who_pays(txn.held(instance), writer).map(str::to_owned) {
        let Some(seq) = give_way(txn, instance, &chat)? else { break };
        gone.push(seq);
    }
    if !gone.is_empty() {
        txn.removed(instance, gone);
    }
    Ok(())
}

/// Takes out as much as was written, of the chat that holds most, if the tenant has
/// used up its disk and nothing that is only remembered of it can be forgotten.
fn enforce_disk(
    txn: &mut Txn<'_>,
    tenant: &str,
    instance: InstanceId,
    writer: &str,
    written: usize,
) -> rusqlite::Result<()> {
    if room::made(txn, tenant, 0)? {
        return Ok(());
    }
    let target = txn.held(instance).all().bytes.saturating_sub(written as u64);
    let mut gone = Vec::new();
    while txn.held(instance).all().bytes > target
        && let Some(chat) = txn.held(instance).largest(writer, false).map(str::to_owned)
        && let Some(seq) = give_way(txn, instance, &chat)?
    {
        gone.push(seq);
    }
    txn.removed(instance, gone);
    Ok(())
}

/// Takes the oldest entry of a chat out, as a counted gap that it is told of.
fn give_way(txn: &mut Txn<'_>, instance: InstanceId, chat: &str) -> rusqlite::Result<Option<Seq>> {
    let Some(seq) = oldest_waiting(txn, instance, chat)? else { return Ok(None) };
    remember_to_tell(txn, instance, seq)?;
    drop_as_gap(txn, instance, seq, OVER_QUOTA)?;
    Ok(Some(seq))
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
        THREAD = super::notices::THREAD
    ))?
    .execute(params![instance.0, seq.0])?;
    Ok(())
}

/// Removes one entry and counts it in its chat's gap.
pub(super) fn drop_as_gap(
    txn: &mut Txn<'_>,
    instance: InstanceId,
    seq: Seq,
    outcome: &str,
) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "INSERT INTO gaps (instance, chat_id, lost, first_at, last_at, lost_at)
         SELECT instance, chat_id, 1, received_at, received_at, ? FROM inbox WHERE instance = ? AND seq = ?
         ON CONFLICT (instance, chat_id) DO UPDATE
         SET lost = lost + 1, last_at = excluded.last_at, lost_at = excluded.lost_at",
    )?
    .execute(params![now(), instance.0, seq.0])?;
    remove(txn, instance, seq)?;
    close_journal(txn, seq, outcome)
}

/// Deletes a waiting entry and its share of the usage; `false` if it was gone.
fn remove(txn: &mut Txn<'_>, instance: InstanceId, seq: Seq) -> rusqlite::Result<bool> {
    let gone: Option<(usize, bool, String)> = txn
        .prepare_cached(
            "DELETE FROM inbox WHERE instance = ? AND seq = ?
             RETURNING length(body), dead_at IS NOT NULL, chat_id",
        )?
        .query_row(params![instance.0, seq.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    if let Some((bytes, dead, chat)) = &gone {
        let (db, stored) = txn.stored();
        stored.removed(db, instance, *bytes)?;
        if !dead {
            txn.count(instance, |held| held.remove(chat, *bytes));
        }
    }
    Ok(gone.is_some())
}

fn close_journal(txn: &Txn<'_>, seq: Seq, outcome: &str) -> rusqlite::Result<()> {
    txn.prepare_cached("UPDATE journal SET settled_at = ?, outcome = ? WHERE seq = ?")?.execute(params![
        now(),
        outcome,
        seq.0
    ])?;
    Ok(())
}

fn settle(txn: &mut Txn<'_>, instance: InstanceId, settlement: &Settlement) -> rusqlite::Result<()> {
    if !remove(txn, instance, settlement.seq)? {
        return unlose(txn, instance, settlement.seq);
    }
    let outcome = settlement.by.as_str();
    txn.prepare_cached(
        "UPDATE journal SET settled_at = ?1, outcome = ?2, pushed_at = coalesce(pushed_at, ?3),
         pushes = pushes + (?3 IS NOT NULL) WHERE seq = ?4",
    )?
    .execute(params![now(), outcome, settlement.pushed_at.map(|at| at.0), settlement.seq.0])?;
    Ok(())
}

/// Settles an entry that an earlier socket pushed; `false` if there is none. Numbers
/// can be made up: what was never pushed is not done.
fn settle_late(txn: &mut Txn<'_>, instance: InstanceId, seq: Seq) -> rusqlite::Result<bool> {
    let pushed: bool = txn
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM journal WHERE seq = ? AND instance = ? AND pushed_at IS NOT NULL)",
        )?
        .query_row(params![seq.0, instance.0], |row| row.get(0))?;
    if !pushed {
        return Ok(false);
    }
    if !remove(txn, instance, seq)? {
        return unlose(txn, instance, seq).map(|()| false);
    }
    close_journal(txn, seq, "acknowledged late").map(|()| true)
}

/// An entry that went for the quota while it was in flight, and was
/// acknowledged after all, is not lost.
fn unlose(txn: &Txn<'_>, instance: InstanceId, seq: Seq) -> rusqlite::Result<()> {
    let chat: Option<String> = txn
        .prepare_cached(
            "UPDATE journal SET outcome = ? WHERE seq = ? AND instance = ? AND outcome = ? RETURNING chat_id",
        )?
        .query_row(params!["acknowledged", seq.0, instance.0, OVER_QUOTA], |row| row.get(0))
        .optional()?;
    if let Some(chat) = chat {
        txn.prepare_cached("UPDATE gaps SET lost = lost - 1 WHERE instance = ? AND chat_id = ?")?
            .execute(params![instance.0, chat])?;
        txn.prepare_cached("DELETE FROM gaps WHERE instance = ? AND chat_id = ? AND lost <= 0")?
            .execute(params![instance.0, chat])?;
        txn.prepare_cached(
            "DELETE FROM untold_gaps WHERE instance = ?1 AND chat_id = ?2
             AND NOT EXISTS (SELECT 1 FROM gaps WHERE instance = ?1 AND chat_id = ?2)",
        )?
        .execute(params![instance.0, chat])?;
    }
    Ok(())
}

fn note_push(txn: &Txn<'_>, seq: Seq, pushed_at: Option<UnixMillis>) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "UPDATE journal SET pushed_at = coalesce(pushed_at, ?), pushes = pushes + 1 WHERE seq = ?",
    )?
    .execute(params![pushed_at.map(|at| at.0), seq.0])?;
    Ok(())
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let kind: String = row.get(1)?;
    Ok(Entry {
        seq: Seq(row.get(0)?),
        kind: EntryKind::parse(&kind).unwrap_or(EntryKind::Message),
        platform: row.get(2)?,
        bot: row.get(3)?,
        chat_id: row.get(4)?,
        session_key: row.get(5)?,
        body: Bytes::from(row.get::<_, Vec<u8>>(6)?),
        revision: row.get(7)?,
    })
}

/// What an entry holds, in the row that [`entry`] reads.
fn body_bytes(row: &Row<'_>) -> rusqlite::Result<usize> {
    Ok(row.get_ref(6)?.as_blob()?.len())
}
