//! What bots know of chats.

use super::txn::{Txn, now};
use super::{Sqlite, moves};
use angelia_core::audit::Actor;
use angelia_core::clock::UnixMillis;
use angelia_core::directory::{BotKey, Chat, ChatKind, KnownChat};
use angelia_core::inbox::InstanceId;
use angelia_core::store::{DirectoryStore, Later, Traffic};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::time::Duration;

/// How long a message that was continued in others may still be edited: an
/// agent is long done with its answer by then.
pub(super) const PIECES_FOR: Duration = Duration::from_secs(30 * 24 * 3600);

const CHAT_COLUMNS: &str =
    "chat_id, kind, parent, scope, name, topic, person, roles, moved_to, engaged, last_message, last_at";

impl DirectoryStore for Sqlite {
    fn chat(&self, bot: &BotKey, chat_id: &str) -> Later<'_, Option<KnownChat>> {
        let (bot, chat_id) = (bot.clone(), chat_id.to_owned());
        self.readers.read("find a chat", move |db| find(db, &bot, &chat_id))
    }

    fn recent_chats(&self, bot: &BotKey, since: UnixMillis, limit: usize) -> Later<'_, Vec<KnownChat>> {
        let bot = bot.clone();
        self.readers.read("find chats with traffic", move |db| {
            db.prepare_cached(&format!(
                "SELECT {CHAT_COLUMNS} FROM chats WHERE platform = ? AND bot = ? AND last_at >= ?
                 ORDER BY last_at DESC, chat_id LIMIT ?"
            ))?
            .query_map(params![bot.platform, bot.bot, since.0, limit as i64], known)?
            .collect()
        })
    }

    fn forget_chat(&self, bot: &BotKey, chat_id: &str) -> Later<'_, ()> {
        let (bot, chat_id) = (bot.clone(), chat_id.to_owned());
        self.writer.write("forget a chat", move |txn| forget(txn, &bot, "chat_id", &chat_id))
    }

    fn forget_scope(&self, bot: &BotKey, scope: &str) -> Later<'_, ()> {
        let (bot, scope) = (bot.clone(), scope.to_owned());
        self.writer.write("forget a scope", move |txn| forget(txn, &bot, "scope", &scope))
    }

    fn move_chat(&self, bot: &BotKey, from: &str, to: &str, by: &Actor) -> Later<'_, ()> {
        let (bot, from, to, by) = (bot.clone(), from.to_owned(), to.to_owned(), by.clone());
        self.writer.write("move a chat", move |txn| moves::move_chat(txn, &bot, &from, &to, &by))
    }

    fn pieces(&self, bot: &BotKey, chat_id: &str, message_id: &str) -> Later<'_, Vec<String>> {
        let (bot, chat_id, message_id) = (bot.clone(), chat_id.to_owned(), message_id.to_owned());
        self.readers.read("find the pieces of a message", move |db| {
            let list = db
                .prepare_cached(
                    "SELECT pieces FROM pieces
                     WHERE platform = ? AND bot = ? AND chat_id = ? AND message_id = ?",
                )?
                .query_row(params![bot.platform, bot.bot, chat_id, message_id], |row| {
                    parse_list(0, &row.get::<_, String>(0)?)
                })
                .optional()?;
            Ok(list.unwrap_or_default())
        })
    }

    fn keep_pieces(
        &self,
        bot: &BotKey,
        chat_id: &str,
        message_id: &str,
        pieces: Vec<String>,
    ) -> Later<'_, ()> {
        let (bot, chat_id, message_id) = (bot.clone(), chat_id.to_owned(), message_id.to_owned());
        self.writer.write("keep the pieces of a message", move |txn| {
            keep_pieces(txn, &bot, &chat_id, &message_id, &pieces)
        })
    }
}

/// A chat of a bot.
pub(super) fn find(db: &Connection, bot: &BotKey, chat_id: &str) -> rusqlite::Result<Option<KnownChat>> {
    db.prepare_cached(&format!(
        "SELECT {CHAT_COLUMNS} FROM chats WHERE platform = ? AND bot = ? AND chat_id = ?"
    ))?
    .query_row(params![bot.platform, bot.bot, chat_id], known)
    .optional()
}

/// Keeps what a provider says of a chat now. What was seen there stays, and
/// nothing is written where nothing differs.
pub(super) fn learn(txn: &Txn<'_>, bot: &BotKey, chat: &Chat) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "INSERT INTO chats (platform, bot, chat_id, kind, parent, scope, name, topic, person, roles)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (platform, bot, chat_id) DO UPDATE
         SET kind = excluded.kind, parent = excluded.parent, scope = excluded.scope, name = excluded.name,
             topic = excluded.topic, person = excluded.person, roles = excluded.roles
         WHERE (kind, parent, scope, name, topic, person, roles) IS NOT
               (excluded.kind, excluded.parent, excluded.scope, excluded.name, excluded.topic,
                excluded.person, excluded.roles)",
    )?
    .execute(params![
        bot.platform,
        bot.bot,
        chat.chat_id,
        chat.kind.as_str(),
        chat.parent,
        chat.scope,
        chat.name,
        chat.topic,
        chat.person,
        serde_json::json!(chat.roles).to_string()
    ])?;
    Ok(())
}

/// Notes the newest message of a chat that is known: of another one nobody knows what it is.
pub(super) fn note_traffic(txn: &Txn<'_>, bot: &BotKey, traffic: &Traffic) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "UPDATE chats SET last_message = ?1, last_at = ?2
         WHERE platform = ?3 AND bot = ?4 AND chat_id = ?5 AND coalesce(last_at <= ?2, 1)",
    )?
    .execute(params![traffic.message_id, traffic.at.0, bot.platform, bot.bot, traffic.chat_id])?;
    Ok(())
}

/// Notes which instance was addressed in a chat.
pub(super) fn engage(
    txn: &Txn<'_>,
    bot: &BotKey,
    chat_id: &str,
    instance: InstanceId,
) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "UPDATE chats SET engaged = ?1
         WHERE platform = ?2 AND bot = ?3 AND chat_id = ?4 AND engaged IS NOT ?1",
    )?
    .execute(params![instance.0, bot.platform, bot.bot, chat_id])?;
    Ok(())
}

/// Forgets the chats with this value in a column: their id, or what they belong to.
fn forget(txn: &Txn<'_>, bot: &BotKey, column: &str, value: &str) -> rusqlite::Result<()> {
    let chats: Vec<String> = txn
        .prepare_cached(&format!(
            "DELETE FROM chats WHERE platform = ? AND bot = ? AND {column} = ? RETURNING chat_id"
        ))?
        .query_map(params![bot.platform, bot.bot, value], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for chat in chats {
        // Should the bot come back, it may say again why nothing answers.
        txn.prepare_cached("DELETE FROM notices WHERE platform = ? AND bot = ? AND chat_id = ?")?
            .execute(params![bot.platform, bot.bot, chat])?;
    }
    Ok(())
}

fn keep_pieces(
    txn: &Txn<'_>,
    bot: &BotKey,
    chat_id: &str,
    message_id: &str,
    pieces: &[String],
) -> rusqlite::Result<()> {
    if pieces.is_empty() {
        txn.prepare_cached(
            "DELETE FROM pieces WHERE platform = ? AND bot = ? AND chat_id = ? AND message_id = ?",
        )?
        .execute(params![bot.platform, bot.bot, chat_id, message_id])?;
        return Ok(());
    }
    txn.prepare_cached(
        "INSERT INTO pieces (platform, bot, chat_id, message_id, pieces, at) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (platform, bot, chat_id, message_id) DO UPDATE
         SET pieces = excluded.pieces, at = excluded.at",
    )?
    .execute(params![
        bot.platform,
        bot.bot,
        chat_id,
        message_id,
        serde_json::json!(pieces).to_string(),
        now()
    ])?;
    Ok(())
}

fn known(row: &Row<'_>) -> rusqlite::Result<KnownChat> {
    let kind: String = row.get(1)?;
    let unknown = || {
        let why = format!("{kind:?} is no kind of chat");
        rusqlite::Error::FromSqlConversionFailure(1, Type::Text, why.into())
    };
    Ok(KnownChat {
        chat: Chat {
            chat_id: row.get(0)?,
            kind: ChatKind::parse(&kind).ok_or_else(unknown)?,
            parent: row.get(2)?,
            scope: row.get(3)?,
            name: row.get(4)?,
            topic: row.get(5)?,
            person: row.get(6)?,
            roles: parse_list(7, &row.get::<_, String>(7)?)?,
        },
        moved_to: row.get(8)?,
        engaged: row.get::<_, Option<i64>>(9)?.map(InstanceId),
        last_message: row.get(10)?,
        last_at: row.get::<_, Option<i64>>(11)?.map(UnixMillis),
    })
}

/// Reads a stored JSON array of texts.
fn parse_list(column: usize, list: &str) -> rusqlite::Result<Vec<String>> {
    serde_json::from_str(list)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, e.to_string().into()))
}
