//! Inboxes as an operator sees them and changes them, and what waits for so long that people
//! are told.

use super::super::clock::is_old;
use super::super::db::{Ask, Db, Row, Sql, values};
use super::super::engine::{Engine, Owner, Store};
use super::super::txn::Txn;
use super::dead;
use angelia_core::audit::Actor;
use angelia_core::clock::{Old, UnixMillis};
use angelia_core::directory::{BotKey, ChatKind};
use angelia_core::error::Result;
use angelia_core::inbox::{EntryKind, InstanceId, Seq};
use angelia_core::ports::Conversation;
use angelia_core::store::{BoxFuture, Gap, Inboxes, Listed, ListedInbox, Overdue};
use std::time::Duration;

impl<E: Engine> Inboxes for Store<E> {
    fn inboxes(&self) -> BoxFuture<'_, Result<Vec<ListedInbox>>> {
        self.0.read("list inboxes", inboxes)
    }

    fn entries(
        &self,
        instance: Option<InstanceId>,
        dead: bool,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Listed>>> {
        self.0.read("list entries", move |db| {
            let dead = if dead { "dead_at IS NOT NULL" } else { "dead_at IS NULL" };
            let entries = format!(
                "{LISTED} WHERE ($1 IS NULL OR instance = $1) AND {dead}
                 ORDER BY received_at, instance, seq LIMIT $2"
            );
            db.all(&entries, values![instance, limit], listed)
        })
    }

    fn numbered(&self, seq: Seq) -> BoxFuture<'_, Result<Vec<Listed>>> {
        // By way of the instances: the table is in their order.
        let numbered = "WHERE instance IN (SELECT instance FROM instances) AND seq = $1 ORDER BY instance";
        self.0.read("find an entry", move |db| db.all(&format!("{LISTED} {numbered}"), values![seq], listed))
    }

    fn redrive(
        &self,
        instance: Option<InstanceId>,
        seq: Option<Seq>,
        by: &Actor,
    ) -> BoxFuture<'_, Result<u64>> {
        let by = by.clone();
        self.0.write_all(Owner::Server, 0, "redrive dead letters", move |txn| {
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
                let step = move |txn: &mut dyn Txn| {
                    let (count, more) = dead::purge(txn, instance, seq)?;
                    dead::note(txn, &by, "inbox.purge", instance, seq, count)?;
                    txn.then_make_room();
                    Ok((count, more))
                };
                let (count, more) = self.0.write_all(Owner::Operator, 0, "purge entries", step).await?;
                purged += count;
                if !more {
                    return Ok(purged);
                }
            }
        })
    }

    fn conversation(&self, tenant: &str, session_key: &str) -> BoxFuture<'_, Result<Option<Conversation>>> {
        let (tenant, session_key) = (tenant.to_owned(), session_key.to_owned());
        let of =
            "SELECT session_key, instance, chat_id FROM conversations WHERE tenant = $1 AND session_key = $2";
        self.0.read("find a conversation", move |db| db.first(of, values![tenant, session_key], conversation))
    }

    fn recent_conversations(&self, tenant: &str, limit: usize) -> BoxFuture<'_, Result<Vec<Conversation>>> {
        let tenant = tenant.to_owned();
        let recent = "SELECT session_key, instance, chat_id FROM conversations WHERE tenant = $1
                      ORDER BY last_at DESC LIMIT $2";
        self.0.read("find conversations", move |db| db.all(recent, values![tenant, limit], conversation))
    }

    fn overdue(
        &self,
        instance: InstanceId,
        after: Seq,
        waited: Duration,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Overdue>>> {
        // Nobody needs to have waited for no time at all.
        let old = (waited > Duration::ZERO).then(|| self.0.clock().older_than(waited));
        self.0
            .read("find what waits for too long", move |db| overdue(db, instance, after, old.as_ref(), limit))
    }
}

fn inboxes(db: &mut dyn Db) -> Sql<Vec<ListedInbox>> {
    let mut list = db.all(
        "SELECT instance, tenant, name, idle,
                (SELECT count(*) FROM inbox e WHERE e.instance = i.instance AND dead_at IS NULL),
                (SELECT CAST(coalesce(sum(length(body)), 0) AS BIGINT) FROM inbox e
                 WHERE e.instance = i.instance AND dead_at IS NULL),
                (SELECT count(*) FROM inbox e WHERE e.instance = i.instance AND dead_at IS NOT NULL),
                (SELECT min(received_at) FROM inbox e WHERE e.instance = i.instance AND dead_at IS NULL)
         FROM instances i ORDER BY tenant, name",
        &[],
        |row| {
            Ok(ListedInbox {
                instance: InstanceId(row.get(0)?),
                tenant: row.get(1)?,
                name: row.get(2)?,
                idle: row.get(3)?,
                waiting: row.get(4)?,
                bytes: row.get(5)?,
                dead: row.get(6)?,
                oldest_at: row.get::<Option<i64>>(7)?.map(UnixMillis),
                gaps: Vec::new(),
            })
        },
    )?;
    for inbox in &mut list {
        inbox.gaps = gaps(db, inbox.instance)?;
    }
    Ok(list)
}

fn gaps(db: &mut dyn Db, instance: InstanceId) -> Sql<Vec<Gap>> {
    let gaps = "SELECT chat_id, lost, first_at, last_at FROM gaps WHERE instance = $1 ORDER BY chat_id";
    db.all(gaps, values![instance], |row| {
        Ok(Gap {
            chat_id: row.get(0)?,
            lost: row.get(1)?,
            first_at: UnixMillis(row.get(2)?),
            last_at: UnixMillis(row.get(3)?),
        })
    })
}

/// What [`listed`] reads.
const LISTED: &str = "SELECT seq, instance, kind, platform, chat_id, message_id, length(body), received_at,
            strikes, dead_at, tenant, name FROM inbox JOIN instances USING (instance)";

fn listed(row: Row<'_>) -> Sql<Listed> {
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
        dead_at: row.get::<Option<i64>>(9)?.map(UnixMillis),
        tenant: row.get(10)?,
        name: row.get(11)?,
    })
}

fn conversation(row: Row<'_>) -> Sql<Conversation> {
    Ok(Conversation { session_key: row.get(0)?, instance: InstanceId(row.get(1)?), chat_id: row.get(2)? })
}

/// The thread of what an entry holds, from the event itself.
pub(super) fn thread_of(body: &[u8]) -> Option<String> {
    let event: serde_json::Value = serde_json::from_slice(body).ok()?;
    match event.get("source")?.get("thread_id")? {
        serde_json::Value::String(thread) => Some(thread.clone()),
        serde_json::Value::Number(thread) => Some(thread.to_string()),
        _ => None,
    }
}

/// Messages of an instance after `after` that came before `old`, or at any time.
fn overdue(
    db: &mut dyn Db,
    instance: InstanceId,
    after: Seq,
    old: Option<&Old>,
    limit: usize,
) -> Sql<Vec<Overdue>> {
    let waits = old.map_or_else(|| "1 = 1".to_owned(), |old| is_old("i.received_at", old));
    db.all(
        &format!(
            "SELECT i.seq, i.platform, i.bot, i.chat_id, i.message_id, c.kind, i.body
             FROM inbox i LEFT JOIN chats c
                  ON c.platform = i.platform AND c.bot = i.bot AND c.chat_id = i.chat_id
             WHERE i.instance = $1 AND i.seq > $2 AND {waits} AND i.dead_at IS NULL AND i.kind = $3
             ORDER BY i.seq LIMIT $4"
        ),
        values![instance, after, EntryKind::Message.as_str(), limit],
        overdue_row,
    )
}

fn overdue_row(row: Row<'_>) -> Sql<Overdue> {
    Ok(Overdue {
        seq: Seq(row.get(0)?),
        bot: BotKey { platform: row.get(1)?, bot: row.get(2)? },
        chat_id: row.get(3)?,
        message_id: row.get(4)?,
        kind: row.get::<Option<String>>(5)?.as_deref().and_then(ChatKind::parse),
        thread_id: thread_of(&row.get::<Vec<u8>>(6)?),
    })
}
