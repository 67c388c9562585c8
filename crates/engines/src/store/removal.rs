//! Removing a tenant: first it is gone, then its data goes in steps.
//!
//! Deleting needs space before it frees any, because the log holds every page
//! that changes. So one step changes no more than a part of the reserve, and on a
//! full disk the log is emptied after each. A row in `removals` remembers what is
//! left to do: a start that finds one goes on.

use super::budget::Budget;
use super::db::{Ask, Db, Param, Sql, values};
use super::engine::{Engine, Owner, Store};
use super::footprint::{self, ENTRY_LENGTHS};
use super::txn::Txn;
use angelia_core::error::Result;
use angelia_core::fail;
use angelia_core::inbox::{InstanceId, Seq};
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
    txn: &mut dyn Txn,
    tenant: &str,
    instances: &[InstanceId],
    rooms: &[String],
) -> Sql<()> {
    for instance in instances {
        txn.count_none(*instance)?;
        txn.forgot_instance(*instance);
    }
    // Whoever writes there is done before it is said how far that is.
    rooms.iter().try_for_each(|room| txn.lock_room(room))?;
    let instances: Vec<i64> = instances.iter().map(|instance| instance.0).collect();
    let now = txn.now();
    txn.execute(
        "INSERT INTO removals (tenant, instances, rooms, lines_to, removed_at)
         SELECT $1, $2, $3, coalesce(max(id), 0), $4 FROM webchat_lines",
        values![tenant, json!(instances).to_string(), json!(rooms).to_string(), now],
    )?;
    Ok(())
}

/// Deletes what belonged to an instance that is gone.
pub(super) fn forget_instance(txn: &mut dyn Txn, instance: InstanceId) -> Sql<()> {
    txn.lock(instance)?;
    let waiting: Vec<(i64, u64)> = txn.all(
        &format!("DELETE FROM inbox WHERE instance = $1 RETURNING seq, {ENTRY_LENGTHS}"),
        values![instance],
        |row| Ok((row.get(0)?, footprint::entry(&row, 1)?)),
    )?;
    if let Some(tenant) = txn.tenant_of(instance)? {
        txn.store(&tenant, 0, waiting.iter().map(|(_, bytes)| bytes).sum());
    }
    txn.forgot_instance(instance);
    for table in [
        "gaps",
        "untold_gaps",
        "fronts",
        "policies",
        "manifests",
        "conversations",
        "notices",
        "capabilities",
        "turns",
        "prompts",
        "openings",
        "created_threads",
    ] {
        txn.execute(&format!("DELETE FROM {table} WHERE instance = $1"), values![instance])?;
    }
    txn.count_none(instance)?;
    txn.removed(instance, waiting.into_iter().map(|(seq, _)| Seq(seq)).collect());
    Ok(())
}

/// Deletes what removed tenants left. One at a time: two would only look at the same rows.
pub(super) async fn finish<E: Engine>(store: &Store<E>) -> Result<()> {
    let begun = store.0.read("find removals", |db| db.says("SELECT EXISTS (SELECT 1 FROM removals)", &[]));
    if !begun.await? {
        return Ok(());
    }
    let mut seen = Seen::default();
    loop {
        let from = std::mem::take(&mut seen);
        let next = store.0.write_all(Owner::Operator, 0, "delete what a removed tenant left", move |txn| {
            let Some(removal) = oldest(txn)? else { return Ok(None) };
            let more = step(txn, &removal, from.clone().within(&removal.tenant))?;
            txn.then_make_room();
            if more.is_none() {
                txn.execute("DELETE FROM removals WHERE tenant = $1", values![removal.tenant])?;
                txn.recount(&removal.tenant)?;
            }
            Ok(Some(more.unwrap_or_default()))
        });
        fail::point("removal_step");
        match next.await? {
            Some(further) => seen = further,
            None => return Ok(()),
        }
    }
}

fn oldest(db: &mut dyn Db) -> Sql<Option<Removal>> {
    let oldest =
        "SELECT tenant, instances, rooms, lines_to FROM removals ORDER BY removed_at, tenant LIMIT 1";
    db.first(oldest, &[], |row| {
        let (instances, rooms): (String, String) = (row.get(1)?, row.get(2)?);
        let instances = serde_json::from_str(&instances).unwrap_or_default();
        let rooms = serde_json::from_str(&rooms).unwrap_or_default();
        Ok(Removal { tenant: row.get(0)?, instances, rooms, lines_to: row.get(3)? })
    })
}

/// Deletes as much as fits one step; `None` once nothing is left.
fn step(txn: &mut dyn Txn, removal: &Removal, mut seen: Seen) -> Sql<Option<Seen>> {
    let Removal { tenant, instances, rooms, lines_to } = removal;
    let mut budget = txn.budget();
    // Rooms first: others wait to use them.
    let lines = "SELECT id, octet_length(text) FROM webchat_lines WHERE room = $1 AND id <= $2
                 ORDER BY seq LIMIT $3";
    let delete = "DELETE FROM webchat_lines WHERE id = $1";
    for room in rooms {
        if !clear(txn, lines, values![room, lines_to, LOOKED_AT], delete, &mut budget, drop)? {
            return Ok(Some(seen));
        }
        txn.room_is_empty(room)?;
    }
    while let Some(instance) = instances.get(seen.instances) {
        if !empty_instance(txn, InstanceId(*instance), &mut budget)? {
            return Ok(Some(seen));
        }
        seen.instances += 1;
    }
    let journal = "SELECT id, 0 FROM journal WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3";
    let delete = "DELETE FROM journal WHERE id = $1";
    let from = seen.journal;
    let of = values![tenant, from, LOOKED_AT];
    if !clear(txn, journal, of, delete, &mut budget, |id| seen.journal = id)? {
        return Ok(Some(seen));
    }
    let actions =
        "SELECT id, octet_length(body) FROM actions WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3";
    let delete = "DELETE FROM actions WHERE id = $1";
    let from = seen.actions;
    let of = values![tenant, from, LOOKED_AT];
    if !clear(txn, actions, of, delete, &mut budget, |id| seen.actions = id)? {
        return Ok(Some(seen));
    }
    txn.execute("DELETE FROM adoptions WHERE action NOT IN (SELECT id FROM actions)", &[])?;
    if forget_files(txn, tenant)? > 0 {
        return Ok(Some(seen));
    }
    let conversations = txn.execute(
        "DELETE FROM conversations WHERE tenant = $1 AND session_key IN (
             SELECT session_key FROM conversations WHERE tenant = $1 LIMIT $2)",
        values![tenant, LOOKED_AT],
    )?;
    Ok((conversations > 0).then_some(seen))
}

/// Deletes what tells of some files, and the keys of their bytes; answers how many rows went. The
/// bytes go when upkeep finds objects that no row tells of.
fn forget_files(txn: &mut dyn Txn, tenant: &str) -> Sql<usize> {
    let mut gone = txn.execute("DELETE FROM tenant_files WHERE tenant = $1", values![tenant])?;
    for (table, key) in [("files", "file"), ("blobs", "blob")] {
        let some = format!("SELECT {key} FROM {table} WHERE tenant = $1 LIMIT $2");
        let delete = format!("DELETE FROM {table} WHERE {key} IN ({some})");
        gone += txn.execute(&delete, values![tenant, LOOKED_AT])?;
    }
    Ok(gone)
}

/// Deletes what belonged to an instance; `false` if the step is full before.
fn empty_instance(txn: &mut dyn Txn, instance: InstanceId, budget: &mut Budget) -> Sql<bool> {
    let inbox = "SELECT seq, length(body) FROM inbox WHERE instance = $1 ORDER BY seq LIMIT $2";
    let mut gone = Vec::new();
    let of = values![instance, LOOKED_AT];
    let delete = format!("DELETE FROM inbox WHERE instance = {} AND seq = $1", instance.0);
    let all = clear(txn, inbox, of, &delete, budget, |seq| gone.push(Seq(seq)))?;
    if !gone.is_empty() {
        // After a restart they were counted again.
        txn.count_none(instance)?;
        txn.removed(instance, gone);
    }
    let capabilities = "SELECT id, length(sealed) FROM capabilities WHERE instance = $1 LIMIT $2";
    let delete = "DELETE FROM capabilities WHERE id = $1";
    if !all || !clear(txn, capabilities, of, delete, budget, drop)? || !budget.allows(0) {
        return Ok(false);
    }
    let tables = ["gaps", "fronts", "policies", "manifests", "notices", "openings", "created_threads"];
    for table in tables {
        txn.execute(&format!("DELETE FROM {table} WHERE instance = $1"), values![instance])?;
    }
    Ok(true)
}

/// Deletes rows while some are found and they fit the step; `false` if one did not. `select`
/// answers the keys of some rows, and how long their bodies are.
fn clear(
    txn: &mut dyn Txn,
    select: &str,
    of: &[Param<'_>],
    delete: &str,
    budget: &mut Budget,
    mut gone: impl FnMut(i64),
) -> Sql<bool> {
    loop {
        let rows: Vec<(i64, Option<u64>)> = txn.all(select, of, |row| Ok((row.get(0)?, row.get(1)?)))?;
        if rows.is_empty() {
            return Ok(true);
        }
        for (key, bytes) in rows {
            if !budget.allows(bytes.unwrap_or_default()) {
                return Ok(false);
            }
            txn.execute(delete, values![key])?;
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
