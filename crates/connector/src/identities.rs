//! Gateways and routes in memory: ten thousand reconnects ask no disk.

use angelia_contract::platform::canonical;
use angelia_core::admission::{Admitted, DropReason, Known, Observed, Policy, Route, Routes, admit, fronts};
use angelia_core::error::Result;
use angelia_core::identity::instances::WAITS_FOR_FIRST;
use angelia_core::identity::{GatewayRecord, GatewaySecret};
use angelia_core::inbox::InstanceId;
use angelia_core::seal::Keys;
use angelia_core::store::StoredGateway;
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Who is known, ready to be asked.
#[derive(Default)]
pub(crate) struct Identities {
    gateways: RwLock<HashMap<String, Vec<Arc<GatewayRecord>>>>,
    by_instance: RwLock<HashMap<InstanceId, Vec<Arc<GatewayRecord>>>>,
    /// The instances of each tenant: every message asks for them.
    by_tenant: RwLock<HashMap<String, BTreeSet<InstanceId>>>,
    routes: RwLock<Arc<Routes>>,
    defaults: RwLock<HashMap<String, InstanceId>>,
    /// Instances that wait for the first gateway of their tenant, and the tenant.
    awaiting_first: RwLock<HashMap<InstanceId, String>>,
    policies: RwLock<HashMap<InstanceId, HashMap<String, Policy>>>,
    fronts: RwLock<HashMap<InstanceId, BTreeSet<Front>>>,
    /// Gateways with a secret that does not open, and why not.
    damaged: RwLock<BTreeMap<(String, String), String>>,
}

/// A bot that a gateway answers for: platform and bot id, which may be empty for any.
pub(crate) type Front = (String, String);

impl Identities {
    /// Every record that carries this gateway id.
    pub(crate) fn gateways(&self, gateway_id: &str) -> Vec<Arc<GatewayRecord>> {
        let gateways = self.gateways.read();
        gateways.get(gateway_id).cloned().unwrap_or_default()
    }

    /// The gateway with this id of one tenant.
    pub(crate) fn find(&self, tenant: &str, gateway_id: &str) -> Option<Arc<GatewayRecord>> {
        self.gateways(gateway_id).into_iter().find(|record| record.tenant == tenant)
    }

    /// All records.
    pub(crate) fn all(&self) -> Vec<Arc<GatewayRecord>> {
        let gateways = self.gateways.read();
        let mut all: Vec<_> = gateways.values().flatten().cloned().collect();
        all.sort_by(|a, b| (&a.tenant, &a.gateway_id).cmp(&(&b.tenant, &b.gateway_id)));
        all
    }

    /// Takes a gateway in, or its record as it is now, with those of its secrets
    /// that open. One that has none left cannot dial in, but what is for it waits,
    /// and it can be given a new one.
    pub(crate) fn put(&self, stored: StoredGateway, keys: &Keys) -> Arc<GatewayRecord> {
        let secrets = self.open_secrets(&stored, keys);
        let record = Arc::new(GatewayRecord {
            tenant: stored.tenant,
            gateway_id: stored.gateway_id,
            instance: stored.instance,
            instance_name: stored.instance_name,
            secrets,
            revoked_at: stored.revoked_at,
            wake_url: stored.wake_url,
            display_name: stored.display_name,
            subject: stored.subject,
        });
        let before = self.find(&record.tenant, &record.gateway_id);
        let mut by_tenant = self.by_tenant.write();
        by_tenant.entry(record.tenant.clone()).or_default().insert(record.instance);
        drop(by_tenant);
        let mut by_instance = self.by_instance.write();
        if let Some(before) = before
            && let Some(serving) = by_instance.get_mut(&before.instance)
        {
            serving.retain(|known| !known.is_same_gateway(&before));
        }
        by_instance.entry(record.instance).or_default().push(record.clone());
        drop(by_instance);
        // Only now: nobody may find that the instance neither waits nor is served.
        self.awaiting_first.write().remove(&record.instance);
        let mut gateways = self.gateways.write();
        let same_id = gateways.entry(record.gateway_id.clone()).or_default();
        same_id.retain(|known| known.tenant != record.tenant);
        same_id.push(record.clone());
        record
    }

    fn open_secrets(&self, stored: &StoredGateway, keys: &Keys) -> Vec<GatewaySecret> {
        let (tenant, gateway_id) = (&stored.tenant, &stored.gateway_id);
        let bound_to = bound_to(tenant, gateway_id);
        let mut secrets = Vec::new();
        let mut damage = None;
        for s in &stored.secrets {
            match keys.open(&s.sealed, &bound_to) {
                Ok(secret) => {
                    let (valid_until, created_at) = (s.valid_until, s.created_at);
                    secrets.push(GatewaySecret { secret, valid_until, created_at });
                }
                Err(error) => {
                    tracing::error!(%tenant, gateway = %gateway_id, %error, "the secret of a gateway does not open");
                    damage = Some(error.to_string());
                }
            }
        }
        let mut damaged = self.damaged.write();
        let name = (tenant.clone(), gateway_id.clone());
        match damage {
            Some(why) => drop(damaged.insert(name, why)),
            None => drop(damaged.remove(&name)),
        }
        secrets
    }

    /// Gateways that are known, with a secret that does not open: tenant, id, why.
    pub(crate) fn damaged(&self) -> Vec<(String, String, String)> {
        let damaged = self.damaged.read();
        let known = damaged.iter().filter(|((tenant, id), _)| self.find(tenant, id).is_some());
        known.map(|((tenant, id), why)| (tenant.clone(), id.clone(), why.clone())).collect()
    }

    /// A tenant has an instance that waits for its first gateway, and is its default.
    pub(crate) fn await_first(&self, tenant: &str, instance: InstanceId) {
        let mut awaiting_first = self.awaiting_first.write();
        awaiting_first.insert(instance, tenant.to_owned());
        drop(awaiting_first);
        self.set_default(tenant, Some(instance));
    }

    /// Whether an instance waits for the first gateway of its tenant.
    pub(crate) fn awaits_first(&self, instance: InstanceId) -> bool {
        self.awaiting_first.read().contains_key(&instance)
    }

    /// What is shown of an instance that is called `name`: that it has none yet, in words.
    pub(crate) fn shown(&self, instance: InstanceId, name: String) -> String {
        if self.awaits_first(instance) { WAITS_FOR_FIRST.to_owned() } else { name }
    }

    /// The tenant of an instance that has a gateway, be it a revoked one, or waits for its first.
    pub(crate) fn tenant_of(&self, instance: InstanceId) -> Option<String> {
        let awaiting_first = self.awaiting_first.read();
        let tenant = awaiting_first.get(&instance).cloned();
        drop(awaiting_first);
        tenant.or_else(|| self.serving(instance).map(|record| record.tenant.clone()))
    }

    /// Sets which instance gets what no route assigns.
    pub(crate) fn set_default(&self, tenant: &str, instance: Option<InstanceId>) {
        let mut defaults = self.defaults.write();
        match instance {
            Some(instance) => drop(defaults.insert(tenant.to_owned(), instance)),
            None => drop(defaults.remove(tenant)),
        }
    }

    /// Forgets one gateway that was revoked. One that was made again meanwhile stays.
    pub(crate) fn forget(&self, tenant: &str, gateway_id: &str) {
        let mut gateways = self.gateways.write();
        let Some(same_id) = gateways.get_mut(gateway_id) else { return };
        same_id.retain(|record| record.tenant != tenant || record.revoked_at.is_none());
        if same_id.is_empty() {
            gateways.remove(gateway_id);
        }
        drop(gateways);
        for serving in self.by_instance.write().values_mut() {
            let gone = |record: &Arc<GatewayRecord>| {
                record.tenant == tenant && record.gateway_id == gateway_id && record.revoked_at.is_some()
            };
            serving.retain(|record| !gone(record));
        }
    }

    /// Forgets a tenant and all its gateways; answers the gateways.
    pub(crate) fn forget_tenant(&self, tenant: &str) -> Vec<Arc<GatewayRecord>> {
        self.awaiting_first.write().retain(|_, of| of != tenant);
        let mut gone = Vec::new();
        let mut gateways = self.gateways.write();
        gateways.retain(|_, same_id| {
            gone.extend(same_id.extract_if(.., |record| record.tenant == tenant));
            !same_id.is_empty()
        });
        drop(gateways);
        self.defaults.write().remove(tenant);
        self.by_tenant.write().remove(tenant);
        for record in &gone {
            self.by_instance.write().remove(&record.instance);
            self.policies.write().remove(&record.instance);
            self.fronts.write().remove(&record.instance);
        }
        gone
    }

    /// Whether an instance has gateways and all of them were revoked.
    pub(crate) fn is_revoked(&self, instance: InstanceId) -> bool {
        self.serving(instance).is_some_and(|record| record.revoked_at.is_some())
    }

    /// What an instance declared for a platform.
    pub(crate) fn policy(&self, instance: InstanceId, platform: &str) -> Option<Policy> {
        let policies = self.policies.read();
        policies.get(&instance)?.get(platform).cloned()
    }

    /// For how many platforms an instance declared something.
    pub(crate) fn policies(&self, instance: InstanceId) -> usize {
        self.policies.read().get(&instance).map_or(0, HashMap::len)
    }

    /// Replaces what an instance declared for a platform.
    pub(crate) fn set_policy(&self, instance: InstanceId, platform: String, policy: Policy) {
        let mut policies = self.policies.write();
        policies.entry(instance).or_default().insert(platform, policy);
    }

    /// Lets an instance that declared nothing have what another one declared.
    pub(crate) fn inherit(&self, from: InstanceId, to: InstanceId) {
        let mut policies = self.policies.write();
        if !policies.contains_key(&to)
            && let Some(declared) = policies.get(&from).cloned()
        {
            policies.insert(to, declared);
        }
        drop(policies);
        let mut fronts = self.fronts.write();
        if !fronts.contains_key(&to)
            && let Some(declared) = fronts.get(&from).cloned()
        {
            fronts.insert(to, declared);
        }
    }

    /// The bots an instance answers for.
    pub(crate) fn fronts(&self, instance: InstanceId) -> BTreeSet<Front> {
        let fronts = self.fronts.read();
        fronts.get(&instance).cloned().unwrap_or_default()
    }

    /// Replaces the bots an instance answers for.
    pub(crate) fn set_fronts(&self, instance: InstanceId, now: BTreeSet<Front>) {
        self.fronts.write().insert(instance, now);
    }

    /// Whether an instance gets what no route assigns.
    pub(crate) fn is_default(&self, tenant: &str, instance: InstanceId) -> bool {
        self.defaults.read().get(tenant) == Some(&instance)
    }

    /// The routes as they stand now.
    pub(crate) fn routes(&self) -> Arc<Routes> {
        self.routes.read().clone()
    }

    /// Replaces the routes.
    pub(crate) fn set_routes(&self, routes: Vec<Route>) {
        *self.routes.write() = Arc::new(Routes::new(routes));
    }

    /// Whose message it is.
    pub(crate) fn admit(&self, observed: Observed<'_>) -> Result<Admitted, DropReason> {
        admit(&self.routes(), self, observed)
    }

    /// A gateway that serves an instance; a revoked one only if there is no other.
    pub(crate) fn serving(&self, instance: InstanceId) -> Option<Arc<GatewayRecord>> {
        let by_instance = self.by_instance.read();
        let serving = by_instance.get(&instance)?;
        let welcome = serving.iter().find(|record| record.revoked_at.is_none());
        welcome.or_else(|| serving.first()).cloned()
    }
}

impl Known for Identities {
    fn fronting(&self, tenant: &str, platform: &str, bot: &str) -> Vec<InstanceId> {
        let by_tenant = self.by_tenant.read();
        let Some(instances) = by_tenant.get(tenant) else { return Vec::new() };
        let declared = self.fronts.read();
        let covers = |front: &Front| fronts((&front.0, &front.1), platform, bot);
        let fronting = instances.iter().filter(|instance| {
            declared.get(instance).is_some_and(|of_instance| of_instance.iter().any(covers))
        });
        fronting.copied().collect()
    }

    fn default_instance(&self, tenant: &str) -> Option<InstanceId> {
        self.defaults.read().get(tenant).copied()
    }

    fn takes_messages(&self, instance: InstanceId) -> bool {
        let served = |record: Arc<GatewayRecord>| record.revoked_at.is_none();
        self.awaits_first(instance) || self.serving(instance).is_some_and(served)
    }

    fn policy(&self, instance: InstanceId, platform: &str) -> Policy {
        // A platform that gateways have no name for is `relay` to them.
        let declared = |name: &str| Identities::policy(self, instance, name);
        declared(platform).or_else(|| declared(canonical(platform))).unwrap_or_default()
    }
}

/// The row a gateway's secret is sealed for.
pub(crate) fn bound_to(tenant: &str, gateway_id: &str) -> String {
    angelia_core::seal::gateway_secret(tenant, gateway_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::clock::UnixMillis;
    use angelia_core::seal::MasterKey;

    fn stored(revoked: bool) -> StoredGateway {
        StoredGateway {
            tenant: "acme".into(),
            gateway_id: "gw".into(),
            instance: InstanceId(1),
            instance_name: "gw".into(),
            secrets: Vec::new(),
            created_at: UnixMillis(0),
            revoked_at: revoked.then_some(UnixMillis(1)),
            wake_url: None,
            display_name: None,
            subject: None,
        }
    }

    #[test]
    fn a_gateway_made_again_outlives_its_tombstone() {
        let (identities, keys) = (Identities::default(), Keys::new(MasterKey::mint()));
        identities.put(stored(true), &keys);
        identities.forget("acme", "gw");
        assert!(identities.find("acme", "gw").is_none() && identities.serving(InstanceId(1)).is_none());
        identities.put(stored(false), &keys);
        identities.forget("acme", "gw");
        assert!(identities.find("acme", "gw").is_some() && identities.takes_messages(InstanceId(1)));
    }

    #[test]
    fn what_waits_for_the_first_gateway_is_refused_once_that_one_was_revoked() {
        let (identities, keys) = (Identities::default(), Keys::new(MasterKey::mint()));
        let first = InstanceId(1);
        assert!(!identities.takes_messages(first), "nobody knows it");
        identities.await_first("acme", first);
        assert!(identities.takes_messages(first) && identities.awaits_first(first));
        assert_eq!(identities.default_instance("acme"), Some(first));
        identities.put(stored(false), &keys);
        assert!(identities.takes_messages(first) && !identities.awaits_first(first), "it came");
        identities.put(stored(true), &keys);
        assert!(!identities.takes_messages(first), "and was taken away");
        identities.await_first("globex", InstanceId(2));
        assert_eq!(identities.tenant_of(InstanceId(2)).as_deref(), Some("globex"));
        identities.forget_tenant("globex");
        assert!(!identities.takes_messages(InstanceId(2)) && identities.tenant_of(InstanceId(2)).is_none());
    }
}
