//! Connections that do not live, and what is found again after an outage.

use super::world::{World, texts};
use angelia_core::egress::Target;
use angelia_core::store::{DirectoryStore, StreamStore};
use angelia_platforms::{BotState, Platform};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How many connections are made while each of them ends like this.
async fn connections(world: &World, fault: &str, ask: Value, span: Duration) -> u64 {
    let made = async || world.fake.count("/gateway/connections").await;
    let before = made().await;
    world.fake.order(fault, ask).await;
    world.fake.close_gateway(None).await;
    sleep(span).await;
    let after = made().await;
    world.fake.order("fault/clear", json!({})).await;
    after - before
}

#[tokio::test]
async fn connections_that_do_not_live_are_made_ever_more_slowly() {
    let world = World::started(json!({"heartbeat_interval": 60_000, "identify_seconds": 0.1})).await;
    let (ann, span) = (world.fake.user("ann").await, Duration::from_secs(5));
    let many = |extra: Value| {
        let mut ask = json!({"count": 100_000});
        ask.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        ask
    };
    let closed = connections(&world, "gateway/refuse_greetings", many(json!({"code": 4000})), span).await;
    assert!((2..=5).contains(&closed), "{closed} connections closed before the greeting");
    let hears = |world: &World| world.bot().health().unwrap().state == BotState::Up;
    world.until("it hears again", hears).await;
    let silent = connections(&world, "gateway/refuse_greetings", many(json!({})), span).await;
    assert!(silent <= 12, "{silent} connections ended without a word");
    world.fake.order("gateway/heartbeat", json!({})).await;
    let dm = world.fake.dm(&ann).await;
    world.fake.say(&dm, &ann, "still there").await;
    world.until_events(1).await;
}

#[tokio::test]
async fn a_session_that_ends_at_once_is_not_resumed_at_once() {
    let world = World::started(json!({"heartbeat_interval": 60_000, "identify_seconds": 0.1})).await;
    let span = Duration::from_secs(5);
    let ended = connections(&world, "gateway/end_early", json!({"count": 100_000}), span).await;
    assert!((2..=5).contains(&ended), "{ended} connections that ended after they resumed");
    assert_eq!(world.count("identifies"), 1);
    assert_eq!(world.count("resume_failures"), 0, "each of them resumed");
}

#[tokio::test]
async fn a_session_is_resumed_elsewhere_if_nobody_greets_at_its_own_address() {
    let mut world = World::started(json!({"identify_seconds": 0.2})).await;
    let ann = world.fake.user("ann").await;
    let dm = world.fake.dm(&ann).await;
    world.fake.say(&dm, &ann, "one").await;
    world.until_events(1).await;
    world.stop().await;
    let silent = World::new(json!({})).await;
    silent.fake.order("gateway/refuse_greetings", json!({"count": 100_000})).await;
    let mut position = world.position().await;
    position["resume_url"] = silent.fake.gateway_url().into();
    world.set_position(&position).await;
    world.fake.say(&dm, &ann, "two").await;
    world.start();
    assert_eq!(texts(&world.until_events(2).await), ["one", "two"]);
    world.until("it resumed", |world| world.count("resumes") == 1).await;
    assert_eq!(world.count("identifies"), 0, "the session is not lost");
    assert!(silent.fake.count("/gateway/connections").await >= 3, "that address was tried");
}

#[tokio::test]
async fn a_long_outage_is_read_back_from_its_beginning() {
    let mut world = World::started(json!({"identify_seconds": 0.2})).await;
    let ann = world.fake.user("ann").await;
    let dm = world.fake.dm(&ann).await;
    world.fake.say(&dm, &ann, "one").await;
    world.until_events(1).await;
    world.stop().await;
    // As if all of that had been three days ago.
    let days = 3 * 24 * 60 * 60 * 1_000;
    world.disk().age_chats(Duration::from_millis(days as u64));
    let mut position = world.position().await;
    position["heard_at"] = (position["heard_at"].as_i64().unwrap() - days).into();
    world.set_position(&position).await;
    world.fake.order("gateway/expire", json!({})).await;
    world.fake.say(&dm, &ann, "two").await;
    world.start();
    assert_eq!(texts(&world.until_events(2).await), ["one", "two"]);
    world.until("it is over", |world| world.count("identifies") == 1 && world.count("gaps") == 1).await;
    let missed = world.ports.records.missed(&world.key(), 10).await.unwrap();
    assert_eq!((missed.len(), missed[0].chat_id.as_deref()), (1, None), "nobody knows of the others");
    assert!(missed[0].until.0 - missed[0].since.0 >= days, "{missed:?}");
}

#[tokio::test]
async fn channels_that_were_silent_before_are_read_back_and_those_that_went_forgotten() {
    let mut world = World::started(json!({"identify_seconds": 0.2})).await;
    let (ann, guild) = (world.fake.user("ann").await, world.fake.guild("ops").await);
    let left = world.fake.guild("left").await;
    let channel = world.fake.channel(&guild.id, "general").await;
    let (silent, gone) =
        (world.fake.channel(&guild.id, "new").await, world.fake.channel(&guild.id, "x").await);
    let elsewhere = world.fake.channel(&left.id, "general").await;
    for chat in [&channel, &gone, &elsewhere] {
        world.fake.mention(chat, &ann, "before").await;
    }
    world.until_events(3).await;
    world.stop().await;
    world.fake.order("gateway/expire", json!({})).await;
    world.fake.mention(&silent, &ann, "meanwhile").await;
    world.fake.order("remove", json!({"channel": gone})).await;
    world.fake.order("kick", json!({"guild": left.id})).await;
    world.start();
    let events = world.until_events(4).await;
    assert_eq!((events[3].text.as_str(), &events[3].source.chat_id), ("meanwhile", &silent));
    let (ports, key) = (world.ports.clone(), world.key());
    for (chat, is_known) in [(&channel, true), (&silent, true), (&gone, false), (&elsewhere, false)] {
        assert_eq!(ports.records.chat(&key, chat).await.unwrap().is_some(), is_known, "{chat}");
    }
}

/// How often the messages of a chat were asked for.
async fn asked(world: &World, chat: &str) -> usize {
    let requests = world.fake.requests(0).await;
    let reads = requests.iter().filter(|request| request.method == "GET");
    reads.filter(|request| request.path.contains(&format!("channels/{chat}/messages"))).count()
}

#[tokio::test]
async fn only_what_a_route_covers_is_read_back() {
    let mut world = World::started(json!({"identify_seconds": 0.2})).await;
    let (ann, guild) = (world.fake.user("ann").await, world.fake.guild("ops").await);
    let channel = world.fake.channel(&guild.id, "general").await;
    let (recent, silent) =
        (world.fake.channel(&guild.id, "recent").await, world.fake.channel(&guild.id, "silent").await);
    let thread = world.fake.thread(&channel, "plan", &ann, None).await;
    for chat in [&channel, &recent] {
        world.fake.mention(chat, &ann, "before").await;
    }
    world.until_events(2).await;
    world.stop().await;
    *world.door.place.lock().unwrap() = format!("discord:{}/{channel}", guild.id);
    world.fake.order("gateway/expire", json!({})).await;
    for chat in [&recent, &silent, &channel, &thread] {
        world.fake.mention(chat, &ann, "meanwhile").await;
    }
    world.start();
    world.until_events(4).await;
    world.fake.mention(&channel, &ann, "after").await;
    let events = world.until_events(5).await;
    let chats: Vec<&str> = events[2..].iter().map(|event| event.source.chat_id.as_str()).collect();
    assert_eq!(chats, [&channel, &thread, &channel], "a thread is its channel's");
    for (chat, times) in [(&recent, 0), (&silent, 0), (&channel, 1), (&thread, 1)] {
        assert_eq!(asked(&world, chat).await, times, "{chat}");
    }
    assert_eq!(world.count("gaps"), 0);
}

#[tokio::test]
async fn a_server_that_refuses_is_not_asked_for_all_of_its_channels() {
    const HIDDEN: usize = 12;
    let mut world = World::started(json!({"identify_seconds": 0.2})).await;
    let (ann, guild) = (world.fake.user("ann").await, world.fake.guild("ops").await);
    let dm = world.fake.dm(&ann).await;
    world.fake.say(&dm, &ann, "before").await;
    let mut hidden = Vec::new();
    for n in 0..HIDDEN {
        hidden.push(world.fake.channel(&guild.id, &format!("hidden-{n}")).await);
    }
    world.until_events(1).await;
    world.stop().await;
    world.fake.order("gateway/expire", json!({})).await;
    for channel in &hidden {
        world.fake.mention(channel, &ann, "meanwhile").await;
        world.fake.order("hide", json!({"channel": channel, "hidden": true})).await;
    }
    world.fake.say(&dm, &ann, "meanwhile").await;
    world.start();
    world.until("all are gaps", |world| world.count("gaps") == HIDDEN as u64).await;
    let mut times = 0;
    for channel in &hidden {
        times += asked(&world, channel).await;
    }
    // Some were on their way when the third was refused.
    assert!((3..=6).contains(&times), "{times} refusals");
    assert_eq!(texts(&world.until_events(2).await), ["before", "meanwhile"], "others are read");
}

#[tokio::test]
async fn an_outage_that_is_not_over_is_not_forgotten() {
    let mut world = World::started(json!({"identify_seconds": 0.2})).await;
    let (ann, guild) = (world.fake.user("ann").await, world.fake.guild("ops").await);
    let dm = world.fake.dm(&ann).await;
    world.fake.say(&dm, &ann, "before").await;
    let silent = world.fake.channel(&guild.id, "silent").await;
    world.until_events(1).await;
    world.stop().await;
    let owed = async |world: &World| world.position().await["owed_since"].as_i64();
    assert_eq!(owed(&world).await, None);
    world.fake.order("gateway/expire", json!({})).await;
    world.fake.mention(&silent, &ann, "meanwhile").await;
    let hangs = json!({"path": format!("channels/{silent}/messages"), "how": "hang", "seconds": 600});
    world.fake.fault(hangs).await;
    world.start();
    let deadline = Instant::now() + super::world::SOON;
    while asked(&world, &silent).await == 0 {
        assert!(Instant::now() < deadline, "the channel is read back");
        sleep(Duration::from_millis(20)).await;
    }
    world.kill().await;
    let since = owed(&world).await.expect("the guild has not reported");
    world.fake.order("fault/clear", json!({})).await;
    world.start();
    world.until("the gap is noted", |world| world.count("gaps") == 1).await;
    let missed = world.ports.records.missed(&world.key(), 10).await.unwrap();
    assert_eq!((missed.len(), missed[0].chat_id.as_deref(), missed[0].since.0), (1, None, since));
    world.until("it resumed", |world| world.count("resumes") == 1).await;
    world.stop().await;
    assert_eq!(owed(&world).await, None, "once is enough");
    world.fake.order("gateway/expire", json!({})).await;
    world.start();
    assert_eq!(texts(&world.until_events(2).await), ["before", "meanwhile"], "the guild reported");
    world.fake.say(&dm, &ann, "after").await;
    world.until_events(3).await;
    world.stop().await;
    assert_eq!(owed(&world).await, None, "an outage that is over owes nothing");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_discord() {
    let mut world = World::started(json!({})).await;
    let ann = world.fake.user("ann").await;
    let dm = world.fake.dm(&ann).await;
    world
        .fake
        .fault(json!({"path": format!("channels/{dm}$"), "how": "hang", "seconds": 600, "count": 1}))
        .await;
    world.fake.say(&dm, &ann, "first").await;
    let deadline = Instant::now() + super::world::SOON;
    while !world.fake.requests(0).await.iter().any(|request| request.path.ends_with(&dm)) {
        assert!(Instant::now() < deadline, "the chat is asked for");
        sleep(Duration::from_millis(20)).await;
    }
    // Discord takes ten minutes for the answer that is asked for.
    timeout(super::world::SOON, world.stop()).await.expect("nobody waits for that");
    assert_eq!(world.fake.state().await["gateway"]["client_closes"], json!([4000]));
    world.start();
    assert_eq!(texts(&world.until_events(1).await), ["first"]);
    world.until("it resumed", |world| world.count("resumes") == 1).await;
}

#[tokio::test]
async fn a_page_of_somebody_else_says_nothing_of_a_chat() {
    let world = World::started(json!({})).await;
    let ann = world.fake.user("ann").await;
    let dm = world.fake.dm(&ann).await;
    let page =
        json!({"path": format!("channels/{dm}$"), "status": 404, "html": "<html>gone</html>", "count": 1});
    world.fake.fault(page).await;
    let first = world.fake.say(&dm, &ann, "first").await;
    assert_eq!(texts(&world.until_events(1).await), ["first"]);
    assert_eq!(world.count("quarantined"), 0);
    let known = world.ports.records.chat(&world.key(), &dm).await.unwrap().unwrap();
    let made = (first.parse::<u64>().unwrap() >> 22) as i64 + 1_420_070_400_000;
    assert_eq!(known.last_at.unwrap().0, made, "by Discord's clock");
    world.fake.fault(json!({"path": "typing$", "status": 503})).await;
    assert!(world.bot().typing(&Target::chat(&dm), None).await.is_err(), "nobody was asked");
    assert!(world.bot().typing(&Target::chat(&dm), None).await.unwrap().success);
    assert!(!world.bot().typing(&Target::chat("999"), None).await.unwrap().success, "refused");
}
