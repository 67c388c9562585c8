//! Who is known here, in memory: ten thousand reconnects ask no disk.
//!
//! Readers load one [`Snapshot`] and see one moment of it. It changes in one place, by facts
//! that the change feed tells of, whoever made the change; a new one shares everything with
//! the one before but what changed (docs/decisions/0038).

mod snapshot;

pub(crate) use angelia_core::identity::feed::Front;
pub(crate) use snapshot::Snapshot;

use crate::admin::Keyring;
use angelia_core::admission::Route;
use angelia_core::error::{Error, Result};
use angelia_core::identity::GatewayRecord;
use angelia_core::identity::feed::{self, Fact};
use angelia_core::inbox::InstanceId;
use angelia_core::records::{Records, look};
use angelia_core::store::{AccessStore, StoredGateway};
use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::MutexGuard;

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
    now: ArcSwap<Snapshot>,
    /// Held while a snapshot is made out of the one before.
    making: Mutex<()>,
    /// The last line of the feed that the snapshot knows of.
    read_to: tokio::sync::Mutex<i64>,
    /// Held while the store and the snapshot change together.
    changing: tokio::sync::Mutex<()>,
}

impl Identities {
    /// Reads who is known. What is sealed is opened with `keys`.
    pub(crate) async fn read(records: Arc<dyn Records>, keys: Arc<Keyring>) -> Result<Arc<Self>> {
        let identities = Self {
            records,
            keys,
            now: ArcSwap::default(),
            making: Mutex::default(),
            read_to: tokio::sync::Mutex::default(),
            changing: tokio::sync::Mutex::default(),
        };
        let mut read_to = identities.read_to.lock().await;
        identities.read_anew(&mut read_to).await?;
        drop(read_to);
        Ok(Arc::new(identities))
    }

    /// Who is known at this moment.
    pub(crate) fn now(&self) -> Guard<Arc<Snapshot>> {
        self.now.load()
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
            changed.and_then(|changed| followed.map(|()| changed))
        });
        task.await.unwrap_or_else(|_| Err(Error::internal("the change broke off")))
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
            let is_all = lines.len() < PAGE;
            let read = look(&*self.records, "read what changed", move |view| feed::read(view, &lines));
            self.learn(read.await?);
            *read_to = last;
            if is_all {
                return Ok(());
            }
        }
        self.read_anew(&mut read_to).await
    }

    /// Lets what was stored of a gateway count from now on; answers its record.
    pub(crate) async fn take_in(&self, stored: &StoredGateway) -> Result<Arc<GatewayRecord>> {
        self.follow().await?;
        let known = self.now().find(&stored.tenant, &stored.gateway_id);
        known.ok_or_else(|| Error::internal("a gateway that was stored is not known"))
    }

    /// Follows the feed now and then.
    pub(crate) async fn keep_following(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Err(error) = self.follow().await {
                tracing::debug!(%error, "what changed of who is known here could not be read");
            }
        }
    }

    /// Reads everything. What changes meanwhile is told again by the feed.
    async fn read_anew(&self, read_to: &mut i64) -> Result<()> {
        let mut last = *read_to;
        while let Some(line) = self.records.changed(last, PAGE).await?.pop() {
            last = line.id;
        }
        let facts = look(&*self.records, "read who is known", feed::all).await?;
        let _making = self.making.lock();
        let keys = self.keys.keys();
        let mut next = Snapshot::default();
        facts.into_iter().for_each(|fact| next.learn(fact, &keys));
        self.now.store(Arc::new(next));
        *read_to = last;
        Ok(())
    }

    /// The one place where what is known changes.
    fn learn(&self, facts: impl IntoIterator<Item = Fact>) {
        let mut facts = facts.into_iter().peekable();
        if facts.peek().is_none() {
            return;
        }
        let _making = self.making.lock();
        let keys = self.keys.keys();
        let mut next = Snapshot::clone(&self.now());
        facts.for_each(|fact| next.learn(fact, &keys));
        self.now.store(Arc::new(next));
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
        self.follow().await
    }

    /// Lets nobody reach a tenant while `removal` takes it; lets them again if that fails.
    pub(crate) async fn close_to<T>(
        &self,
        tenant: &str,
        removal: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let before = self.now.load_full();
        let routes = || before.routes().iter().filter(|route| route.tenant == tenant);
        let closed = routes().map(|route| Fact::Route(route.place.to_string(), route.bot.clone(), None));
        self.learn(closed);
        let opened =
            |route: &Route| Fact::Route(route.place.to_string(), route.bot.clone(), Some(route.clone()));
        let removed = removal.await.inspect_err(|_| self.learn(routes().map(opened)))?;
        self.follow().await?;
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::admission::Allow;
    use angelia_core::audit::Actor;
    use angelia_core::clock::UnixMillis;
    use angelia_core::records::rows::FrontRow;
    use angelia_core::records::{Change, Changed, View, change};
    use angelia_core::seal::MasterKey;
    use angelia_core::store::IdentityStore;
    use angelia_engines::memory::MemoryRecords;

    fn records() -> Arc<MemoryRecords> {
        Arc::new(MemoryRecords::new(|| UnixMillis(1)))
    }

    async fn node(records: &Arc<MemoryRecords>) -> Arc<Identities> {
        Identities::read(records.clone(), Keyring::kept_nowhere(MasterKey::mint())).await.unwrap()
    }

    fn route(number: usize) -> Route {
        Route {
            place: format!("discord:{}", number + 1).parse().unwrap(),
            bot: None,
            tenant: "acme".into(),
            instance: None,
            allow: Allow::Any,
            free: false,
        }
    }

    async fn add_route(records: Arc<MemoryRecords>, number: usize) -> Result<()> {
        records.add_route(route(number), &Actor::server()).await
    }

    fn tenant_at(identities: &Identities, path: &str) -> Option<String> {
        let known = identities.now();
        known.routes().resolve("discord", "bot", &[path]).map(|route| route.tenant.clone())
    }

    #[tokio::test]
    async fn a_change_counts_here_once_it_has_answered_and_elsewhere_once_the_feed_is_read() {
        let records = records();
        records.create_tenant("acme", None, &Actor::server()).await.unwrap();
        let (one, other) = (node(&records).await, node(&records).await);
        let before = one.now();
        one.change(add_route(records.clone(), 0)).await.unwrap();
        assert_eq!(tenant_at(&one, "1").as_deref(), Some("acme"));
        assert!(before.routes().at("discord:1").is_empty(), "who loaded it sees one moment");
        assert_eq!(tenant_at(&other, "1"), None);
        other.follow().await.unwrap();
        assert_eq!(tenant_at(&other, "1").as_deref(), Some("acme"));
        let remove = records.remove_route(&route(0).place, None, &Actor::server());
        remove.await.unwrap();
        other.follow().await.unwrap();
        assert_eq!(tenant_at(&other, "1"), None);
    }

    #[tokio::test]
    async fn one_change_tells_one_fact_however_many_there_are() {
        let records = records();
        records.create_tenant("acme", None, &Actor::server()).await.unwrap();
        for number in 0..50 {
            add_route(records.clone(), number).await.unwrap();
        }
        let lines = records.changed(0, PAGE).await.unwrap();
        let last: Vec<Changed> = lines.into_iter().rev().take(1).collect();
        let facts = look(&*records, "read", move |view| feed::read(view, &last)).await.unwrap();
        assert!(matches!(&facts[..], [Fact::Route(place, None, Some(_))] if place == "discord:50"));
    }

    #[tokio::test]
    async fn who_is_far_behind_catches_up_at_once() {
        let records = records();
        let behind = node(&records).await;
        // A few pages, and more than are read one by one.
        for (lines, up_to) in [(3 * PAGE, 1), ((FAR_BEHIND + 2) * PAGE, 2)] {
            let many = move |view: &mut View<'_>| {
                let front = |number, platform: &str| {
                    let (instance, platform) = (InstanceId(number), platform.to_owned());
                    FrontRow { instance, platform, bot: String::new() }
                };
                (1..lines as i64).for_each(|number| view.delete(&front(number, "gone")));
                view.put(&front(0, &up_to.to_string()));
                Ok(())
            };
            change(&*records, Change::to("front"), many).await.unwrap();
            behind.follow().await.unwrap();
            assert!(behind.now().fronts(InstanceId(0)).contains(&(up_to.to_string(), String::new())));
            let told = records.changed(*behind.read_to.lock().await, 1).await.unwrap();
            assert!(told.is_empty(), "all of the feed is read");
        }
    }

    #[tokio::test]
    async fn a_tenant_that_could_not_be_removed_is_reached_again() {
        let records = records();
        records.create_tenant("acme", None, &Actor::server()).await.unwrap();
        let node = node(&records).await;
        node.change(add_route(records.clone(), 0)).await.unwrap();
        let failed = node.close_to("acme", async {
            assert_eq!(tenant_at(&node, "1"), None, "nobody reaches it meanwhile");
            Err::<(), _>(Error::unavailable("the disk is full"))
        });
        assert!(failed.await.is_err());
        assert_eq!(tenant_at(&node, "1").as_deref(), Some("acme"));
        let removal = records.remove_tenant("acme", Vec::new(), &Actor::server());
        node.close_to("acme", removal).await.unwrap();
        assert!(tenant_at(&node, "1").is_none() && node.now().tenant_of(InstanceId(1)).is_none());
    }
}
