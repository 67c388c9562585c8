//! Who is known here, in memory: ten thousand reconnects ask no disk.
//!
//! Readers load one [`Snapshot`] and see one moment of it. It changes in one place, by facts
//! that the change feed tells of, whoever made the change; a new one shares everything with
//! the one before but what changed (docs/decisions/0038).

mod manifests;
mod snapshot;

pub(crate) use angelia_core::identity::feed::Front;
pub(crate) use manifests::{Commands, LIMITS as MANIFEST_LIMITS};
pub(crate) use snapshot::Snapshot;

use crate::keyring::Keyring;
use crate::relay::{Ending, Sessions};
use crate::supervise::Lifecycle;
use angelia_core::admission::Route;
use angelia_core::commands::Command;
use angelia_core::error::{Error, Result};
use angelia_core::identity::GatewayRecord;
use angelia_core::identity::feed::{self, Fact, News};
use angelia_core::inbox::InstanceId;
use angelia_core::ports::{Bus, Control, Hint};
use angelia_core::records::{Records, look};
use angelia_core::store::{AccessStore, StoredGateway};
use angelia_platforms::webchat::Hub;
use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{MutexGuard, Notify};

/// Lines of the feed that are read at once.
const PAGE: usize = 500;
/// Whoever is so many pages behind reads everything anew: it costs less, and further lines may
/// be gone from the feed before they are read ([`FEED_KEPT`](angelia_core::records::FEED_KEPT)).
const FAR_BEHIND: usize = 10;
/// How often the feed is looked at for what nobody here has done, or what could not be read
/// when it was.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Who is known, ready to be asked.
pub(crate) struct Identities {
    records: Arc<dyn Records>,
    keys: Arc<Keyring>,
    /// Where a gateway that is not welcome any more is connected.
    sessions: Arc<Sessions>,
    now: ArcSwap<Snapshot>,
    /// Held while a snapshot is made out of the one before.
    making: Mutex<()>,
    /// The last line of the feed that the snapshot knows of.
    read_to: tokio::sync::Mutex<i64>,
    /// The same, for whoever does not wait until it is read on.
    known_to: AtomicI64,
    /// Held while the store and the snapshot change together.
    changing: tokio::sync::Mutex<()>,
    /// Where other nodes hear that something changed.
    bus: Option<Arc<dyn Bus>>,
    look: Notify,
    /// Who reads rooms of the web chat: whose keys are void stops.
    readers: OnceLock<Arc<Hub>>,
}

impl Identities {
    /// Reads who is known. What is sealed is opened with `keys`; who is not welcome any more is
    /// taken out of `sessions`.
    pub(crate) async fn read(
        records: Arc<dyn Records>,
        keys: Arc<Keyring>,
        sessions: Arc<Sessions>,
        bus: Option<Arc<dyn Bus>>,
    ) -> Result<Arc<Self>> {
        let identities = Self {
            bus,
            look: Notify::new(),
            readers: OnceLock::new(),
            records,
            keys,
            sessions,
            now: ArcSwap::default(),
            making: Mutex::default(),
            read_to: tokio::sync::Mutex::default(),
            known_to: AtomicI64::default(),
            changing: tokio::sync::Mutex::default(),
        };
        let mut read_to = identities.read_to.lock().await;
        identities.read_anew(&mut read_to).await?;
        drop(read_to);
        Ok(Arc::new(identities))
    }

    /// Has those looked at who read rooms of the web chat, when keys are void.
    pub(crate) fn watch_readers(&self, readers: Arc<Hub>) {
        let _ = self.readers.set(readers);
    }

    /// Who is known at this moment.
    pub(crate) fn now(&self) -> Guard<Arc<Snapshot>> {
        self.now.load()
    }

    /// The same, for whoever keeps it while something else is waited for.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.now.load_full()
    }

    /// Makes a change of the store known here before its answer is given. It runs to its end
    /// even if its caller hangs up in between: what is committed must be known here. One
    /// change at a time.
    pub(crate) async fn change<T, F>(self: &Arc<Self>, change: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let identities = self.clone();
        let task = tokio::spawn(async move {
            let _turn = identities.turn().await;
            let changed = change.await;
            // What was refused may have left something all the same.
            let followed = identities.follow().await;
            identities.tell_others().await;
            changed.and_then(|changed| followed.map(|()| changed))
        });
        task.await.unwrap_or_else(|_| Err(Error::internal("the change broke off")))
    }

    /// Tells other nodes that something changed. Who does not hear it looks within a second.
    async fn tell_others(&self) {
        if let Some(bus) = &self.bus {
            let id = *self.read_to.lock().await;
            bus.publish(Hint::Control(Control::Changed { id }));
        }
    }

    /// The last line of the feed that is known here.
    pub(crate) fn known_to(&self) -> i64 {
        self.known_to.load(Ordering::Relaxed)
    }

    /// Takes in what the feed tells of up to a line, if that is not known yet.
    pub(crate) async fn follow_to(&self, line: i64) -> Result<()> {
        if self.known_to() >= line {
            return Ok(());
        }
        self.follow().await
    }

    /// Reads everything anew: what did not open may open now.
    pub(crate) async fn read_again(&self) -> Result<()> {
        let mut read_to = self.read_to.lock().await;
        self.read_anew(&mut read_to).await
    }

    /// Somebody else changed something.
    pub(crate) fn look_now(&self) {
        self.look.notify_one();
    }

    /// Waits until nothing else changes. Held by what changes something beside the records.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    /// Takes in what the feed tells of since it was read the last time.
    pub(crate) async fn follow(&self) -> Result<()> {
        let mut read_to = self.read_to.lock().await;
        for _ in 0..FAR_BEHIND {
            let lines = self.records.changed(*read_to, PAGE).await?;
            let Some(last) = lines.last().map(|line| line.id) else { return Ok(()) };
            if last != *read_to + lines.len() as i64 {
                // Something in between was dropped from the feed, or is to come yet.
                return self.read_anew(&mut read_to).await;
            }
            let is_all = lines.len() < PAGE;
            let read = look(&*self.records, "read what changed", move |view| feed::read(view, &lines));
            let News { facts, unreadable } = read.await?;
            for error in unreadable {
                tracing::error!(%error, "a record of who is known here changed and cannot be read; what was known of it stays");
            }
            self.learn(facts);
            self.read_until(&mut read_to, last);
            if is_all {
                return Ok(());
            }
        }
        self.read_anew(&mut read_to).await
    }

    /// Lets what was stored of a gateway count from now on, whatever else can be read; answers
    /// its record.
    pub(crate) async fn know(&self, stored: &StoredGateway) -> Result<Arc<GatewayRecord>> {
        // Held, so that nobody learns of it as it was before.
        let reading = self.read_to.lock().await;
        let (tenant, gateway_id) = (stored.tenant.clone(), stored.gateway_id.clone());
        self.learn([Fact::Gateway(tenant, gateway_id, Some(stored.clone()))]);
        drop(reading);
        self.follow().await?;
        self.tell_others().await;
        let known = self.now().find(&stored.tenant, &stored.gateway_id);
        known.ok_or_else(|| Error::internal("a gateway that was stored is not known"))
    }

    /// Follows the feed now and then, until the server stops.
    pub(crate) async fn keep_following(self: Arc<Self>, life: Arc<Lifecycle>) {
        let mut was_well = true;
        loop {
            let told = async { drop(tokio::time::timeout(LOOK_EVERY, self.look.notified()).await) };
            if life.unless_stopped(told).await.is_none() {
                return;
            }
            let followed = self.follow().await;
            match &followed {
                Err(error) if was_well => {
                    tracing::warn!(%error, "what changed of who is known here could not be read; trying again");
                }
                Ok(()) if !was_well => tracing::info!("what changed of who is known here is read again"),
                _ => {}
            }
            was_well = followed.is_ok();
        }
    }

    /// Reads everything. What changes meanwhile is told again by the feed.
    async fn read_anew(&self, read_to: &mut i64) -> Result<()> {
        let mut last = *read_to;
        while let Some(line) = self.records.changed(last, PAGE).await?.pop() {
            last = line.id;
        }
        let facts = look(&*self.records, "read who is known", feed::all).await?;
        let making = self.making.lock();
        let keys = self.keys.keys();
        let mut next = Snapshot::default();
        facts.into_iter().for_each(|fact| next.learn(fact, &keys));
        self.publish(making, next, self.now().all());
        if let Some(readers) = self.readers.get() {
            readers.all_keys_changed();
        }
        self.read_until(read_to, last);
        Ok(())
    }

    fn read_until(&self, read_to: &mut i64, line: i64) {
        *read_to = line;
        self.known_to.store(line, Ordering::Relaxed);
    }

    /// What some facts make of what is known.
    fn learn(&self, facts: impl IntoIterator<Item = Fact>) {
        let mut facts = facts.into_iter().peekable();
        if facts.peek().is_none() {
            return;
        }
        let making = self.making.lock();
        let keys = self.keys.keys();
        let before = self.snapshot();
        let mut next = Snapshot::clone(&before);
        let mut touched = Vec::new();
        for fact in facts {
            match &fact {
                Fact::Gateway(tenant, gateway_id, _) => touched.extend(before.find(tenant, gateway_id)),
                Fact::Uninvited(room, _) => {
                    if let Some(readers) = self.readers.get() {
                        readers.keys_changed(room);
                    }
                }
                _ => {}
            }
            next.learn(fact, &keys);
        }
        self.publish(making, next, touched);
    }

    /// The one place where what is known changes. A gateway that is not what it was when it
    /// connected loses its sockets, whoever changed it.
    fn publish(
        &self,
        making: parking_lot::MutexGuard<'_, ()>,
        next: Snapshot,
        touched: Vec<Arc<GatewayRecord>>,
    ) {
        let next = Arc::new(next);
        self.now.store(next.clone());
        // Who says hello meanwhile need not wait for this.
        drop(making);
        for before in touched {
            let now = next.find(&before.tenant, &before.gateway_id);
            if let Some(ending) = ending(&before, now.as_deref()) {
                self.sessions.end(&before, ending);
            }
        }
    }

    /// Keeps which bots an instance answers for, if that is new.
    pub(crate) async fn keep_fronts(&self, instance: InstanceId, fronts: BTreeSet<Front>) -> Result<()> {
        let before = self.now().fronts(instance);
        if before == fronts {
            return Ok(());
        }
        // It counts from now on, not from the commit on: the next message may be here already.
        self.learn([Fact::Fronts(instance, fronts.clone())]);
        let kept = self.records.set_fronts(instance, fronts.into_iter().collect()).await;
        kept.inspect_err(|_| self.learn([Fact::Fronts(instance, before)]))?;
        self.follow().await?;
        self.tell_others().await;
        Ok(())
    }

    /// Keeps which commands an instance declares, if that is new.
    pub(crate) async fn keep_commands(&self, instance: InstanceId, commands: Vec<Command>) -> Result<()> {
        let before = self.now().commands(instance);
        if *before == *commands {
            return Ok(());
        }
        // It counts from now on: what is pushed next is written for a gateway that knows these.
        self.learn([Fact::Manifest(instance, commands.clone())]);
        let kept = self.records.set_manifest(instance, commands).await;
        kept.inspect_err(|_| self.learn([Fact::Manifest(instance, before.to_vec())]))?;
        self.follow().await?;
        self.tell_others().await;
        Ok(())
    }

    /// Lets nobody reach a tenant while `removal` takes it; lets them again if that fails.
    pub(crate) async fn close_to<T>(
        &self,
        tenant: &str,
        removal: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let before = self.snapshot();
        let routes = || before.routes().iter().filter(|route| route.tenant == tenant);
        let closed = routes().map(|route| Fact::Route(route.place.to_string(), route.bot.clone(), None));
        self.learn(closed);
        let opened =
            |route: &Route| Fact::Route(route.place.to_string(), route.bot.clone(), Some(route.clone()));
        let removed = removal.await.inspect_err(|_| self.learn(routes().map(opened)))?;
        // They go whatever else can be read; held, so that nobody learns of them as they were before.
        let reading = self.read_to.lock().await;
        let gone = before.of_tenant(tenant);
        self.learn(gone.iter().map(|it| Fact::Gateway(it.tenant.clone(), it.gateway_id.clone(), None)));
        drop(reading);
        self.tell_others().await;
        Ok(removed)
    }
}

/// Why the sockets of a gateway end when its record changes; `None` if they may stay.
fn ending(before: &GatewayRecord, now: Option<&GatewayRecord>) -> Option<Ending> {
    match now {
        _ if before.revoked_at.is_some() => None,
        None => Some(Ending::Revoked),
        Some(now) if now.revoked_at.is_some() => Some(Ending::Revoked),
        // Not 4401: it is to come back, to its new inbox or with its new secret.
        Some(now) if now.instance != before.instance || !now.shares_secret(before) => Some(Ending::Shutdown),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests;
