//! Gateways, routes and what else is known of tenants, at one moment.

use super::manifests::{Commands, Manifests};
use angelia_contract::platform::canonical;
use angelia_core::admission::{
    Admitted, Audience, DropReason, Known, Observed, Policy, Route, Routes, admit, fronts,
};
use angelia_core::commands::Command;
use angelia_core::error::Result;
use angelia_core::identity::feed::{Fact, Front, KnownInstance};
use angelia_core::identity::instances::WAITS_FOR_FIRST;
use angelia_core::identity::{GatewayRecord, GatewaySecret};
use angelia_core::inbox::InstanceId;
use angelia_core::seal::{self, Keys};
use angelia_core::store::StoredGateway;
use rpds::{HashTrieMapSync, RedBlackTreeMapSync, RedBlackTreeSetSync};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::sync::Arc;

/// Who is known at one moment. A copy shares everything with the one it was made from.
#[derive(Clone, Default)]
pub(crate) struct Snapshot {
    gateways: Several<String, GatewayRecord>,
    by_instance: Several<InstanceId, GatewayRecord>,
    instances: HashTrieMapSync<InstanceId, KnownInstance>,
    /// The instances of each tenant: every message asks for them.
    by_tenant: HashTrieMapSync<String, RedBlackTreeSetSync<InstanceId>>,
    routes: Routes,
    defaults: HashTrieMapSync<String, InstanceId>,
    policies: HashTrieMapSync<InstanceId, BTreeMap<String, Policy>>,
    fronts: HashTrieMapSync<InstanceId, BTreeSet<Front>>,
    manifests: Manifests,
    /// Gateways with a secret that does not open, and why not.
    damaged: RedBlackTreeMapSync<(String, String), String>,
}

/// A few of a kind under each key.
type Several<K, V> = HashTrieMapSync<K, Vec<Arc<V>>>;

/// What is known, for whoever asks.
impl Snapshot {
    /// Every record that carries this gateway id.
    pub(crate) fn gateways(&self, gateway_id: &str) -> Vec<Arc<GatewayRecord>> {
        self.gateways.get(gateway_id).cloned().unwrap_or_default()
    }

    /// The gateway with this id of one tenant.
    pub(crate) fn find(&self, tenant: &str, gateway_id: &str) -> Option<Arc<GatewayRecord>> {
        self.gateways.get(gateway_id)?.iter().find(|record| record.tenant == tenant).cloned()
    }

    /// All records.
    pub(crate) fn all(&self) -> Vec<Arc<GatewayRecord>> {
        let mut all: Vec<_> = self.gateways.values().flatten().cloned().collect();
        all.sort_by(|a, b| (&a.tenant, &a.gateway_id).cmp(&(&b.tenant, &b.gateway_id)));
        all
    }

    /// The records of one tenant.
    pub(crate) fn of_tenant(&self, tenant: &str) -> Vec<Arc<GatewayRecord>> {
        self.all().into_iter().filter(|record| record.tenant == tenant).collect()
    }

    /// Gateways that are known, with a secret that does not open: tenant, id, why.
    pub(crate) fn damaged(&self) -> Vec<(String, String, String)> {
        let all = self.damaged.iter();
        all.map(|((tenant, id), why)| (tenant.clone(), id.clone(), why.clone())).collect()
    }

    /// Whether an instance waits for the first gateway of its tenant.
    pub(crate) fn awaits_first(&self, instance: InstanceId) -> bool {
        self.instances.get(&instance).is_some_and(|known| known.waits_for_first)
    }

    /// What is shown of an instance that is called `name`: that it has none yet, in words.
    pub(crate) fn shown(&self, instance: InstanceId, name: String) -> String {
        if self.awaits_first(instance) { WAITS_FOR_FIRST.to_owned() } else { name }
    }

    /// The tenant of an instance that has a gateway, be it a revoked one, or waits for its first.
    pub(crate) fn tenant_of(&self, instance: InstanceId) -> Option<String> {
        let known = self.instances.get(&instance)?;
        let is_somebodys = known.waits_for_first || self.serving(instance).is_some();
        is_somebodys.then(|| known.tenant.clone())
    }

    /// Whether an instance has gateways and all of them were revoked.
    pub(crate) fn is_revoked(&self, instance: InstanceId) -> bool {
        self.serving(instance).is_some_and(|record| record.revoked_at.is_some())
    }

    /// What people know the agent behind an instance by.
    pub(crate) fn display_name(&self, instance: InstanceId) -> Option<String> {
        let serving = self.by_instance.get(&instance)?.iter().filter(|record| record.revoked_at.is_none());
        let mut names = serving.filter_map(|record| record.display_name.clone());
        names.find(|name| !name.trim().is_empty())
    }

    /// What an instance declared for a platform.
    pub(crate) fn policy(&self, instance: InstanceId, platform: &str) -> Option<&Policy> {
        self.policies.get(&instance)?.get(platform)
    }

    /// For how many platforms an instance declared something.
    pub(crate) fn policies(&self, instance: InstanceId) -> usize {
        self.policies.get(&instance).map_or(0, BTreeMap::len)
    }

    /// The bots an instance answers for.
    pub(crate) fn fronts(&self, instance: InstanceId) -> BTreeSet<Front> {
        self.fronts.get(&instance).cloned().unwrap_or_default()
    }

    /// The commands that an instance declared.
    pub(crate) fn commands(&self, instance: InstanceId) -> Commands {
        self.manifests.of(instance)
    }

    /// Whether the tenant of an instance has room for what it declares.
    pub(crate) fn has_room_for(&self, instance: InstanceId, commands: &[Command]) -> bool {
        let Some(known) = self.instances.get(&instance) else { return true };
        let all = self.instances_of(&known.tenant);
        commands.is_empty()
            || self.manifests.has_room(all.iter().copied().filter(|other| *other != instance), commands)
    }

    /// The gateways that people reach by a bot, and the commands that they declared. A gateway
    /// says itself which bots it fronts, so that alone does not count: a route has to lead there.
    pub(crate) fn declaring(&self, platform: &str, bot: &str) -> Vec<(Arc<GatewayRecord>, Commands)> {
        if self.manifests.is_empty() {
            return Vec::new();
        }
        let is_here = |route: &&Route| {
            route.place.platform() == platform && route.bot.as_deref().is_none_or(|of| of == bot)
        };
        let led_to: BTreeSet<(&str, Option<InstanceId>)> =
            self.routes.iter().filter(is_here).map(|route| (route.tenant.as_str(), route.instance)).collect();
        let is_led_to = |record: &GatewayRecord| {
            let (tenant, instance) = (record.tenant.as_str(), record.instance);
            let covers = |front: &Front| fronts((&front.0, &front.1), platform, bot);
            let is_fronting = || self.fronts.get(&instance).is_some_and(|all| all.iter().any(covers));
            let is_next = || self.is_default(tenant, instance) || is_fronting();
            led_to.contains(&(tenant, Some(instance))) || (led_to.contains(&(tenant, None)) && is_next())
        };
        let all = self.manifests.iter().filter_map(|(instance, commands)| {
            let record = self.serving(instance).filter(|record| record.revoked_at.is_none())?;
            is_led_to(record).then(|| (record.clone(), commands))
        });
        all.collect()
    }

    /// Whether an instance gets what no route assigns.
    pub(crate) fn is_default(&self, tenant: &str, instance: InstanceId) -> bool {
        self.defaults.get(tenant) == Some(&instance)
    }

    /// The routes.
    pub(crate) fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Whose message it is.
    pub(crate) fn admit(&self, observed: Observed<'_>) -> Result<Admitted, DropReason> {
        admit(&self.routes, self, observed)
    }

    /// Who listens where something was observed, and to whom.
    pub(crate) fn audience(&self, observed: Observed<'_>) -> Option<Audience<'_>> {
        Audience::of(&self.routes, self, observed)
    }

    /// A gateway that serves an instance; a revoked one only if there is no other.
    pub(crate) fn serving(&self, instance: InstanceId) -> Option<&Arc<GatewayRecord>> {
        let serving = self.by_instance.get(&instance)?;
        let welcome = serving.iter().find(|record| record.revoked_at.is_none());
        welcome.or_else(|| serving.first())
    }
}

impl Known for Snapshot {
    fn fronting(&self, tenant: &str, platform: &str, bot: &str) -> Vec<InstanceId> {
        let Some(instances) = self.by_tenant.get(tenant) else { return Vec::new() };
        let covers = |front: &Front| fronts((&front.0, &front.1), platform, bot);
        let fronting = instances.iter().filter(|instance| {
            self.fronts.get(*instance).is_some_and(|of_instance| of_instance.iter().any(covers))
        });
        fronting.copied().collect()
    }

    fn default_instance(&self, tenant: &str) -> Option<InstanceId> {
        self.defaults.get(tenant).copied()
    }

    fn takes_messages(&self, instance: InstanceId) -> bool {
        self.awaits_first(instance)
            || self.serving(instance).is_some_and(|record| record.revoked_at.is_none())
    }

    fn policy(&self, instance: InstanceId, platform: &str) -> Policy {
        // A platform that gateways have no name for is `relay` to them.
        let declared = |name: &str| Snapshot::policy(self, instance, name);
        declared(platform).or_else(|| declared(canonical(platform))).cloned().unwrap_or_default()
    }
}

/// How it comes to be known.
impl Snapshot {
    /// Takes a fact in. What is sealed is opened with `keys`.
    pub(super) fn learn(&mut self, fact: Fact, keys: &Keys) {
        match fact {
            // Nobody remembers who has keys of rooms: the store is asked.
            Fact::Uninvited(..) => {}
            Fact::Default(tenant, now) => set(&mut self.defaults, tenant, now),
            Fact::Instance(instance, now) => self.learn_instance(instance, now),
            Fact::Gateway(tenant, id, now) => {
                let record = now.map(|stored| self.open(stored, keys));
                self.learn_gateway(&tenant, &id, record);
            }
            Fact::Route(_, _, Some(route)) => self.routes.put(route),
            Fact::Route(place, bot, None) => self.routes.remove(&place, bot.as_deref()),
            Fact::Fronts(instance, now) => {
                set(&mut self.fronts, instance, Some(now).filter(|now| !now.is_empty()));
            }
            Fact::Manifest(instance, now) => self.manifests.set(instance, now),
            Fact::Policy(instance, platform, now) => {
                let mut declared = self.policies.get(&instance).cloned().unwrap_or_default();
                match now {
                    Some(policy) => drop(declared.insert(platform, policy)),
                    None => drop(declared.remove(&platform)),
                }
                set(&mut self.policies, instance, Some(declared).filter(|now| !now.is_empty()));
            }
        }
    }

    fn learn_instance(&mut self, instance: InstanceId, now: Option<KnownInstance>) {
        if let Some(before) = self.instances.get(&instance).cloned() {
            let mut others = self.instances_of(&before.tenant);
            others.remove_mut(&instance);
            set(&mut self.by_tenant, before.tenant, Some(others).filter(|others| !others.is_empty()));
        }
        if let Some(known) = &now {
            let mut all = self.instances_of(&known.tenant);
            all.insert_mut(instance);
            self.by_tenant.insert_mut(known.tenant.clone(), all);
        } else {
            // What it declared goes with it.
            self.policies.remove_mut(&instance);
            self.fronts.remove_mut(&instance);
            self.manifests.set(instance, Vec::new());
        }
        set(&mut self.instances, instance, now);
    }

    fn instances_of(&self, tenant: &str) -> RedBlackTreeSetSync<InstanceId> {
        self.by_tenant.get(tenant).cloned().unwrap_or_default()
    }

    fn learn_gateway(&mut self, tenant: &str, gateway_id: &str, now: Option<Arc<GatewayRecord>>) {
        let same = |record: &GatewayRecord| record.tenant == tenant && record.gateway_id == gateway_id;
        let before = self.find(tenant, gateway_id).map(|record| record.instance);
        if let Some(left) = before.filter(|before| now.as_ref().is_none_or(|now| now.instance != *before)) {
            replace(&mut self.by_instance, left, same, None);
        }
        if let Some(record) = &now {
            replace(&mut self.by_instance, record.instance, same, now.clone());
        } else {
            self.damaged.remove_mut(&(tenant.to_owned(), gateway_id.to_owned()));
        }
        replace(&mut self.gateways, gateway_id.to_owned(), same, now);
    }

    /// A gateway's record with those of its secrets that open. One that has none left cannot
    /// dial in, but what is for it waits, and it can be given a new one.
    fn open(&mut self, stored: StoredGateway, keys: &Keys) -> Arc<GatewayRecord> {
        let secrets = self.open_secrets(&stored, keys);
        Arc::new(GatewayRecord {
            tenant: stored.tenant,
            gateway_id: stored.gateway_id,
            instance: stored.instance,
            instance_name: stored.instance_name,
            secrets,
            revoked_at: stored.revoked_at,
            wake_url: stored.wake_url,
            display_name: stored.display_name,
            while_busy: stored.while_busy,
            shared_groups: stored.shared_groups,
            subject: stored.subject,
        })
    }

    fn open_secrets(&mut self, stored: &StoredGateway, keys: &Keys) -> Vec<GatewaySecret> {
        let (tenant, gateway_id) = (&stored.tenant, &stored.gateway_id);
        let bound_to = seal::gateway_secret(tenant, gateway_id);
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
        let name = (tenant.clone(), gateway_id.clone());
        match damage {
            Some(why) => self.damaged.insert_mut(name, why),
            None => drop(self.damaged.remove_mut(&name)),
        }
        secrets
    }
}

/// Sets what a key leads to; `None` takes it away.
fn set<K: Eq + Hash, V>(map: &mut HashTrieMapSync<K, V>, key: K, now: Option<V>) {
    match now {
        Some(now) => map.insert_mut(key, now),
        None => drop(map.remove_mut(&key)),
    }
}

/// Puts one in the place of the same before, or behind the others; `None` takes it away.
fn replace<K: Eq + Hash, V>(map: &mut Several<K, V>, key: K, same: impl Fn(&V) -> bool, now: Option<Arc<V>>) {
    let mut there = map.get(&key).cloned().unwrap_or_default();
    match (there.iter().position(|known| same(known)), now) {
        (Some(position), Some(now)) => there[position] = now,
        (Some(position), None) => drop(there.remove(position)),
        (None, Some(now)) => there.push(now),
        (None, None) => {}
    }
    set(map, key, Some(there).filter(|there| !there.is_empty()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::admission::{Allow, RouteOptions};
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
            while_busy: None,
            shared_groups: false,
            subject: None,
        }
    }

    fn known(facts: impl IntoIterator<Item = Fact>) -> Snapshot {
        let (mut snapshot, keys) = (Snapshot::default(), Keys::new(MasterKey::mint()));
        facts.into_iter().for_each(|fact| snapshot.learn(fact, &keys));
        snapshot
    }

    fn gateway(now: Option<StoredGateway>) -> Fact {
        Fact::Gateway("acme".into(), "gw".into(), now)
    }

    fn instance(number: i64, tenant: &str, waits_for_first: bool) -> Fact {
        Fact::Instance(InstanceId(number), Some(KnownInstance { tenant: tenant.into(), waits_for_first }))
    }

    #[test]
    fn a_gateway_made_again_outlives_its_tombstone() {
        let gone = known([gateway(Some(stored(true))), gateway(None)]);
        assert!(gone.find("acme", "gw").is_none() && gone.serving(InstanceId(1)).is_none());
        // The feed told of the tombstone and of the new one; both are read as it is now.
        let again = known([gateway(Some(stored(true))), gateway(None), gateway(Some(stored(false)))]);
        assert!(again.find("acme", "gw").is_some() && again.takes_messages(InstanceId(1)));
    }

    #[test]
    fn what_waits_for_the_first_gateway_is_refused_once_that_one_was_revoked() {
        let first = InstanceId(1);
        assert!(!Snapshot::default().takes_messages(first), "nobody knows it");
        let waits = [instance(1, "acme", true), Fact::Default("acme".into(), Some(first))];
        let snapshot = known(waits.clone());
        assert!(snapshot.takes_messages(first) && snapshot.awaits_first(first));
        assert_eq!(snapshot.default_instance("acme"), Some(first));
        let came = [instance(1, "acme", false), gateway(Some(stored(false)))];
        let snapshot = known(waits.clone().into_iter().chain(came.clone()));
        assert!(snapshot.takes_messages(first) && !snapshot.awaits_first(first), "it came");
        let snapshot = known(waits.into_iter().chain(came).chain([gateway(Some(stored(true)))]));
        assert!(!snapshot.takes_messages(first), "and was taken away");
    }

    #[test]
    fn what_a_removed_instance_was_and_declared_is_forgotten() {
        let (second, front) = (InstanceId(2), ("webchat".to_owned(), String::new()));
        let declared = [
            instance(2, "globex", true),
            Fact::Fronts(second, [front].into()),
            Fact::Policy(second, "webchat".into(), Some(Policy::default())),
        ];
        let snapshot = known(declared.clone());
        assert_eq!(snapshot.tenant_of(second).as_deref(), Some("globex"));
        assert_eq!(snapshot.fronting("globex", "webchat", "b"), [second]);
        let gone = known(declared.into_iter().chain([Fact::Instance(second, None)]));
        assert!(!gone.takes_messages(second) && gone.tenant_of(second).is_none());
        assert!(gone.fronting("globex", "webchat", "b").is_empty() && gone.policies(second) == 0);
    }

    #[test]
    fn commands_count_for_the_bots_by_which_a_route_leads_to_their_gateway() {
        let named = |name: &str| vec![Command { name: name.into(), ..Command::default() }];
        let route = |place: &str, bot: Option<&str>, named: Option<i64>| {
            let route = Route {
                place: place.parse().unwrap(),
                bot: bot.map(str::to_owned),
                tenant: "acme".into(),
                instance: named.map(InstanceId),
                allow: Allow::Any,
                free: false,
                while_busy: None,
                options: RouteOptions::default(),
            };
            Fact::Route(route.place.to_string(), route.bot.clone(), Some(route))
        };
        let known_with = |more: &[Fact]| {
            let front = ("discord".to_owned(), String::new());
            let base = [
                instance(1, "acme", false),
                gateway(Some(stored(false))),
                Fact::Manifest(InstanceId(1), named("new")),
                Fact::Fronts(InstanceId(1), [front].into()),
            ];
            known(base.into_iter().chain(more.iter().cloned()))
        };
        let is_heard = |more: &[Fact], bot: &str| !known_with(more).declaring("discord", bot).is_empty();
        assert!(!is_heard(&[], "7"), "that it fronts the bot is its own word");
        assert!(is_heard(&[route("discord:1", None, None)], "7"));
        assert!(is_heard(&[route("discord:1", Some("7"), Some(1))], "7"));
        assert!(!is_heard(&[route("discord:1", Some("8"), Some(1))], "7"), "by another bot");
        assert!(!is_heard(&[route("discord:1", None, Some(2))], "7"), "to another instance");
        assert!(!is_heard(&[route("telegram:1", None, None)], "7"), "on another platform");
        let routed = route("discord:1", None, None);
        assert!(!is_heard(&[routed.clone(), gateway(Some(stored(true)))], "7"), "it was revoked");
        let away = [routed.clone(), Fact::Fronts(InstanceId(1), BTreeSet::new())];
        assert!(!is_heard(&away, "7"), "another of the tenant's is meant");
        let default = Fact::Default("acme".into(), Some(InstanceId(1)));
        assert!(is_heard(&[away.to_vec(), vec![default]].concat(), "7"));
        let gone = known_with(&[routed, Fact::Instance(InstanceId(1), None)]);
        assert!(gone.commands(InstanceId(1)).is_empty());
    }

    #[test]
    fn a_gateway_that_moved_serves_its_new_instance_only() {
        let moved = StoredGateway { instance: InstanceId(3), ..stored(false) };
        let snapshot = known([gateway(Some(stored(false))), gateway(Some(moved))]);
        assert!(snapshot.serving(InstanceId(1)).is_none());
        assert!(snapshot.serving(InstanceId(3)).is_some_and(|record| record.gateway_id == "gw"));
        assert_eq!(snapshot.gateways("gw").len(), 1);
    }
}
