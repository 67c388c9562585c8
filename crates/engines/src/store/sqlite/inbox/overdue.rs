//! What waits for so long that people are told.

use super::super::clock::is_old;
use angelia_core::clock::Old;
use angelia_core::directory::{BotKey, ChatKind};
use angelia_core::inbox::{EntryKind, InstanceId, Seq};
use angelia_core::store::Overdue;
use rusqlite::{Connection, Row, params};

/// The thread of what an inbox row `i` holds, from the event itself.
pub(super) const THREAD: &str = "CASE WHEN json_valid(CAST(i.body AS TEXT))
    THEN CAST(json_extract(CAST(i.body AS TEXT), '$.source.thread_id') AS TEXT) END";

/// Messages of an instance after `after` that came before `old`, or at any time.
pub(super) fn overdue(
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
    .query_map(params![instance.0, after.0, EntryKind::Message.as_str(), limit as i64], read)?
    .collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Overdue> {
    Ok(Overdue {
        seq: Seq(row.get(0)?),
        bot: BotKey { platform: row.get(1)?, bot: row.get(2)? },
        chat_id: row.get(3)?,
        message_id: row.get(4)?,
        kind: row.get::<_, Option<String>>(5)?.as_deref().and_then(ChatKind::parse),
        thread_id: row.get(6)?,
    })
}
