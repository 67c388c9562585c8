//! Who is known follows the records, whoever changes them and whatever fails.

use super::*;
use crate::relay::Mailbox;
use angelia_core::admission::{Allow, RouteOptions};
use angelia_core::audit::Actor;
use angelia_core::clock::UnixMillis;
use angelia_core::ports::BoxFuture;
use angelia_core::records::rows::FrontRow;
use angelia_core::records::{Change, Changed, Rule, View, change};
use angelia_core::seal::{self, MasterKey};
use angelia_core::secret::Secret;
use angelia_core::store::{GatewayChange, IdentityStore, NewGateway};
use angelia_engines::memory::MemoryRecords;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

fn records() -> Arc<MemoryRecords> {
    Arc::new(MemoryRecords::new(|| UnixMillis(1)))
}

async fn node(records: &Arc<MemoryRecords>) -> Arc<Identities> {
    Identities::read(records.clone(), Keyring::kept_nowhere(MasterKey::mint()), Arc::default(), None)
        .await
        .unwrap()
}

fn route(number: usize) -> Route {
    Route {
        place: format!("discord:{}", number + 1).parse().unwrap(),
        bot: None,
        tenant: "acme".into(),
        instance: None,
        allow: Allow::Any,
        free: false,
        while_busy: None,
        options: RouteOptions::default(),
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
    assert!(matches!(&facts.facts[..], [Fact::Route(place, None, Some(_))] if place == "discord:50"));
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
    node.follow().await.unwrap();
    assert!(tenant_at(&node, "1").is_none() && node.now().tenant_of(InstanceId(1)).is_none());
}

/// Records that can be kept from being read, or lose the beginning of their feed.
struct Faulty {
    records: MemoryRecords,
    unreadable: AtomicBool,
    kept_from: AtomicI64,
}

impl Faulty {
    fn new() -> Arc<Self> {
        let records = MemoryRecords::new(|| UnixMillis(1));
        Arc::new(Self { records, unreadable: AtomicBool::new(false), kept_from: AtomicI64::new(0) })
    }

    fn readable(&self, is_so: bool) {
        self.unreadable.store(!is_so, Ordering::Release);
    }

    fn check(&self) -> Result<()> {
        let fails = self.unreadable.load(Ordering::Acquire);
        if fails { Err(Error::unavailable("the disk does not answer")) } else { Ok(()) }
    }
}

impl Records for Faulty {
    fn change(&self, change: Change, rule: Rule) -> BoxFuture<'_, Result<()>> {
        self.records.change(change, rule)
    }

    fn look(&self, what: &'static str, rule: Rule) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.check()?;
            self.records.look(what, rule).await
        })
    }

    fn changed(&self, after: i64, limit: usize) -> BoxFuture<'_, Result<Vec<Changed>>> {
        let after = after.max(self.kept_from.load(Ordering::Acquire) - 1);
        Box::pin(async move {
            self.check()?;
            self.records.changed(after, limit).await
        })
    }
}

/// A gateway that is connected, of tenant acme.
struct Connected {
    records: Arc<Faulty>,
    node: Arc<Identities>,
    keys: Arc<Keyring>,
    mailbox: Arc<Mailbox>,
    /// For as long as it is connected.
    _seat: Box<dyn Send>,
}

impl Connected {
    async fn new() -> Self {
        let (records, keys) = (Faulty::new(), Keyring::kept_nowhere(MasterKey::mint()));
        records.create_tenant("acme", None, &Actor::server()).await.unwrap();
        let gateway = NewGateway {
            tenant: "acme".into(),
            gateway_id: "gw".into(),
            instance: None,
            sealed_secret: Self::secret(&keys),
            wake_url: None,
            display_name: None,
            while_busy: None,
            shared_groups: false,
            subject: None,
            most: 1,
        };
        records.create_gateway(gateway, &Actor::server()).await.unwrap();
        let sessions = Arc::<Sessions>::default();
        let node = Identities::read(records.clone(), keys.clone(), sessions.clone(), None).await.unwrap();
        let (record, mailbox) = (node.now().find("acme", "gw").unwrap(), Arc::<Mailbox>::default());
        let _seat = Box::new(sessions.enter(record, mailbox.clone(), 1).unwrap());
        Self { records, node, keys, mailbox, _seat }
    }

    fn secret(keys: &Keyring) -> Vec<u8> {
        keys.seal(&Secret::mint(), &seal::gateway_secret("acme", "gw")).unwrap().to_vec()
    }

    fn ending(&self) -> Option<Ending> {
        self.mailbox.take().ending
    }
}

#[tokio::test]
async fn a_revocation_ends_its_sockets_although_nothing_can_be_read_behind_it() {
    let it = Connected::new().await;
    let revoked = it.records.revoke_gateway("acme", "gw", &Actor::server()).await.unwrap();
    it.records.readable(false);
    assert!(it.node.know(&revoked).await.is_err(), "that it may not be all is told");
    assert!(it.node.now().is_revoked(revoked.instance));
    assert_eq!(it.ending(), Some(Ending::Revoked));
    it.records.readable(true);
    it.node.follow().await.unwrap();
    assert_eq!(it.ending(), None, "it is told once");
}

#[tokio::test]
async fn the_gateways_of_a_removed_tenant_lose_their_sockets_although_nothing_can_be_read() {
    let it = Connected::new().await;
    let removal = async {
        let removed = it.records.remove_tenant("acme", Vec::new(), &Actor::server()).await;
        it.records.readable(false);
        removed
    };
    it.node.close_to("acme", removal).await.unwrap();
    assert_eq!(it.ending(), Some(Ending::Revoked));
    assert!(it.node.now().find("acme", "gw").is_none());
}

#[tokio::test]
async fn a_socket_ends_by_what_another_node_did_to_its_gateway() {
    let it = Connected::new().await;
    let (by, later) = (Actor::server(), Some(UnixMillis(i64::MAX)));
    let change = |change: GatewayChange| it.records.change_gateway("acme", "gw", change, &by);
    change(GatewayChange { display_name: Some(Some("Iris".into())), ..GatewayChange::default() })
        .await
        .unwrap();
    it.records.rotate_gateway("acme", "gw", Connected::secret(&it.keys), later, &by).await.unwrap();
    it.node.follow().await.unwrap();
    assert_eq!(it.ending(), None, "its secret is still good");
    change(GatewayChange { instance: Some("other".into()), ..GatewayChange::default() }).await.unwrap();
    it.node.follow().await.unwrap();
    assert_eq!(it.ending(), Some(Ending::Shutdown), "to its new inbox");
    it.records.rotate_gateway("acme", "gw", Connected::secret(&it.keys), None, &by).await.unwrap();
    it.node.follow().await.unwrap();
    assert_eq!(it.ending(), Some(Ending::Shutdown), "with its new secret");
    it.records.revoke_gateway("acme", "gw", &by).await.unwrap();
    it.node.follow().await.unwrap();
    assert_eq!(it.ending(), Some(Ending::Revoked));
}

#[tokio::test]
async fn who_was_away_for_longer_than_the_feed_reads_everything_anew() {
    let it = Connected::new().await;
    it.records.revoke_gateway("acme", "gw", &Actor::server()).await.unwrap();
    it.records.create_tenant("globex", None, &Actor::server()).await.unwrap();
    let last = it.records.changed(0, PAGE).await.unwrap().pop().unwrap().id;
    // Of the feed only its last line is left, which says nothing of the revocation.
    it.records.kept_from.store(last, Ordering::Release);
    it.node.follow().await.unwrap();
    assert!(it.node.now().is_revoked(InstanceId(1)));
    assert_eq!(it.ending(), Some(Ending::Revoked));
}
