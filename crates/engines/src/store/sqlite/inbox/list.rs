//! Inboxes as an operator sees them and changes them, and what waits for so long that people
//! are told.

use super::super::Sqlite;
use super::super::clock::is_old;
use super::super::queue::Owner;
use super::super::writer::Txn;
use super::dead;
use angelia_core::audit::Actor;
use angelia_core::clock::{Old, UnixMillis};
use angelia_core::directory::{BotKey, ChatKind};
use angelia_core::error::Result;
use angelia_core::inbox::{EntryKind, InstanceId, Seq};
use angelia_core::ports::Conversation;
use angelia_core::store::{BoxFuture, Gap, Inboxes, Listed, ListedInbox, Overdue};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::time::Duration;

impl Inboxes for Sqlite {
    fn inboxes(&self) -> BoxFuture<'_, Result<Vec<ListedInbox>>> {
        self.readers.read("list inboxes", inboxes)
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
                LISTED
            ))?
            .query_map(params![instance.map(|i| i.0), dead, limit as i64], listed)?
            .collect()
        })
    }

    fn numbered(&self, seq: Seq) -> BoxFuture<'_, Result<Vec<Listed>>> {
        self.readers.read("find an entry", move |db| {
            db.prepare_cached(&format!(
                // By way of the instances: the table is in their order.
                "{} WHERE instance IN (SELECT instance FROM instances) AND seq = ? ORDER BY instance",
                LISTED
            ))?
            .query_map([seq.0], listed)?
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
            .query_row([tenant, session_key], conversation)
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
            .query_map(params![tenant, limit as i64], conversation)?
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
        self.readers
            .read("find what waits for too long", move |db| overdue(db, instance, after, old.as_ref(), limit))
    }
}

fn inboxes(db: &Connection) -> rusqlite::Result<Vec<ListedInbox>> {
    let mut list: Vec<ListedInbox> = db
        .prepare_cached(
            "SELECT instance, tenant, name, idle,
                    (SELECT count(*) FROM inbox e WHERE e.instance = i.instance AND dead_at IS NULL),
                    (SELECT coalesce(sum(length(body)), 0) FROM inbox e WHERE e.instance = i.instance AND dead_at IS NULL),
                    (SELECT count(*) FROM inbox e WHERE e.instance = i.instance AND dead_at IS NOT NULL),
                    (SELECT min(received_at) FROM inbox e WHERE e.instance = i.instance AND dead_at IS NULL)
             FROM instances i ORDER BY tenant, name",
        )?
        .query_map([], |row| {
            Ok(ListedInbox {
                instance: InstanceId(row.get(0)?),
                tenant: row.get(1)?,
                name: row.get(2)?,
                idle: row.get(3)?,
                waiting: row.get(4)?,
                bytes: row.get(5)?,
                dead: row.get(6)?,
                oldest_at: row.get::<_, Option<i64>>(7)?.map(UnixMillis),
                gaps: Vec::new(),
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    for inbox in &mut list {
        inbox.gaps = gaps(db, inbox.instance)?;
    }
    Ok(list)
}

fn gaps(db: &Connection, instance: InstanceId) -> rusqlite::Result<Vec<Gap>> {
    db.prepare_cached(
        "SELECT chat_id, lost, first_at, last_at FROM gaps WHERE instance = ? ORDER BY chat_id",
    )?
    .query_map([instance.0], |row| {
        Ok(Gap {
            chat_id: row.get(0)?,
            lost: row.get(1)?,
            first_at: UnixMillis(row.get(2)?),
            last_at: UnixMillis(row.get(3)?),
        })
    })?
    .collect()
}

/// What [`listed`] reads.
const LISTED: &str = "SELECT seq, instance, kind, platform, chat_id, message_id, length(body), received_at,
            strikes, dead_at, tenant, name FROM inbox JOIN instances USING (instance)";

fn listed(row: &Row<'_>) -> rusqlite::Result<Listed> {
    Ok(Listed {
        seq: Seq(row.get(0)?),
        instance: InstanceId(row.get(1)?),
        kind: row.get(2)?,
        platform: row.get(3)?,
        chat_id: row.get(4)?,
        message_id: row.get(5)?,
        bytes: row.get(6)?,
        received_at: UnixMillis(row.get(7)?),
        strikes: row.get(8)?,
        dead_at: row.get::<_, Option<i64>>(9)?.map(UnixMillis),
        tenant: row.get(10)?,
        name: row.get(11)?,
    })
}

fn conversation(row: &Row<'_>) -> rusqlite::Result<Conversation> {
    Ok(Conversation { session_key: row.get(0)?, instance: InstanceId(row.get(1)?), chat_id: row.get(2)? })
}

/// The thread of what an inbox row `i` holds, from the event itself.
pub(super) const THREAD: &str = "CASE WHEN json_valid(CAST(i.body AS TEXT))
    THEN CAST(json_extract(CAST(i.body AS TEXT), '$.source.thread_id') AS TEXT) END";

/// Messages of an instance after `after` that came before `old`, or at any time.
fn overdue(
    db: &Connection,
    instance: InstanceId,
    after: Seq,
    old: Option<&Old>,
    limit: usize,
) -> rusqlite::Result<Vec<Overdue>> {
    let waits = old.map_or_else(|| "1".to_owned(), |old| is_old("i.received_at", old));
    db.prepare(&format!(
        "SELECT i.seq, i.platform, i.bot, i.chat_id, i.message_id, c.kind, {THREAD}
         FROM inbox i LEFT JOIN chats c
              ON c.platform = i.platform AND c.bot = i.bot AND c.chat_id = i.chat_id
         WHERE i.instance = ? AND i.seq > ? AND {waits} AND i.dead_at IS NULL AND i.kind = ?
         ORDER BY i.seq LIMIT ?"
    ))?
    .query_map(params![instance.0, after.0, EntryKind::Message.as_str(), limit as i64], overdue_row)?
    .collect()
}

fn overdue_row(row: &Row<'_>) -> rusqlite::Result<Overdue> {
    Ok(Overdue {
        seq: Seq(row.get(0)?),
        bot: BotKey { platform: row.get(1)?, bot: row.get(2)? },
        chat_id: row.get(3)?,
        message_id: row.get(4)?,
        kind: row.get::<_, Option<String>>(5)?.as_deref().and_then(ChatKind::parse),
        thread_id: row.get(6)?,
    })
}
