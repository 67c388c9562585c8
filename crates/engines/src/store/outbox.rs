//! The outbox of a bot: who works on what it has to do, noted with its lease.

use super::db::{Ask, Db, Param, Sql, values};
use super::ledger::{adopting, new_owner, replace, state};
use super::txn::Txn;
use angelia_core::directory::BotKey;
use angelia_core::egress::Owner;
use angelia_core::error::Result;
use angelia_core::lease;
use angelia_core::ports::{ActionId, ActionOutcome, LeaseToken};

/// Who has something of a bot that is unfinished.
const OWNERS: &str = "SELECT DISTINCT owner FROM unfinished WHERE platform = $1 AND bot = $2 ORDER BY owner";

/// Makes everything that is unfinished of a bot a new owner's, and notes that with its lease.
pub(super) fn take_over(txn: &mut dyn Txn, bot: &BotKey, under: LeaseToken) -> Sql<Result<Owner>> {
    let name = lease::of_bot(bot);
    txn.lock_lease(&name)?;
    let held = "SELECT token, owner FROM leases WHERE name = $1 AND released = 0";
    let held = txn.first(held, values![name], |row| Ok((LeaseToken(row.get(0)?), Owner(row.get(1)?))))?;
    let (token, former) = held.unzip();
    if token != Some(under) {
        return Ok(Err(lease::lease_lost()));
    }
    let by = new_owner(txn)?;
    // Whatever is accepted for this bot, or begun, is done before this, or finds itself replaced.
    if let Some(former) = former.filter(|it| *it != Owner(0)) {
        txn.lock_owners(Some(former.0))?;
        replace(txn, by, Some(former))?;
    }
    // A server that was alone, say, had it under another name.
    for other in txn.all(OWNERS, values![bot.platform, bot.bot], |row| row.get(0).map(Owner))? {
        txn.lock_owners(Some(other.0))?;
    }
    txn.execute(&adopting("platform = $2 AND bot = $3"), values![by.0, bot.platform, bot.bot])?;
    txn.execute("UPDATE leases SET owner = $1 WHERE name = $2", values![by.0, name])?;
    Ok(Ok(by))
}

/// Who is noted with a bot's lease.
pub(super) fn owner(db: &mut dyn Db, bot: &BotKey) -> Sql<Option<Owner>> {
    let noted = "SELECT owner FROM leases WHERE name = $1 AND owner <> 0";
    db.first(noted, values![lease::of_bot(bot)], |row| row.get(0).map(Owner))
}

/// Who has something of a bot that is unfinished.
pub(super) fn owners(db: &mut dyn Db, bot: &BotKey) -> Sql<Vec<Owner>> {
    db.all(OWNERS, values![bot.platform, bot.bot], |row| row.get(0).map(Owner))
}

/// How actions ended, as far as they have.
pub(super) fn outcomes(db: &mut dyn Db, ids: &[ActionId]) -> Sql<Vec<(ActionId, ActionOutcome)>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let given: Vec<String> = (1..=ids.len()).map(|number| format!("${number}")).collect();
    let ended = format!(
        "SELECT id, state, message_id, error FROM actions
         WHERE id IN ({}) AND state NOT IN ('accepted', 'sending')",
        given.join(", ")
    );
    let params: Vec<Param> = ids.iter().map(|id| Param::Int(Some(id.0))).collect();
    db.all(&ended, &params, |row| {
        let state = state(&row.get::<String>(1)?);
        Ok((ActionId(row.get(0)?), ActionOutcome { state, message_id: row.get(2)?, error: row.get(3)? }))
    })
}
