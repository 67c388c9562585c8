//! What could not be read, and what was missed: kept for the operator, and not for ever.

use super::records::audit;
use super::space::Budget;
use super::txn::Txn;
use angelia_core::audit::{Actor, Deed};
use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::store::{Missed, NewQuarantined, Quarantined};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::time::Duration;

/// Kept per bot: enough to see what is wrong, and a bound where a provider
/// changes its format and every update is unreadable.
const KEPT_PER_BOT: i64 = 1_000;
/// How long it is kept: it may hold what people wrote, and after a month nobody repairs it any more.
pub(super) const QUARANTINE_FOR: Duration = Duration::from_secs(30 * 24 * 3600);

const COLUMNS: &str = "id, platform, bot, what, why, at";

/// Puts something into quarantine; the oldest of the bot goes beyond the bound.
pub(super) fn add(txn: &Txn<'_>, bot: &BotKey, new: &NewQuarantined) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "INSERT INTO quarantine (platform, bot, what, why, sealed, at) VALUES (?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![bot.platform, bot.bot, new.what, new.why, &*new.sealed, new.at.0])?;
    shorten(txn, "quarantine", bot)
}

/// Notes a stretch that was not read.
pub(super) fn miss(txn: &Txn<'_>, bot: &BotKey, missed: &Missed) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "INSERT INTO missed (platform, bot, chat_id, seen, since, until, why) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        bot.platform,
        bot.bot,
        missed.chat_id,
        missed.after,
        missed.since.0,
        missed.until.0,
        missed.why
    ])?;
    shorten(txn, "missed", bot)
}

fn shorten(txn: &Txn<'_>, table: &'static str, bot: &BotKey) -> rusqlite::Result<()> {
    txn.prepare_cached(&format!(
        "DELETE FROM {table} WHERE platform = ?1 AND bot = ?2 AND id <= (
             SELECT id FROM {table} WHERE platform = ?1 AND bot = ?2 ORDER BY id DESC LIMIT 1 OFFSET ?3)"
    ))?
    .execute(params![bot.platform, bot.bot, KEPT_PER_BOT])?;
    Ok(())
}

pub(super) fn list(
    db: &Connection,
    bot: Option<&BotKey>,
    limit: usize,
) -> rusqlite::Result<Vec<Quarantined>> {
    let (platform, bot) = bot.map(|bot| (&bot.platform, &bot.bot)).unzip();
    db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM quarantine WHERE ?1 IS NULL OR (platform = ?1 AND bot = ?2)
         ORDER BY id DESC LIMIT ?3"
    ))?
    .query_map(params![platform, bot, limit as i64], quarantined)?
    .collect()
}

pub(super) fn find(db: &Connection, id: i64) -> rusqlite::Result<Option<(Quarantined, Vec<u8>)>> {
    db.prepare_cached(&format!("SELECT {COLUMNS}, sealed FROM quarantine WHERE id = ?"))?
        .query_row([id], |row| Ok((quarantined(row)?, row.get(6)?)))
        .optional()
}

/// Throws one away, or as many as fit one step; answers how many, and whether there are more.
pub(super) fn purge(txn: &Txn<'_>, id: Option<i64>, by: &Actor) -> rusqlite::Result<(u64, bool)> {
    let rows: Vec<(i64, u64)> = txn
        .prepare_cached("SELECT id, length(sealed) FROM quarantine WHERE ?1 IS NULL OR id = ?1 ORDER BY id")?
        .query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let (mut budget, mut gone) = (Budget::of(txn.space), 0);
    let fits = rows.iter().take_while(|(_, bytes)| budget.allows(*bytes));
    for (row, _) in fits {
        gone += txn.prepare_cached("DELETE FROM quarantine WHERE id = ?")?.execute([row])? as u64;
    }
    if gone > 0 {
        let target = id.map_or_else(|| "all".to_owned(), |id| id.to_string());
        audit(txn, &Deed::done(by, "quarantine.purge", "", &target).with(gone.to_string()))?;
    }
    Ok((gone, gone < rows.len() as u64))
}

pub(super) fn missed(db: &Connection, bot: &BotKey, limit: usize) -> rusqlite::Result<Vec<Missed>> {
    db.prepare_cached(
        "SELECT chat_id, seen, since, until, why FROM missed WHERE platform = ? AND bot = ?
         ORDER BY id DESC LIMIT ?",
    )?
    .query_map(params![bot.platform, bot.bot, limit as i64], |row| {
        Ok(Missed {
            chat_id: row.get(0)?,
            after: row.get(1)?,
            since: UnixMillis(row.get(2)?),
            until: UnixMillis(row.get(3)?),
            why: row.get(4)?,
        })
    })?
    .collect()
}

fn quarantined(row: &Row<'_>) -> rusqlite::Result<Quarantined> {
    Ok(Quarantined {
        id: row.get(0)?,
        platform: row.get(1)?,
        bot: row.get(2)?,
        what: row.get(3)?,
        why: row.get(4)?,
        at: UnixMillis(row.get(5)?),
    })
}
