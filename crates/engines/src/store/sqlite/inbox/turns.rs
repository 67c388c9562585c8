//! Turns that outlive a socket, and lines that go together when one is over.

use super::super::footprint::{self, ENTRY_LENGTHS};
use super::super::writer::{Txn, now};
use super::{ENTRY_COLUMNS, ENTRY_WIDTH, close_journal, entry, ownership, remove};
use angelia_core::inbox::{Entry, Epoch, InstanceId, Seq, SettledBy};
use angelia_core::ports::log::{Joined, OpenTurn, Ownership, TurnNote};
use angelia_core::turns::ConversationKey;
use rusqlite::{Connection, OptionalExtension, ToSql, params};
use std::sync::Arc;

/// The condition that passes over conversations, and what it asks of.
pub(super) fn without(conversations: &[ConversationKey]) -> (String, Vec<&dyn ToSql>) {
    let sessions = || conversations.iter().filter_map(|key| key.session_key.as_ref());
    let chats = || conversations.iter().filter(|key| key.session_key.is_none()).map(|key| &key.chat_id);
    let not_in = |column: &str, count: usize| match count {
        0 => String::new(),
        many => format!("AND {column} NOT IN ({})", vec!["?"; many].join(", ")),
    };
    let condition = not_in("session_key", sessions().count()) + &not_in("chat_id", chats().count());
    (condition, sessions().chain(chats()).map(|key| key as &dyn ToSql).collect())
}

/// Has the last of these lines take the text of all, if each waits as it was read.
pub(super) fn join(
    txn: &mut Txn<'_>,
    instance: InstanceId,
    epoch: Epoch,
    joined: &Joined,
) -> rusqlite::Result<Option<Entry>> {
    let Some(((last, _), earlier)) = joined.lines.split_last() else { return Ok(None) };
    for (seq, revision) in &joined.lines {
        if revision_of(txn, instance, *seq)? != Some(*revision) {
            return Ok(None);
        }
    }
    if ownership(txn, instance, epoch)? == Ownership::Lost {
        return Ok(None);
    }
    for (seq, _) in earlier {
        if let Some(journal) = remove(txn, instance, *seq)? {
            close_journal(txn, journal, SettledBy::Joined.as_str())?;
        }
    }
    take_text(txn, instance, *last, joined).map(Some)
}

/// How often a waiting entry was changed; `None` if it does not wait.
fn revision_of(txn: &Txn<'_>, instance: InstanceId, seq: Seq) -> rusqlite::Result<Option<u32>> {
    txn.prepare_cached("SELECT revision FROM inbox WHERE instance = ? AND seq = ? AND dead_at IS NULL")?
        .query_row(params![instance.0, seq.0], |row| row.get(0))
        .optional()
}

fn take_text(txn: &mut Txn<'_>, instance: InstanceId, seq: Seq, joined: &Joined) -> rusqlite::Result<Entry> {
    let (bytes, before): (usize, u64) = txn
        .prepare_cached(&format!(
            "SELECT length(body), {ENTRY_LENGTHS} FROM inbox WHERE instance = ? AND seq = ?"
        ))?
        .query_row(params![instance.0, seq.0], |row| Ok((row.get(0)?, footprint::entry(row, 1)?)))?;
    let (entry, after) = txn
        .prepare_cached(&format!(
            "UPDATE inbox SET body = ?, revision = ? WHERE instance = ? AND seq = ?
             RETURNING {ENTRY_COLUMNS}, {ENTRY_LENGTHS}"
        ))?
        .query_row(params![joined.body.as_ref(), Entry::FINAL, instance.0, seq.0], |row| {
            Ok((entry(row)?, footprint::entry(row, ENTRY_WIDTH)?))
        })?;
    txn.counted.stored.revised(txn.connection, instance, before, after)?;
    txn.count(instance, |held| {
        held.remove(&entry.chat_id, bytes);
        held.add(&entry.chat_id, joined.body.len());
    });
    Ok(entry)
}

pub(super) fn note(txn: &Txn<'_>, instance: InstanceId, note: &TurnNote) -> rusqlite::Result<()> {
    match note {
        TurnNote::Opened(turn) => {
            let key = &turn.conversation;
            txn.prepare_cached(
                "INSERT OR REPLACE INTO turns (instance, chat_id, session_key, platform, bot, thread_id,
                 seq, message_id, author, asks, opened_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                instance.0,
                key.chat_id,
                key.session_key.as_deref().unwrap_or_default(),
                turn.platform,
                turn.bot,
                turn.thread_id,
                turn.seq.0,
                turn.message_id,
                turn.author,
                turn.asks,
                now()
            ])?;
        }
        TurnNote::Closed(key) => {
            let session_key = key.session_key.as_deref().unwrap_or_default();
            txn.prepare_cached("DELETE FROM turns WHERE instance = ? AND chat_id = ? AND session_key = ?")?
                .execute(params![instance.0, key.chat_id, session_key])?;
        }
        TurnNote::Interrupted(turn) => {
            // By its message: its entry has left the inbox, as a rule.
            txn.prepare_cached(
                "UPDATE journal SET interrupted_at = coalesce(interrupted_at, ?)
                 WHERE message_id = ? AND chat_id = ? AND platform = ? AND bot = ?",
            )?
            .execute(params![
                now(),
                turn.message_id,
                turn.conversation.chat_id,
                turn.platform,
                turn.bot
            ])?;
        }
        TurnNote::Held(seq) => {
            txn.prepare_cached(
                "UPDATE journal SET held_at = coalesce(held_at, ?)
                 WHERE id = (SELECT journal FROM inbox WHERE instance = ? AND seq = ?)",
            )?
            .execute(params![now(), instance.0, seq.0])?;
        }
    }
    Ok(())
}

pub(super) fn open(db: &Connection, instance: InstanceId) -> rusqlite::Result<Vec<OpenTurn>> {
    db.prepare_cached(
        "SELECT chat_id, session_key, platform, bot, thread_id, seq, message_id, author, asks
         FROM turns WHERE instance = ? ORDER BY seq",
    )?
    .query_map([instance.0], |row| {
        let session_key = Some(row.get::<_, Arc<str>>(1)?).filter(|key| !key.is_empty());
        Ok(OpenTurn {
            conversation: ConversationKey { chat_id: row.get(0)?, session_key },
            platform: row.get(2)?,
            bot: row.get(3)?,
            thread_id: row.get(4)?,
            seq: Seq(row.get(5)?),
            message_id: row.get(6)?,
            author: row.get(7)?,
            asks: row.get(8)?,
        })
    })?
    .collect()
}
