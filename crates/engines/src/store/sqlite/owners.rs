//! Whose an action and an instance are, for writes that name nothing else: so that
//! they wait in their tenant's line, and one tenant's acknowledgements are not behind
//! another's.

use super::queue::Owner;
use angelia_core::inbox::InstanceId;
use angelia_core::store::ActionId;
use parking_lot::{Mutex, MutexGuard};
use rusqlite::Connection;
use std::collections::HashMap;
use std::sync::Arc;

/// What is known. The writing thread keeps it; whoever asks does not wait for it.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Of actions that are not finished.
    actions: Mutex<HashMap<i64, Arc<str>>>,
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
        self.actions().get(&id.0).cloned().map_or(Owner::Server, Owner::Tenant)
    }

    /// The same for several actions: the line of their tenant, if they have one in common.
    pub(super) fn of_actions(&self, ids: impl IntoIterator<Item = ActionId>) -> Owner {
        let actions = self.actions();
        let mut tenants = ids.into_iter().map(|id| actions.get(&id.0));
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
        self.instances().get(&instance).cloned()
    }

    pub(super) fn set_actions(&self, actions: HashMap<i64, Arc<str>>) {
        *self.actions() = actions;
    }

    pub(super) fn set_action(&self, id: i64, tenant: &Arc<str>) {
        self.actions().insert(id, tenant.clone());
    }

    pub(super) fn forget_action(&self, id: i64) {
        self.actions().remove(&id);
    }

    pub(super) fn set_instance(&self, instance: InstanceId, tenant: &Arc<str>) {
        self.instances().entry(instance).or_insert_with(|| tenant.clone());
    }

    pub(super) fn forget_instance(&self, instance: InstanceId) {
        self.instances().remove(&instance);
    }

    fn actions(&self) -> MutexGuard<'_, HashMap<i64, Arc<str>>> {
        self.actions.lock()
    }

    fn instances(&self) -> MutexGuard<'_, HashMap<InstanceId, Arc<str>>> {
        self.instances.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_tenant_waits_in_its_line() {
        let (owners, acme, globex) = (Owners::default(), "acme".into(), "globex".into());
        owners.set_actions(HashMap::from([(1, Arc::clone(&acme)), (2, Arc::clone(&acme))]));
        owners.set_action(3, &globex);
        owners.set_instance(InstanceId(7), &globex);
        let tenant = |name: &Arc<str>| Owner::Tenant(name.clone());
        assert_eq!(owners.of_action(ActionId(3)), tenant(&globex));
        assert_eq!(owners.of_actions([1, 2].map(ActionId)), tenant(&acme));
        assert_eq!(owners.of_actions([1, 3].map(ActionId)), Owner::Server, "nobody's in particular");
        assert_eq!(owners.of_actions([]), Owner::Server);
        assert_eq!(owners.of_instance(InstanceId(7)), tenant(&globex));
        assert_eq!(owners.of_instance(InstanceId(8)), Owner::Instance(InstanceId(8)));
        owners.forget_action(3);
        owners.forget_instance(InstanceId(7));
        assert_eq!(owners.of_action(ActionId(3)), Owner::Server);
        assert_eq!(owners.of_instance(InstanceId(7)), Owner::Instance(InstanceId(7)));
    }
}
