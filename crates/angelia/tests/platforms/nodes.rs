//! Bots of two nodes that share PostgreSQL and Redis.

use super::telegram_stage;
use angelia_services::{Postgres, Redis};
use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::discord::FakeDiscord;
use angelia_testkit::process::{free_port, until};
use angelia_testkit::socket::{Next, Socket};
use angelia_testkit::telegram::FakeTelegram;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::Instant;

const SOON: Duration = Duration::from_secs(60);

/// Two nodes.
struct Cluster {
    first: Connector,
    second: Connector,
    gateway: Credentials,
    _redis: Redis,
}

impl Cluster {
    /// Two nodes with these lines of configuration; providers reach them at the second one.
    async fn start(folder: &Path, lines: &str) -> Self {
        angelia_connector::ssrf_guard::install_tls_provider();
        let (store, redis) = (Postgres::shared().unwrap().fresh_database().unwrap(), Redis::start().unwrap());
        let lines = format!("[store]\nurl = {store:?}\n[bus]\nurl = {:?}\n{lines}", redis.url());
        let [first, second] = ["first", "second"].map(|name| folder.join(name));
        let ports = [free_port(), free_port()];
        let public_url = format!("http://127.0.0.1:{}", ports[1]);
        let variables = [("ANGELIA_SERVER__PUBLIC_URL", public_url.as_str())];
        let binary = telegram_stage::binary();
        let a = Connector::start_as(binary, &first, ports[0], &lines, &variables).await;
        std::fs::create_dir_all(second.join("data")).unwrap();
        std::fs::copy(first.join("data/master.key"), second.join("data/master.key")).unwrap();
        let b = Connector::start_as(binary, &second, ports[1], &lines, &variables).await;
        let gateway = a.gateway("acme", "gw-acme").await;
        Self { first: a, second: b, gateway, _redis: redis }
    }

    async fn route(&self, place: &str) {
        self.first.command(&["route", "add", "--tenant", "acme", "--allow", "any", place]).await;
    }

    /// The agent, at the second node.
    async fn agent(&self, platform: &str, bot: &str) -> Socket {
        let mut socket = Socket::dial(&self.second.url(), &self.gateway).await.expect("let in");
        socket.hello(platform, bot).await;
        assert_eq!(socket.frame().await["type"], "descriptor");
        socket
    }
}

/// How a node's one bot is.
async fn state(node: &Connector, platform: &str) -> String {
    let listed = node.command(&["bot", "list"]).await;
    let found = listed["bots"].as_array().unwrap().iter().find(|bot| bot["platform"] == platform);
    found.unwrap()["health"]["state"].as_str().unwrap().to_owned()
}

/// The next message the agent gets, acknowledged.
async fn heard(socket: &mut Socket) -> String {
    let frame = match socket.next(SOON).await {
        Next::Frame(frame) => frame,
        other => panic!("awaited a message, got {other:?}"),
    };
    assert_eq!(frame["type"], "inbound", "{frame}");
    socket.ack(&frame).await;
    frame["event"]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_is_posted_at_one_node_reaches_the_bot_at_the_other() {
    let folder = TempDir::new().unwrap();
    let telegram = FakeTelegram::start(folder.path(), &telegram_stage::unlimited()).await;
    let bot = telegram_stage::bot(&telegram, folder.path(), "ingest = \"webhook\"");
    let mut cluster = Cluster::start(folder.path(), &bot).await;
    cluster.route("telegram:*").await;
    let ann = telegram.person("Ann").await;
    let url = format!("{}/webhooks/telegram/telegram", cluster.second.url());
    let set = |state: &Value| state["webhook"]["url"] == url.as_str();
    telegram.wait_for_state("the webhook", SOON, set).await;
    let mut socket = cluster.agent("telegram", &telegram.bot_id().to_string()).await;
    assert_eq!(state(&cluster.first, "telegram").await, "up");
    assert_eq!(state(&cluster.second, "telegram").await, "up", "which the first one tells");
    telegram.say_many(ann, ann, "m{n}", 20).await;
    for number in 0..20 {
        assert_eq!(heard(&mut socket).await, format!("m{number}"));
    }
    cluster.first.process().kill().await;
    let killed = Instant::now();
    telegram.say_many(ann, ann, "n{n}", 5).await;
    for number in 0..5 {
        assert_eq!(heard(&mut socket).await, format!("n{number}"));
    }
    println!("updates come again {:?} after the bot's node was killed", killed.elapsed());
    assert_eq!(state(&cluster.second, "telegram").await, "up");
}

#[tokio::test]
async fn shards_are_spread_and_resumed_by_the_node_that_is_left() {
    let folder = TempDir::new().unwrap();
    let discord = FakeDiscord::start(folder.path(), &json!({ "shards": 2, "max_concurrency": 1 })).await;
    let token = folder.path().join("token");
    std::fs::write(&token, discord.token()).unwrap();
    let bot = format!(
        "[[bots]]\nplatform = \"discord\"\nid = {:?}\ntoken = {{ file = {token:?} }}\napi_url = {:?}\n\
         gateway_url = {:?}\n",
        discord.bot_id(),
        discord.url(),
        discord.gateway_url(),
    );
    let mut cluster = Cluster::start(folder.path(), &bot).await;
    cluster.route("discord:*").await;
    let ann = discord.user("ann").await;
    let dm = discord.dm(&ann).await;
    let guild = loop {
        let guild = discord.guild("ops").await;
        if (guild.id.parse::<u64>().unwrap() >> 22) % 2 == 1 {
            break guild;
        }
    };
    let channel = discord.channel(&guild.id, "general").await;
    // Nodes give each other their share once both have been there for a while.
    until("both nodes read a shard", SOON, async || {
        let [first, second] = [&cluster.first, &cluster.second];
        state(first, "discord").await == "up" && state(second, "discord").await == "up"
    })
    .await;
    assert_eq!(discord.count("/gateway/identifies").await, 2, "a shard that moved was resumed");
    assert_eq!(discord.count("/gateway/identifies_refused").await, 0);
    let mut socket = cluster.agent("discord", discord.bot_id()).await;
    for round in 0..3 {
        discord.say(&dm, &ann, &format!("first {round}")).await;
        assert_eq!(heard(&mut socket).await, format!("first {round}"));
        discord.mention(&channel, &ann, &format!("second {round}")).await;
        assert_eq!(heard(&mut socket).await, format!("second {round}"));
    }
    cluster.first.process().kill().await;
    let killed = Instant::now();
    discord.say(&dm, &ann, "meanwhile").await;
    discord.mention(&channel, &ann, "there too").await;
    let mut late = [heard(&mut socket).await, heard(&mut socket).await];
    println!("both shards are read {:?} after a node was killed", killed.elapsed());
    late.sort();
    assert_eq!(late, ["meanwhile", "there too"]);
    assert_eq!(discord.count("/gateway/identifies").await, 2, "nobody began a session");
}
