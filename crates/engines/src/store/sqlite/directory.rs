//! What bots learn of chats while they read, as rows: every message comes by here. What each
//! means is said where [`Intake`](angelia_core::store::Intake) is.

use super::writer::Txn;
use angelia_core::directory::{BotKey, Chat};
use angelia_core::inbox::InstanceId;
use angelia_core::store::Traffic;
use rusqlite::params;

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

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    /// What names a chat and moves, or goes, with it.
    const MOVES: [&str; 3] = ["chats", "notices", "pieces"];
    /// What tells of the past, or works only where it came from: a capability
    /// answers in the chat it was given for, under the id it had there.
    const STAYS: [&str; 8] =
        ["actions", "capabilities", "conversations", "gaps", "inbox", "journal", "missed", "untold_gaps"];

    #[test]
    fn every_table_that_names_a_chat_is_known_to_move_or_to_stay() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("schema.sql")).unwrap();
        let tables: Vec<String> = db
            .prepare(
                "SELECT t.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
                 WHERE t.type = 'table' AND c.name = 'chat_id' ORDER BY t.name",
            )
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap();
        let mut known = [MOVES.as_slice(), &STAYS].concat();
        known.sort_unstable();
        assert_eq!(
            tables, known,
            "say what becomes of it when its chat moves: crates/core/src/directory/moves.rs"
        );
    }
}
