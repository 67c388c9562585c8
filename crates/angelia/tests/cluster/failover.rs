//! How long it takes until another node does what one did, in one table: after a `kill -9` of the
//! node, with Redis and without.

use super::stage::{
    BUSY, SECOND, SOON, Stage, TAKEN_OVER, bot, discord_bot, end_of, folder, lease, setup, telegram,
};
use angelia_testkit::discord::FakeDiscord;
use angelia_testkit::socket::{Next, Socket};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

/// What is looked at, how long it took, and what is promised.
type Row = (&'static str, Duration, Duration);

async fn join(stage: &Stage, (platform, bot): (&str, &str), node: usize) -> Socket {
    let mut agent = Socket::dial(&stage.cluster[node].url(), &stage.gateway).await.expect("let in");
    agent.hello(platform, bot).await;
    assert_eq!(agent.frame().await["type"], "descriptor");
    agent
}

async fn rows(with_redis: bool) -> Vec<Row> {
    let story = if with_redis { "failover" } else { "failover-deaf" };
    let (telegram, folder) = telegram(&format!("{story}-telegram")).await;
    let cluster = setup(story).lines(&bot(&telegram, &folder)).start(3).await;
    cluster.until_held(&lease(&telegram), &[0], SOON).await;
    let mut stage = Stage::on(cluster).await;
    let ann = telegram.person("Ann").await;
    stage.cluster[0].command(&["route", "add", "--tenant", "acme", &format!("telegram:{ann}")]).await;
    let mut rows = Vec::new();
    if !with_redis {
        stage.without_redis().await;
    }

    // The socket is on the node that is killed first, the bot on the one that is killed then.
    let bot = telegram.bot_id().to_string();
    let mut agent = join(&stage, ("telegram", &bot), 1).await;
    telegram.say(ann, ann, "m0").await;
    assert_eq!(agent.take_text().await, "m0");
    // What is acknowledged and not yet committed comes again after a kill.
    stage.until_waiting(0, 0).await;
    stage.cluster.kill(1).await;
    telegram.say(ann, ann, "m1").await;
    let began = Instant::now();
    let mut agent = join(&stage, ("telegram", &bot), 2).await;
    assert_eq!(agent.take_text().await, "m1");
    rows.push(("socket", began.elapsed(), TAKEN_OVER));

    stage.cluster.kill(0).await;
    let began = Instant::now();
    telegram.say(ann, ann, "m2").await;
    agent
        .send(&json!({"type": "outbound", "requestId": "late", "action":
            {"op": "send", "chat_id": ann.to_string(), "content": "answer"}}))
        .await;
    let (mut poller, mut outbox) = (None, None);
    while poller.is_none() || outbox.is_none() {
        match agent.next(SOON).await {
            Next::Frame(frame) if frame["type"] == "inbound" => {
                assert_eq!(frame["event"]["text"], "m2");
                agent.ack(&frame).await;
                poller = Some(began.elapsed());
            }
            Next::Frame(frame) => {
                assert_eq!(frame["result"]["success"], true, "{frame}");
                outbox = Some(began.elapsed());
            }
            other => panic!("poller {poller:?}, outbox {outbox:?}: {other:?}"),
        }
    }
    assert_eq!(telegram.bot_texts(ann).await, ["answer"], "once");
    rows.push(("poller", poller.unwrap(), TAKEN_OVER));
    rows.push(("outbox", outbox.unwrap(), TAKEN_OVER));

    stage.cluster.restart(0).await;
    let began = Instant::now();
    stage.cluster[0].command(&["gateway", "revoke", "gw"]).await;
    assert_eq!(end_of(&mut agent).await, 4401);
    rows.push(("revocation", began.elapsed(), SECOND));
    stage.cluster.assert_never_panicked();
    rows
}

/// How long until a shard is read again whose node is killed: resumed by another, without an identify.
async fn shard(with_redis: bool) -> Row {
    let story = if with_redis { "failover-shard" } else { "failover-shard-deaf" };
    let folder = folder(&format!("{story}-discord"));
    let discord = FakeDiscord::start(&folder, &json!({})).await;
    let mut stage = Stage::on(setup(story).lines(&discord_bot(&discord, &folder)).start(2).await).await;
    let ann = discord.user("ann").await;
    let dm = discord.dm(&ann).await;
    stage.cluster[0].command(&["route", "add", "--tenant", "acme", &format!("discord:dm:{ann}")]).await;
    let lease = format!("shard discord/{}/0/1", discord.bot_id());
    let (holder, _) = stage.cluster.until_held(&lease, &[0, 1], SOON).await;
    if !with_redis {
        stage.without_redis().await;
    }
    let mut agent = join(&stage, ("discord", discord.bot_id()), 1 - holder).await;
    discord.say(&dm, &ann, "m0").await;
    assert_eq!(agent.take_text().await, "m0");
    stage.cluster.kill(holder).await;
    discord.say(&dm, &ann, "m1").await;
    let began = Instant::now();
    assert_eq!(agent.take_text().await, "m1");
    let took = began.elapsed();
    assert_eq!(discord.count("/gateway/identifies").await, 1, "the session was resumed");
    stage.cluster.assert_never_panicked();
    ("shard", took, TAKEN_OVER)
}

#[tokio::test]
async fn what_a_failover_takes() {
    let (mut up, mut down) = tokio::join!(rows(true), rows(false));
    let shards = tokio::join!(shard(true), shard(false));
    up.push(shards.0);
    down.push(shards.1);
    println!("failover | with Redis | without Redis | promised");
    println!("---------|-----------:|--------------:|---------:");
    for ((what, with, promised), (_, without, _)) in up.iter().zip(&down) {
        let shown = [with, without, promised].map(|took| format!("{:.2} s", took.as_secs_f64()));
        println!("{what} | {} | {} | {}", shown[0], shown[1], shown[2]);
    }
    for (what, took, promised) in up.iter().chain(&down) {
        assert!(*took < *promised + BUSY, "{what} took {took:?}, and {promised:?} are promised");
    }
}
