//! What people were told by the connector itself.

use super::Sqlite;
use super::clock::is_old;
use super::txn::now;
use angelia_core::directory::{BotKey, ChatKind};
use angelia_core::inbox::{EntryKind, InstanceId, Seq};
use angelia_core::store::{Later, NoticeKind, NoticeStore, Overdue, Untold};
use rusqlite::{Row, params};
use std::time::Duration;

/// The thread of what an inbox row `i` holds, from the event itself.
pub(super) const THREAD: &str = "CASE WHEN json_valid(CAST(i.body AS TEXT))
    THEN CAST(json_extract(CAST(i.body AS TEXT), '$.source.thread_id') AS TEXT) END";

impl NoticeStore for Sqlite {
    fn notice(
        &self,
        kind: NoticeKind,
        bot: &BotKey,
        chat_id: &str,
        instance: Option<InstanceId>,
    ) -> Later<'_, bool> {
        let (bot, chat_id) = (bot.clone(), chat_id.to_owned());
        self.writer.write("note what a chat is told", move |txn| {
            let new = txn
                .prepare_cached(
                    "INSERT INTO notices (kind, platform, bot, chat_id, instance, at) VALUES (?, ?, ?, ?, ?, ?)
                     ON CONFLICT DO NOTHING",
                )?
                .execute(params![
                    kind.as_str(),
                    bot.platform,
                    bot.bot,
                    chat_id,
                    instance.map(|instance| instance.0),
                    now()
                ])?;
            Ok(new > 0)
        })
    }

    fn unnotice(&self, kind: NoticeKind, bot: &BotKey, chat_id: &str) -> Later<'_, ()> {
        let (bot, chat_id) = (bot.clone(), chat_id.to_owned());
        self.writer.write("forget what a chat was told", move |txn| {
            txn.prepare_cached(
                "DELETE FROM notices WHERE kind = ? AND platform = ? AND bot = ? AND chat_id = ?",
            )?
            .execute(params![kind.as_str(), bot.platform, bot.bot, chat_id])?;
            Ok(())
        })
    }

    fn end_notices(&self, instance: InstanceId) -> Later<'_, ()> {
        self.writer.write("end an outage", move |txn| {
            txn.prepare_cached("DELETE FROM notices WHERE instance = ?")?.execute([instance.0])?;
            Ok(())
        })
    }

    fn noticed(&self) -> Later<'_, Vec<InstanceId>> {
        self.readers.read("find told outages", |db| {
            db.prepare_cached(
                "SELECT DISTINCT instance FROM notices WHERE instance IS NOT NULL ORDER BY instance",
            )?
            .query_map([], |row| row.get(0).map(InstanceId))?
            .collect()
        })
    }

    fn untold(&self, limit: usize) -> Later<'_, Vec<Untold>> {
        self.readers.read("find who lost something", move |db| {
            db.prepare_cached(
                "SELECT instance, platform, bot, chat_id, thread_id, message_id FROM untold_gaps
                 ORDER BY instance, chat_id LIMIT ?",
            )?
            .query_map([limit as i64], untold)?
            .collect()
        })
    }

    fn told(&self, untold: &Untold) -> Later<'_, ()> {
        let (instance, chat_id) = (untold.instance, untold.chat_id.clone());
        self.writer.write("note that a loss was told", move |txn| {
            txn.prepare_cached("DELETE FROM untold_gaps WHERE instance = ? AND chat_id = ?")?
                .execute(params![instance.0, chat_id])?;
            Ok(())
        })
    }

    fn overdue(
        &self,
        instance: InstanceId,
        after: Seq,
        waited: Duration,
        limit: usize,
    ) -> Later<'_, Vec<Overdue>> {
        // Nobody needs to have waited for no time at all.
        let waits = match waited {
            Duration::ZERO => "1".to_owned(),
            waited => is_old("i.received_at", &self.clock.older_than(waited)),
        };
        self.readers.read("find what waits for too long", move |db| {
            db.prepare(&format!(
                "SELECT i.seq, i.platform, i.bot, i.chat_id, i.message_id, c.kind, {THREAD}
                 FROM inbox i LEFT JOIN chats c
                      ON c.platform = i.platform AND c.bot = i.bot AND c.chat_id = i.chat_id
                 WHERE i.instance = ? AND i.seq > ? AND {waits} AND i.dead_at IS NULL AND i.kind = ?
                 ORDER BY i.seq LIMIT ?"
            ))?
            .query_map(params![instance.0, after.0, EntryKind::Message.as_str(), limit as i64], overdue)?
            .collect()
        })
    }
}

fn untold(row: &Row<'_>) -> rusqlite::Result<Untold> {
    Ok(Untold {
        instance: InstanceId(row.get(0)?),
        bot: BotKey { platform: row.get(1)?, bot: row.get(2)? },
        chat_id: row.get(3)?,
        thread_id: row.get(4)?,
        message_id: row.get(5)?,
    })
}

fn overdue(row: &Row<'_>) -> rusqlite::Result<Overdue> {
    Ok(Overdue {
        seq: Seq(row.get(0)?),
        bot: BotKey { platform: row.get(1)?, bot: row.get(2)? },
        chat_id: row.get(3)?,
        message_id: row.get(4)?,
        kind: row.get::<_, Option<String>>(5)?.as_deref().and_then(ChatKind::parse),
        thread_id: row.get(6)?,
    })
}
