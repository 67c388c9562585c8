//! What people are told by the connector itself: once, until there is a reason to say it again.

use crate::directory::BotKey;
use crate::directory::moves::{new_id, of_topics};
use crate::error::Result;
use crate::inbox::InstanceId;
use crate::ports::BoxFuture;
use crate::records::rows::NoticeRow;
use crate::records::{Change, Direction, Records, View, change, look};
use crate::words::words;
use std::time::Duration;

words! {
    /// What a notice is about.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum NoticeKind {
        /// The agent is away and the message is kept; once per outage and chat.
        Away = "away",
        /// Why nothing answers here; once per place.
        Hint = "hint",
        /// Messages of the chat were dropped because too much waited; once per chat until
        /// the inbox was empty.
        Lost = "lost",
        /// Somebody told the network that they want no messages of this bot, until they want them again.
        Stopped = "stopped",
    }
}

/// A chat that lost messages because too much waited, and does not know it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untold {
    /// For which instance they waited.
    pub instance: InstanceId,
    /// The platform of the bot that received them.
    pub platform: String,
    /// That bot.
    pub bot: String,
    /// The chat they came from.
    pub chat_id: String,
    /// The thread or topic of that chat, from the event.
    pub thread_id: Option<String>,
    /// The first of them, by the provider's id.
    pub message_id: String,
}

/// Telling people things once, asked of any records.
pub trait NoticeStore: Records {
    /// Notes that a chat is told something; `false` if it was before. Notices
    /// of an instance end with [`NoticeStore::end_notices`].
    fn notice(
        &self,
        kind: NoticeKind,
        bot: &BotKey,
        chat_id: &str,
        instance: Option<InstanceId>,
    ) -> BoxFuture<'_, Result<bool>> {
        let (bot, chat_id) = (bot.clone(), chat_id.to_owned());
        change(self, Change::to("note what a chat is told"), move |view| {
            note(view, kind, &bot, &chat_id, instance)
        })
    }

    /// Whether that was noted, and not forgotten since.
    fn was_noticed(&self, kind: NoticeKind, bot: &BotKey, chat_id: &str) -> BoxFuture<'_, Result<bool>> {
        let (bot, chat_id) = (bot.clone(), chat_id.to_owned());
        look(self, "find what a chat was told", move |view| Ok(find(view, kind, &bot, &chat_id)?.is_some()))
    }

    /// Forgets that a chat was told something, because it could not be.
    fn clear_notice(&self, kind: NoticeKind, bot: &BotKey, chat_id: &str) -> BoxFuture<'_, Result<()>> {
        let (bot, chat_id) = (bot.clone(), chat_id.to_owned());
        change(self, Change::to("forget what a chat was told"), move |view| {
            forget(view, kind, &bot, &chat_id)
        })
    }

    /// An instance's outage is over: its chats are told again in the next one.
    fn end_notices(&self, instance: InstanceId) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            while change(self, Change::to("end an outage"), move |view| end(view, instance)).await? {}
            Ok(())
        })
    }

    /// Instances with chats that were told of an outage.
    fn noticed(&self) -> BoxFuture<'_, Result<Vec<InstanceId>>> {
        look(self, "find told outages", instances)
    }

    /// Chats that lost something and were not told, no more than `limit`.
    fn untold(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Untold>>> {
        look(self, "find who lost something", move |view| {
            let first = (Direction::Up, InstanceId(i64::MIN));
            view.walk((&[], ()), "instance", first, limit)
        })
    }

    /// A chat knows what it lost, or cannot be told.
    fn told(&self, untold: &Untold) -> BoxFuture<'_, Result<()>> {
        let (instance, chat_id) = (untold.instance, untold.chat_id.clone());
        change(self, Change::to("note that a loss was told"), move |view| {
            let untold = view.get::<Untold>((instance, &chat_id))?;
            untold.iter().for_each(|row| view.delete(row));
            Ok(())
        })
    }
}

impl<R: Records + ?Sized> NoticeStore for R {}

/// How long it is remembered that a chat was told something: whoever comes back
/// after a year may be told again.
pub const NOTICES_FOR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Notices looked at in one go. Of an instance with more only the first of them are read.
const PAGE: usize = 100;

/// Notes that a chat is told something; `false` if it was before.
fn note(
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
fn forget(view: &mut View<'_>, kind: NoticeKind, bot: &BotKey, chat_id: &str) -> Result<()> {
    let told = find(view, kind, bot, chat_id)?;
    told.iter().for_each(|notice| view.delete(notice));
    Ok(())
}

/// Forgets all that a chat was told.
pub(crate) fn forget_chat(view: &mut View<'_>, bot: &BotKey, chat_id: &str) -> Result<()> {
    NoticeKind::ALL.into_iter().try_for_each(|kind| forget(view, kind, bot, chat_id))
}

/// An instance's outage is over: its chats are told again in the next one. As many as one
/// change may take; `true` if there are more.
fn end(view: &mut View<'_>, instance: InstanceId) -> Result<bool> {
    let from = InstanceId(instance.0.saturating_sub(1));
    let mut told = view.walk::<NoticeRow>((&[], ()), "instance", (Direction::Up, from), PAGE)?;
    told.retain(|notice| notice.instance == Some(instance));
    told.iter().for_each(|notice| view.delete(notice));
    Ok(told.len() == PAGE)
}

/// Instances with chats that were told of an outage.
fn instances(view: &mut View<'_>) -> Result<Vec<InstanceId>> {
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
pub(crate) fn follow(view: &mut View<'_>, bot: &BotKey, from: &str, to: &str) -> Result<()> {
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

fn find(view: &mut View<'_>, kind: NoticeKind, bot: &BotKey, chat_id: &str) -> Result<Option<NoticeRow>> {
    view.get((kind.as_str(), &*bot.platform, &*bot.bot, chat_id))
}
