//! What people are told by the connector itself: once, until there is a reason to say it again.

use crate::directory::BotKey;
use crate::directory::moves::{new_id, of_topics};
use crate::error::Result;
use crate::inbox::InstanceId;
use crate::records::rows::{NoticeRow, UntoldRow};
use crate::records::{Direction, View};
use crate::store::{NoticeKind, Untold};
use std::time::Duration;

/// How long it is remembered that a chat was told something: whoever comes back
/// after a year may be told again.
pub const NOTICES_FOR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Notices looked at in one go. Of an instance with more only the first of them are read.
const PAGE: usize = 100;

/// Notes that a chat is told something; `false` if it was before.
pub fn note(
    view: &mut View<'_>,
    kind: NoticeKind,
    bot: &BotKey,
    chat_id: &str,
    instance: Option<InstanceId>,
) -> Result<bool> {
    if find(view, kind, bot, chat_id)?.is_some() {
        return Ok(false);
    }
    view.put(&NoticeRow {
        kind: kind.as_str().to_owned(),
        platform: bot.platform.as_ref().to_owned(),
        bot: bot.bot.as_ref().to_owned(),
        chat_id: chat_id.to_owned(),
        instance,
        at: view.now(),
    });
    Ok(true)
}

/// Forgets that a chat was told something, because it could not be.
pub fn forget(view: &mut View<'_>, kind: NoticeKind, bot: &BotKey, chat_id: &str) -> Result<()> {
    let told = find(view, kind, bot, chat_id)?;
    told.iter().for_each(|notice| view.delete(notice));
    Ok(())
}

/// Forgets all that a chat was told.
pub fn forget_chat(view: &mut View<'_>, bot: &BotKey, chat_id: &str) -> Result<()> {
    NoticeKind::ALL.into_iter().try_for_each(|kind| forget(view, kind, bot, chat_id))
}

/// An instance's outage is over: its chats are told again in the next one. As many as one
/// change may take; `true` if there are more.
pub fn end(view: &mut View<'_>, instance: InstanceId) -> Result<bool> {
    let from = InstanceId(instance.0.saturating_sub(1));
    let mut told = view.walk::<NoticeRow>((&[], ()), "instance", (Direction::Up, from), PAGE)?;
    told.retain(|notice| notice.instance == Some(instance));
    told.iter().for_each(|notice| view.delete(notice));
    Ok(told.len() == PAGE)
}

/// Instances with chats that were told of an outage.
pub fn instances(view: &mut View<'_>) -> Result<Vec<InstanceId>> {
    let (mut found, mut last) = (Vec::new(), InstanceId(i64::MIN));
    loop {
        let told = view.walk::<NoticeRow>((&[], ()), "instance", (Direction::Up, last), PAGE)?;
        found.extend(told.iter().filter_map(|notice| notice.instance));
        found.dedup();
        match found.last() {
            Some(newest) if told.len() == PAGE => last = *newest,
            _ => return Ok(found),
        }
    }
}

/// A chat got another id: it and its topics were told what they were told. What the new id has
/// of its own is newer.
pub fn follow(view: &mut View<'_>, bot: &BotKey, from: &str, to: &str) -> Result<()> {
    let mut left = Vec::new();
    for kind in NoticeKind::ALL {
        let of_kind = (&["kind", "platform", "bot"] as &[_], (kind.as_str(), &*bot.platform, &*bot.bot));
        left.extend(of_topics::<NoticeRow>(view, of_kind, from, |row| &row.chat_id)?);
        left.extend(find(view, kind, bot, from)?);
    }
    for notice in left {
        view.delete(&notice);
        let chat_id = new_id(&notice.chat_id, from, to);
        let key = (&notice.kind, &notice.platform, &notice.bot, &chat_id);
        if view.get::<NoticeRow>(key)?.is_none() {
            view.put(&NoticeRow { chat_id, ..notice });
        }
    }
    Ok(())
}

/// Chats that lost something and were not told, no more than `limit`.
pub fn untold(view: &mut View<'_>, limit: usize) -> Result<Vec<Untold>> {
    let first = (Direction::Up, InstanceId(i64::MIN));
    let rows = view.walk::<UntoldRow>((&[], ()), "instance", first, limit)?;
    Ok(rows.into_iter().map(Untold::from).collect())
}

/// A chat knows what it lost, or cannot be told.
pub fn told(view: &mut View<'_>, instance: InstanceId, chat_id: &str) -> Result<()> {
    let untold = view.get::<UntoldRow>((instance, chat_id))?;
    untold.iter().for_each(|row| view.delete(row));
    Ok(())
}

fn find(view: &mut View<'_>, kind: NoticeKind, bot: &BotKey, chat_id: &str) -> Result<Option<NoticeRow>> {
    view.get((kind.as_str(), &*bot.platform, &*bot.bot, chat_id))
}
