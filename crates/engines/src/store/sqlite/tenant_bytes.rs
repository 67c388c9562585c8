//! What each tenant stores, and whose what is. Counted in memory by the one thread that
//! writes, as rows lie on the disk, and anew from the tables at every start and after every
//! transaction that failed.

use super::connection::Plain;
use crate::store::db::{Ask, Db, Row, Sql, values};
use crate::store::engine::Owner;
use crate::store::footprint::{self, ACTION_LENGTHS, ENTRY_LENGTHS, JOURNAL_LENGTHS};
use angelia_core::inbox::InstanceId;
use angelia_core::store::ActionId;
use parking_lot::Mutex;
use rusqlite::Connection;
use std::collections::HashMap;
use std::sync::Arc;

/// Whose an action and an instance are, for writes that name nothing else: so that they
/// wait in their tenant's line, and one tenant's acknowledgements are not behind another's.
/// The writing thread keeps it; whoever asks does not wait for it.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Of actions that are not finished.
    actions: Mutex<HashMap<i64, Arc<str>>>,
    instances: Mutex<HashMap<InstanceId, Arc<str>>>,
}

impl Owners {
    /// Reads whose the instances are.
    pub(super) fn read(db: &Connection) -> Sql<Self> {
        let all = "SELECT instance, tenant FROM instances";
        let instances = Plain(db).all(all, &[], |row| Ok((InstanceId(row.get(0)?), row.get(1)?)))?;
        Ok(Self { instances: Mutex::new(instances.into_iter().collect()), ..Self::default() })
    }

    /// In whose line a write for actions waits: their tenant's, if they have one in common.
    pub(super) fn of_actions(&self, ids: &[ActionId]) -> Owner {
        let actions = self.actions.lock();
        let mut tenants = ids.iter().map(|id| actions.get(&id.0));
        match tenants.next().flatten() {
            Some(first) if tenants.all(|other| other == Some(first)) => Owner::Tenant(first.clone()),
            _ => Owner::Server,
        }
    }

    /// In whose line a write for an instance waits.
    pub(super) fn of_instance(&self, instance: InstanceId) -> Owner {
        self.tenant_of(instance).map_or(Owner::Instance(instance), Owner::Tenant)
    }

    pub(super) fn tenant_of(&self, instance: InstanceId) -> Option<Arc<str>> {
        self.instances.lock().get(&instance).cloned()
    }

    pub(super) fn set_instance(&self, instance: InstanceId, tenant: &str) {
        self.instances.lock().entry(instance).or_insert_with(|| tenant.into());
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
    pub(super) fn read(db: &Connection, owners: Arc<Owners>) -> Sql<Self> {
        let (mut stored, mut db) = (Self { owners, ..Self::default() }, Plain(db));
        let waiting = format!("SELECT tenant, {ENTRY_LENGTHS} FROM inbox JOIN instances USING (instance)");
        stored.read_rows(&mut db, &waiting, footprint::entry)?;
        let journal = format!("SELECT tenant, {JOURNAL_LENGTHS} FROM journal");
        stored.read_rows(&mut db, &journal, footprint::journal)?;
        let actions = format!("SELECT tenant, {ACTION_LENGTHS} FROM actions");
        stored.read_rows(&mut db, &actions, footprint::action)?;
        let unfinished = "SELECT id, tenant FROM actions WHERE state IN ('accepted', 'sending')";
        let unfinished = db.all(unfinished, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
        *stored.owners.actions.lock() = unfinished.into_iter().collect();
        Ok(stored)
    }

    /// Counts rows whose tenant comes first, and then what `footprint` needs.
    fn read_rows(
        &mut self,
        db: &mut Plain<'_>,
        query: &str,
        footprint: impl Fn(&Row<'_>, usize) -> Sql<u64>,
    ) -> Sql<()> {
        db.each(query, &[], &mut |row| {
            let (tenant, bytes) = (row.get::<String>(0)?, footprint(&row, 1)?);
            self.add(&tenant, bytes);
            Ok(true)
        })
    }

    /// What is kept of a tenant.
    pub(super) fn of(&self, tenant: &str) -> u64 {
        self.tenants.get(tenant).copied().unwrap_or_default()
    }

    /// An action was written down.
    pub(super) fn accepted(&mut self, id: ActionId, tenant: &str) {
        self.owners.actions.lock().insert(id.0, tenant.into());
    }

    /// An action is finished.
    pub(super) fn finished(&mut self, id: ActionId) {
        self.owners.actions.lock().remove(&id.0);
    }

    /// An instance is this tenant's.
    pub(super) fn serves(&mut self, instance: InstanceId, tenant: &str) {
        self.owners.set_instance(instance, tenant);
    }

    /// An instance is gone.
    pub(super) fn forgot_instance(&mut self, instance: InstanceId) {
        self.owners.instances.lock().remove(&instance);
    }

    /// Whose an instance is.
    pub(super) fn tenant_of(&self, db: &Connection, instance: InstanceId) -> Sql<Option<Arc<str>>> {
        if let Some(tenant) = self.owners.tenant_of(instance) {
            return Ok(Some(tenant));
        }
        let of = "SELECT tenant FROM instances WHERE instance = $1";
        let tenant: Option<Arc<str>> = Plain(db).first(of, values![instance], |row| row.get(0))?;
        if let Some(tenant) = &tenant {
            self.owners.set_instance(instance, tenant);
        }
        Ok(tenant)
    }

    /// So many bytes more.
    pub(super) fn add(&mut self, tenant: &str, bytes: u64) {
        match self.tenants.get_mut(tenant) {
            Some(stored) => *stored += bytes,
            None if bytes > 0 => drop(self.tenants.insert(tenant.into(), bytes)),
            None => {}
        }
    }

    /// So many bytes less.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_tenant_waits_in_its_line() {
        let (acme, globex): (Arc<str>, Arc<str>) = ("acme".into(), "globex".into());
        let owners = Arc::<Owners>::default();
        let mut stored = TenantBytes { owners: owners.clone(), ..TenantBytes::default() };
        for (id, tenant) in [(1, &acme), (2, &acme), (3, &globex)] {
            stored.accepted(ActionId(id), tenant);
            stored.add(tenant, 10);
        }
        owners.set_instance(InstanceId(7), &globex);
        let tenant = |name: &Arc<str>| Owner::Tenant(name.clone());
        assert_eq!(owners.of_actions(&[ActionId(3)]), tenant(&globex));
        assert_eq!(owners.of_actions(&[1, 2].map(ActionId)), tenant(&acme));
        assert_eq!(owners.of_actions(&[1, 3].map(ActionId)), Owner::Server, "nobody's in particular");
        assert_eq!(owners.of_actions(&[]), Owner::Server);
        assert_eq!(owners.of_instance(InstanceId(7)), tenant(&globex));
        assert_eq!(owners.of_instance(InstanceId(8)), Owner::Instance(InstanceId(8)));
        stored.finished(ActionId(3));
        stored.subtract(&globex, 5);
        stored.forgot_instance(InstanceId(7));
        assert_eq!(owners.of_actions(&[ActionId(3)]), Owner::Server);
        assert_eq!((stored.of(&acme), stored.of(&globex)), (20, 5));
        assert_eq!(owners.of_instance(InstanceId(7)), Owner::Instance(InstanceId(7)));
    }
}
