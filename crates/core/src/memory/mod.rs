//! Budgets in bytes that follow ownership.
//!
//! Whoever holds memory for somebody holds a [`HeldBytes`] with it: taken from
//! the owner's budget before the memory is used, given back when it is dropped,
//! however that comes about. A budget is a part of a larger one, so what a
//! socket holds counts for its instance, its tenant and all gateways together,
//! and nobody's share is used up by somebody else.

mod limits;
mod rate;
#[cfg(test)]
mod tests;

pub use limits::{LIMITS, MemoryLimits};
pub use rate::ByteRate;

use crate::clock::Mono;
use crate::inbox::InstanceId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// So many bytes, shared by everything that is held under it.
#[derive(Debug)]
pub struct ByteBudget {
    limit: usize,
    held: AtomicUsize,
    whole: Option<Arc<ByteBudget>>,
}

impl ByteBudget {
    /// A budget of its own.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, held: AtomicUsize::new(0), whole: None })
    }

    /// A part of this budget: what is held there counts here too.
    pub fn part(self: &Arc<Self>, limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, held: AtomicUsize::new(0), whole: Some(self.clone()) })
    }

    /// Bytes held now.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    /// The most that may be held.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Holds so many bytes, if there is room for them here and in the whole.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> Option<HeldBytes> {
        self.take(bytes).then(|| HeldBytes { of: self.clone(), bytes })
    }

    /// Holds nothing yet; to be resized.
    pub fn nothing(self: &Arc<Self>) -> HeldBytes {
        HeldBytes { of: self.clone(), bytes: 0 }
    }

    fn take(&self, bytes: usize) -> bool {
        let add = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= self.limit);
        if self.held.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_err() {
            return false;
        }
        let fits = self.whole.as_ref().is_none_or(|whole| whole.take(bytes));
        if !fits {
            self.held.fetch_sub(bytes, Ordering::AcqRel);
        }
        fits
    }

    fn give_back(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::AcqRel);
        if let Some(whole) = &self.whole {
            whole.give_back(bytes);
        }
    }
}

/// Bytes that are held; given back when this is dropped.
#[derive(Debug)]
pub struct HeldBytes {
    of: Arc<ByteBudget>,
    bytes: usize,
}

impl HeldBytes {
    /// How many.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Holds another number of bytes instead. `false`, and nothing changes, if
    /// there is no room for so many; fewer always fit.
    pub fn resize(&mut self, bytes: usize) -> bool {
        if bytes <= self.bytes {
            self.of.give_back(self.bytes - bytes);
        } else if !self.of.take(bytes - self.bytes) {
            return false;
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.of.give_back(self.bytes);
    }
}

/// The memory of the server: who may hold how much of it.
#[derive(Debug)]
pub struct Memory {
    limits: MemoryLimits,
    operators: Arc<ByteBudget>,
    gateways: Arc<ByteBudget>,
    tenants: Parts<String, ByteBudget>,
    instances: Parts<InstanceId, ByteBudget>,
    tenant_rates: Rates<String>,
    instance_rates: Rates<InstanceId>,
}

impl Memory {
    /// Memory within these limits.
    pub fn new(limits: MemoryLimits) -> Self {
        let all = ByteBudget::new(limits.all);
        Self {
            operators: all.part(limits.all),
            gateways: all.part(limits.all.saturating_sub(limits.reserve)),
            tenants: Parts::default(),
            instances: Parts::default(),
            tenant_rates: Rates::default(),
            instance_rates: Rates::default(),
            limits,
        }
    }

    /// What operators may use: also what is kept in reserve for them.
    pub fn operators(&self) -> &Arc<ByteBudget> {
        &self.operators
    }

    /// What all gateways hold together.
    pub fn gateways(&self) -> &Arc<ByteBudget> {
        &self.gateways
    }

    /// The share of an instance, which is a part of its tenant's.
    pub fn instance(&self, tenant: &str, instance: InstanceId) -> Arc<ByteBudget> {
        let of_tenant = || self.tenants.find(&tenant.to_owned(), || self.gateways.part(self.limits.tenant));
        self.instances.find(&instance, || of_tenant().part(self.limits.instance))
    }

    /// The share of one socket of an instance.
    pub fn socket(&self, tenant: &str, instance: InstanceId) -> Arc<ByteBudget> {
        self.instance(tenant, instance).part(self.limits.socket)
    }

    /// How fast the sockets of an instance may send; a part of its tenant's rate.
    /// It outlives them: whoever dials again has no new burst.
    pub fn rate(&self, tenant: &str, instance: InstanceId, now: Mono) -> Arc<ByteRate> {
        let of_tenant = || {
            let make = || ByteRate::new(limits::TENANT_RATE, limits::TENANT_RATE);
            self.tenant_rates.find(&tenant.to_owned(), now, make)
        };
        let make = || of_tenant().part(limits::INSTANCE_RATE, 2 * limits::INSTANCE_RATE);
        self.instance_rates.find(&instance, now, make)
    }

    /// Tenants that hold much of what they may, the largest first: whoever looks
    /// for a culprit begins there.
    pub fn heavy(&self) -> Vec<(String, usize)> {
        let parts = self.tenants.0.lock();
        let held = parts.iter().filter_map(|(tenant, part)| Some((tenant, part.upgrade()?.held())));
        let heavy = held.filter(|(_, held)| *held >= self.limits.tenant / 2);
        let mut heavy: Vec<_> = heavy.map(|(tenant, held)| (tenant.clone(), held)).collect();
        heavy.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        heavy
    }

    /// What a tenant may hold.
    pub fn of_tenant(&self) -> usize {
        self.limits.tenant
    }

    /// What a tenant holds now.
    pub fn held_by(&self, tenant: &str) -> usize {
        self.tenants.known(&tenant.to_owned()).map_or(0, |budget| budget.held())
    }
}

/// Shares by owner, each for as long as somebody uses it.
#[derive(Debug)]
struct Parts<K, T>(Mutex<HashMap<K, Weak<T>>>);

impl<K, T> Default for Parts<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash, T> Parts<K, T> {
    fn find(&self, owner: &K, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        let mut parts = self.0.lock();
        if let Some(known) = parts.get(owner).and_then(Weak::upgrade) {
            return known;
        }
        // Owners that hold nothing any more are forgotten before the map would grow.
        if parts.len() == parts.capacity() {
            parts.retain(|_, part| part.strong_count() > 0);
        }
        let made = make();
        parts.insert(owner.clone(), Arc::downgrade(&made));
        made
    }

    fn known(&self, owner: &K) -> Option<Arc<T>> {
        self.0.lock().get(owner)?.upgrade()
    }
}

/// Rates by owner, each for as long as it matters that it was used.
#[derive(Debug)]
struct Rates<K>(Mutex<HashMap<K, Arc<ByteRate>>>);

impl<K> Default for Rates<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> Rates<K> {
    fn find(&self, owner: &K, now: Mono, make: impl FnOnce() -> Arc<ByteRate>) -> Arc<ByteRate> {
        let mut rates = self.0.lock();
        if let Some(known) = rates.get(owner) {
            return known.clone();
        }
        // Nobody uses these, and a new one would be the same.
        if rates.len() == rates.capacity() {
            rates.retain(|_, rate| Arc::strong_count(rate) > 1 || !rate.is_rested(now));
        }
        rates.entry(owner.clone()).or_insert_with(make).clone()
    }
}
