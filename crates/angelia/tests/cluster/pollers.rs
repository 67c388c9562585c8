//! A bot is read by one node at a time, and another goes on where it ended.

use super::stage::{
    BEYOND_THE_LEASE, BUSY, POLL, SECOND, SOON, Stage, TAKEN_OVER, bot, lease, setup, telegram, timed, until,
};
use angelia_testkit::connector::Credentials;
use angelia_testkit::socket::{Next, Socket};
use angelia_testkit::telegram::FakeTelegram;
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::sleep;

/// Two nodes, of which the first reads the bot; Ann's private chat with it is the tenant's.
struct Bot {
    stage: Stage,
    telegram: FakeTelegram,
    ann: i64,
}

impl Bot {
    async fn new(story: &str) -> Self {
        let (telegram, folder) = telegram(&format!("{story}-telegram")).await;
        let cluster = setup(story).lines(&bot(&telegram, &folder)).start(2).await;
        cluster.until_held(&lease(&telegram), &[0], SOON).await;
        let stage = Stage::on(cluster).await;
        let ann = telegram.person("Ann").await;
        let place = format!("telegram:{ann}");
        stage.cluster[0].command(&["route", "add", "--tenant", "acme", &place]).await;
        let polls = |state: &serde_json::Value| state["polling"] == true;
        telegram.wait_for_state("a poll", SOON, polls).await;
        Self { stage, telegram, ann }
    }

    async fn say(&self, text: &str) {
        self.telegram.say(self.ann, self.ann, text).await;
    }

    async fn join(&self, node: usize, gateway: &Credentials) -> Socket {
        let mut socket = Socket::dial(&self.stage.cluster[node].url(), gateway).await.expect("let in");
        socket.hello("telegram", &self.telegram.bot_id().to_string()).await;
        assert_eq!(socket.frame().await["type"], "descriptor");
        socket
    }

    /// Everything that comes until `count` different texts came: in order, and none twice.
    async fn take(&self, socket: &mut Socket, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        while texts.len() < count {
            let Next::Frame(frame) = socket.next(SOON).await else {
                panic!("{} of {count} came: {texts:?}", texts.len())
            };
            assert_eq!(frame["type"], "inbound", "{frame}");
            socket.ack(&frame).await;
            texts.push(frame["event"]["text"].as_str().unwrap().to_owned());
        }
        let different: HashSet<&String> = texts.iter().collect();
        assert_eq!(different.len(), texts.len(), "something came twice: {texts:?}");
        texts
    }

    /// Waits until the other node has a question open at Telegram.
    async fn until_read_by(&self, node: usize, limit: Duration) {
        self.stage.cluster.until_held(&lease(&self.telegram), &[node], limit).await;
    }

    async fn close(&self) {
        self.telegram.assert_no_violations().await;
        self.stage.cluster.assert_never_panicked();
    }
}

fn numbered(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| format!("m{n}")).collect()
}

#[tokio::test]
async fn a_poller_whose_node_is_killed_goes_on_elsewhere() {
    let mut bot = Bot::new("poller-killed").await;
    let gateway = bot.stage.gateway.clone();
    let mut socket = bot.join(1, &gateway).await;
    for text in numbered(0..5) {
        bot.say(&text).await;
    }
    assert_eq!(bot.take(&mut socket, 5).await, numbered(0..5));
    bot.stage.cluster.kill(0).await;
    for text in numbered(5..10) {
        bot.say(&text).await;
    }
    let came = timed("a poller after a kill -9", TAKEN_OVER + BUSY, bot.take(&mut socket, 5)).await;
    assert_eq!(came, numbered(5..10), "in order, from where the dead one was");
    assert_eq!(socket.next(SECOND).await, Next::Silence, "and nothing twice");
    bot.stage.cluster.restart(0).await;
    bot.say("m10").await;
    assert_eq!(bot.take(&mut socket, 1).await, ["m10"], "who comes back does not disturb it");
    bot.close().await;
}

#[tokio::test]
async fn a_node_that_is_asked_to_stop_hands_its_poller_over() {
    let mut bot = Bot::new("poller-stopped").await;
    let gateway = bot.stage.gateway.clone();
    let mut socket = bot.join(1, &gateway).await;
    bot.say("m0").await;
    assert_eq!(bot.take(&mut socket, 1).await, ["m0"]);
    bot.stage.cluster.node(0).connector.process().ask_to_stop();
    for text in numbered(1..6) {
        bot.say(&text).await;
        sleep(POLL).await;
    }
    let handed = bot.stage.cluster.until_held(&lease(&bot.telegram), &[1], SOON).await.1;
    println!("cluster: a poller after a SIGTERM is held elsewhere: {} ms", handed.as_millis());
    assert!(handed < Duration::from_secs(2), "a planned stop hands over at once, not after {handed:?}");
    assert_eq!(bot.take(&mut socket, 5).await, numbered(1..6));
    assert_eq!(socket.next(SECOND).await, Next::Silence, "and nothing twice");
    let log = bot.telegram.log().await;
    let conflicts = log.iter().filter(|call| call["status"] == 409).count();
    assert_eq!(conflicts, 0, "two polled at a time");
    bot.close().await;
}

#[tokio::test]
async fn a_poller_whose_node_stood_still_writes_nothing_late() {
    let mut bot = Bot::new("poller-frozen").await;
    let gateway = bot.stage.gateway.clone();
    let mut socket = bot.join(1, &gateway).await;
    bot.say("m0").await;
    assert_eq!(bot.take(&mut socket, 1).await, ["m0"]);
    bot.stage.cluster.freeze(0);
    // The open question of the frozen node is answered with this; its write would be late.
    bot.say("m1").await;
    sleep(BEYOND_THE_LEASE).await;
    bot.until_read_by(1, TAKEN_OVER + BUSY).await;
    bot.say("m2").await;
    bot.stage.cluster.thaw(0);
    assert_eq!(bot.take(&mut socket, 2).await, ["m1", "m2"], "each once and in order");
    bot.say("m3").await;
    assert_eq!(bot.take(&mut socket, 1).await, ["m3"]);
    assert_eq!(socket.next(SECOND).await, Next::Silence, "what the frozen one had is not written twice");
    assert_eq!(bot.stage.cluster.holder(&lease(&bot.telegram)).await, Some(1), "it has lost the bot");
    until("nothing waits", SOON, async || bot.stage.waiting(1).await == 0).await;
    bot.close().await;
}

#[tokio::test]
async fn the_poller_of_a_killed_node_goes_on_without_redis() {
    let mut bot = Bot::new("poller-deaf").await;
    let gateway = bot.stage.gateway.clone();
    let mut socket = bot.join(1, &gateway).await;
    bot.stage.without_redis().await;
    bot.say("m0").await;
    assert_eq!(bot.take(&mut socket, 1).await, ["m0"]);
    bot.stage.cluster.kill(0).await;
    bot.say("m1").await;
    let came =
        timed("a poller after a kill -9, without Redis", TAKEN_OVER + BUSY, bot.take(&mut socket, 1)).await;
    assert_eq!(came, ["m1"]);
    bot.close().await;
}
