//! The log in SQLite: claiming an instance, draining what waits for it, and letting entries
//! go that were acknowledged, acknowledged late, or left behind by a socket.

mod dead;
mod evict;
mod list;
mod revise;
mod turns;
mod withdraw;

pub(super) use super::intake::{append, has_room, takes_messages};
pub(super) use evict::{drop_as_gap, enforce_disk, enforce_quota};
pub(super) use revise::{has_room as has_room_for_revision, revise};
pub(super) use withdraw::withdraw;

use super::Sqlite;
use super::footprint::{self, ENTRY_LENGTHS};
use super::queue::Owner;
use super::reader::page;
use super::writer::{Txn, now};
use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::error::Result;
use angelia_core::inbox::outcome::{ACKNOWLEDGED_LATE, OVER_QUOTA};
use angelia_core::inbox::{
    AckHabit, Entry, EntryKind, Epoch, InstanceId, Mark, Seq, SettledBy, Usage, refusal,
};
use angelia_core::ports::log::{
    Appended, Claimed, Joined, Log, NewEntry, OpenTurn, Ownership, Returned, Revised, Revision, Settlement,
    Stretch, TurnNote, Withdrawal,
};
use angelia_core::store::{BoxFuture, PageSize};
use angelia_core::turns::{ConversationKey, WhileBusy};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use std::sync::LazyLock;

const ENTRY_COLUMNS: &str = "seq, kind, platform, bot, chat_id, session_key, body, revision, while_busy";
/// How many columns those are: what follows them in a row begins here.
const ENTRY_WIDTH: usize = 9;

impl Log for Sqlite {
    fn append(&self, entry: NewEntry) -> BoxFuture<'_, Result<Appended>> {
        angelia_core::fail::point("before_append");
        let (owner, bytes) = (Owner::Tenant(entry.tenant.as_str().into()), entry.body.len());
        self.writer.try_write_for(owner, bytes, "append", move |txn| {
            if !takes_messages(txn, entry.instance)? {
                return Ok(Err(refusal::instance_gone()));
            }
            if let Err(full) = has_room(txn, &entry)? {
                return Ok(Err(full));
            }
            append(txn, entry).map(Ok)
        })
    }

    fn revise(&self, revision: Revision) -> BoxFuture<'_, Result<Revised>> {
        let (owner, bytes) = (self.owners.of_instance(revision.instance), revision.body.len());
        self.writer.write_for(owner, bytes, "revise an entry", move |txn| revise(txn, &revision))
    }

    fn withdraw(&self, withdrawal: Withdrawal) -> BoxFuture<'_, Result<bool>> {
        let owner = Owner::bot(&BotKey::new(&withdrawal.platform, &withdrawal.bot));
        self.writer.write_for(owner, 0, "withdraw an entry", move |txn| withdraw(txn, &withdrawal))
    }

    fn claim(&self, instance: InstanceId, node: &str) -> BoxFuture<'_, Result<Claimed>> {
        let node = node.to_owned();
        self.writer.try_write_for(self.owners.of_instance(instance), 0, "claim an instance", move |txn| {
            let epoch: Option<i64> = txn
                .prepare_cached(
                    "UPDATE instances SET epoch = epoch + 1, node = ?, idle = 0 WHERE instance = ? RETURNING epoch",
                )?
                .query_row(params![node, instance.0], |row| row.get(0))
                .optional()?;
            let Some(epoch) = epoch.map(Epoch) else {
                return Ok(Err(refusal::no_instance()));
            };
            Ok(Ok(Claimed { epoch, mark: txn.mark(instance)?, usage: txn.held(instance).all() }))
        })
    }

    fn load(
        &self,
        instance: InstanceId,
        after: Seq,
        pass_over: &[ConversationKey],
        size: PageSize,
    ) -> BoxFuture<'_, Result<Stretch>> {
        let pass_over = pass_over.to_vec();
        self.readers.read("read an inbox", move |db| {
            let (without, mut passed) = turns::without(&pass_over);
            let mut of: Vec<&dyn ToSql> = vec![&instance.0, &after.0];
            of.append(&mut passed);
            stretch(db, instance, &format!("seq > ? AND ahead = 0 {without}"), &of, size)
        })
    }

    fn load_conversation(
        &self,
        instance: InstanceId,
        conversation: &ConversationKey,
        size: PageSize,
    ) -> BoxFuture<'_, Result<Stretch>> {
        let ConversationKey { chat_id, session_key } = conversation.clone();
        self.readers.read("read a conversation", move |db| {
            let such = "chat_id = ? AND (?3 IS NULL OR session_key = ?3)";
            stretch(db, instance, such, &[&instance.0, &chat_id, &session_key], size)
        })
    }

    fn join(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        joined: Joined,
    ) -> BoxFuture<'_, Result<Option<Entry>>> {
        let (owner, bytes) = (self.owners.of_instance(instance), joined.body.len());
        self.writer
            .write_for(owner, bytes, "join lines", move |txn| turns::join(txn, instance, epoch, &joined))
    }

    fn note_turns(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        notes: Vec<TurnNote>,
    ) -> BoxFuture<'_, Result<Ownership>> {
        self.writer.write_for(self.owners.of_instance(instance), 0, "note turns", move |txn| {
            let ownership = ownership(txn, instance, epoch)?;
            if ownership == Ownership::Ours {
                notes.iter().try_for_each(|note| turns::note(txn, instance, note))?;
            }
            Ok(ownership)
        })
    }

    fn open_turns(&self, instance: InstanceId) -> BoxFuture<'_, Result<Vec<OpenTurn>>> {
        self.readers.read("read open turns", move |db| turns::open(db, instance))
    }

    fn load_ahead(&self, instance: InstanceId, size: PageSize) -> BoxFuture<'_, Result<Stretch>> {
        self.readers.read("read an inbox", move |db| stretch(db, instance, "ahead = 1", &[&instance.0], size))
    }

    fn settle(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        settled: Vec<Settlement>,
    ) -> BoxFuture<'_, Result<Ownership>> {
        self.writer.write_for(self.owners.of_instance(instance), 0, "settle", move |txn| {
            for settlement in &settled {
                settle(txn, instance, settlement)?;
            }
            ownership(txn, instance, epoch)
        })
    }

    fn settle_late(&self, instance: InstanceId, seqs: Vec<Seq>) -> BoxFuture<'_, Result<Vec<Seq>>> {
        self.writer.write_for(self.owners.of_instance(instance), 0, "settle late", move |txn| {
            let mut settled = Vec::new();
            for seq in seqs {
                if settle_late(txn, instance, seq)? {
                    settled.push(seq);
                }
            }
            Ok(settled)
        })
    }

    fn note_pushed(&self, instance: InstanceId, pushed: Vec<(Seq, UnixMillis)>) -> BoxFuture<'_, Result<()>> {
        self.writer.write_for(self.owners.of_instance(instance), 0, "note pushes", move |txn| {
            pushed.iter().try_for_each(|(seq, at)| note_push(txn, instance, *seq, *at, false))
        })
    }

    fn returned(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        returned: Returned,
    ) -> BoxFuture<'_, Result<Option<Seq>>> {
        self.writer.write_for(self.owners.of_instance(instance), 0, "note returned entries", move |txn| {
            for (seq, pushed_at) in &returned.entries {
                note_push(txn, instance, *seq, *pushed_at, true)?;
            }
            if ownership(txn, instance, epoch)? == Ownership::Lost {
                return Ok(None);
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

    fn set_idle(&self, instance: InstanceId, epoch: Epoch, idle: bool) -> BoxFuture<'_, Result<Ownership>> {
        self.writer.write_for(self.owners.of_instance(instance), 0, "flip an instance", move |txn| {
            let ownership = ownership(txn, instance, epoch)?;
            if ownership == Ownership::Ours {
                txn.prepare_cached("UPDATE instances SET idle = ? WHERE instance = ? AND idle <> ?1")?
                    .execute(params![idle, instance.0])?;
            }
            Ok(ownership)
        })
    }

    fn set_habit(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        habit: AckHabit,
    ) -> BoxFuture<'_, Result<Ownership>> {
        self.writer.write_for(self.owners.of_instance(instance), 0, "remember a habit", move |txn| {
            let ownership = ownership(txn, instance, epoch)?;
            if ownership == Ownership::Ours {
                txn.prepare_cached("UPDATE instances SET ack_habit = ? WHERE instance = ?")?
                    .execute(params![habit.as_str(), instance.0])?;
            }
            Ok(ownership)
        })
    }

    fn marks(&self, instances: Vec<InstanceId>) -> BoxFuture<'_, Result<Vec<(InstanceId, Mark)>>> {
        self.readers.read("look at the logs", move |db| {
            let mut marks = Vec::new();
            for instance in instances {
                marks.extend(mark(db, instance)?.map(|mark| (instance, mark)));
            }
            Ok(marks)
        })
    }

    fn usage(&self, instance: InstanceId) -> BoxFuture<'_, Result<Usage>> {
        self.readers.read("count what waits", move |db| {
            db.prepare_cached("SELECT waiting, bytes FROM instances WHERE instance = ?")?
                .query_row([instance.0], |row| Ok(Usage { entries: row.get(0)?, bytes: row.get(1)? }))
                .optional()
                .map(Option::unwrap_or_default)
        })
    }

    fn waiting(&self) -> BoxFuture<'_, Result<Vec<InstanceId>>> {
        self.readers
            .read("find what waits", |db| Ok(usages(db)?.into_iter().map(|(instance, _)| instance).collect()))
    }
}

/// Entries of an instance that wait and are `such`, in order.
fn stretch(
    db: &Connection,
    instance: InstanceId,
    such: &str,
    of: &[&dyn ToSql],
    size: PageSize,
) -> rusqlite::Result<Stretch> {
    // First: what is appended in between is in the page, or told of.
    let mark = mark(db, instance)?.unwrap_or_default();
    let mut waiting = db.prepare_cached(&format!(
        "SELECT {ENTRY_COLUMNS} FROM inbox WHERE instance = ? AND dead_at IS NULL AND {such} ORDER BY seq"
    ))?;
    Ok(Stretch { page: page(waiting.query(of)?, size, body_bytes, entry)?, mark })
}

/// Where the log of an instance is; `None` if there is no such instance.
pub(super) fn mark(db: &Connection, instance: InstanceId) -> rusqlite::Result<Option<Mark>> {
    db.prepare_cached("SELECT tail, redrives FROM instances WHERE instance = ?")?
        .query_row([instance.0], |row| Ok(Mark { tail: Seq(row.get(0)?), redrives: row.get(1)? }))
        .optional()
}

/// What waits, for each instance for which something does.
pub(super) fn usages(db: &Connection) -> rusqlite::Result<Vec<(InstanceId, Usage)>> {
    db.prepare_cached("SELECT instance, waiting, bytes FROM instances WHERE waiting > 0 ORDER BY instance")?
        .query_map([], |row| {
            Ok((InstanceId(row.get(0)?), Usage { entries: row.get(1)?, bytes: row.get(2)? }))
        })?
        .collect()
}

/// Deletes a waiting entry and its share of the usage; answers its row of the journal, or
/// `None` if it was gone.
fn remove(txn: &mut Txn<'_>, instance: InstanceId, seq: Seq) -> rusqlite::Result<Option<i64>> {
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
    Ok(Some(journal))
}

fn close_journal(txn: &Txn<'_>, journal: i64, outcome: &str) -> rusqlite::Result<()> {
    txn.prepare_cached("UPDATE journal SET settled_at = ?, outcome = ? WHERE id = ?")?.execute(params![
        now(),
        outcome,
        journal
    ])?;
    Ok(())
}

/// Whether an instance is drained under this epoch still; one that is gone is not.
fn ownership(txn: &Txn<'_>, instance: InstanceId, epoch: Epoch) -> rusqlite::Result<Ownership> {
    let last: Option<Epoch> = txn
        .prepare_cached("SELECT epoch FROM instances WHERE instance = ?")?
        .query_row([instance.0], |row| row.get(0).map(Epoch))
        .optional()?;
    Ok(Ownership::of(last, epoch))
}

fn settle(txn: &mut Txn<'_>, instance: InstanceId, settlement: &Settlement) -> rusqlite::Result<()> {
    let Some(journal) = remove(txn, instance, settlement.seq)? else {
        withdraw::was_too_late(txn, instance, settlement)?;
        return restore_gap(txn, instance, settlement.seq, "");
    };
    let outcome = settlement.by.as_str();
    txn.prepare_cached(
        "UPDATE journal SET settled_at = ?1, outcome = ?2, pushed_at = coalesce(pushed_at, ?3),
         pushes = pushes + (?3 IS NOT NULL) WHERE id = ?4",
    )?
    .execute(params![now(), outcome, settlement.pushed_at.map(|at| at.0), journal])?;
    Ok(())
}

/// Settles an entry that an earlier socket pushed; `false` if there is none. Numbers
/// can be made up: what was never pushed is not done.
fn settle_late(txn: &mut Txn<'_>, instance: InstanceId, seq: Seq) -> rusqlite::Result<bool> {
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
            Some(journal) => close_journal(txn, journal, ACKNOWLEDGED_LATE).map(|()| true),
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
fn note_push(
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
        while_busy: row.get::<_, Option<String>>(8)?.and_then(|word| WhileBusy::parse(&word)),
    })
}

/// What an entry holds, in the row that [`entry`] reads.
fn body_bytes(row: &Row<'_>) -> rusqlite::Result<usize> {
    Ok(row.get_ref(6)?.as_blob()?.len())
}
