//! The streams that bots read: how far they are, what of them could not be read, and what was
//! missed. The last two are kept for the operator, and not for ever.

use crate::audit::{Actor, AuditEntry};
use crate::clock::UnixMillis;
use crate::directory::BotKey;
use crate::error::Result;
use crate::ports::{BoxFuture, Cursor, NewQuarantined};
use crate::records::rows::{CursorRow, MintedRow, MissedRow, QuarantineRow};
use crate::records::{Change, Direction, Record, Records, View, change, look};
use crate::space::Class;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

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

/// The same, with its sealed bytes.
pub type QuarantinedUpdate = (Quarantined, Vec<u8>);

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

/// How far streams are and what is in quarantine, asked of any records. Bots move on with what
/// they received, by [`Ingest::take_in`](crate::ports::Ingest::take_in).
pub trait StreamStore: Records {
    /// How far each stream of a bot was read.
    fn cursors(&self, bot: &BotKey) -> BoxFuture<'_, Result<Vec<Cursor>>> {
        let bot = bot.clone();
        look(self, "read how far a bot has read", move |view| {
            let rows = view.find::<CursorRow>(OF_BOT, (&*bot.platform, &*bot.bot))?;
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
        change(self, Change::to("note what was missed"), move |view| miss(view, &bot, &missed))
    }

    /// Stretches that could not be read, newest first.
    fn missed(&self, bot: &BotKey, limit: usize) -> BoxFuture<'_, Result<Vec<Missed>>> {
        let bot = bot.clone();
        look(self, "read what was missed", move |view| {
            let rows = view.newest::<MissedRow>(OF_BOT, (&*bot.platform, &*bot.bot), limit)?;
            Ok(rows.into_iter().map(Missed::from).collect())
        })
    }

    /// What is in quarantine, newest first; of one bot, or of all.
    fn quarantine(&self, bot: Option<&BotKey>, limit: usize) -> BoxFuture<'_, Result<Vec<Quarantined>>> {
        let bot = bot.cloned();
        look(self, "list the quarantine", move |view| match &bot {
            Some(bot) => view.newest(OF_BOT, (&*bot.platform, &*bot.bot), limit),
            None => view.newest(&[], (), limit),
        })
    }

    /// One thing in quarantine and its sealed bytes.
    fn quarantined(&self, id: i64) -> BoxFuture<'_, Result<Option<QuarantinedUpdate>>> {
        look(self, "find what is in quarantine", move |view| {
            Ok(view.get::<QuarantineRow>((id,))?.map(Into::into))
        })
    }

    /// Throws away what is in quarantine, all or one. Answers how much it was.
    fn purge_quarantine(&self, id: Option<i64>, by: &Actor) -> BoxFuture<'_, Result<u64>> {
        let by = by.clone();
        Box::pin(async move {
            let mut purged = 0;
            loop {
                let (by, step) = (by.clone(), Change::to("purge the quarantine").class(Class::Operator));
                let gone = change(self, step, move |view| purge(view, id, &by));
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

/// Kept per bot: enough to see what is wrong, and a bound where a provider
/// changes its format and every update is unreadable.
const KEPT_PER_BOT: usize = 1_000;
/// How long it is kept: it may hold what people wrote, and after a month nobody repairs it any more.
pub const QUARANTINE_FOR: Duration = Duration::from_secs(30 * 24 * 3600);

/// Looked at in one go when all of it goes: each is read with its bytes.
const PAGE: usize = 16;

const OF_BOT: &[&str] = &["platform", "bot"];

/// Puts something into quarantine; the oldest of the bot goes beyond the bound.
pub fn add(view: &mut View<'_>, bot: &BotKey, new: &NewQuarantined) -> Result<()> {
    make_way::<QuarantineRow>(view, bot, 1)?;
    let row = QuarantineRow {
        id: view.number::<QuarantineRow>()?,
        platform: bot.platform.as_ref().to_owned(),
        bot: bot.bot.as_ref().to_owned(),
        what: new.what.clone(),
        why: new.why.clone(),
        sealed: new.sealed.to_vec(),
        at: new.at,
    };
    view.put(&row);
    Ok(())
}

/// Throws one away, or as many as fit one change; answers how many, and whether there are more.
fn purge(view: &mut View<'_>, id: Option<i64>, by: &Actor) -> Result<(u64, bool)> {
    let (gone, more) = match id {
        Some(id) => (one_that_fits(view, id)?, false),
        None => all_that_fit(view)?,
    };
    gone.iter().for_each(|row| view.delete(row));
    let count = gone.len() as u64;
    if count > 0 {
        let target = id.map_or_else(|| "all".to_owned(), |id| id.to_string());
        view.audit(&AuditEntry::done(by, "quarantine.purge", "", &target).with(count.to_string()));
    }
    Ok((count, more))
}

/// One always fits.
fn one_that_fits(view: &mut View<'_>, id: i64) -> Result<Vec<QuarantineRow>> {
    let found = view.get::<QuarantineRow>((id,))?;
    Ok(found.into_iter().filter(|row| view.fits(row.sealed.len() as u64)).collect())
}

/// The oldest, as many as fit one change, and whether there are more.
fn all_that_fit(view: &mut View<'_>) -> Result<(Vec<QuarantineRow>, bool)> {
    let (mut fit, mut last) = (Vec::new(), 0);
    loop {
        let page = view.walk::<QuarantineRow>((&[], ()), "id", (Direction::Up, last), PAGE)?;
        let is_last = page.len() < PAGE;
        for row in page {
            if !view.fits(row.sealed.len() as u64) {
                return Ok((fit, true));
            }
            last = row.id;
            fit.push(row);
        }
        if is_last {
            return Ok((fit, false));
        }
    }
}

/// Notes stretches that were not read; the oldest of the bot go beyond the bound.
fn miss(view: &mut View<'_>, bot: &BotKey, missed: &[Missed]) -> Result<()> {
    let newest = &missed[missed.len().saturating_sub(KEPT_PER_BOT)..];
    make_way::<MissedRow>(view, bot, newest.len())?;
    for Missed { chat_id, after, since, until, why } in newest.iter().cloned() {
        let row = MissedRow {
            id: view.number::<MissedRow>()?,
            platform: bot.platform.as_ref().to_owned(),
            bot: bot.bot.as_ref().to_owned(),
            chat_id,
            seen: after,
            since,
            until,
            why,
        };
        view.put(&row);
    }
    Ok(())
}

/// Deletes the oldest of a bot, so that so many more are within the bound.
fn make_way<R: Record>(view: &mut View<'_>, bot: &BotKey, more: usize) -> Result<()> {
    let of_bot = (&*bot.platform, &*bot.bot);
    let kept = usize::try_from(view.count::<R>(OF_BOT, of_bot)?).unwrap_or(usize::MAX);
    let beyond = kept.saturating_add(more).saturating_sub(KEPT_PER_BOT);
    if beyond > 0 {
        view.delete_first::<R>((OF_BOT, of_bot), "id", 0, beyond)?;
    }
    Ok(())
}
