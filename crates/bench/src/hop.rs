//! What it costs that the person is at one node and the agent's socket at another: PostgreSQL, Redis
//! and several nodes of the real binary. People write in the web chat, and to a bot that the first
//! node reads. And whether a node that has nothing to do with a message hears of it.

use crate::load::{Done, Pace, Work, Writer, load, rest};
use crate::poster::Poster;
use crate::receipts::{Fault, Receipts};
use crate::run::{Error, writers};
use crate::stage::{Room, furnish, tenant_of};
use crate::summary::percentile;
use crate::telegram::Telegram;
use angelia_testkit::cluster::{Cluster, Setup};
use angelia_testkit::connector::Connector;
use angelia_testkit::gauge::Gauge;
use angelia_testkit::webchat::http_client;
use futures_util::StreamExt;
use futures_util::stream::iter;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Before the first load of each kind.
const WARM_UP: Duration = Duration::from_secs(2);
/// Until nodes have shared out who does what.
const SHARED_OUT: Duration = Duration::from_secs(6);
/// How long it may take until a bot is read.
const READ: Duration = Duration::from_secs(20);
/// The most nodes that are put beside the two.
const MOST_NODES: usize = 6;
/// Operations a second while nodes are added.
const STEADY: f64 = 500.0;
/// Routes that are made at the same time.
const AT_ONCE: usize = 16;

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Gateways, all of them at the second node.
    pub sockets: usize,
    /// Writers, all of them at the first.
    pub at_once: usize,
    /// Operations a second at a fixed rate.
    pub rate: f64,
    /// How long each load takes.
    pub time: Duration,
}

/// The hop under one load.
#[derive(Clone, Debug)]
pub struct Hop {
    /// Where people wrote, and how fast.
    pub name: String,
    /// Operations a second.
    pub rate: f64,
    /// Half of all took no longer than this, in milliseconds.
    pub p50: f64,
    /// And all but one in a hundred than this.
    pub p99: f64,
    /// Processor time of both nodes for one message, in microseconds.
    pub cpu: f64,
}

/// What a node heard that has nothing to do with the messages.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    /// How many nodes there were.
    pub nodes: usize,
    /// Messages that were delivered.
    pub delivered: u64,
    /// What came over the bus to the node with the sockets, for each of them.
    pub at_sockets: f64,
    /// The same at the node that is idle, the last one that came.
    pub at_idle: f64,
}

/// Where people write.
#[derive(Clone, Copy, Debug)]
enum By {
    /// In the web chat, where each post is answered.
    Chat,
    /// To a bot, which is read page by page.
    Bot,
}

/// Everything that runs.
struct Bench {
    cluster: Cluster,
    /// The node that people are at and that reads the bot, and the one with the sockets.
    near: usize,
    far: usize,
    writers: Vec<Writer>,
    telegram: Telegram,
    receipts: Arc<Receipts>,
}

/// Measures the hop at the fixed rate and as fast as it goes, then adds nodes one by one.
///
/// # Errors
///
/// When something was refused, lost or out of order.
///
/// # Panics
///
/// When a node does not start.
pub async fn measure(
    binary: &Path,
    folder: &Path,
    plan: &Plan,
    tell: impl Fn(&str),
) -> Result<(Vec<Hop>, Vec<Idle>), Error> {
    tell("starting two nodes");
    let mut bench = Bench::start(binary, folder, plan).await?;
    let mut hops = Vec::new();
    let at_a_time = format!("web chat, {} at a time", plan.at_once);
    for (by, what, fast) in
        [(By::Chat, "web chat", at_a_time.as_str()), (By::Bot, "a bot's updates", "a bot's updates")]
    {
        tell(what);
        bench.load(by, Pace::FlatOut, WARM_UP).await?;
        let paced = (format!("{what}, {} a second", plan.rate), Pace::PerSecond(plan.rate));
        let fast = (format!("{fast}, as fast as it goes"), Pace::FlatOut);
        for (name, pace) in [paced, fast] {
            let hop = bench.hop(name, by, pace, plan.time).await?;
            tell(&format!("{hop:?}"));
            hops.push(hop);
        }
    }
    let mut idle = Vec::new();
    while bench.cluster.len() < MOST_NODES {
        bench.cluster.add().await;
        tell(&format!("{} nodes", bench.cluster.len()));
        idle.push(bench.interest(plan.time).await?);
    }
    Ok((hops, idle))
}

impl Bench {
    async fn start(binary: &Path, folder: &Path, plan: &Plan) -> Result<Self, Error> {
        let receipts = Arc::new(Receipts::new());
        let telegram = Telegram::start(receipts.clone()).await?;
        let bot = telegram.configured(folder)?;
        let cluster = Setup::new(binary, folder).own_postgres().lines(&bot).start(2).await;
        let near = reader(&cluster).await?;
        let far = 1 - near;
        let rooms = furnish(&cluster[near], plan.sockets).await;
        route(&cluster[near], &rooms).await;
        let (relay, chat) = (cluster[far].url(), cluster[near].url());
        let writers = writers(&relay, &chat, &rooms, plan.at_once, &receipts).await?;
        Ok(Self { cluster, near, far, writers, telegram, receipts })
    }

    async fn load(&mut self, by: By, pace: Pace, time: Duration) -> Result<Done, Fault> {
        match by {
            By::Chat => {
                // The server may have ended connections over which nothing came meanwhile.
                let chat = self.cluster[self.near].url();
                for writer in &mut self.writers {
                    writer.poster = Poster::connect(&chat).await?;
                }
                load(&mut self.writers, &self.receipts, Work::Post, pace, time).await
            }
            By::Bot => {
                let seats = self.writers.iter().map(|writer| writer.seats.len()).sum::<usize>();
                let written = (0..seats).map(|number| *self.posted(number)).collect();
                let begun = self.telegram.begin(pace, time, written);
                let (count, written) = self.telegram.end().await;
                for (number, written) in written.into_iter().enumerate() {
                    *self.posted(number) = written;
                }
                rest(&self.receipts, begun, count).await
            }
        }
    }

    /// How much was written to the gateway of a number: they were dealt out to the writers.
    fn posted(&mut self, gateway: usize) -> &mut u64 {
        let count = self.writers.len();
        &mut self.writers[gateway % count].seats[gateway / count].posted
    }

    async fn hop(&mut self, name: String, by: By, pace: Pace, time: Duration) -> Result<Hop, Error> {
        let gauges = [self.near, self.far]
            .map(|node| Gauge::new(self.cluster.node(node).connector.process().id(), Path::new("")));
        let cpu = || gauges.iter().map(Gauge::cpu).sum::<f64>();
        let before = cpu();
        let Done { took, times } = self.load(by, pace, time).await?;
        let spent = cpu() - before;
        #[expect(clippy::cast_precision_loss, reason = "some hundred thousand")]
        let count = (times.len() as f64).max(1.0);
        let times: Vec<f64> = times.into_iter().map(|time| time.as_secs_f64() * 1e3).collect();
        let (p50, p99) = (percentile(&times, 50.0), percentile(&times, 99.0));
        Ok(Hop { name, rate: count / took.as_secs_f64(), p50, p99, cpu: spent / count * 1e6 })
    }

    /// What comes over the bus to the node with the sockets and to the last one that came.
    async fn interest(&mut self, time: Duration) -> Result<Idle, Error> {
        const RECEIVED: &str = "angelia_bus_counts_total{what=\"received\"}";
        // What a new node makes the others say is over.
        sleep(WARM_UP).await;
        let before = self.heard(RECEIVED).await;
        let done = self.load(By::Chat, Pace::PerSecond(STEADY), time).await?;
        let after = self.heard(RECEIVED).await;
        let delivered = done.times.len() as u64;
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        let each = |before: u64, after: u64| (after - before) as f64 / (delivered.max(1)) as f64;
        let (at_sockets, at_idle) = (each(before.0, after.0), each(before.1, after.1));
        Ok(Idle { nodes: self.cluster.len(), delivered, at_sockets, at_idle })
    }

    async fn heard(&self, counter: &str) -> (u64, u64) {
        let idle = self.cluster.len() - 1;
        (self.cluster[self.far].counter(counter).await, self.cluster[idle].counter(counter).await)
    }
}

/// The node that reads the bot, once they have shared out who does what.
async fn reader(cluster: &Cluster) -> Result<usize, Fault> {
    sleep(SHARED_OUT).await;
    let deadline = Instant::now() + READ;
    while Instant::now() < deadline {
        for node in 0..cluster.len() {
            let listed = cluster[node].command(&["bot", "list"]).await;
            let bots = listed["bots"].as_array().cloned().unwrap_or_default();
            if bots.iter().any(|bot| bot["platform"] == "telegram" && bot["health"]["state"] == "up") {
                return Ok(node);
            }
        }
    }
    Err(Fault::Broken("no node reads the bot".to_owned()))
}

/// Has what each person writes to the bot go to a gateway.
async fn route(server: &Connector, rooms: &[Room]) {
    let client = http_client();
    let routes = iter(rooms).enumerate().map(|(number, room)| {
        let route = json!({
            "place": Telegram::place(number),
            "tenant": tenant_of(number),
            "gateway": room.gateway.gateway_id,
            "allow": ["any"],
        });
        let client = &client;
        async move { server.admin(client, "routes", &route).await }
    });
    routes.buffered(AT_ONCE).for_each(async |_| {}).await;
}
