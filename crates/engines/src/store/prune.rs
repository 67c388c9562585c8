//! Dropping what is past its time, in steps small enough not to hold up appends.

use super::clock::is_old;
use super::db::{Ask, Db, Param, Row, Sql, values};
use super::engine::{Engine, Owner, Store};
use super::footprint::{self, ACTION_LENGTHS, JOURNAL_LENGTHS};
use super::inbox::drop_as_gap;
use super::records;
use super::txn::Txn;
use angelia_core::audit::{self as log, Sort};
use angelia_core::directory::pieces::PIECES_FOR;
use angelia_core::error::Result;
use angelia_core::identity::link_tries::LINK_TRIES_FOR;
use angelia_core::identity::{TOMBSTONE_FOR, gateways};
use angelia_core::inbox::{CONVERSATIONS_FOR, GAPS_FOR, InstanceId, SEEN_FOR, Seq, TURNS_FOR, outcome};
use angelia_core::notices::NOTICES_FOR;
use angelia_core::prompts::PROMPTS_FOR;
use angelia_core::quarantine::QUARANTINE_FOR;
use angelia_core::records::{FEED_FOR, FEED_KEPT};
use angelia_core::store::{ForgottenGateway, Pruned};
use angelia_core::threads::THREADS_FOR;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Rows looked at in one step. On a disk that is nearly full there are as many as there
/// is room for in the log, which is emptied after each while space is short.
const STEP: i64 = 500;

/// Of which nothing is.
const NOTHING: &str = "1 = 0";

pub(super) async fn prune<E: Engine>(store: &Store<E>) -> Result<Pruned> {
    let write = |what, step: fn(&mut dyn Txn) -> Sql<bool>| store.0.write_all(Owner::Upkeep, 0, what, step);
    write("make room", make_room).await?;
    for sort in Sort::ALL {
        let step = move |txn: &mut dyn Txn| prune_audit(txn, sort);
        while store.0.write_all(Owner::Upkeep, 0, "prune the audit log", step).await? {}
    }
    while write("prune the change feed", prune_feed).await? {}
    // Each step asks for itself whether the clock leapt: it may do so in between.
    let mut after = Some(0);
    while let Some(id) = after {
        let step = move |txn: &mut dyn Txn| prune_journal(txn, id);
        after = store.0.write_all(Owner::Upkeep, 0, "prune the journal", step).await?;
    }
    while write("prune the ledger", prune_actions).await? {}
    let mut pruned = Pruned { overaged: prune_inboxes(store).await?, ..Pruned::default() };
    while write("prune the vault", prune_vault).await? {}
    write("prune what is shown for a while", prune_small).await?;
    // Last, so that nothing that fails hides what was forgotten.
    loop {
        // A rule, beside which nobody runs another.
        let forgotten = Arc::new(Mutex::new(None));
        let found = forgotten.clone();
        let step = store.0.change(Owner::Upkeep, "prune tombstones", move |txn| {
            Ok(prune_tombstone(txn)?.map(|forgotten| *found.lock() = forgotten))
        });
        step.await?;
        let Some(gateway) = forgotten.lock().take() else { break };
        pruned.forgotten.push(gateway);
    }
    Ok(pruned)
}

/// Drops what waited for too long; answers how many.
async fn prune_inboxes<E: Engine>(store: &Store<E>) -> Result<u64> {
    let mut overaged = 0;
    for instance in store.0.read("find inboxes", instances_with_entries).await? {
        let mut gone = 1;
        while gone > 0 {
            let step = move |txn: &mut dyn Txn| prune_overaged(txn, instance);
            gone = store.0.write_all(Owner::Upkeep, 0, "prune overaged entries", step).await?;
            overaged += gone;
        }
    }
    Ok(overaged)
}

fn make_room(txn: &mut dyn Txn) -> Sql<bool> {
    txn.then_make_room();
    Ok(false)
}

/// How many small rows one step may change.
fn rows(txn: &mut dyn Txn) -> i64 {
    txn.upkeep_budget().map_or(STEP, |budget| budget.rows().min(STEP))
}

/// The feed names tenants, places and people: it is kept no longer than servers need it. Its last
/// line stays: whoever follows tells by it that there were others.
fn prune_feed(txn: &mut dyn Txn) -> Sql<bool> {
    let limit = rows(txn);
    let old = old(txn, "at", FEED_FOR).unwrap_or_else(|| NOTHING.to_owned());
    let gone = txn.execute(
        &format!(
            "DELETE FROM changes WHERE id IN (
                 SELECT id FROM changes WHERE ({old} AND id < (SELECT max(id) FROM changes))
                     OR id <= (SELECT max(id) FROM changes) - $1 ORDER BY id LIMIT $2)"
        ),
        values![FEED_KEPT, limit],
    )?;
    txn.then_make_room();
    Ok(gone as i64 == limit)
}

/// That `column` is older than so long, as SQL; `None` as long as the clock cannot be believed.
fn old(txn: &mut dyn Txn, column: &str, kept_for: Duration) -> Option<String> {
    let clock = txn.clock();
    (!clock.has_leapt()).then(|| is_old(column, &clock.older_than(kept_for)))
}

/// What there is little of.
fn prune_small(txn: &mut dyn Txn) -> Sql<bool> {
    for (table, stamp, kept_for) in [
        ("conversations", "last_at", CONVERSATIONS_FOR),
        ("quarantine", "at", QUARANTINE_FOR),
        ("missed", "until", GAPS_FOR),
        ("pieces", "at", PIECES_FOR),
        ("notices", "at", NOTICES_FOR),
        ("link_tries", "at", LINK_TRIES_FOR),
        ("gaps", "lost_at", GAPS_FOR),
        ("turns", "opened_at", TURNS_FOR),
        ("prompts", "asked_at", PROMPTS_FOR),
        ("created_threads", "created_at", THREADS_FOR),
    ] {
        let Some(old) = old(txn, stamp, kept_for) else { return Ok(false) };
        txn.execute(&format!("DELETE FROM {table} WHERE {old}"), &[])?;
    }
    // Those say themselves until when they are good, and nobody is let in by one after that.
    let now = txn.now();
    for (table, until) in
        [("enroll_tokens", "expires_at"), ("link_codes", "expires_at"), ("webchat_people", "visits_until")]
    {
        txn.execute(&format!("DELETE FROM {table} WHERE {until} < $1"), values![now])?;
    }
    Ok(false)
}

/// Drops some lines of one sort: the oldest beyond the most there may be, and
/// those that are too old beyond the newest. `true` if there may be more.
fn prune_audit(txn: &mut dyn Txn, sort: Sort) -> Sql<bool> {
    let old = old(txn, "at", log::KEPT_FOR).unwrap_or_else(|| NOTHING.to_owned());
    let newest = "SELECT id FROM audit WHERE sort = $1 ORDER BY id DESC LIMIT 1 OFFSET";
    let limit = rows(txn);
    let gone = txn.execute(
        &format!(
            "DELETE FROM audit WHERE id IN (
                 SELECT id FROM audit WHERE sort = $1 AND id <= ({newest} $2) AND (id <= ({newest} $3) OR {old})
                 ORDER BY id LIMIT $4)"
        ),
        values![sort.as_str(), log::KEPT_LINES, log::MOST_LINES, limit],
    )?;
    txn.then_make_room();
    Ok(gone > 0)
}

/// The journal grows in time order. What still waits stays, and what lies
/// behind it is looked at all the same; answers where to go on.
fn prune_journal(txn: &mut dyn Txn, after: i64) -> Sql<Option<i64>> {
    let Some(old) = old(txn, "received_at", SEEN_FOR) else { return Ok(None) };
    let limit = rows(txn);
    let looked_at: Option<(i64, bool)> = txn.one(
        &format!(
            "SELECT max(id), max(CASE WHEN {old} THEN 1 ELSE 0 END)
             FROM (SELECT id, received_at FROM journal WHERE id > $1 ORDER BY id LIMIT $2) AS looked_at"
        ),
        values![after, limit],
        |row| Ok(row.get::<Option<i64>>(0)?.zip(row.get::<Option<i64>>(1)?.map(|old| old != 0))),
    )?;
    let Some((last, some_are_old)) = looked_at else { return Ok(None) };
    let delete = format!(
        "DELETE FROM journal WHERE id > $1 AND id <= $2 AND {old}
         AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.instance = journal.instance AND i.seq = journal.seq)
         RETURNING tenant, {JOURNAL_LENGTHS}"
    );
    forget(txn, &delete, values![after, last], footprint::journal)?;
    Ok(some_are_old.then_some(last))
}

/// `true` if there may be more.
fn prune_actions(txn: &mut dyn Txn) -> Sql<bool> {
    let Some(old) = old(txn, "received_at", SEEN_FOR) else { return Ok(false) };
    let delete = format!(
        "DELETE FROM actions WHERE id IN (
             SELECT id FROM (SELECT id, received_at, state FROM actions ORDER BY id LIMIT $1) AS oldest
             WHERE {old} AND state NOT IN ('accepted', 'sending'))
         RETURNING tenant, {ACTION_LENGTHS}"
    );
    let limit = rows(txn);
    Ok(forget(txn, &delete, values![limit], footprint::action)? > 0)
}

/// Deletes rows and counts them out: whose each was comes first, and then what `footprint`
/// needs. Answers how many went.
fn forget(
    txn: &mut dyn Txn,
    delete: &str,
    of: &[Param<'_>],
    footprint: fn(&Row<'_>, usize) -> Sql<u64>,
) -> Sql<usize> {
    let gone: Vec<(String, u64)> = txn.all(delete, of, |row| Ok((row.get(0)?, footprint(&row, 1)?)))?;
    gone.iter().for_each(|(tenant, bytes)| txn.store(tenant, 0, *bytes));
    txn.then_make_room();
    Ok(gone.len())
}

/// `true` if there may be more.
fn prune_vault(txn: &mut dyn Txn) -> Sql<bool> {
    if txn.clock().has_leapt() {
        return Ok(false);
    }
    let (now, limit) = (txn.now(), rows(txn));
    let gone = txn.execute(
        "DELETE FROM capabilities WHERE id IN (SELECT id FROM capabilities WHERE expires_at <= $1 LIMIT $2)",
        values![now, limit],
    )?;
    txn.then_make_room();
    Ok(gone > 0)
}

/// Every instance with something in its inbox, dead letters included.
fn instances_with_entries(db: &mut dyn Db) -> Sql<Vec<InstanceId>> {
    db.all("SELECT DISTINCT instance FROM inbox", &[], |row| row.get(0).map(InstanceId))
}

/// Answers how many went.
fn prune_overaged(txn: &mut dyn Txn, instance: InstanceId) -> Sql<u64> {
    let age = txn.quota().age;
    let Some(old) = old(txn, "received_at", age) else { return Ok(0) };
    txn.lock(instance)?;
    let mut overaged: Vec<(Seq, bool, u64)> = txn.all(
        &format!(
            "SELECT seq, dead, bytes FROM (
                 SELECT seq, received_at, dead_at IS NOT NULL AS dead, octet_length(body) AS bytes
                 FROM inbox WHERE instance = $1 ORDER BY seq LIMIT $2) AS first
             WHERE {old}"
        ),
        values![instance, STEP],
        |row| Ok((Seq(row.get(0)?), row.get(1)?, row.get(2)?)),
    )?;
    if let Some(mut budget) = txn.upkeep_budget() {
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
fn prune_tombstone(txn: &mut dyn Txn) -> Sql<Result<Option<ForgottenGateway>>> {
    let Some(old) = old(txn, "revoked_at", TOMBSTONE_FOR) else { return Ok(Ok(None)) };
    let found: Option<ForgottenGateway> =
        txn.first(&format!("SELECT tenant, gateway_id FROM gateways WHERE {old} LIMIT 1"), &[], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let Some((tenant, gateway_id)) = found else { return Ok(Ok(None)) };
    let forgotten = records::run(txn, &mut |view| gateways::forget(view, &tenant, &gateway_id))?;
    Ok(forgotten.map(|()| Some((tenant, gateway_id))))
}
