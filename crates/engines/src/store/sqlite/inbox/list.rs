//! Inboxes as an operator sees them.

use angelia_core::clock::UnixMillis;
use angelia_core::inbox::{InstanceId, Seq};
use angelia_core::ports::Conversation;
use angelia_core::store::{Gap, Listed, ListedInbox};
use rusqlite::{Connection, Row};

pub(super) fn inboxes(db: &Connection) -> rusqlite::Result<Vec<ListedInbox>> {
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
pub(super) const LISTED: &str =
    "SELECT seq, instance, kind, platform, chat_id, message_id, length(body), received_at,
            strikes, dead_at, tenant, name FROM inbox JOIN instances USING (instance)";

pub(super) fn listed(row: &Row<'_>) -> rusqlite::Result<Listed> {
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

pub(super) fn conversation(row: &Row<'_>) -> rusqlite::Result<Conversation> {
    Ok(Conversation { session_key: row.get(0)?, instance: InstanceId(row.get(1)?), chat_id: row.get(2)? })
}
