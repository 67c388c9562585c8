//! Posted messages between a store and an admission that does as it is told.

use super::*;
use crate::admission::{Admission, Linking, Presence, Which};
use crate::ingress::{Seal, Stop};
use crate::kit::health::HealthRecord;
use crate::overheard::{Deaf, Overheard};
use crate::platform::{Delivery, Outcome};
use angelia_contract::action::{Action, ActionResult};
use angelia_contract::descriptor::Descriptor;
use angelia_core::admission::{Admitted, Observed};
use angelia_core::audit::Actor;
use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::egress::{Bot, Dedupe, Whereabouts};
use angelia_core::error::Error;
use angelia_core::error::Result;
use angelia_core::inbox::{InstanceId, Quota, Seq};
use angelia_core::ports::Ports;
use angelia_core::seal::Sealed;
use angelia_core::store::{IdentityStore, NewGateway, PageSize};
use angelia_core::turns::WhileBusy;
use angelia_core::vault::Way;
use angelia_engines::local_bus::LocalBus;
use angelia_engines::store::sqlite::Sqlite;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::sync::mpsc;

/// A bot that passes on what the connector has it say.
struct Said(mpsc::Sender<String>);

impl Bot for Said {
    fn platform(&self) -> &str {
        "acme"
    }

    fn id(&self) -> &str {
        "1"
    }

    fn places(&self, _target: &Target) -> Whereabouts {
        Whereabouts::Nowhere
    }
}

impl Platform for Said {
    fn descriptor(&self) -> Descriptor {
        Descriptor::default()
    }

    fn dedupe(&self, _action: &Action, _way: Option<Way>) -> Dedupe {
        Dedupe::No
    }

    fn deliver(&self, _delivery: Delivery) -> BoxFuture<'_, Outcome> {
        unreachable!("nothing is sent here")
    }

    fn chat_info<'a>(&'a self, _target: &'a Target) -> BoxFuture<'a, Result<ActionResult>> {
        unreachable!("nobody asks")
    }

    fn tell<'a>(&'a self, target: &'a Target, text: &'a str) -> BoxFuture<'a, Result<()>> {
        self.0.try_send(format!("{}: {text}", target.chat_id)).unwrap();
        Box::pin(async { Ok(()) })
    }
}

/// Everything is acme's as long as the door is open.
struct Door {
    instance: InstanceId,
    open: Mutex<bool>,
    /// How often a code was tried, and whether that works.
    tried: Mutex<(usize, bool)>,
    dropped: Mutex<Vec<(String, DropReason)>>,
}

impl Admission for Door {
    fn decide(&self, _observed: Observed<'_>) -> Result<Admitted, DropReason> {
        let admitted =
            Admitted { while_busy: Some(WhileBusy::Collect), ..Admitted::to("acme", self.instance) };
        if *self.open.lock() { Ok(admitted) } else { Err(DropReason::NoRoute) }
    }

    fn dropped(&self, _observed: Observed<'_>, which: Which<'_>, reason: DropReason) {
        self.dropped.lock().push((which.message_id.to_owned(), reason));
    }

    fn overheard(&self) -> &dyn Overheard {
        &Deaf
    }

    fn presence(&self, _observed: Observed<'_>) -> BoxFuture<'_, Option<Presence>> {
        Box::pin(async { None })
    }

    fn why_dropped(&self, _which: Which<'_>) -> Option<(DropReason, UnixMillis)> {
        None
    }

    fn link(&self, typed: Linking) -> BoxFuture<'_, Result<String>> {
        assert_eq!((typed.platform, typed.author.as_str(), typed.private), ("acme", "ann", true));
        let mut tried = self.tried.lock();
        tried.0 += 1;
        let works = tried.1;
        Box::pin(
            async move { if works { Ok("linked".to_owned()) } else { Err(Error::unavailable("no disk")) } },
        )
    }

    fn moved<'a>(&'a self, _bot: &'a BotKey, _from: &'a str, _to: &'a str) -> BoxFuture<'a, Result<()>> {
        unreachable!("people do not move")
    }
}

struct Plain;

impl Seal for Plain {
    fn seal(&self, text: &str, bound_to: &str) -> Result<Sealed> {
        Ok(format!("{bound_to}|{text}").into_bytes().into())
    }
}

struct World {
    account: Account,
    bot: Arc<Said>,
    said: mpsc::Receiver<String>,
    ingress: Ingress,
    door: Arc<Door>,
    _folder: TempDir,
}

impl World {
    async fn new(entries: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let quota = Quota { entries, ..Quota::default() };
        let store = Sqlite::open(&folder.path().join("data"), quota, Arc::new(LocalBus::default())).unwrap();
        let ports = Ports::of(&Arc::new(store));
        ports.records.create_tenant("acme", None, &Actor::operator()).await.unwrap();
        let gateway = NewGateway {
            tenant: "acme".into(),
            gateway_id: "gw".into(),
            instance: None,
            sealed_secret: vec![7],
            wake_url: None,
            display_name: None,
            while_busy: None,
            shared_groups: false,
            subject: None,
            most: 10,
        };
        let instance = ports.records.create_gateway(gateway, &Actor::operator()).await.unwrap().instance;
        let (open, tried) = (Mutex::new(true), Mutex::new((0, true)));
        let door = Arc::new(Door { instance, open, tried, dropped: Mutex::default() });
        let (tell, said) = mpsc::channel(9);
        let ingress = Ingress {
            ports: ports.clone(),
            admission: door.clone(),
            seal: Arc::new(Plain),
            source_flags: false,
            public_url: "https://bots.example.com".into(),
            held: Arc::default(),
            under: Default::default(),
            nodes: None,
            stop: Stop::new().1,
        };
        let account = Account::new("acme", "1", "main", HealthRecord::default(), &ports);
        Self { account, bot: Arc::new(Said(tell)), said, ingress, door, _folder: folder }
    }

    async fn posts(&self, message_id: &str, text: &str) -> Result<bool> {
        let sighting = Sighting::of_person("main", "ann", message_id);
        let source = crate::kit::inbound::from_person("acme", "ann", message_id, false);
        let (text, message_id) = (text.to_owned(), Some(message_id.to_owned()));
        let event = Event { text, message_id, source, ..Event::default() };
        self.account.take_posted(&self.bot, &self.ingress, &sighting, &event).await
    }
}

#[tokio::test]
async fn what_is_for_nobody_is_noted_and_whoever_wrote_may_be_answered() {
    let world = World::new(10).await;
    assert!(world.account.directory.find("ann").await.unwrap().is_none());
    assert!(world.account.directory.is_absent("ann"));
    *world.door.open.lock() = false;
    assert!(world.posts("1", "hello").await.unwrap());
    assert_eq!(*world.door.dropped.lock(), [("1".to_owned(), DropReason::NoRoute)]);
    assert!(world.account.directory.at_hand("ann").is_some() && !world.account.directory.is_absent("ann"));
}

#[tokio::test]
async fn what_its_route_says_goes_into_the_log_with_a_message() {
    let world = World::new(10).await;
    assert!(world.posts("1", "hello").await.unwrap());
    let log = &world.ingress.ports.log;
    let waiting = log.load(world.door.instance, Seq(0), &[], PageSize::of(9)).await.unwrap();
    assert_eq!(waiting[0].while_busy, Some(WhileBusy::Collect));
}

#[tokio::test]
async fn a_code_is_tried_once_however_often_it_is_posted() {
    let mut world = World::new(10).await;
    world.door.tried.lock().1 = false;
    assert!(world.posts("1", "/link c0de").await.is_err(), "it has to come again");
    world.door.tried.lock().1 = true;
    for _ in 0..3 {
        assert!(world.posts("1", "/link c0de").await.unwrap());
    }
    assert_eq!(world.door.tried.lock().0, 2);
    assert_eq!(world.said.recv().await.unwrap(), "ann: linked");
    assert!(world.said.try_recv().is_err(), "once");
    assert_eq!(*world.door.dropped.lock(), [("1".to_owned(), DropReason::Consumed)]);
}

#[tokio::test]
async fn a_full_inbox_refuses_and_its_author_is_told_once_in_a_while() {
    let mut world = World::new(1).await;
    assert!(world.posts("1", "one").await.unwrap());
    for _ in 0..3 {
        assert!(!world.posts("2", "two").await.unwrap(), "it has to come again");
    }
    assert!(world.said.recv().await.unwrap().contains("Please send it again later"));
    assert!(world.said.try_recv().is_err(), "once");
    assert_eq!(world.account.health.health().counts["refused_full"], 3);
    assert!(world.posts("1", "one").await.unwrap(), "it is there");
}
