//! Gateways and routes in memory: ten thousand reconnects ask no disk.

use angelia_core::admission::{Admitted, DropReason, Observed, Route, Routes, admit};
use angelia_core::error::Result;
use angelia_core::identity::{GatewayRecord, GatewaySecret};
use angelia_core::inbox::InstanceId;
use angelia_core::seal::MasterKey;
use angelia_core::store::StoredGateway;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Who is known, ready to be asked.
#[derive(Default)]
pub(crate) struct Roster {
    gateways: RwLock<HashMap<String, Vec<Arc<GatewayRecord>>>>,
    by_instance: RwLock<HashMap<InstanceId, Arc<GatewayRecord>>>,
    routes: RwLock<Arc<Routes>>,
    defaults: RwLock<HashMap<String, InstanceId>>,
}

impl Roster {
    /// Every record that carries this gateway id.
    pub(crate) fn gateways(&self, gateway_id: &str) -> Vec<Arc<GatewayRecord>> {
        let gateways = self.gateways.read().unwrap_or_else(PoisonError::into_inner);
        gateways.get(gateway_id).cloned().unwrap_or_default()
    }

    /// All records.
    pub(crate) fn all(&self) -> Vec<Arc<GatewayRecord>> {
        let gateways = self.gateways.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = gateways.values().flatten().cloned().collect();
        all.sort_by(|a, b| (&a.tenant, &a.gateway_id).cmp(&(&b.tenant, &b.gateway_id)));
        all
    }

    /// Takes a gateway in, or its record as it is now, opening its secrets.
    pub(crate) fn put(&self, stored: StoredGateway, key: &MasterKey) -> Result<Arc<GatewayRecord>> {
        let bound_to = bound_to(&stored.tenant, &stored.gateway_id);
        let secrets = stored
            .secrets
            .iter()
            .map(|s| {
                Ok(GatewaySecret { secret: key.open(&s.sealed, &bound_to)?, valid_until: s.valid_until })
            })
            .collect::<Result<_>>()?;
        let record = Arc::new(GatewayRecord {
            tenant: stored.tenant,
            gateway_id: stored.gateway_id,
            instance: stored.instance,
            instance_name: stored.instance_name,
            secrets,
            revoked_at: stored.revoked_at,
            wake_url: stored.wake_url,
        });
        let mut defaults = self.defaults.write().unwrap_or_else(PoisonError::into_inner);
        defaults.entry(record.tenant.clone()).or_insert(record.instance);
        drop(defaults);
        let mut by_instance = self.by_instance.write().unwrap_or_else(PoisonError::into_inner);
        by_instance.insert(record.instance, record.clone());
        drop(by_instance);
        let mut gateways = self.gateways.write().unwrap_or_else(PoisonError::into_inner);
        let same_id = gateways.entry(record.gateway_id.clone()).or_default();
        same_id.retain(|known| known.tenant != record.tenant);
        same_id.push(record.clone());
        Ok(record)
    }

    /// Sets which instance gets what no route assigns.
    pub(crate) fn set_default(&self, tenant: String, instance: InstanceId) {
        self.defaults.write().unwrap_or_else(PoisonError::into_inner).insert(tenant, instance);
    }

    /// Whether the gateway of an instance was revoked.
    pub(crate) fn is_revoked(&self, instance: InstanceId) -> bool {
        self.serving(instance).is_some_and(|record| record.revoked_at.is_some())
    }

    /// Whether an instance gets what no route assigns.
    pub(crate) fn is_default(&self, tenant: &str, instance: InstanceId) -> bool {
        self.defaults.read().unwrap_or_else(PoisonError::into_inner).get(tenant) == Some(&instance)
    }

    /// The routes as they stand now.
    pub(crate) fn routes(&self) -> Arc<Routes> {
        self.routes.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the routes.
    pub(crate) fn set_routes(&self, routes: Vec<Route>) {
        *self.routes.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Routes::new(routes));
    }

    /// Whose message it is.
    pub(crate) fn admit(&self, observed: Observed<'_>) -> Result<Admitted, DropReason> {
        let defaults = self.defaults.read().unwrap_or_else(PoisonError::into_inner);
        admit(&self.routes(), |tenant| defaults.get(tenant).copied(), observed)
    }

    /// A gateway that serves an instance.
    pub(crate) fn serving(&self, instance: InstanceId) -> Option<Arc<GatewayRecord>> {
        self.by_instance.read().unwrap_or_else(PoisonError::into_inner).get(&instance).cloned()
    }
}

/// The row a gateway's secret is sealed for.
pub(crate) fn bound_to(tenant: &str, gateway_id: &str) -> String {
    format!("gateway-secret/{tenant}/{gateway_id}")
}
