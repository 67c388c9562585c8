//! Turns that outlive a socket, and lines that go together when one is over.

use super::super::db::{Ask, Db, Param, Sql, ToParam, values};
use super::super::footprint::{self, ENTRY_LENGTHS};
use super::super::txn::Txn;
use super::{ENTRY_COLUMNS, ENTRY_WIDTH, close_journal, entry, ownership, remove};
use angelia_core::inbox::{Entry, Epoch, InstanceId, Seq, SettledBy};
use angelia_core::ports::log::{Joined, OpenTurn, Ownership, TurnNote};
use angelia_core::turns::ConversationKey;
use std::sync::Arc;

/// The condition that passes over conversations, and what it asks of; its numbers begin at `first`.
pub(super) fn without(conversations: &[ConversationKey], first: usize) -> (String, Vec<Param<'_>>) {
    let sessions = || conversations.iter().filter_map(|key| key.session_key.as_ref());
    let chats = || conversations.iter().filter(|key| key.session_key.is_none()).map(|key| &key.chat_id);
    let not_in = |column: &str, first: usize, count: usize| {
        let numbers: Vec<String> = (first..first + count).map(|number| format!("${number}")).collect();
        if numbers.is_empty() {
            String::new()
        } else {
            format!("AND {column} NOT IN ({}) ", numbers.join(", "))
        }
    };
    let of_sessions = not_in("session_key", first, sessions().count());
    let condition = of_sessions + &not_in("chat_id", first + sessions().count(), chats().count());
    (condition, sessions().chain(chats()).map(ToParam::param).collect())
}

/// Has the last of these lines take the text of all, if each waits as it was read.
pub(super) fn join(
    txn: &mut dyn Txn,
    instance: InstanceId,
    epoch: Epoch,
    joined: &Joined,
) -> Sql<Option<Entry>> {
    let Some(((last, _), earlier)) = joined.lines.split_last() else { return Ok(None) };
    txn.lock(instance)?;
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
fn revision_of(txn: &mut dyn Txn, instance: InstanceId, seq: Seq) -> Sql<Option<u32>> {
    let revision = "SELECT revision FROM inbox WHERE instance = $1 AND seq = $2 AND dead_at IS NULL";
    txn.first(revision, values![instance, seq], |row| row.get(0))
}

fn take_text(txn: &mut dyn Txn, instance: InstanceId, seq: Seq, joined: &Joined) -> Sql<Entry> {
    let (bytes, before): (usize, u64) = txn.one(
        &format!("SELECT length(body), {ENTRY_LENGTHS} FROM inbox WHERE instance = $1 AND seq = $2"),
        values![instance, seq],
        |row| Ok((row.get(0)?, footprint::entry(&row, 1)?)),
    )?;
    let (entry, after) = txn.one(
        &format!(
            "UPDATE inbox SET body = $1, revision = $2 WHERE instance = $3 AND seq = $4
             RETURNING {ENTRY_COLUMNS}, {ENTRY_LENGTHS}"
        ),
        values![joined.body, Entry::FINAL, instance, seq],
        |row| Ok((entry(row)?, footprint::entry(&row, ENTRY_WIDTH)?)),
    )?;
    if let Some(tenant) = txn.tenant_of(instance)? {
        txn.store(&tenant, after, before);
    }
    txn.count_out(instance, &entry.chat_id, bytes)?;
    txn.count_in(instance, &entry.chat_id, joined.body.len())?;
    Ok(entry)
}

pub(super) fn note(txn: &mut dyn Txn, instance: InstanceId, note: &TurnNote) -> Sql<()> {
    let now = txn.now();
    match note {
        TurnNote::Opened(turn) => open_one(txn, instance, turn),
        TurnNote::Closed(key) => txn.execute(
            "DELETE FROM turns WHERE instance = $1 AND chat_id = $2 AND session_key = $3",
            values![instance, key.chat_id, key.session_key.as_deref().unwrap_or_default()],
        ),
        // By its message: its entry has left the inbox, as a rule.
        TurnNote::Interrupted(turn) => txn.execute(
            "UPDATE journal SET interrupted_at = coalesce(interrupted_at, $1)
             WHERE message_id = $2 AND chat_id = $3 AND platform = $4 AND bot = $5",
            values![now, turn.message_id, turn.conversation.chat_id, turn.platform, turn.bot],
        ),
        TurnNote::Held(seq) => txn.execute(
            "UPDATE journal SET held_at = coalesce(held_at, $1)
             WHERE id = (SELECT journal FROM inbox WHERE instance = $2 AND seq = $3)",
            values![now, instance, seq],
        ),
    }
    .map(drop)
}

fn open_one(txn: &mut dyn Txn, instance: InstanceId, turn: &OpenTurn) -> Sql<usize> {
    let (now, key) = (txn.now(), &turn.conversation);
    txn.execute(
        "INSERT INTO turns (instance, chat_id, session_key, platform, bot, thread_id,
         seq, message_id, author, asks, opened_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (instance, chat_id, session_key) DO UPDATE
         SET platform = excluded.platform, bot = excluded.bot, thread_id = excluded.thread_id, seq = excluded.seq,
             message_id = excluded.message_id, author = excluded.author, asks = excluded.asks,
             opened_at = excluded.opened_at",
        values![
            instance,
            key.chat_id,
            key.session_key.as_deref().unwrap_or_default(),
            turn.platform,
            turn.bot,
            turn.thread_id,
            turn.seq,
            turn.message_id,
            turn.author,
            turn.asks,
            now
        ],
    )
}

pub(super) fn open(db: &mut dyn Db, instance: InstanceId) -> Sql<Vec<OpenTurn>> {
    db.all(
        "SELECT chat_id, session_key, platform, bot, thread_id, seq, message_id, author, asks
         FROM turns WHERE instance = $1 ORDER BY seq",
        values![instance],
        |row| {
            let session_key = Some(row.get::<Arc<str>>(1)?).filter(|key| !key.is_empty());
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
        },
    )
}
