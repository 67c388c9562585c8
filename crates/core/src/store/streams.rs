//! The streams that bots read: how far they are, what of them was missed, and what could not be read.

use super::{BoxFuture, Cursor};
use crate::audit::Actor;
use crate::clock::UnixMillis;
use crate::directory::BotKey;
use crate::error::Result;
use crate::quarantine;
use crate::records::rows::{CursorRow, MintedRow};
use crate::records::{Change, Records, change, look};
use crate::space::Class;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something in quarantine, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Quarantined {
    /// Its number.
    pub id: i64,
    /// The platform of the bot that received it.
    pub platform: String,
    /// The bot.
    pub bot: String,
    /// Which one it was.
    pub what: String,
    /// Why it could not be read.
    pub why: String,
    /// When it came.
    pub at: UnixMillis,
}

/// A stretch of a chat that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Missed {
    /// The chat; `None` if nobody knows which ones.
    pub chat_id: Option<String>,
    /// The last message seen before it.
    pub after: Option<String>,
    /// When it began.
    pub since: UnixMillis,
    /// When it ended.
    pub until: UnixMillis,
    /// Why it could not be read.
    pub why: String,
}

/// The rules of [`crate::quarantine`], and how far streams are, asked of any records. Bots move
/// on with what they received, by [`Ingest::take_in`](super::Ingest::take_in).
pub trait StreamStore: Records {
    /// How far each stream of a bot was read.
    fn cursors(&self, bot: &BotKey) -> BoxFuture<'_, Result<Vec<Cursor>>> {
        let bot = bot.clone();
        look(self, "read how far a bot has read", move |view| {
            let rows = view.find::<CursorRow>(&["platform", "bot"], (&*bot.platform, &*bot.bot))?;
            Ok(rows.into_iter().map(Cursor::from).collect())
        })
    }

    /// What was made up for a bot under this name: `minted`, unless something was before.
    fn mint(&self, bot: &BotKey, name: &str, minted: String) -> BoxFuture<'_, Result<String>> {
        let (BotKey { platform, bot }, stream) = (bot.clone(), name.to_owned());
        change(self, Change::to("keep what ids are made with"), move |view| {
            if let Some(known) = view.get::<MintedRow>((&*platform, &*bot, &*stream))? {
                return Ok(known.position);
            }
            let (platform, bot, stream) = (platform.to_string(), bot.to_string(), stream.clone());
            view.put(&MintedRow { platform, bot, stream, position: minted.clone(), at: view.now() });
            Ok(minted.clone())
        })
    }

    /// Notes stretches that could not be read.
    fn note_missed(&self, bot: &BotKey, missed: Vec<Missed>) -> BoxFuture<'_, Result<()>> {
        let bot = bot.clone();
        change(self, Change::to("note what was missed"), move |view| quarantine::miss(view, &bot, &missed))
    }

    /// Stretches that could not be read, newest first.
    fn missed(&self, bot: &BotKey, limit: usize) -> BoxFuture<'_, Result<Vec<Missed>>> {
        let bot = bot.clone();
        look(self, "read what was missed", move |view| quarantine::missed(view, &bot, limit))
    }

    /// What is in quarantine, newest first; of one bot, or of all.
    fn quarantine(&self, bot: Option<&BotKey>, limit: usize) -> BoxFuture<'_, Result<Vec<Quarantined>>> {
        let bot = bot.cloned();
        look(self, "list the quarantine", move |view| quarantine::list(view, bot.as_ref(), limit))
    }

    /// One thing in quarantine and its sealed bytes.
    fn quarantined(&self, id: i64) -> BoxFuture<'_, Result<Option<(Quarantined, Vec<u8>)>>> {
        look(self, "find what is in quarantine", move |view| quarantine::find(view, id))
    }

    /// Throws away what is in quarantine, all or one. Answers how much it was.
    fn purge_quarantine(&self, id: Option<i64>, by: &Actor) -> BoxFuture<'_, Result<u64>> {
        let by = by.clone();
        Box::pin(async move {
            let mut purged = 0;
            loop {
                let (by, step) = (by.clone(), Change::to("purge the quarantine").class(Class::Operator));
                let gone = change(self, step, move |view| quarantine::purge(view, id, &by));
                let (count, more) = gone.await?;
                purged += count;
                if !more {
                    return Ok(purged);
                }
            }
        })
    }
}

impl<R: Records + ?Sized> StreamStore for R {}
