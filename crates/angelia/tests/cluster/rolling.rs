//! A rolling restart of three nodes under traffic: nobody notices.

use super::scene::{NODES, Room, Scene, Sizes, furnish};
use super::traffic::{Traffic, post};
use angelia_testkit::cluster::Cluster;
use angelia_testkit::newer_gateway::{NewerGateway, Settings};
use angelia_testkit::webchat::http_client;
use futures_util::future::join_all;
use parking_lot::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a node waits for turns, and how long turns take.
const DRAIN: &str = "12s";
const TURN: Duration = Duration::from_secs(4);
/// How soon people are told that an agent is away, in every chat.
const LINES: &str = "[notices]\naway = \"all\"\naway_after = \"5s\"\n";
/// Agents whose turns take a while.
const THINKERS: usize = 4;
/// Fixed pause: between two lines of a person who talks with one.
const PACE: Duration = Duration::from_millis(1_700);
/// Fixed pause: so long all is well before the next node is restarted.
const WELL: Duration = Duration::from_secs(2);
/// How long the last turns may take.
const SETTLED: Duration = Duration::from_secs(60);

/// An agent whose turns take a while, and who talks with it.
struct Thinker {
    gateway: NewerGateway,
    room: Room,
    said: Mutex<Vec<String>>,
}

impl Thinker {
    async fn start(cluster: &Cluster, scene: &Scene, number: usize) -> Self {
        let (credentials, room) = furnish(cluster, &format!("thinker-{number}"), &[], "collect").await;
        let settings = Settings::default().turn(TURN);
        let gateway = NewerGateway::start(&scene.balancer.url(), &credentials, settings).await;
        Self { gateway, room, said: Mutex::default() }
    }

    async fn talk(&self, url: &str, traffic: &Traffic) {
        let http = http_client();
        for number in 0.. {
            let text = format!("{}x{number}x", self.room.name);
            while !post(&http, url, &self.room.name, &self.room.key, &text).await {
                traffic.refused.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_millis(50)).await;
            }
            self.said.lock().push(text);
            if traffic.is_over() {
                return;
            }
            sleep(PACE).await;
        }
    }

    /// What agents wrote in the room, as it stands.
    async fn lines(&self, url: &str) -> Vec<(i64, String)> {
        let (mut after, mut all) = (0, Vec::new());
        loop {
            let url = format!("{url}/chat/api/rooms/{}/messages?after={after}", self.room.name);
            let page = http_client().get(url).bearer_auth(&self.room.key).send().await.unwrap();
            let page: serde_json::Value = page.json().await.unwrap();
            let lines = page["messages"].as_array().unwrap();
            let Some(last) = lines.last() else { return all };
            after = last["id"].as_i64().unwrap();
            let own = lines.iter().filter(|line| line["from_agent"] == true);
            all.extend(own.map(|it| (it["id"].as_i64().unwrap(), it["text"].as_str().unwrap().to_owned())));
        }
    }

    /// Everything reached the model, once and in order; every turn ran to its end, and its answer stands.
    async fn judge(&self, url: &str) {
        let (said, chat) = (self.said.lock().clone(), format!("web-{}", self.room.name));
        self.gateway.wait_for_text(said.last().unwrap(), SETTLED).await;
        self.gateway.wait_until_free(SETTLED).await;
        assert_eq!(self.gateway.lines(&chat), said);
        self.gateway.assert_unharmed();
        assert_eq!(self.gateway.repetitions(), 0, "{:?}", self.gateway.ends());
        let ended: usize = self.gateway.turns().values().map(|turns| turns.ended).sum();
        let began = Instant::now();
        while self.room.reader.answers().len() < ended && began.elapsed() < SETTLED {
            sleep(Duration::from_millis(50)).await;
        }
        // Whatever the connector says itself stands there as well: that somebody is away, say.
        let shown = self.room.reader.answers();
        let lines = self.lines(url).await;
        assert_eq!(shown.len(), ended, "shown: {shown:?}\nread: {lines:?}");
        assert!(said.iter().all(|text| shown.iter().any(|it| it.contains(text))), "{shown:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_is_not_noticed() {
    let sizes = Sizes { gateways: 12, published: 0, disk: 1_024 };
    let (mut cluster, scene) = Scene::begin("rolling", &format!("drain = {DRAIN:?}\n{LINES}"), &sizes).await;
    let thinkers = join_all((0..THINKERS).map(|number| Thinker::start(&cluster, &scene, number))).await;
    let (traffic, url) = (Traffic::new(25), scene.balancer.url());
    let restarts = async {
        for node in 0..NODES {
            sleep(WELL).await;
            let took = cluster.stop(node).await;
            cluster.restart(node).await;
            println!("rolling restart: node {node} was gone after {} ms", took.as_millis());
        }
        sleep(WELL).await;
        traffic.end();
    };
    let talks = join_all(thinkers.iter().map(|thinker| thinker.talk(&url, &traffic)));
    let urls = [url.clone()];
    tokio::join!(restarts, traffic.flow(&scene, &urls), talks);
    scene.settle().await;
    for thinker in &thinkers {
        thinker.judge(&url).await;
    }
    let verdict = scene.verdict().await;
    let refused = traffic.refused.load(Ordering::Relaxed);
    let turns: usize = thinkers.iter().flat_map(|it| it.gateway.turns()).map(|(_, turns)| turns.ended).sum();
    println!("rolling restart: {verdict}; {turns} turns of {TURN:?}, {refused} posts made again");
    cluster.assert_never_panicked();
    assert!(verdict.faults.is_empty(), "{}", verdict.faults.join("\n"));
    assert_eq!(verdict.redeliveries, 0, "what was acknowledged was settled before a node went");
    nobody_was_told(&scene).await;
}

/// In no chat did the connector itself say a word.
async fn nobody_was_told(scene: &Scene) {
    for tenant in &scene.tenants {
        let at_telegram = scene.telegram.bot_texts(tenant.person).await;
        let at_discord = scene.discord.answers(&tenant.channel).await.into_iter().map(|it| it.content);
        let all = tenant.room.reader.answers().into_iter().chain(at_telegram).chain(at_discord);
        let own: Vec<String> = all.filter(|text| !text.starts_with("re:")).collect();
        assert!(own.is_empty(), "{own:?}");
    }
}
