//! One bot on several nodes: its shards are read where their leases are, and go on where they were.

use super::world::{SOON, World, send, texts};
use angelia_core::directory::BotKey;
use angelia_core::egress::Target;
use angelia_core::error::Result;
use angelia_core::lease::{of_bot, of_shard};
use angelia_core::ports::{Lease, LeaseToken, Leases, Term};
use angelia_core::records::Records;
use angelia_platforms::discord::Discord;
use angelia_platforms::{BotState, Carried, Duty, Ingress, Nodes, Platform, Stop};
use axum::response::Response;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

const HOUR: Term = Term::For(Duration::from_secs(3600));

/// Something that a node has when it is given it.
struct Given {
    token: watch::Sender<Option<LeaseToken>>,
    working: AtomicUsize,
}

impl Duty for Given {
    fn ours(&self) -> BoxFuture<'_, LeaseToken> {
        Box::pin(async {
            let token = self.token.subscribe().wait_for(Option::is_some).await.unwrap().unwrap();
            self.working.fetch_add(1, Ordering::SeqCst);
            token
        })
    }

    fn over(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { drop(self.token.subscribe().wait_for(Option::is_none).await) })
    }

    fn stopped(&self) {
        self.working.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A node that has what it is given, by leases of the store.
struct Node {
    name: &'static str,
    records: Arc<dyn Records>,
    has_bot: AtomicBool,
    duties: Mutex<BTreeMap<String, Arc<Given>>>,
}

impl Node {
    fn given(&self, name: &str) -> Arc<Given> {
        let given = || Arc::new(Given { token: watch::Sender::new(None), working: AtomicUsize::new(0) });
        self.duties.lock().unwrap().entry(name.to_owned()).or_insert_with(given).clone()
    }

    async fn take(&self, name: &str) -> Lease {
        let lease = self.records.acquire(name, self.name, HOUR).await.unwrap().unwrap();
        self.given(name).token.send_replace(Some(lease.token));
        lease
    }

    /// Has its work stop, and then gives it back.
    async fn give_back(&self, lease: &Lease) {
        let given = self.given(&lease.name);
        given.token.send_replace(None);
        let deadline = Instant::now() + SOON;
        while given.working.load(Ordering::SeqCst) > 0 {
            assert!(Instant::now() < deadline, "{} does not stop", lease.name);
            sleep(Duration::from_millis(5)).await;
        }
        assert!(self.records.release(lease).await.unwrap());
    }
}

impl Nodes for Node {
    fn has(&self, _bot: &BotKey) -> bool {
        self.has_bot.load(Ordering::SeqCst)
    }

    fn count(&self) -> usize {
        2
    }

    fn forward<'a>(
        &'a self,
        _bot: &'a BotKey,
        _posted: Carried<'a>,
        _within: Duration,
    ) -> BoxFuture<'a, Option<Response>> {
        unreachable!("interactions are taken where they are posted")
    }

    fn duty(&self, name: &str) -> Arc<dyn Duty> {
        self.given(name)
    }

    fn no_duty(&self, name: &str) {
        self.given(name).token.send_replace(None);
    }

    fn turn<'a>(&'a self, name: &'a str, span: Duration) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move { Ok(self.records.acquire(name, self.name, Term::For(span)).await?.is_some()) })
    }
}

/// A bot on a node.
struct Running {
    node: Arc<Node>,
    discord: Arc<Discord>,
    ingress: Ingress,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(world: &World, name: &'static str) -> Self {
        let ports = world.ports.clone().shared();
        let (records, has_bot, duties) = (ports.records.clone(), AtomicBool::new(false), Mutex::default());
        let node = Arc::new(Node { name, records, has_bot, duties });
        let discord = Discord::new(world.config(), ports.clone()).unwrap();
        let (stop, stopped) = Stop::new();
        let ingress = Ingress { nodes: Some(node.clone()), ports, ..world.ingress(stopped) };
        let task = tokio::spawn(discord.clone().listen(ingress.clone()));
        Self { node, discord, ingress, stop, task }
    }

    /// Has the node have the bot itself.
    async fn take_bot(&self, bot: &BotKey) -> Lease {
        let lease = self.node.take(&of_bot(bot)).await;
        self.ingress.held.took(bot, lease.token);
        self.node.has_bot.store(true, Ordering::SeqCst);
        lease
    }

    fn count(&self, what: &str) -> u64 {
        self.discord.health().unwrap().counts.get(what).copied().unwrap_or_default()
    }

    fn state(&self) -> BotState {
        self.discord.health().unwrap().state
    }

    async fn until(&self, what: &str, mut enough: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + SOON;
        while !enough(self) {
            let health = self.discord.health();
            assert!(Instant::now() < deadline, "not in time on {}: {what}; {health:?}", self.node.name);
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        tokio::time::timeout(SOON, self.task).await.expect("it stops").unwrap();
    }
}

/// Everything in the inbox, once there is so much.
async fn events(world: &World, count: usize) -> Vec<String> {
    let deadline = Instant::now() + SOON;
    loop {
        let events = world.events().await;
        if events.len() >= count {
            return texts(&events).into_iter().map(str::to_owned).collect();
        }
        assert!(Instant::now() < deadline, "{} of {count} came", events.len());
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn shards_are_read_where_their_leases_are_and_go_on_where_they_were() {
    let world = World::new(json!({"shards": 2, "max_concurrency": 1})).await;
    let bot = world.key();
    let ann = world.fake.user("ann").await;
    // Direct messages are the first shard's; of two guilds that follow each other each has one.
    let dm = world.fake.dm(&ann).await;
    let (a, b) = (Running::start(&world, "a"), Running::start(&world, "b"));
    a.take_bot(&bot).await;
    a.node.take(&of_shard(&bot, 0, 2)).await;
    let second = b.node.take(&of_shard(&bot, 1, 2)).await;
    for node in [&a, &b] {
        node.until("it hears", |node| node.count("identifies") == 1 && node.state() == BotState::Up).await;
    }
    assert_eq!(world.fake.count("/gateway/identifies_refused").await, 0, "they took turns");

    let guild = loop {
        let guild = world.fake.guild("ops").await;
        if (guild.id.parse::<u64>().unwrap() >> 22) % 2 == 1 {
            break guild;
        }
    };
    let channel = world.fake.channel(&guild.id, "general").await;
    world.fake.say(&dm, &ann, "to the first").await;
    events(&world, 1).await;
    world.fake.mention(&channel, &ann, "to the second").await;
    assert_eq!(events(&world, 2).await, ["to the first", "to the second"]);

    // Planned: it closes so that it can be resumed, and goes on elsewhere.
    b.node.give_back(&second).await;
    assert_eq!(b.state(), BotState::Elsewhere, "that is no trouble");
    world.fake.mention(&channel, &ann, "in between").await;
    let second = a.node.take(&second.name).await;
    assert_eq!(events(&world, 3).await[2], "in between");
    a.until("it is resumed", |node| node.count("resumes") == 1 && node.state() == BotState::Up).await;

    // Unplanned: whoever had it does not know yet, and writes nothing any more.
    assert!(world.ports.records.release(&second).await.unwrap());
    b.node.take(&second.name).await;
    b.until("it is resumed", |node| node.count("resumes") > 0).await;
    world.fake.mention(&channel, &ann, "after all").await;
    sleep(Duration::from_millis(300)).await;
    a.node.given(&second.name).token.send_replace(None);
    assert_eq!(events(&world, 4).await[3], "after all");
    b.until("it hears", |node| node.state() == BotState::Up).await;
    world.fake.mention(&channel, &ann, "and on").await;
    assert_eq!(events(&world, 5).await[4..], ["and on"], "nothing came twice");
    assert_eq!(world.fake.count("/gateway/identifies").await, 2, "no session was begun for it");

    // What one node sends is sent whoever reads.
    let outcome = {
        let target = Target { chat_id: channel.clone(), thread_id: None };
        let sent = world.deliver_by(&a.discord, 1, target, send(&channel, "hello", None)).await;
        format!("{sent:?}")
    };
    assert!(outcome.contains("Sent"), "{outcome}");
    a.stop().await;
    b.stop().await;
}

#[tokio::test]
async fn a_node_that_learns_late_that_it_lost_a_shard_takes_nothing_away_from_the_next() {
    const LINES: usize = 400;
    let world = World::new(json!({"shards": 1})).await;
    let (bot, ann) = (world.key(), world.fake.user("ann").await);
    let dm = world.fake.dm(&ann).await;
    let (a, b) = (Running::start(&world, "a"), Running::start(&world, "b"));
    a.take_bot(&bot).await;
    let lost = a.node.take(&of_shard(&bot, 0, 1)).await;
    a.until("it hears", |node| node.count("identifies") == 1 && node.state() == BotState::Up).await;
    world.fake.say(&dm, &ann, "first").await;
    events(&world, 1).await;

    // What it reads now is refused, so it reads no further, and frames wait in its socket.
    assert!(world.ports.records.release(&lost).await.unwrap());
    let next = b.node.records.acquire(&lost.name, "b", HOUR).await.unwrap().unwrap();
    world.fake.say_many(&dm, &ann, "line {n}", LINES).await;
    a.until("it is refused", |node| node.state() == BotState::Down).await;
    b.node.given(&next.name).token.send_replace(Some(next.token));
    b.until("it is resumed", |node| node.count("resumes") == 1).await;
    a.node.given(&lost.name).token.send_replace(None);
    a.until("it stops", |node| node.node.given(&lost.name).working.load(Ordering::SeqCst) == 0).await;

    let expected = ["first".to_owned()].into_iter().chain((0..LINES).map(|line| format!("line {line}")));
    assert_eq!(events(&world, LINES + 1).await, expected.collect::<Vec<_>>());
    let [identifies, resumes] = ["/gateway/identifies", "/gateway/resumes"];
    let counts = (world.fake.count(identifies).await, world.fake.count(resumes).await);
    assert_eq!(counts, (1, 1), "sessions that were begun, and resumed");
    a.stop().await;
    b.stop().await;
}

#[tokio::test]
async fn all_nodes_agree_how_many_shards_there_are() {
    let world = World::new(json!({"shards": 2, "identify_seconds": 0})).await;
    let bot = world.key();
    let a = Running::start(&world, "a");
    a.node.take(&of_shard(&bot, 0, 2)).await;
    // Fixed pause: long enough for it to have identified, had it wanted to.
    sleep(Duration::from_secs(1)).await;
    assert_eq!(world.fake.count("/gateway/identifies").await, 0, "nobody has said how many there are");
    a.take_bot(&bot).await;
    a.until("it hears", |node| node.count("identifies") == 1).await;
    a.stop().await;
    // Discord wants fewer by now: that ends no session.
    world.fake.set(json!({"shards": 1})).await;
    let b = Running::start(&world, "b");
    let first = world.ports.records.holder(&of_shard(&bot, 0, 2)).await.unwrap().unwrap();
    assert!(world.ports.records.release(&first).await.unwrap());
    b.node.take(&of_shard(&bot, 0, 2)).await;
    b.until("it is resumed", |node| node.count("resumes") == 1).await;
    assert_eq!(world.fake.count("/gateway/identifies").await, 1);
    b.stop().await;
}

#[tokio::test]
async fn a_bot_that_stopped_listens_again() {
    let mut world = World::started(json!({})).await;
    let ann = world.fake.user("ann").await;
    let dm = world.fake.dm(&ann).await;
    world.fake.say(&dm, &ann, "one").await;
    world.until_events(1).await;
    let discord = world.bot();
    world.stop().await;
    world.fake.say(&dm, &ann, "two").await;
    world.listen_again(discord);
    assert_eq!(texts(&world.until_events(2).await), ["one", "two"]);
    world.until("it hears", |world| world.bot().health().unwrap().state == BotState::Up).await;
    world.until("it resumed", |world| world.count("resumes") == 1).await;
    assert_eq!(world.count("identifies"), 1);
}
