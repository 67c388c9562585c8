//! Chats, as a bot finds them, and as it forgets those where it is not any more.

use super::{BotKey, KnownChat};
use crate::clock::UnixMillis;
use crate::error::Result;
use crate::notices;
use crate::records::rows::ChatRow;
use crate::records::{Direction, View};

/// A chat of a bot.
pub fn find(view: &mut View<'_>, bot: &BotKey, chat_id: &str) -> Result<Option<KnownChat>> {
    row(view, bot, chat_id)?.map(ChatRow::known).transpose()
}

/// The same, as it is kept.
pub(super) fn row(view: &mut View<'_>, bot: &BotKey, chat_id: &str) -> Result<Option<ChatRow>> {
    view.get((&*bot.platform, &*bot.bot, chat_id))
}

/// Up to `limit` chats with a message since then, the one with the newest first.
pub fn recent(view: &mut View<'_>, bot: &BotKey, since: UnixMillis, limit: usize) -> Result<Vec<KnownChat>> {
    let of_bot = (&["platform", "bot"] as &[_], (&*bot.platform, &*bot.bot));
    let before = UnixMillis(since.0.saturating_sub(1));
    let rows = view.walk::<ChatRow>(of_bot, "last_at", (Direction::Down, before), limit)?;
    rows.into_iter().map(ChatRow::known).collect()
}

/// Forgets a chat: the bot is not there any more.
pub fn forget(view: &mut View<'_>, bot: &BotKey, chat_id: &str) -> Result<()> {
    let known = row(view, bot, chat_id)?;
    known.iter().try_for_each(|chat| forget_row(view, bot, chat))
}

/// Forgets every chat that belongs to a scope.
pub fn forget_scope(view: &mut View<'_>, bot: &BotKey, scope: &str) -> Result<()> {
    let of_scope = (&*bot.platform, &*bot.bot, Some(scope));
    let known = view.find::<ChatRow>(&["platform", "bot", "scope"], of_scope)?;
    known.iter().try_for_each(|chat| forget_row(view, bot, chat))
}

fn forget_row(view: &mut View<'_>, bot: &BotKey, chat: &ChatRow) -> Result<()> {
    view.delete(chat);
    // Should the bot come back, it may say again why nothing answers.
    notices::forget_chat(view, bot, &chat.chat_id)
}
