//! Dropping what is past its time, in steps small enough not to hold up appends.

use super::Sqlite;
use super::inbox::drop_as_gap;
use super::writer::{Txn, now};
use angelia_core::error::Result;
use angelia_core::inbox::{InstanceId, Seq};
use rusqlite::params;

/// How long a seen key, and with it the journal, is kept: the longest any
/// provider repeats itself, with room to spare.
const SEEN_FOR_MS: i64 = 72 * 3_600_000;
/// Conversations are kept as long as somebody may want to interrupt one.
const CONVERSATIONS_FOR_MS: i64 = 30 * 24 * 3_600_000;
/// Rows in one step.
const STEP: i64 = 500;

pub(super) async fn prune(store: &Sqlite) -> Result<()> {
    while store.writer.write("prune the journal", prune_journal).await? >= STEP as usize {}
    while store.writer.write("prune overaged entries", prune_overaged).await? >= STEP as usize {}
    store
        .writer
        .write("prune conversations", |txn| {
            txn.execute("DELETE FROM conversations WHERE last_at < ?", [now() - CONVERSATIONS_FOR_MS])
        })
        .await?;
    Ok(())
}

/// Both tables grow in time order, so their oldest rows are the ones to look at.
fn prune_journal(txn: &mut Txn<'_>) -> rusqlite::Result<usize> {
    let before = now() - SEEN_FOR_MS;
    let journal = txn.execute(
        "DELETE FROM journal WHERE seq IN (
             SELECT seq FROM (SELECT seq, received_at FROM journal ORDER BY seq LIMIT ?1)
             WHERE received_at < ?2 AND seq NOT IN (SELECT seq FROM inbox))",
        params![STEP, before],
    )?;
    let actions = txn.execute(
        "DELETE FROM actions WHERE id IN (
             SELECT id FROM (SELECT id, received_at, state FROM actions ORDER BY id LIMIT ?1)
             WHERE received_at < ?2 AND state NOT IN ('accepted', 'sending'))",
        params![STEP, before],
    )?;
    Ok(journal.max(actions))
}

fn prune_overaged(txn: &mut Txn<'_>) -> rusqlite::Result<usize> {
    let before = now() - txn.quota.age.as_millis() as i64;
    let overaged: Vec<(InstanceId, Seq)> = txn
        .prepare_cached("SELECT instance, seq FROM inbox WHERE received_at < ? ORDER BY seq LIMIT ?")?
        .query_map(params![before, STEP], |row| Ok((InstanceId(row.get(0)?), Seq(row.get(1)?))))?
        .collect::<rusqlite::Result<_>>()?;
    for (instance, seq) in &overaged {
        drop_as_gap(txn, *instance, *seq, "lost: it waited longer than the quota allows")?;
        txn.removed(*instance, vec![*seq]);
    }
    Ok(overaged.len())
}
