//! What the connection goes through, and that nothing is lost or doubled by it.

use super::world::{World, texts};
use angelia_core::egress::Target;
use angelia_core::secret::Secret;
use angelia_core::store::{DirectoryStore, StreamStore};
use angelia_platforms::discord::Config;
use angelia_platforms::{BotState, Platform, Verdict};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

#[tokio::test]
async fn a_restart_resumes_and_loses_nothing() {
    let mut world = World::started(json!({})).await;
    let (ann, guild) = (world.fake.user("ann").await, world.fake.guild("ops").await);
    let channel = world.fake.channel(&guild.id, "general").await;
    let thread = world.fake.thread(&channel, "plan", &ann, None).await;
    world.fake.mention(&thread, &ann, "before").await;
    world.until_events(1).await;
    let begun = Instant::now();
    world.stop().await;
    // As long as an unconfirmed close would have been waited for.
    assert!(begun.elapsed() < Duration::from_secs(2), "Discord confirms at once");
    assert_eq!(world.fake.state().await["gateway"]["client_closes"], json!([4000]));
    world.fake.say(&thread, &ann, "meanwhile").await;
    world.fake.mention(&channel, &ann, "there too").await;
    world.start();
    let events = world.until_events(3).await;
    assert_eq!(texts(&events), ["before", "meanwhile", "there too"]);
    assert_eq!(events[1].source.chat_type, "thread", "known from the store");
    // Discord says that a session is resumed behind what it brings again.
    world.until("it resumed", |world| world.count("resumes") == 1).await;
    assert_eq!(world.count("identifies"), 0);
    assert_eq!(world.fake.count("/gateway/identifies").await, 1);
}

#[tokio::test]
async fn kills_in_the_middle_lose_nothing_and_keep_the_order() {
    let mut world = World::started(json!({"limits": false})).await;
    let ann = world.fake.user("ann").await;
    let dm = world.fake.dm(&ann).await;
    for round in 0..5 {
        let content = format!("{round}-{{n}}");
        world.fake.say_many(&dm, &ann, &content, 40).await;
        let so_far = round * 40 + 5;
        world.until_at_least(so_far).await;
        world.kill().await;
        world.fake.say(&dm, &ann, &format!("{round}-down")).await;
        world.start();
    }
    let events = world.until_events(5 * 41).await;
    let expected: Vec<String> = (0..5)
        .flat_map(|round| (0..40).map(move |n| format!("{round}-{n}")).chain([format!("{round}-down")]))
        .collect();
    assert_eq!(texts(&events), expected);
    assert_eq!(world.fake.count("/gateway/identifies").await, 1);
}

#[tokio::test]
async fn a_lost_session_is_read_back() {
    let mut world = World::started(json!({"identify_seconds": 0.2})).await;
    let (ann, guild) = (world.fake.user("ann").await, world.fake.guild("ops").await);
    let channel = world.fake.channel(&guild.id, "general").await;
    let busy = world.fake.channel(&guild.id, "busy").await;
    let dm = world.fake.dm(&ann).await;
    world.fake.mention(&channel, &ann, "one").await;
    world.fake.say(&dm, &ann, "two").await;
    world.fake.mention(&busy, &ann, "three").await;
    world.until_events(3).await;
    world.stop().await;
    world.fake.order("gateway/expire", json!({})).await;
    world.fake.mention(&channel, &ann, "four").await;
    world.fake.say(&channel, &ann, "to nobody").await;
    world.fake.say_many(&busy, &ann, "chatter {n}", 120).await;
    world.fake.say(&dm, &ann, "five").await;
    world.start();
    let events = world.until_events(5).await;
    let mut late = texts(&events[3..]);
    late.sort_unstable();
    assert_eq!(late, ["five", "four"]);
    world.until("the gap is counted", |world| world.count("gaps") == 1).await;
    let missed = world.ports.records.missed(&world.key(), 10).await.unwrap();
    assert_eq!((missed.len(), missed[0].chat_id.as_deref()), (1, Some(busy.as_str())));
    assert_eq!((world.count("identifies"), world.count("resume_failures")), (1, 1));
    world.fake.say(&dm, &ann, "six").await;
    assert_eq!(world.until_events(6).await[5].text, "six");
}

#[tokio::test]
async fn connections_that_break_are_made_again() {
    let world = World::started(json!({"heartbeat_interval": 500})).await;
    let ann = world.fake.user("ann").await;
    let dm = world.fake.dm(&ann).await;
    let faults: [(&str, Value); 4] = [
        ("gateway/close", json!({})),
        ("gateway/close", json!({"code": 4000})),
        ("gateway/reconnect", json!({})),
        ("gateway/zombie", json!({"mute": true})),
    ];
    for (done, (fault, ask)) in faults.into_iter().enumerate() {
        world.fake.order(fault, ask.clone()).await;
        world.fake.say(&dm, &ann, &format!("after {fault} {ask}")).await;
        world.until_events(done + 1).await;
        world.until("it resumed", |world| world.count("resumes") > done as u64).await;
    }
    assert_eq!(world.count("identifies"), 1);
    assert_eq!(world.bot().health().unwrap().state, BotState::Up);
}

#[tokio::test]
async fn a_session_that_cannot_be_resumed_is_given_up() {
    let world = World::started(json!({"identify_seconds": 0.2})).await;
    let ann = world.fake.user("ann").await;
    let dm = world.fake.dm(&ann).await;
    world.fake.say(&dm, &ann, "one").await;
    world.until_events(1).await;
    world.fake.order("gateway/refuse_resumes", json!({"count": 50, "code": 4000})).await;
    world.fake.close_gateway(None).await;
    world.fake.say(&dm, &ann, "two").await;
    assert_eq!(texts(&world.until_events(2).await), ["one", "two"]);
    assert_eq!((world.count("resume_failures"), world.count("identifies")), (3, 2));
    world.fake.order("gateway/invalidate", json!({"resumable": false})).await;
    world.fake.say(&dm, &ann, "three").await;
    assert_eq!(world.until_events(3).await[2].text, "three");
}

#[tokio::test]
async fn nothing_is_read_past_what_is_not_committed() {
    let mut world = World::started(json!({"heartbeat_interval": 200})).await;
    let ann = world.fake.user("ann").await;
    let dm = world.fake.dm(&ann).await;
    world.fake.say(&dm, &ann, "one").await;
    world.until_events(1).await;
    let stuck = world.disk().refuse_cursors();
    let session = async |world: &World| world.fake.state().await["gateway"]["sessions"][0].clone();
    let before = session(&world).await["seq"].as_u64().unwrap();
    world.fake.say_many(&dm, &ann, "two {n}", 3).await;
    let is_down = |world: &World| world.bot().health().unwrap().state == BotState::Down;
    world.until("it says that the store does not commit", is_down).await;
    // Fixed pause: several heartbeats would have gone out by now, and nothing tells that one did not.
    sleep(Duration::from_secs(1)).await;
    let reported = session(&world).await["reported"].as_u64().unwrap();
    assert!(reported <= before, "Discord was told of {reported}, and {before} is what is kept");
    world.kill().await;
    drop(stuck);
    world.start();
    assert_eq!(texts(&world.until_events(4).await), ["one", "two 0", "two 1", "two 2"]);
    assert_eq!(world.fake.count("/gateway/identifies").await, 1);
}

/// A store that does not commit may still be read, and has what was there before.
#[tokio::test]
async fn what_a_commit_teaches_stays_at_hand_while_it_is_tried() {
    let world = World::started(json!({"heartbeat_interval": 200})).await;
    let (ann, guild) = (world.fake.user("ann").await, world.fake.guild("ops").await);
    let channel = world.fake.channel(&guild.id, "general").await;
    world.fake.mention(&channel, &ann, "one").await;
    world.until_events(1).await;
    let stuck = world.disk().refuse_cursors();
    world.fake.order("rename", json!({"channel": channel, "name": "renamed"})).await;
    let is_down = |world: &World| world.bot().health().unwrap().state == BotState::Down;
    world.until("it says that the store does not commit", is_down).await;
    // Somebody writes there meanwhile, and has the chat looked up.
    world.bot().recall(&Target::chat(&channel)).await.unwrap();
    drop(stuck);
    world.fake.mention(&channel, &ann, "two").await;
    let events = world.until_events(2).await;
    assert_eq!(events[1].source.chat_name.as_deref(), Some("ops / #renamed"));
}

#[tokio::test]
async fn the_position_moves_with_heartbeats_too() {
    let mut world = World::started(json!({"heartbeat_interval": 300})).await;
    let (ann, guild) = (world.fake.user("ann").await, world.fake.guild("ops").await);
    let channel = world.fake.channel(&guild.id, "general").await;
    let last = world.fake.say_many(&channel, &ann, "chatter {n}", 20).await.pop();
    world.until("all was heard", |world| world.door.dropped.lock().unwrap().len() == 20).await;
    let (ports, key) = (world.ports.clone(), world.key());
    let mut seen = None;
    for _ in 0..200 {
        seen = ports.records.chat(&key, &channel).await.unwrap().and_then(|known| known.last_message);
        if seen == last {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(seen, last, "the newest message of a chat is noted with the next heartbeat");
    world.kill().await;
    world.start();
    world.until("it resumed", |world| world.count("resumes") == 1).await;
    assert_eq!(world.door.dropped.lock().unwrap().len(), 20, "nothing came again");
}

#[tokio::test]
async fn every_shard_hears_its_own_guilds() {
    let mut world = World::new(json!({"shards": 2})).await;
    let ann = world.fake.user("ann").await;
    let mut channels = Vec::new();
    for shard in 0..2 {
        let guild = world.fake.make("guild", json!({"name": "ops", "shard": [shard, 2]})).await;
        channels.push(world.fake.channel(&guild, "general").await);
    }
    world.start();
    world.until("one identified", |world| world.count("identifies") == 1).await;
    assert_eq!(
        world.bot().health().unwrap().state,
        BotState::Starting,
        "the other one is still disconnected"
    );
    world.until("both identified", |world| world.count("identifies") == 2).await;
    assert_eq!(world.bot().health().unwrap().state, BotState::Up);
    for channel in &channels {
        world.fake.mention(channel, &ann, "hi").await;
    }
    let dm = world.fake.dm(&ann).await;
    world.fake.say(&dm, &ann, "hi").await;
    world.until_events(3).await;
    world.kill().await;
    for channel in &channels {
        world.fake.mention(channel, &ann, "again").await;
    }
    world.start();
    world.until_events(5).await;
    world.until("both resumed", |world| world.count("resumes") == 2).await;
    let streams = world.ports.records.cursors(&world.key()).await.unwrap();
    assert_eq!(streams.iter().map(|cursor| &*cursor.stream).collect::<Vec<_>>(), ["shard:0/2", "shard:1/2"]);
}

#[tokio::test]
async fn what_an_operator_has_to_mend_stops_the_bot() {
    let mut world = World::new(json!({"privileged": []})).await;
    let good = world.config();
    let stops = async |world: &mut World, config: Config, word: &str| {
        world.start_with(config);
        world.until(word, |world| world.bot().health().unwrap().state == BotState::Stopped).await;
        let why = world.bot().health().unwrap().why.unwrap();
        assert!(why.contains(word), "{why}");
        let checkup = world.bot().check("http://127.0.0.1").await.unwrap();
        assert!(!checkup.is_usable(), "{checkup:?}");
        assert!(
            checkup.findings.iter().all(|finding| finding.verdict == Verdict::Good || finding.next.is_some())
        );
        world.stop().await;
    };
    stops(&mut world, Config { token: Secret::new("wrong"), ..good.clone() }, "Reset Token").await;
    stops(&mut world, Config { id: "12345".into(), ..good.clone() }, "configured with the id 12345").await;
    stops(&mut world, good, "Message Content Intent").await;
}

#[tokio::test]
async fn a_check_tells_what_the_bot_can_see() {
    let world = World::started(json!({})).await;
    world.fake.guild("ops").await;
    let checkup = world.bot().check("http://127.0.0.1").await.unwrap();
    assert!(checkup.is_usable(), "{checkup:?}");
    assert!(checkup.identity.unwrap().contains(world.fake.bot_id()));
    let found: Vec<&str> = checkup.findings.iter().map(|finding| finding.what.as_str()).collect();
    for part in ["the token is that of", "may read messages", "in 1 server(s)", "session starts left"] {
        assert!(found.iter().any(|what| what.contains(part)), "{part}: {found:?}");
    }
}
