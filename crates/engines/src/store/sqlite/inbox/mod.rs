//! The log in SQLite: appending, draining, settling, and what an operator sees of it.

mod append;
mod dead;
mod list;
mod overdue;
mod revise;
mod settle;

pub(super) use append::{append, drop_as_gap, has_room, takes_messages};
pub(super) use revise::{has_room as has_room_for_revision, revise};

use super::Sqlite;
use super::queue::Owner;
use super::reader::page;
use super::writer::Txn;
use angelia_core::audit::Actor;
use angelia_core::clock::UnixMillis;
use angelia_core::error::Result;
use angelia_core::inbox::{AckHabit, Entry, EntryKind, Epoch, InstanceId, Mark, Seq, Usage, refusal};
use angelia_core::ports::Conversation;
use angelia_core::ports::log::{
    Appended, Claimed, Log, NewEntry, Ownership, Returned, Revised, Revision, Settlement, Stretch,
};
use angelia_core::store::{BoxFuture, Inboxes, Listed, ListedInbox, Overdue, PageSize};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use std::sync::Arc;
use std::time::Duration;

const ENTRY_COLUMNS: &str = "seq, kind, platform, bot, chat_id, session_key, body, revision";

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
        pass_over: &[Arc<str>],
        size: PageSize,
    ) -> BoxFuture<'_, Result<Stretch>> {
        let pass_over = pass_over.to_vec();
        self.readers.read("read an inbox", move |db| {
            // First: what is appended in between is in the page, or told of.
            let mark = mark(db, instance)?.unwrap_or_default();
            let held = match pass_over.len() {
                0 => String::new(),
                many => format!("AND session_key NOT IN ({})", vec!["?"; many].join(", ")),
            };
            let mut waiting = db.prepare_cached(&format!(
                "SELECT {ENTRY_COLUMNS} FROM inbox
                 WHERE instance = ? AND seq > ? AND dead_at IS NULL AND ahead = 0 {held} ORDER BY seq"
            ))?;
            let mut of: Vec<&dyn ToSql> = vec![&instance.0, &after.0];
            of.extend(pass_over.iter().map(|key| key as &dyn ToSql));
            Ok(Stretch { page: page(waiting.query(&*of)?, size, body_bytes, entry)?, mark })
        })
    }

    fn load_ahead(&self, instance: InstanceId, size: PageSize) -> BoxFuture<'_, Result<Stretch>> {
        self.readers.read("read an inbox", move |db| {
            let mark = mark(db, instance)?.unwrap_or_default();
            let mut waiting = db.prepare_cached(&format!(
                "SELECT {ENTRY_COLUMNS} FROM inbox
                 WHERE instance = ? AND ahead = 1 AND dead_at IS NULL ORDER BY seq"
            ))?;
            Ok(Stretch { page: page(waiting.query([instance.0])?, size, body_bytes, entry)?, mark })
        })
    }

    fn settle(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        settled: Vec<Settlement>,
    ) -> BoxFuture<'_, Result<Ownership>> {
        self.writer.write_for(self.owners.of_instance(instance), 0, "settle", move |txn| {
            for settlement in &settled {
                settle::settle(txn, instance, settlement)?;
            }
            settle::ownership(txn, instance, epoch)
        })
    }

    fn settle_late(&self, instance: InstanceId, seqs: Vec<Seq>) -> BoxFuture<'_, Result<Vec<Seq>>> {
        self.writer.write_for(self.owners.of_instance(instance), 0, "settle late", move |txn| {
            let mut settled = Vec::new();
            for seq in seqs {
                if settle::settle_late(txn, instance, seq)? {
                    settled.push(seq);
                }
            }
            Ok(settled)
        })
    }

    fn note_pushed(&self, instance: InstanceId, pushed: Vec<(Seq, UnixMillis)>) -> BoxFuture<'_, Result<()>> {
        self.writer.write_for(self.owners.of_instance(instance), 0, "note pushes", move |txn| {
            pushed.iter().try_for_each(|(seq, at)| settle::note_push(txn, instance, *seq, *at, false))
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
                settle::note_push(txn, instance, *seq, *pushed_at, true)?;
            }
            if settle::ownership(txn, instance, epoch)? == Ownership::Lost {
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
            let ownership = settle::ownership(txn, instance, epoch)?;
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
            let ownership = settle::ownership(txn, instance, epoch)?;
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

impl Inboxes for Sqlite {
    fn inboxes(&self) -> BoxFuture<'_, Result<Vec<ListedInbox>>> {
        self.readers.read("list inboxes", list::inboxes)
    }

    fn entries(
        &self,
        instance: Option<InstanceId>,
        dead: bool,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Listed>>> {
        self.readers.read("list entries", move |db| {
            db.prepare_cached(&format!(
                "{} WHERE (?1 IS NULL OR instance = ?1) AND (dead_at IS NOT NULL) = ?2
                 ORDER BY received_at, instance, seq LIMIT ?3",
                list::LISTED
            ))?
            .query_map(params![instance.map(|i| i.0), dead, limit as i64], list::listed)?
            .collect()
        })
    }

    fn numbered(&self, seq: Seq) -> BoxFuture<'_, Result<Vec<Listed>>> {
        self.readers.read("find an entry", move |db| {
            db.prepare_cached(&format!(
                // By way of the instances: the table is in their order.
                "{} WHERE instance IN (SELECT instance FROM instances) AND seq = ? ORDER BY instance",
                list::LISTED
            ))?
            .query_map([seq.0], list::listed)?
            .collect()
        })
    }

    fn redrive(
        &self,
        instance: Option<InstanceId>,
        seq: Option<Seq>,
        by: &Actor,
    ) -> BoxFuture<'_, Result<u64>> {
        let by = by.clone();
        self.writer.write_for(Owner::Server, 0, "redrive dead letters", move |txn| {
            let count = dead::redrive(txn, instance, seq)?;
            dead::note(txn, &by, "inbox.redrive", instance, seq, count)
        })
    }

    fn purge(
        &self,
        instance: Option<InstanceId>,
        seq: Option<Seq>,
        by: &Actor,
    ) -> BoxFuture<'_, Result<u64>> {
        let by = by.clone();
        Box::pin(async move {
            let mut purged = 0;
            loop {
                let by = by.clone();
                let step = move |txn: &mut Txn<'_>| {
                    let (count, more) = dead::purge(txn, instance, seq)?;
                    dead::note(txn, &by, "inbox.purge", instance, seq, count)?;
                    txn.then_make_room();
                    Ok((count, more))
                };
                let (count, more) = self.writer.write_for(Owner::Operator, 0, "purge entries", step).await?;
                purged += count;
                if !more {
                    return Ok(purged);
                }
            }
        })
    }

    fn conversation(&self, tenant: &str, session_key: &str) -> BoxFuture<'_, Result<Option<Conversation>>> {
        let (tenant, session_key) = (tenant.to_owned(), session_key.to_owned());
        self.readers.read("find a conversation", move |db| {
            db.prepare_cached(
                "SELECT session_key, instance, chat_id FROM conversations WHERE tenant = ? AND session_key = ?",
            )?
            .query_row([tenant, session_key], list::conversation)
            .optional()
        })
    }

    fn recent_conversations(&self, tenant: &str, limit: usize) -> BoxFuture<'_, Result<Vec<Conversation>>> {
        let tenant = tenant.to_owned();
        self.readers.read("find conversations", move |db| {
            db.prepare_cached(
                "SELECT session_key, instance, chat_id FROM conversations WHERE tenant = ?
                 ORDER BY last_at DESC LIMIT ?",
            )?
            .query_map(params![tenant, limit as i64], list::conversation)?
            .collect()
        })
    }

    fn overdue(
        &self,
        instance: InstanceId,
        after: Seq,
        waited: Duration,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Overdue>>> {
        // Nobody needs to have waited for no time at all.
        let old = (waited > Duration::ZERO).then(|| self.clock.older_than(waited));
        self.readers.read("find what waits for too long", move |db| {
            overdue::overdue(db, instance, after, old.as_ref(), limit)
        })
    }
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
