//! Messages too long for their provider: which further ones they are continued in.

use super::{BotKey, moves};
use crate::error::Result;
use crate::records::View;
use crate::records::rows::PieceRow;
use std::time::Duration;

/// How long a message that was continued in others may still be edited: an
/// agent is long done with its answer by then.
pub const PIECES_FOR: Duration = Duration::from_secs(30 * 24 * 3600);

/// The further messages that a message was continued in, in order.
pub fn of(view: &mut View<'_>, bot: &BotKey, chat_id: &str, message_id: &str) -> Result<Vec<String>> {
    let found = view.get::<PieceRow>((&*bot.platform, &*bot.bot, chat_id, message_id))?;
    found.map_or_else(|| Ok(Vec::new()), |row| row.list())
}

/// Notes which further messages a message is continued in; none forgets it.
pub fn keep(
    view: &mut View<'_>,
    bot: &BotKey,
    chat_id: &str,
    message_id: &str,
    pieces: &[String],
) -> Result<()> {
    let row = PieceRow {
        platform: bot.platform.as_ref().to_owned(),
        bot: bot.bot.as_ref().to_owned(),
        chat_id: chat_id.to_owned(),
        message_id: message_id.to_owned(),
        pieces: serde_json::json!(pieces).to_string(),
        at: view.now(),
    };
    if pieces.is_empty() {
        view.delete(&row);
    } else {
        view.put(&row);
    }
    Ok(())
}

/// Forgets all of a chat and of its topics: it got another id, and its messages stayed behind.
/// In the new chat their ids are those of other messages.
pub(super) fn leave(view: &mut View<'_>, bot: &BotKey, chat_id: &str) -> Result<()> {
    let of_bot = (&["platform", "bot"] as &[_], (&*bot.platform, &*bot.bot));
    let topics = moves::of_topics::<PieceRow>(view, of_bot, chat_id, |row| &row.chat_id)?;
    let chats = topics.iter().map(|row| row.chat_id.as_str()).chain([chat_id]);
    for chat in chats {
        let of_chat = (&*bot.platform, &*bot.bot, chat);
        view.delete_all::<PieceRow>(&["platform", "bot", "chat_id"], of_chat)?;
    }
    Ok(())
}
