//! Dropping what is past its time, in steps small enough not to hold up appends.

use super::clock::is_old;
use super::footprint::{self, ACTION_LENGTHS, JOURNAL_LENGTHS};
use super::inbox::drop_as_gap;
use super::queue::Owner;
use super::space::Budget;
use super::writer::{Txn, now};
use super::{Sqlite, records};
use angelia_core::audit::{self as log, Sort};
use angelia_core::directory::pieces::PIECES_FOR;
use angelia_core::error::Result;
use angelia_core::identity::{TOMBSTONE_FOR, gateways};
use angelia_core::inbox::{CONVERSATIONS_FOR, GAPS_FOR, InstanceId, SEEN_FOR, Seq, TURNS_FOR, outcome};
use angelia_core::notices::NOTICES_FOR;
use angelia_core::quarantine::QUARANTINE_FOR;
use angelia_core::records::{FEED_FOR, FEED_KEPT, View};
use angelia_core::store::{ForgottenGateway, Pruned};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use std::time::Duration;

/// Rows looked at in one step. On a disk that is nearly full there are as many as there
/// is room for in the log, which is emptied after each while space is short.
const STEP: i64 = 500;

pub(super) async fn prune(store: &Sqlite) -> Result<Pruned> {
    let make_room = |txn: &mut Txn<'_>| {
        txn.then_make_room();
        Ok(())
    };
    store.writer.write_for(Owner::Upkeep, 0, "make room", make_room).await?;
    for sort in Sort::ALL {
        while store
            .writer
            .write_for(Owner::Upkeep, 0, "prune the audit log", move |txn| prune_audit(txn, sort))
            .await?
        {}
    }
    while store.writer.write_for(Owner::Upkeep, 0, "prune the change feed", prune_feed).await? {}
    // Each step asks for itself whether the clock leapt: it may do so in between.
    let mut after = Some(0);
    while let Some(id) = after {
        after = store
            .writer
            .write_for(Owner::Upkeep, 0, "prune the journal", move |txn| prune_journal(txn, id))
            .await?;
    }
    while store.writer.write_for(Owner::Upkeep, 0, "prune the ledger", prune_actions).await? {}
    let instances = store.readers.read("find inboxes", instances_with_entries).await?;
    let mut pruned = Pruned::default();
    for instance in instances {
        let mut gone = 1;
        while gone > 0 {
            gone = store
                .writer
                .write_for(Owner::Upkeep, 0, "prune overaged entries", move |txn| {
                    prune_overaged(txn, instance)
                })
                .await?;
            pruned.overaged += gone;
        }
    }
    while store.writer.write_for(Owner::Upkeep, 0, "prune the vault", prune_vault).await? {}
    store.writer.write_for(Owner::Upkeep, 0, "prune what is shown for a while", prune_small).await?;
    // Last, so that nothing that fails hides what was forgotten.
    loop {
        let step = store.writer.try_write_for(Owner::Upkeep, 0, "prune tombstones", prune_tombstone);
        let Some(gateway) = step.await? else { break };
        pruned.forgotten.push(gateway);
    }
    Ok(pruned)
}

/// How many small rows one step may change.
fn rows(txn: &Txn<'_>) -> i64 {
    if txn.space.is_tight() { Budget::of_upkeep(txn.space).rows().min(STEP) } else { STEP }
}

/// The feed names tenants, places and people: it is kept no longer than servers need it. Its last
/// line stays: whoever follows tells by it that there were others.
fn prune_feed(txn: &mut Txn<'_>) -> rusqlite::Result<bool> {
    let limit = rows(txn);
    let old = if txn.clock.has_leapt() { "0".into() } else { is_old("at", &txn.clock.older_than(FEED_FOR)) };
    let gone = txn.execute(
        &format!(
            "DELETE FROM changes WHERE id IN (
                 SELECT id FROM changes WHERE ({old} AND id < (SELECT max(id) FROM changes))
                     OR id <= (SELECT max(id) FROM changes) - ? ORDER BY id LIMIT ?)"
        ),
        params![FEED_KEPT, limit],
    )?;
    txn.then_make_room();
    Ok(gone as i64 == limit)
}

/// That `column` is older than so long, as SQL; `None` as long as the clock cannot be believed.
fn old(txn: &Txn<'_>, column: &str, kept_for: Duration) -> Option<String> {
    (!txn.clock.has_leapt()).then(|| is_old(column, &txn.clock.older_than(kept_for)))
}

/// What there is little of.
fn prune_small(txn: &mut Txn<'_>) -> rusqlite::Result<()> {
    for (table, stamp, kept_for) in [
        ("conversations", "last_at", CONVERSATIONS_FOR),
        ("quarantine", "at", QUARANTINE_FOR),
        ("missed", "until", GAPS_FOR),
        ("pieces", "at", PIECES_FOR),
        ("notices", "at", NOTICES_FOR),
        ("gaps", "lost_at", GAPS_FOR),
        ("turns", "opened_at", TURNS_FOR),
    ] {
        let Some(old) = old(txn, stamp, kept_for) else { return Ok(()) };
        txn.execute(&format!("DELETE FROM {table} WHERE {old}"), [])?;
    }
    // Those say themselves until when they are good, and nobody is let in by one after that.
    txn.execute("DELETE FROM enroll_tokens WHERE expires_at < ?", [now()])?;
    txn.execute("DELETE FROM link_codes WHERE expires_at < ?", [now()])?;
    txn.execute("DELETE FROM webchat_people WHERE visits_until < ?", [now()])?;
    Ok(())
}

/// Drops some lines of one sort: the oldest beyond the most there may be, and
/// those that are too old beyond the newest. `true` if there may be more.
fn prune_audit(txn: &mut Txn<'_>, sort: Sort) -> rusqlite::Result<bool> {
    let old = old(txn, "at", log::KEPT_FOR).unwrap_or_else(|| "0".to_owned());
    let newest = "SELECT id FROM audit WHERE sort = ?1 ORDER BY id DESC LIMIT 1 OFFSET";
    let gone = txn.execute(
        &format!(
            "DELETE FROM audit WHERE id IN (
                 SELECT id FROM audit WHERE sort = ?1 AND id <= ({newest} ?2) AND (id <= ({newest} ?3) OR {old})
                 ORDER BY id LIMIT ?4)"
        ),
        params![sort.as_str(), log::KEPT_LINES, log::MOST_LINES, rows(txn)],
    )?;
    txn.then_make_room();
    Ok(gone > 0)
}

/// The journal grows in time order. What still waits stays, and what lies
/// behind it is looked at all the same; answers where to go on.
fn prune_journal(txn: &mut Txn<'_>, after: i64) -> rusqlite::Result<Option<i64>> {
    let Some(old) = old(txn, "received_at", SEEN_FOR) else { return Ok(None) };
    let looked_at: Option<(i64, bool)> = txn
        .prepare(&format!(
            "SELECT max(id), max({old})
             FROM (SELECT id, received_at FROM journal WHERE id > ? ORDER BY id LIMIT ?)"
        ))?
        .query_row(params![after, rows(txn)], |row| Ok(row.get::<_, Option<i64>>(0)?.zip(row.get(1)?)))?;
    let Some((last, some_are_old)) = looked_at else { return Ok(None) };
    let delete = format!(
        "DELETE FROM journal WHERE id > ?1 AND id <= ?2 AND {old}
         AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.instance = journal.instance AND i.seq = journal.seq)
         RETURNING tenant, {JOURNAL_LENGTHS}"
    );
    forget(txn, &delete, params![after, last], footprint::journal)?;
    Ok(some_are_old.then_some(last))
}

/// `true` if there may be more.
fn prune_actions(txn: &mut Txn<'_>) -> rusqlite::Result<bool> {
    let Some(old) = old(txn, "received_at", SEEN_FOR) else { return Ok(false) };
    let delete = format!(
        "DELETE FROM actions WHERE id IN (
             SELECT id FROM (SELECT id, received_at, state FROM actions ORDER BY id LIMIT ?1)
             WHERE {old} AND state NOT IN ('accepted', 'sending'))
         RETURNING tenant, {ACTION_LENGTHS}"
    );
    let limit = rows(txn);
    Ok(forget(txn, &delete, [limit], footprint::action)? > 0)
}

/// Deletes rows and counts them out: whose each was comes first, and then what `footprint`
/// needs. Answers how many went.
fn forget(
    txn: &mut Txn<'_>,
    delete: &str,
    of: impl Params,
    footprint: fn(&Row<'_>, usize) -> rusqlite::Result<u64>,
) -> rusqlite::Result<usize> {
    let gone: Vec<(String, u64)> = txn
        .prepare(delete)?
        .query_map(of, |row| Ok((row.get(0)?, footprint(row, 1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    gone.iter().for_each(|(tenant, bytes)| txn.counted.stored.subtract(tenant, *bytes));
    txn.then_make_room();
    Ok(gone.len())
}

/// `true` if there may be more.
fn prune_vault(txn: &mut Txn<'_>) -> rusqlite::Result<bool> {
    if txn.clock.has_leapt() {
        return Ok(false);
    }
    let gone = txn.execute(
        "DELETE FROM capabilities WHERE id IN (SELECT id FROM capabilities WHERE expires_at <= ? LIMIT ?)",
        params![now(), rows(txn)],
    )?;
    txn.then_make_room();
    Ok(gone > 0)
}

/// Every instance with something in its inbox, dead letters included.
fn instances_with_entries(db: &Connection) -> rusqlite::Result<Vec<InstanceId>> {
    db.prepare("SELECT DISTINCT instance FROM inbox")?
        .query_map([], |row| row.get(0).map(InstanceId))?
        .collect()
}

/// Answers how many went.
fn prune_overaged(txn: &mut Txn<'_>, instance: InstanceId) -> rusqlite::Result<u64> {
    let Some(old) = old(txn, "received_at", txn.quota.age) else { return Ok(0) };
    let mut overaged: Vec<(Seq, bool, u64)> = txn
        .prepare(&format!(
            "SELECT seq, dead, bytes FROM (
                 SELECT seq, received_at, dead_at IS NOT NULL AS dead, octet_length(body) AS bytes
                 FROM inbox WHERE instance = ? ORDER BY seq LIMIT ?)
             WHERE {old}"
        ))?
        .query_map(params![instance.0, STEP], |row| Ok((Seq(row.get(0)?), row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    if txn.space.is_tight() {
        let mut budget = Budget::of_upkeep(txn.space);
        let fit = overaged.iter().take_while(|(_, _, bytes)| budget.allows(*bytes)).count();
        overaged.truncate(fit);
    }
    for (seq, dead, _) in &overaged {
        drop_as_gap(txn, instance, *seq, outcome::overaged(*dead))?;
    }
    let gone = overaged.len() as u64;
    if gone > 0 {
        txn.removed(instance, overaged.into_iter().map(|(seq, ..)| seq).collect());
    }
    txn.then_make_room();
    Ok(gone)
}

/// Forgets one gateway whose revocation was long enough ago, with the instance
/// if nobody needs it; answers which, if there was one.
fn prune_tombstone(txn: &mut Txn<'_>) -> rusqlite::Result<Result<Option<ForgottenGateway>>> {
    let Some(old) = old(txn, "revoked_at", TOMBSTONE_FOR) else { return Ok(Ok(None)) };
    let found: Option<ForgottenGateway> = txn
        .query_row(&format!("SELECT tenant, gateway_id FROM gateways WHERE {old} LIMIT 1"), [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let Some((tenant, gateway_id)) = found else { return Ok(Ok(None)) };
    let forgotten = (tenant.clone(), gateway_id.clone());
    let forget = move |view: &mut View<'_>| gateways::forget(view, &tenant, &gateway_id);
    Ok(records::run(txn, Box::new(forget))?.map(|()| Some(forgotten)))
}
