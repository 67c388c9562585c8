//! The vault, where it is hot: what comes in with an entry, and what an action uses.

use super::db::{Ask, Param, Row, Sql, ToParam, values};
use super::txn::Txn;
use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::egress::ActionState;
use angelia_core::inbox::InstanceId;
use angelia_core::ports::{ActionId, NewAction};
use angelia_core::vault::{
    Answering, Capability, CapabilityId, Deferral, NewCapability, Stage, Use, choose_for_send,
};

const COLUMNS: &str = "id, kind, tenant, instance, platform, bot, chat_id, user_id, interaction_id, deferral, stage, \
                       sealed, expires_at, noticed_at";
/// What may answer in the chat of an action, for its sender alone.
const USABLE: &str =
    "instance = $1 AND chat_id = $2 AND expires_at > $3 AND tenant = $4 AND platform = $5 AND bot = $6";
// Which of these an action can mean. A chat may hold thousands, and every send
// asks: what cannot be chosen is not even read.
const NAMED: &str = "id = $7";
const ANSWERED: &str = "interaction_id = $7";
const LONGEST_WAITING: &str = "stage = 'open' AND ($7 IS NULL OR user_id = $7) ORDER BY id LIMIT 1";

const CLAIMED: &str = "SELECT id, stage FROM capabilities WHERE claimed_by = $1";
/// An action can use what another has claimed.
const USED: &str =
    "SELECT id, stage FROM capabilities WHERE id = (SELECT capability FROM actions WHERE id = $1)";

/// Keeps a capability that came with an entry of `tenant` for `instance`.
pub(super) fn keep(
    txn: &mut dyn Txn,
    bot: &BotKey,
    (tenant, instance): (&str, InstanceId),
    new: &NewCapability,
) -> Sql<()> {
    txn.execute(
        "INSERT INTO capabilities (kind, tenant, instance, platform, bot, chat_id, user_id, interaction_id, deferral,
                                   stage, sealed, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        values![
            new.kind,
            tenant,
            instance,
            bot.platform,
            bot.bot,
            new.chat_id,
            new.user_id,
            new.interaction_id,
            new.deferral.as_str(),
            Stage::Open.as_str(),
            &*new.sealed,
            new.expires_at
        ],
    )?;
    Ok(())
}

/// The capability an action uses, claimed for the action of that number if it
/// is the first to answer; and what it was then.
pub(super) fn claim(txn: &mut dyn Txn, id: ActionId, action: &NewAction) -> Sql<Option<(Use, Capability)>> {
    let Some(answering) = &action.answering else { return Ok(None) };
    // Two that answer at the same moment must not both be the first.
    txn.lock(action.instance)?;
    let now = UnixMillis(txn.now());
    let mut all = candidates(txn, action, answering, now.0)?;
    all.retain(|it| it.is_usable_by(action, &answering.chat_id, now));
    if all.is_empty() {
        return Ok(None);
    }
    let Some(chosen) = choose_for_send(&all, answering, now) else { return Ok(None) };
    let Some(used) = all.into_iter().find(|it| it.id == chosen.capability) else { return Ok(None) };
    if let Some(stage) = used.stage.claim() {
        txn.execute(
            "UPDATE capabilities SET stage = $1, claimed_by = $2 WHERE id = $3",
            values![stage.as_str(), id, used.id.0],
        )?;
    }
    Ok(Some((chosen, used)))
}

/// What an action may use: all that [`choose_for_send`] can choose from.
fn candidates(
    txn: &mut dyn Txn,
    action: &NewAction,
    answering: &Answering,
    now: i64,
) -> Sql<Vec<Capability>> {
    let (meant, by): (&str, Param<'_>) = match answering {
        Answering { named: Some(id), .. } => (NAMED, Param::Int(Some(id.0))),
        Answering { reply_to: Some(answered), .. } => (ANSWERED, answered.param()),
        Answering { notify: true, user_id, .. } => (LONGEST_WAITING, user_id.param()),
        Answering { .. } => return Ok(Vec::new()),
    };
    let NewAction { tenant, instance, platform, bot, .. } = action;
    let usable = format!("SELECT {COLUMNS} FROM capabilities WHERE {USABLE} AND {meant}");
    let [instance, chat, now, tenant, platform, bot] =
        *values![instance, answering.chat_id, now, tenant, platform, bot];
    txn.all(&usable, &[instance, chat, now, tenant, platform, bot, by], capability)
}

/// An action has ended: what it claimed, or only used, is as [`Stage::release`] says.
pub(super) fn release(txn: &mut dyn Txn, id: ActionId, end: ActionState) -> Sql<()> {
    for (which, claimed) in [(CLAIMED, true), (USED, false)] {
        let found: Option<(i64, String)> =
            txn.first(which, values![id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if let Some((capability, stage)) = found
            && let Some(stage) = Stage::stored(&stage).release(claimed, end)
        {
            txn.execute(
                "UPDATE capabilities SET stage = $1, claimed_by = NULL WHERE id = $2",
                values![stage.as_str(), capability],
            )?;
        }
    }
    Ok(())
}

fn capability(row: Row<'_>) -> Sql<Capability> {
    Ok(Capability {
        id: CapabilityId(row.get(0)?),
        kind: row.get(1)?,
        tenant: row.get(2)?,
        instance: InstanceId(row.get(3)?),
        platform: row.get(4)?,
        bot: row.get(5)?,
        chat_id: row.get(6)?,
        user_id: row.get(7)?,
        interaction_id: row.get(8)?,
        deferral: Deferral::stored(&row.get::<String>(9)?),
        stage: Stage::stored(&row.get::<String>(10)?),
        sealed: row.get(11)?,
        expires_at: UnixMillis(row.get(12)?),
        noticed_at: row.get::<Option<i64>>(13)?.map(UnixMillis),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    fn plan(db: &Connection, query: &str) -> Vec<String> {
        let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
        let nothing = vec![rusqlite::types::Null; statement.parameter_count()];
        let steps = statement.query_map(rusqlite::params_from_iter(nothing), |row| row.get(3)).unwrap();
        steps.collect::<rusqlite::Result<_>>().unwrap()
    }

    #[test]
    fn what_every_action_asks_reads_no_more_than_it_needs() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("sqlite/schema.sql")).unwrap();
        let select = |which: &str| format!("SELECT {COLUMNS} FROM capabilities WHERE {which}");
        let usable = |meant: &str| select(&format!("{USABLE} AND {meant}"));
        for (query, way) in [
            (usable(NAMED), "INTEGER PRIMARY KEY (rowid=?)"),
            (usable(ANSWERED), "INDEX capabilities_by_chat (instance=? AND chat_id=? AND interaction_id=?)"),
            (usable(LONGEST_WAITING), "INDEX capabilities_open (instance=? AND chat_id=?)"),
            (CLAIMED.to_owned(), "INDEX capabilities_claimed (claimed_by=?)"),
        ] {
            assert_eq!(plan(&db, &query), [format!("SEARCH capabilities USING {way}")]);
        }
    }
}
