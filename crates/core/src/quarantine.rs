//! What could not be read, and what was missed: kept for the operator, and not for ever.

use crate::audit::{Actor, AuditEntry};
use crate::directory::BotKey;
use crate::error::Result;
use crate::records::rows::{MissedRow, QuarantineRow};
use crate::records::{Direction, Record, View};
use crate::store::{Missed, NewQuarantined, Quarantined};
use std::time::Duration;

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

/// What is in quarantine, newest first; of one bot, or of all.
pub fn list(view: &mut View<'_>, bot: Option<&BotKey>, limit: usize) -> Result<Vec<Quarantined>> {
    match bot {
        Some(bot) => view.newest(OF_BOT, (&*bot.platform, &*bot.bot), limit),
        None => view.newest(&[], (), limit),
    }
}

/// One thing in quarantine and its sealed bytes.
pub fn find(view: &mut View<'_>, id: i64) -> Result<Option<(Quarantined, Vec<u8>)>> {
    Ok(view.get::<QuarantineRow>((id,))?.map(Into::into))
}

/// Throws one away, or as many as fit one change; answers how many, and whether there are more.
pub fn purge(view: &mut View<'_>, id: Option<i64>, by: &Actor) -> Result<(u64, bool)> {
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
pub fn miss(view: &mut View<'_>, bot: &BotKey, missed: &[Missed]) -> Result<()> {
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

/// Stretches that were not read, newest first.
pub fn missed(view: &mut View<'_>, bot: &BotKey, limit: usize) -> Result<Vec<Missed>> {
    let rows = view.newest::<MissedRow>(OF_BOT, (&*bot.platform, &*bot.bot), limit)?;
    Ok(rows.into_iter().map(Missed::from).collect())
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
