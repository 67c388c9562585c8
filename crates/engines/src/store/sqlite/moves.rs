//! Chats that got another id: everything that names one moves in one commit.

use super::txn::Txn;
use super::{directory, records};
use angelia_core::audit::Actor;
use angelia_core::directory::{BotKey, ChatKind};
use angelia_core::identity::routes;
use rusqlite::params;

/// What of a table belongs to a chat `?3`: the chat itself and its topics,
/// whose ids begin with its own and a `/`. The sign after `/` is `0`.
const OF_CHAT: &str =
    "platform = ?1 AND bot = ?2 AND (chat_id = ?3 OR (chat_id > ?3 || '/' AND chat_id < ?3 || '0'))";
/// The id that something of chat `?3` has once that is `?4`.
const NEW_ID: &str = "?4 || substr(chat_id, length(?3) + 1)";

/// Moves a chat and its topics; what has moved there already stays as it is.
pub(super) fn move_chat(
    txn: &mut Txn<'_>,
    bot: &BotKey,
    from: &str,
    to: &str,
    by: &Actor,
) -> rusqlite::Result<()> {
    let known = directory::find(txn, bot, from)?;
    if from == to || known.is_some_and(|known| known.moved_to.as_deref() == Some(to)) {
        return Ok(());
    }
    move_facts(txn, bot, from, to)?;
    // What the new id has of its own is newer.
    txn.execute(
        &format!("UPDATE OR IGNORE notices SET chat_id = {NEW_ID} WHERE {OF_CHAT}"),
        params![bot.platform, bot.bot, from, to],
    )?;
    // The messages stayed behind: their ids are those of other messages in the new chat.
    for table in ["notices", "pieces"] {
        txn.execute(&format!("DELETE FROM {table} WHERE {OF_CHAT}"), params![bot.platform, bot.bot, from])?;
    }
    let (bot, from, to, by) = (bot.clone(), from.to_owned(), to.to_owned(), by.clone());
    let chat = from.clone();
    let followed = records::run(txn, Box::new(move |view| routes::follow(view, &bot, &from, &to, &by)))?;
    if let Err(error) = followed {
        // The message that told of the move is not held up by a route that cannot be read.
        tracing::error!(%error, chat, "the routes of a chat that got another id could not follow it; add them anew");
    }
    Ok(())
}

/// The new id gets what was known of the old one, unless more is known of it
/// already; the old one leads there from now on. The newest message does not
/// come along: its id means nothing in the new chat.
fn move_facts(txn: &Txn<'_>, bot: &BotKey, from: &str, to: &str) -> rusqlite::Result<()> {
    // Whatever is moved to is where the chat is: nothing leads round in a circle.
    txn.execute(
        &format!("DELETE FROM chats WHERE {OF_CHAT} AND moved_to IS NOT NULL"),
        params![bot.platform, bot.bot, to],
    )?;
    txn.execute(
        &format!(
            "INSERT INTO chats (platform, bot, chat_id, kind, parent, scope, name, topic, person, roles, engaged)
             SELECT platform, bot, {NEW_ID}, kind, iif(parent = ?3, ?4, parent), scope, name, topic, person,
                    roles, engaged
             FROM chats WHERE {OF_CHAT} AND moved_to IS NULL
             ON CONFLICT (platform, bot, chat_id) DO UPDATE
             SET engaged = coalesce(engaged, excluded.engaged)"
        ),
        params![bot.platform, bot.bot, from, to],
    )?;
    txn.execute(
        &format!(
            "UPDATE chats SET moved_to = {NEW_ID}, engaged = NULL, last_message = NULL, last_at = NULL
             WHERE {OF_CHAT}"
        ),
        params![bot.platform, bot.bot, from, to],
    )?;
    // An id that nobody knew leads on too. Only what several people share gets another id.
    txn.execute(
        "INSERT INTO chats (platform, bot, chat_id, kind, moved_to) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (platform, bot, chat_id) DO NOTHING",
        params![bot.platform, bot.bot, from, ChatKind::Group.as_str(), to],
    )?;
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
        assert_eq!(tables, known, "say in moves.rs what becomes of it when its chat moves");
    }
}
