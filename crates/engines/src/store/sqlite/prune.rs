//! Dropping what is past its time, in steps small enough not to hold up appends.

use super::directory::PIECES_FOR;
use super::inbox::drop_as_gap;
use super::quarantine::QUARANTINE_FOR;
use super::writer::{Txn, now};
use super::{Sqlite, audit, identity};
use angelia_core::audit::{Actor, Deed};
use angelia_core::error::Result;
use angelia_core::identity::TOMBSTONE_FOR;
use angelia_core::inbox::{CONVERSATIONS_FOR, GAPS_FOR, InstanceId, SEEN_FOR, Seq};
use angelia_core::store::ForgottenGateway;
use rusqlite::{Connection, OptionalExtension, params};
use std::time::Duration;

/// How long the audit log goes back; the schema refuses to forget sooner.
const AUDIT_FOR: Duration = Duration::from_secs(401 * 24 * 3600);

/// How long it is remembered that a chat was told something: whoever comes back
/// after a year may be told again.
const NOTICES_FOR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Rows looked at in one step.
const STEP: i64 = 500;

pub(super) async fn prune(store: &Sqlite) -> Result<Vec<ForgottenGateway>> {
    let mut after = Some(0);
    while let Some(seq) = after {
        after = store.writer.write("prune the journal", move |txn| prune_journal(txn, seq)).await?;
    }
    while store.writer.write("prune the ledger", prune_actions).await? {}
    let instances = store.readers.read("find inboxes", instances_with_entries).await?;
    for instance in instances {
        while store.writer.write("prune overaged entries", move |txn| prune_overaged(txn, instance)).await? {}
    }
    while store.writer.write("prune the vault", prune_vault).await? {}
    store
        .writer
        .write("prune conversations", |txn| {
            let conversations = now() - CONVERSATIONS_FOR.as_millis() as i64;
            txn.execute("DELETE FROM conversations WHERE last_at < ?", [conversations])?;
            txn.execute("DELETE FROM enroll_tokens WHERE expires_at < ?", [now()])?;
            txn.execute("DELETE FROM link_codes WHERE expires_at < ?", [now()])?;
            txn.execute("DELETE FROM webchat_people WHERE visits_until < ?", [now()])?;
            txn.execute("DELETE FROM quarantine WHERE at < ?", [now() - QUARANTINE_FOR.as_millis() as i64])?;
            txn.execute("DELETE FROM missed WHERE until < ?", [now() - GAPS_FOR.as_millis() as i64])?;
            txn.execute("DELETE FROM pieces WHERE at < ?", [now() - PIECES_FOR.as_millis() as i64])?;
            txn.execute("DELETE FROM notices WHERE at < ?", [now() - NOTICES_FOR.as_millis() as i64])?;
            txn.execute("DELETE FROM audit WHERE at < ?", [now() - AUDIT_FOR.as_millis() as i64])?;
            txn.execute("DELETE FROM gaps WHERE last_at < ?", [now() - GAPS_FOR.as_millis() as i64])
        })
        .await?;
    // Last, so that nothing that fails hides what was forgotten.
    let mut forgotten = Vec::new();
    while let Some(gateway) = store.writer.write("prune tombstones", prune_tombstone).await? {
        forgotten.push(gateway);
    }
    Ok(forgotten)
}

/// The journal grows in time order. What still waits stays, and what lies
/// behind it is looked at all the same; answers where to go on.
fn prune_journal(txn: &mut Txn<'_>, after: i64) -> rusqlite::Result<Option<i64>> {
    let before = now() - SEEN_FOR.as_millis() as i64;
    let looked_at: Option<(i64, i64)> = txn
        .prepare_cached(
            "SELECT max(seq), min(received_at)
             FROM (SELECT seq, received_at FROM journal WHERE seq > ? ORDER BY seq LIMIT ?)",
        )?
        .query_row(params![after, STEP], |row| Ok(row.get::<_, Option<i64>>(0)?.zip(row.get(1)?)))?;
    let Some((last, oldest)) = looked_at else { return Ok(None) };
    let gone = txn
        .prepare_cached(
            "DELETE FROM journal WHERE seq > ?1 AND seq <= ?2 AND received_at < ?3
             AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.instance = journal.instance AND i.seq = journal.seq)
             RETURNING tenant",
        )?
        .query_map(params![after, last, before], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?;
    gone.iter().for_each(|tenant| txn.stored().1.forgot_journal(tenant, 1));
    Ok((oldest < before).then_some(last))
}

/// `true` if there may be more.
fn prune_actions(txn: &mut Txn<'_>) -> rusqlite::Result<bool> {
    let before = now() - SEEN_FOR.as_millis() as i64;
    let gone = txn
        .prepare_cached(
            "DELETE FROM actions WHERE id IN (
                 SELECT id FROM (SELECT id, received_at, state FROM actions ORDER BY id LIMIT ?1)
                 WHERE received_at < ?2 AND state NOT IN ('accepted', 'sending'))
             RETURNING tenant",
        )?
        .query_map(params![STEP, before], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?;
    gone.iter().for_each(|tenant| txn.stored().1.forgot_actions(tenant, 1));
    Ok(!gone.is_empty())
}

/// `true` if there may be more.
fn prune_vault(txn: &mut Txn<'_>) -> rusqlite::Result<bool> {
    let gone = txn.execute(
        "DELETE FROM capabilities WHERE id IN (SELECT id FROM capabilities WHERE expires_at <= ? LIMIT ?)",
        params![now(), STEP],
    )?;
    Ok(gone > 0)
}

/// Every instance with something in its inbox, dead letters included.
fn instances_with_entries(db: &Connection) -> rusqlite::Result<Vec<InstanceId>> {
    db.prepare("SELECT DISTINCT instance FROM inbox")?
        .query_map([], |row| row.get(0).map(InstanceId))?
        .collect()
}

fn prune_overaged(txn: &mut Txn<'_>, instance: InstanceId) -> rusqlite::Result<bool> {
    let before = now() - txn.quota.age.as_millis() as i64;
    let overaged: Vec<(Seq, bool)> = txn
        .prepare_cached(
            "SELECT seq, dead FROM (
                 SELECT seq, received_at, dead_at IS NOT NULL AS dead FROM inbox WHERE instance = ? ORDER BY seq LIMIT ?)
             WHERE received_at < ?",
        )?
        .query_map(params![instance.0, STEP, before], |row| Ok((Seq(row.get(0)?), row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (seq, dead) in &overaged {
        let outcome = match dead {
            true => "lost: a dead letter that nobody redrove for longer than the quota allows",
            false => "lost: it waited longer than the quota allows",
        };
        drop_as_gap(txn, instance, *seq, outcome)?;
    }
    let more = !overaged.is_empty();
    if more {
        txn.removed(instance, overaged.into_iter().map(|(seq, _)| seq).collect());
    }
    Ok(more)
}

/// Forgets one gateway whose revocation was long enough ago, with the instance
/// if nobody needs it; answers which, if there was one.
fn prune_tombstone(txn: &mut Txn<'_>) -> rusqlite::Result<Option<ForgottenGateway>> {
    let before = now() - TOMBSTONE_FOR.as_millis() as i64;
    let found: Option<(String, String, i64)> = txn
        .query_row(
            "SELECT tenant, gateway_id, instance FROM gateways WHERE revoked_at < ? LIMIT 1",
            [before],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()?;
    let Some((tenant, gateway_id, instance)) = found else { return Ok(None) };
    txn.execute("DELETE FROM gateways WHERE tenant = ? AND gateway_id = ?", [&tenant, &gateway_id])?;
    audit::write(txn, &Deed::done(&Actor::server(), "gateway.forget", &tenant, &gateway_id))?;
    // While a route names it, the place is nobody else's: it must not fall to another route.
    let needed: bool = txn.query_row(
        "SELECT EXISTS (SELECT 1 FROM gateways WHERE instance = ?1)
             OR EXISTS (SELECT 1 FROM routes WHERE instance = ?1)",
        [instance],
        |row| row.get(0),
    )?;
    if !needed {
        identity::forget_instance(txn, InstanceId(instance))?;
    }
    identity::settle_default(txn, &tenant)?;
    Ok(Some((tenant, gateway_id)))
}
