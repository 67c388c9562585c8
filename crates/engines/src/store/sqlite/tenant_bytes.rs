//! What each tenant stores, whose what is, and room for more of it. Counted in memory by
//! the one thread that writes, as rows lie on the disk, and anew from the tables at every
//! start and after every transaction that failed.

use super::footprint::{self, ACTION_LENGTHS, ENTRY_LENGTHS, JOURNAL_LENGTHS};
use super::queue::Owner;
use super::writer::Txn;
use angelia_core::error::Result;
use angelia_core::inbox::{InstanceId, refusal};
use angelia_core::store::{ActionId, NewAction};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::HashMap;
use std::sync::Arc;

/// Finished actions are forgotten by the hundred.
const FORGET: u64 = 100;
/// Few enough to hold up nobody.
const ROUNDS: usize = 10;

/// Whose an action and an instance are, for writes that name nothing else: so that they
/// wait in their tenant's line, and one tenant's acknowledgements are not behind another's.
/// The writing thread keeps it; whoever asks does not wait for it.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Of actions that are not finished, with what each takes.
    actions: Mutex<HashMap<i64, (Arc<str>, u64)>>,
    instances: Mutex<HashMap<InstanceId, Arc<str>>>,
}

impl Owners {
    /// Reads whose the instances are.
    pub(super) fn read(db: &Connection) -> rusqlite::Result<Self> {
        let instances = db
            .prepare("SELECT instance, tenant FROM instances")?
            .query_map([], |row| Ok((InstanceId(row.get(0)?), row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self { instances: Mutex::new(instances), ..Self::default() })
    }

    /// In whose line a write for an action waits.
    pub(super) fn of_action(&self, id: ActionId) -> Owner {
        self.actions.lock().get(&id.0).map_or(Owner::Server, |(tenant, _)| Owner::Tenant(tenant.clone()))
    }

    /// The same for several actions: the line of their tenant, if they have one in common.
    pub(super) fn of_actions(&self, ids: impl IntoIterator<Item = ActionId>) -> Owner {
        let actions = self.actions.lock();
        let mut tenants = ids.into_iter().map(|id| actions.get(&id.0).map(|(tenant, _)| tenant));
        match tenants.next().flatten() {
            Some(first) if tenants.all(|other| other == Some(first)) => Owner::Tenant(first.clone()),
            _ => Owner::Server,
        }
    }

    /// In whose line a write for an instance waits.
    pub(super) fn of_instance(&self, instance: InstanceId) -> Owner {
        self.tenant_of(instance).map_or(Owner::Instance(instance), Owner::Tenant)
    }

    fn tenant_of(&self, instance: InstanceId) -> Option<Arc<str>> {
        self.instances.lock().get(&instance).cloned()
    }

    fn set_instance(&self, instance: InstanceId, tenant: &Arc<str>) {
        self.instances.lock().entry(instance).or_insert_with(|| tenant.clone());
    }
}

/// The bytes of each tenant.
#[derive(Debug, Default)]
pub(super) struct TenantBytes {
    tenants: HashMap<Arc<str>, u64>,
    owners: Arc<Owners>,
}

impl TenantBytes {
    /// Counts everything.
    pub(super) fn read(db: &Connection, owners: Arc<Owners>) -> rusqlite::Result<Self> {
        let mut stored = Self { owners, ..Self::default() };
        let waiting = format!("SELECT tenant, {ENTRY_LENGTHS} FROM inbox JOIN instances USING (instance)");
        stored.read_rows(db, &waiting, footprint::entry)?;
        let journal = format!("SELECT tenant, {JOURNAL_LENGTHS} FROM journal");
        stored.read_rows(db, &journal, footprint::journal)?;
        stored.read_rows(db, &format!("SELECT tenant, {ACTION_LENGTHS} FROM actions"), footprint::action)?;
        let unfinished = db
            .prepare(&format!(
                "SELECT id, tenant, {ACTION_LENGTHS} FROM actions WHERE state IN ('accepted', 'sending')"
            ))?
            .query_map([], |row| Ok((row.get(0)?, (row.get(1)?, footprint::action(row, 2)?))))?
            .collect::<rusqlite::Result<_>>()?;
        *stored.owners.actions.lock() = unfinished;
        Ok(stored)
    }

    /// Counts rows whose tenant comes first, and then what `footprint` needs.
    fn read_rows(
        &mut self,
        db: &Connection,
        query: &str,
        footprint: impl Fn(&Row<'_>, usize) -> rusqlite::Result<u64>,
    ) -> rusqlite::Result<()> {
        let mut statement = db.prepare(query)?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            let (tenant, bytes) = (row.get_ref(0)?.as_str()?, footprint(row, 1)?);
            match self.tenants.get_mut(tenant) {
                Some(stored) => *stored += bytes,
                None => drop(self.tenants.insert(tenant.into(), bytes)),
            }
        }
        Ok(())
    }

    /// What is kept of a tenant.
    pub(super) fn of(&self, tenant: &str) -> u64 {
        self.tenants.get(tenant).copied().unwrap_or_default()
    }

    /// An entry was appended, and its row of the journal.
    pub(super) fn appended(&mut self, tenant: &str, instance: InstanceId, bytes: u64) {
        let tenant: Arc<str> = tenant.into();
        self.owners.set_instance(instance, &tenant);
        self.add(&tenant, bytes);
    }

    /// An entry left its inbox; its row of the journal stays.
    pub(super) fn removed(
        &mut self,
        db: &Connection,
        instance: InstanceId,
        bytes: u64,
    ) -> rusqlite::Result<()> {
        if let Some(tenant) = self.tenant_of(db, instance)? {
            self.subtract(&tenant, bytes);
        }
        Ok(())
    }

    /// An entry has another body.
    pub(super) fn revised(
        &mut self,
        db: &Connection,
        instance: InstanceId,
        before: u64,
        now: u64,
    ) -> rusqlite::Result<()> {
        if let Some(tenant) = self.tenant_of(db, instance)? {
            self.subtract(&tenant, before);
            self.add(&tenant, now);
        }
        Ok(())
    }

    /// An action was written down.
    pub(super) fn accepted(&mut self, id: i64, tenant: &str, bytes: u64) {
        let tenant: Arc<str> = tenant.into();
        self.add(&tenant, bytes);
        self.owners.actions.lock().insert(id, (tenant, bytes));
    }

    /// An action is finished, its body gone, and what is remembered of it takes so much.
    pub(super) fn finished(&mut self, id: i64, bytes: u64) {
        let unfinished = self.owners.actions.lock().remove(&id);
        if let Some((tenant, before)) = unfinished {
            self.subtract(&tenant, before);
            self.add(&tenant, bytes);
        }
    }

    /// An instance is gone.
    pub(super) fn forgot_instance(&mut self, instance: InstanceId) {
        self.owners.instances.lock().remove(&instance);
    }

    fn tenant_of(&self, db: &Connection, instance: InstanceId) -> rusqlite::Result<Option<Arc<str>>> {
        if let Some(tenant) = self.owners.tenant_of(instance) {
            return Ok(Some(tenant));
        }
        let tenant: Option<Arc<str>> = db
            .prepare_cached("SELECT tenant FROM instances WHERE instance = ?")?
            .query_row([instance.0], |row| row.get(0))
            .optional()?;
        if let Some(tenant) = &tenant {
            self.owners.set_instance(instance, tenant);
        }
        Ok(tenant)
    }

    fn add(&mut self, tenant: &Arc<str>, bytes: u64) {
        *self.tenants.entry(tenant.clone()).or_default() += bytes;
    }

    /// Rows of a tenant that took so much are gone.
    pub(super) fn subtract(&mut self, tenant: &str, bytes: u64) {
        if let Some(stored) = self.tenants.get_mut(tenant) {
            *stored = stored.saturating_sub(bytes);
            if *stored == 0 {
                self.tenants.remove(tenant);
            }
        }
    }

    /// The counts alone, to compare with those of the tables.
    pub(super) fn counts(&self) -> (HashMap<Arc<str>, u64>, usize) {
        (self.tenants.clone(), self.owners.actions.lock().len())
    }
}

/// Makes room for actions of one tenant; refuses if there is none.
pub(super) fn make_room_for(txn: &mut Txn<'_>, actions: &[NewAction]) -> rusqlite::Result<Result<()>> {
    let Some(first) = actions.first() else { return Ok(Ok(())) };
    let needed = actions.iter().map(footprint::new_action).sum();
    let made = make_room(txn, &first.tenant, needed)?;
    Ok(if made { Ok(()) } else { Err(refusal::tenant_full(&first.tenant, txn.quota.tenant_bytes)) })
}

/// Whether there is room for so many bytes more of a tenant. What is only remembered
/// of its finished actions is forgotten for that.
pub(super) fn make_room(txn: &mut Txn<'_>, tenant: &str, bytes: u64) -> rusqlite::Result<bool> {
    if fits(txn, tenant, bytes) {
        return Ok(true);
    }
    let wanted = txn.quota.spared_for(bytes);
    for _ in 0..ROUNDS {
        if !forget_finished(txn, tenant)? || fits(txn, tenant, wanted) {
            break;
        }
    }
    Ok(fits(txn, tenant, bytes))
}

fn fits(txn: &Txn<'_>, tenant: &str, bytes: u64) -> bool {
    txn.quota.fits_disk(txn.counted.stored.of(tenant), bytes)
}

/// Forgets the oldest finished actions of a tenant; `false` if there are none. Nothing
/// depends on them but `angelia explain`.
fn forget_finished(txn: &mut Txn<'_>, tenant: &str) -> rusqlite::Result<bool> {
    let gone = txn
        .prepare_cached(&format!(
            "DELETE FROM actions WHERE id IN (
                 SELECT id FROM actions WHERE tenant = ? AND state NOT IN ('accepted', 'sending')
                 ORDER BY id LIMIT ?)
             RETURNING {ACTION_LENGTHS}"
        ))?
        .query_map(params![tenant, FORGET], |row| footprint::action(row, 0))?
        .sum::<rusqlite::Result<u64>>()?;
    txn.counted.stored.subtract(tenant, gone);
    Ok(gone > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_tenant_waits_in_its_line() {
        let (acme, globex): (Arc<str>, Arc<str>) = ("acme".into(), "globex".into());
        let owners = Arc::<Owners>::default();
        let mut stored = TenantBytes { owners: owners.clone(), ..TenantBytes::default() };
        stored.accepted(1, &acme, 10);
        stored.accepted(2, &acme, 10);
        stored.accepted(3, &globex, 10);
        owners.set_instance(InstanceId(7), &globex);
        let tenant = |name: &Arc<str>| Owner::Tenant(name.clone());
        assert_eq!(owners.of_action(ActionId(3)), tenant(&globex));
        assert_eq!(owners.of_actions([1, 2].map(ActionId)), tenant(&acme));
        assert_eq!(owners.of_actions([1, 3].map(ActionId)), Owner::Server, "nobody's in particular");
        assert_eq!(owners.of_actions([]), Owner::Server);
        assert_eq!(owners.of_instance(InstanceId(7)), tenant(&globex));
        assert_eq!(owners.of_instance(InstanceId(8)), Owner::Instance(InstanceId(8)));
        stored.finished(3, 5);
        stored.forgot_instance(InstanceId(7));
        assert_eq!(owners.of_action(ActionId(3)), Owner::Server);
        assert_eq!((stored.of(&acme), stored.of(&globex)), (20, 5));
        assert_eq!(owners.of_instance(InstanceId(7)), Owner::Instance(InstanceId(7)));
    }
}
