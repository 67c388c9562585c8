//! Removing a tenant: first it is gone, then its data goes in steps.
//!
//! Deleting needs space before it frees any, because the log holds every page
//! that changes. So one step changes no more than a part of the reserve, and on a
//! full disk the log is emptied after each. A row in `removals` remembers what is
//! left to do: a start that finds one goes on.

use super::Sqlite;
use super::footprint::{self, ENTRY_LENGTHS};
use super::queue::Owner;
use super::space::Budget;
use super::writer::{Txn, now};
use angelia_core::error::Result;
use angelia_core::fail;
use angelia_core::inbox::{Held, InstanceId, Seq};
use rusqlite::{Connection, OptionalExtension, Params, params};
use serde_json::json;

/// Rows looked at for one step, at most.
const LOOKED_AT: i64 = 1_000;

/// A removal that is not finished.
struct Removal {
    tenant: String,
    instances: Vec<i64>,
    rooms: Vec<String>,
    lines_to: i64,
}

/// How far it is: with the instances, and with the tables that have no index by tenant.
#[derive(Clone, Default)]
struct Seen {
    /// Whose: of another tenant nothing was seen.
    tenant: String,
    instances: usize,
    journal: i64,
    actions: i64,
}

impl Seen {
    /// How far it is with a tenant. Another's removal may have come before it meanwhile:
    /// they are ordered by a clock that can be set back.
    fn within(self, tenant: &str) -> Self {
        if self.tenant == tenant { self } else { Self { tenant: tenant.to_owned(), ..Self::default() } }
    }
}

/// Notes what a removed tenant left, for the steps that delete it.
pub(super) fn leave_behind(
    txn: &mut Txn<'_>,
    tenant: &str,
    instances: &[InstanceId],
    rooms: &[String],
) -> rusqlite::Result<()> {
    for instance in instances {
        txn.count(*instance, |held| *held = Held::default());
        txn.counted.stored.forgot_instance(*instance);
    }
    let instances: Vec<i64> = instances.iter().map(|instance| instance.0).collect();
    txn.execute(
        "INSERT INTO removals SELECT ?, ?, ?, coalesce(max(id), 0), ? FROM webchat_lines",
        params![tenant, json!(instances).to_string(), json!(rooms).to_string(), now()],
    )?;
    Ok(())
}

/// Deletes what belonged to an instance that is gone.
pub(super) fn forget_instance(txn: &mut Txn<'_>, instance: InstanceId) -> rusqlite::Result<()> {
    let waiting: Vec<(i64, u64)> = txn
        .prepare(&format!("DELETE FROM inbox WHERE instance = ? RETURNING seq, {ENTRY_LENGTHS}"))?
        .query_map([instance.0], |row| Ok((row.get(0)?, footprint::entry(row, 1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    txn.counted.stored.removed(txn.connection, instance, waiting.iter().map(|(_, bytes)| bytes).sum())?;
    txn.counted.stored.forgot_instance(instance);
    for table in
        ["gaps", "untold_gaps", "fronts", "policies", "conversations", "notices", "capabilities", "turns"]
    {
        txn.execute(&format!("DELETE FROM {table} WHERE instance = ?"), [instance.0])?;
    }
    txn.count(instance, |held| *held = Held::default());
    txn.removed(instance, waiting.into_iter().map(|(seq, _)| Seq(seq)).collect());
    Ok(())
}

/// Deletes what removed tenants left.
pub(super) async fn finish(store: &Sqlite) -> Result<()> {
    // Two at once would only look at the same rows.
    let _turn = store.removing.lock().await;
    let begun = store.readers.read("find removals", |db| {
        db.query_row("SELECT EXISTS (SELECT 1 FROM removals)", [], |row| row.get::<_, bool>(0))
    });
    if !begun.await? {
        return Ok(());
    }
    let mut seen = Seen::default();
    loop {
        let next =
            store.writer.try_write_for(Owner::Operator, 0, "delete what a removed tenant left", move |txn| {
                let Some(removal) = oldest(txn)? else { return Ok(Ok(None)) };
                let more = step(txn, &removal, seen.within(&removal.tenant))?;
                txn.then_make_room();
                if more.is_none() {
                    txn.execute("DELETE FROM removals WHERE tenant = ?", [&removal.tenant])?;
                    txn.recount = true;
                }
                Ok(Ok(Some(more.unwrap_or_default())))
            });
        fail::point("removal_step");
        match next.await? {
            Some(further) => seen = further,
            None => return Ok(()),
        }
    }
}

fn oldest(db: &Connection) -> rusqlite::Result<Option<Removal>> {
    db.prepare_cached(
        "SELECT tenant, instances, rooms, lines_to FROM removals ORDER BY removed_at, tenant LIMIT 1",
    )?
    .query_row([], |row| {
        let (instances, rooms): (String, String) = (row.get(1)?, row.get(2)?);
        let instances = serde_json::from_str(&instances).unwrap_or_default();
        let rooms = serde_json::from_str(&rooms).unwrap_or_default();
        Ok(Removal { tenant: row.get(0)?, instances, rooms, lines_to: row.get(3)? })
    })
    .optional()
}

/// Deletes as much as fits one step; `None` once nothing is left.
fn step(txn: &mut Txn<'_>, removal: &Removal, mut seen: Seen) -> rusqlite::Result<Option<Seen>> {
    let Removal { tenant, instances, rooms, lines_to } = removal;
    let mut budget = Budget::of(txn.space);
    // Rooms first: others wait to use them.
    let lines = "SELECT id, length(text) FROM webchat_lines WHERE room = ? AND id <= ? ORDER BY seq LIMIT ?";
    let delete = "DELETE FROM webchat_lines WHERE id = ?";
    for room in rooms {
        if !clear(txn, lines, (room, lines_to, LOOKED_AT), delete, &mut budget, drop)? {
            return Ok(Some(seen));
        }
    }
    while let Some(instance) = instances.get(seen.instances) {
        if !empty_instance(txn, InstanceId(*instance), &mut budget)? {
            return Ok(Some(seen));
        }
        seen.instances += 1;
    }
    let journal = "SELECT id, 0 FROM journal WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?";
    let (of, delete) = ((tenant, seen.journal, LOOKED_AT), "DELETE FROM journal WHERE id = ?");
    if !clear(txn, journal, of, delete, &mut budget, |id| seen.journal = id)? {
        return Ok(Some(seen));
    }
    let actions = "SELECT id, length(body) FROM actions WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?";
    let (of, delete) = ((tenant, seen.actions, LOOKED_AT), "DELETE FROM actions WHERE id = ?");
    if !clear(txn, actions, of, delete, &mut budget, |id| seen.actions = id)? {
        return Ok(Some(seen));
    }
    txn.execute("DELETE FROM adoptions WHERE action NOT IN (SELECT id FROM actions)", [])?;
    let conversations = txn.execute(
        "DELETE FROM conversations WHERE tenant = ?1 AND session_key IN (
             SELECT session_key FROM conversations WHERE tenant = ?1 LIMIT ?2)",
        params![tenant, LOOKED_AT],
    )?;
    Ok((conversations > 0).then_some(seen))
}

/// Deletes what belonged to an instance; `false` if the step is full before.
fn empty_instance(txn: &mut Txn<'_>, instance: InstanceId, budget: &mut Budget) -> rusqlite::Result<bool> {
    let inbox = "SELECT seq, length(body) FROM inbox WHERE instance = ? ORDER BY seq LIMIT ?";
    let (of, mut gone) = ((instance.0, LOOKED_AT), Vec::new());
    let delete = format!("DELETE FROM inbox WHERE instance = {} AND seq = ?", instance.0);
    let all = clear(txn, inbox, of, &delete, budget, |seq| gone.push(Seq(seq)))?;
    if !gone.is_empty() {
        // After a restart they were counted again.
        txn.count(instance, |held| *held = Held::default());
        txn.removed(instance, gone);
    }
    let capabilities = "SELECT id, length(sealed) FROM capabilities WHERE instance = ? LIMIT ?";
    let delete = "DELETE FROM capabilities WHERE id = ?";
    if !all || !clear(txn, capabilities, of, delete, budget, drop)? || !budget.allows(0) {
        return Ok(false);
    }
    for table in ["gaps", "fronts", "policies", "notices"] {
        txn.execute(&format!("DELETE FROM {table} WHERE instance = ?"), [instance.0])?;
    }
    Ok(true)
}

/// Deletes rows while some are found and they fit the step; `false` if one did not. `select`
/// answers the keys of some rows, and how long their bodies are.
fn clear(
    txn: &Txn<'_>,
    select: &str,
    of: impl Params + Copy,
    delete: &str,
    budget: &mut Budget,
    mut gone: impl FnMut(i64),
) -> rusqlite::Result<bool> {
    loop {
        let rows: Vec<(i64, Option<u64>)> = txn
            .prepare_cached(select)?
            .query_map(of, |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        if rows.is_empty() {
            return Ok(true);
        }
        for (key, bytes) in rows {
            if !budget.allows(bytes.unwrap_or_default()) {
                return Ok(false);
            }
            txn.prepare_cached(delete)?.execute([key])?;
            gone(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_one_removal_is_says_nothing_of_another() {
        let seen = Seen { instances: 2, journal: 70, actions: 9, ..Seen::default().within("acme") };
        assert_eq!(seen.clone().within("acme").journal, 70);
        let other = seen.within("globex");
        assert_eq!((other.instances, other.journal, other.actions), (0, 0, 0));
        assert_eq!(other.tenant, "globex");
    }
}
