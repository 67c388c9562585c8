//! Chats that got another id: everything that names one goes along in one commit.

use super::{BotKey, Chat, ChatKind, KnownChat, chats, pieces};
use crate::audit::Actor;
use crate::error::{Error, Result};
use crate::identity::routes;
use crate::notices;
use crate::records::rows::ChatRow;
use crate::records::{Direction, Key, Record, View};
use crate::threads;

/// Moves a chat and its topics; what has moved there already stays as it is. Answers why its
/// routes could not follow: whatever told of the move is not held up by a route that cannot be read.
pub fn move_chat(
    view: &mut View<'_>,
    bot: &BotKey,
    from: &str,
    to: &str,
    by: &Actor,
) -> Result<Option<Error>> {
    let known = chats::row(view, bot, from)?;
    if from == to || known.is_some_and(|known| known.moved_to.as_deref() == Some(to)) {
        return Ok(None);
    }
    move_facts(view, bot, from, to)?;
    notices::follow(view, bot, from, to)?;
    pieces::leave(view, bot, from)?;
    threads::follow(view, bot, from, to)?;
    Ok(routes::follow(view, bot, from, to, by).err())
}

/// The new id gets what was known of the old one, unless more is known of it
/// already; the old one leads there from now on.
fn move_facts(view: &mut View<'_>, bot: &BotKey, from: &str, to: &str) -> Result<()> {
    let (left, there) = (with_topics(view, bot, from)?, with_topics(view, bot, to)?);
    // Whatever is moved to is where the chat is: nothing leads round in a circle.
    there.iter().filter(|chat| chat.moved_to.is_some()).for_each(|chat| view.delete(chat));
    if left.iter().all(|chat| chat.chat_id != from) {
        // An id that nobody knew leads on too. Only what several people share gets another id.
        let leads = KnownChat { moved_to: Some(to.to_owned()), ..Chat::new(from, ChatKind::Group).into() };
        view.put(&ChatRow::of(bot, &leads));
    }
    for chat in left {
        let new = new_id(&chat.chat_id, from, to);
        if chat.moved_to.is_none() {
            carry(view, bot, &chat, &new, (from, to))?;
        }
        view.put(&ChatRow { moved_to: Some(new), engaged: None, last_message: None, last_at: None, ..chat });
    }
    Ok(())
}

/// Keeps what is known of a chat under its new id. The newest message does not come along: its
/// id means nothing in the new chat.
fn carry(
    view: &mut View<'_>,
    bot: &BotKey,
    chat: &ChatRow,
    new: &str,
    (from, to): (&str, &str),
) -> Result<()> {
    let carried = match chats::row(view, bot, new)? {
        Some(known) => ChatRow { engaged: known.engaged.or(chat.engaged), ..known },
        None => {
            let parent = chat.parent.as_deref().map(|parent| if parent == from { to } else { parent });
            ChatRow {
                chat_id: new.to_owned(),
                parent: parent.map(str::to_owned),
                last_message: None,
                last_at: None,
                ..chat.clone()
            }
        }
    };
    view.put(&carried);
    Ok(())
}

/// A chat and its topics, as far as they are known.
fn with_topics(view: &mut View<'_>, bot: &BotKey, chat_id: &str) -> Result<Vec<ChatRow>> {
    let of_bot = (&["platform", "bot"] as &[_], (&*bot.platform, &*bot.bot));
    let topics = of_topics::<ChatRow>(view, of_bot, chat_id, |row| &row.chat_id)?;
    Ok(chats::row(view, bot, chat_id)?.into_iter().chain(topics).collect())
}

/// One record of each topic of a chat that there are records of: their ids begin with its own
/// and a `/`.
pub(crate) fn of_topics<R: Record>(
    view: &mut View<'_>,
    by: (&'static [&'static str], impl Key + Copy),
    chat_id: &str,
    id_of: fn(&R) -> &str,
) -> Result<Vec<R>> {
    let begins = format!("{chat_id}/");
    let (mut found, mut last) = (Vec::new(), begins.clone());
    while let Some(next) = view.walk::<R>(by, "chat_id", (Direction::Up, &last), 1)?.pop()
        && id_of(&next).starts_with(&begins)
    {
        id_of(&next).clone_into(&mut last);
        found.push(next);
    }
    Ok(found)
}

/// The id that a chat or one of its topics has once the chat has another.
pub(crate) fn new_id(id: &str, from: &str, to: &str) -> String {
    format!("{to}{}", id.strip_prefix(from).unwrap_or_default())
}
