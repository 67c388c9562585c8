//! `follow_up`: by every form of key, and for nobody else.

use super::ledger::Crashing;
use super::platform::{Scripted, later, refused, sent};
use super::vault::{Asks, asks, follow_up, notify, reply, token};
use super::world::{Agent, QUICK, World, error};
use angelia_core::egress::{Dedupe, MAX_CONTENT, NO_CAPABILITY};
use angelia_core::vault::Way;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const KEY: &str = "agent:main:fake:group:x-lab:ann";

async fn stage() -> (Arc<Scripted>, World, Agent) {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let agent = world.agent().await;
    (platform, world, agent)
}

fn answered(platform: &Scripted) -> Vec<(String, Option<Way>)> {
    let way = |call: super::platform::Call| (call.text, call.answer.map(|(way, _)| way));
    platform.calls().into_iter().map(way).collect()
}

#[tokio::test]
async fn every_form_of_key_names_its_conversation() {
    let (platform, world, mut agent) = stage().await;
    world.take(&asks("i1", "ann")).await;
    world.take(&Asks { chat: "x-lab/t", ..asks("i2", "ann") }).await;
    let keys = [
        ("agent:main:relay:channel:x-lab:ann", "i1"),
        ("agent:main:fake:group:x-lab:ann", "i1"),
        ("agent:coder:fake:group:x-lab", "i1"),
        ("agent:main:fake:dm:x-lab", "i1"),
        ("agent:main:relay:dm:x-lab", "i1"),
        ("agent:main:relay:channel:x-lab/t:ann", "i2"),
        ("agent:main:fake:thread:x-lab/t:x-lab/t", "i2"),
        ("agent:main:fake:thread:x-lab/t:x-lab/t:ann", "i2"),
    ];
    for (key, _) in keys {
        let answer = agent.asked(follow_up(key, key)).await;
        assert!(answer["success"] == true && answer["message_id"].is_string(), "{key}: {answer}");
    }
    for (call, (key, id)) in platform.calls().iter().zip(keys) {
        assert_eq!((&call.text, &call.answer.as_ref().unwrap().1), (&key.to_owned(), &token(id)));
    }
    let ways: Vec<_> = answered(&platform).into_iter().map(|(_, way)| way).collect();
    let firsts = ways.iter().filter(|way| **way == Some(Way::Original)).count();
    assert_eq!((firsts, ways.len()), (2, 8));
    assert!(world.ledger().iter().all(|row| row.op == "follow_up"));
    world.until_stages(&["answered", "answered"]).await;
}

#[tokio::test]
async fn whoever_finds_nothing_is_told_the_same() {
    let (platform, world, mut agent) = stage().await;
    let sibling = world.gateway("acme", "sibling").await;
    let stranger = world.gateway("other", "gw2").await;
    let (mut sibling, mut stranger) = (world.join(&sibling).await, world.join(&stranger).await);
    world.take(&asks("i1", "ann")).await;
    world.take(&asks("over", "bob")).await;
    world.ends_in("over", -1);
    world.take(&Asks { chat: "x-moved", ..asks("i2", "ann") }).await;
    world.admin("routes", json!({ "place": "fake:moved", "tenant": "other", "allow": ["any"] })).await;
    world.take(&Asks { chat: "x-away", tenant: "other", gateway: "gw2", ..asks("i3", "ann") }).await;
    let moved = "agent:main:fake:group:x-moved:ann";
    let mut told = vec![
        sibling.asked(follow_up(KEY, "another instance")).await,
        stranger.asked(follow_up(KEY, "another tenant")).await,
        stranger.asked(follow_up(moved, "it has the place now")).await,
        stranger.asked(follow_up("agent:main:fake:group:x-away:ann", "it never had the place")).await,
    ];
    for key in ["agent:main:fake:group:x-lab:bob", moved, "agent:main:fake:group:x-none:ann", "k", ""] {
        told.push(agent.asked(follow_up(key, "mine")).await);
    }
    let mut another_kind = follow_up(KEY, "x");
    another_kind["kind"] = "discord.other".into();
    told.push(agent.asked(another_kind).await);
    let bytes: Vec<String> = told.iter().map(Value::to_string).collect();
    assert!(bytes.iter().all(|it| *it == bytes[0]), "{bytes:#?}");
    assert_eq!(told[0], json!({ "success": false, "error": NO_CAPABILITY }));
    let long = agent.asked(follow_up(KEY, &"x".repeat(MAX_CONTENT + 1))).await;
    assert!(error(&long).contains("longer than"), "{long}");
    assert!(platform.calls().is_empty() && world.ledger().is_empty());
    assert_eq!(agent.asked(follow_up(KEY, "mine")).await["success"], true);
}

#[tokio::test]
async fn it_keeps_its_place_among_the_sends_of_a_chat() {
    let (platform, world, mut agent) = stage().await;
    world.take(&asks("i1", "ann")).await;
    let mut expected = Vec::new();
    for n in 0..10 {
        let (one, two) = (format!("s{n}"), format!("f{n}"));
        agent.ask(&one, super::world::send("x-lab", &one)).await;
        agent.ask(&two, follow_up(KEY, &two)).await;
        expected.extend([one, two]);
    }
    for id in &expected {
        assert_eq!(agent.answer(id).await["success"], true);
    }
    assert_eq!(platform.texts(), expected);
}

#[tokio::test]
async fn what_ends_before_it_is_sent_is_not_replaced_by_a_message() {
    let (platform, world, mut agent) = stage().await;
    world.take(&asks("i1", "ann")).await;
    platform.give([later(Duration::from_secs(1))]);
    agent.ask("f", follow_up(KEY, "late")).await;
    world.until_texts(&["late"]).await;
    world.ends_in("i1", 0);
    assert_eq!(error(&agent.answer("f").await), NO_CAPABILITY);
    assert_eq!(platform.texts(), ["late"]);
    world.until_states(&["failed"]).await;
    // Its time passes between being found and being accepted.
    world.take(&asks("i2", "ann")).await;
    let held = platform.hold();
    agent.ask("s", super::world::send("x-lab", "first")).await;
    world.until_texts(&["late", "first"]).await;
    agent.ask("f", follow_up(KEY, "behind")).await;
    world.until_states(&["failed", "sending", "accepted"]).await;
    world.ends_in("i2", 0);
    held.send(sent("m")).unwrap();
    assert_eq!(error(&agent.answer("f").await), NO_CAPABILITY);
    assert_eq!(platform.texts(), ["late", "first"]);
}

#[tokio::test]
async fn a_place_taken_away_meanwhile_ends_it_in_the_same_words() {
    let (platform, world, mut agent) = stage().await;
    world.take(&asks("i1", "ann")).await;
    let held = platform.hold();
    agent.ask("s", super::world::send("x-lab", "first")).await;
    world.until_texts(&["first"]).await;
    agent.ask("f", follow_up(KEY, "behind")).await;
    world.until_states(&["sending", "accepted"]).await;
    world.admin("routes/remove", json!({ "place": "fake:*" })).await;
    held.send(sent("m")).unwrap();
    assert_eq!(agent.answer("f").await, json!({ "success": false, "error": NO_CAPABILITY }));
    assert_eq!(platform.texts(), ["first"]);
    world.until_stages(&["open"]).await;
}

#[tokio::test]
async fn one_that_failed_may_be_said_again_by_a_send() {
    let (platform, world, mut agent) = stage().await;
    world.take(&asks("i1", "ann")).await;
    platform.give([refused()]);
    assert_eq!(error(&agent.asked(follow_up(KEY, "one")).await), "no such chat");
    assert_eq!(agent.asked(reply("x-lab", "two", "i1")).await["success"], true);
    assert_eq!(agent.asked(notify("x-lab", "three")).await["success"], true);
    let expected = [("one", Some(Way::Original)), ("two", Some(Way::Original)), ("three", None)];
    assert_eq!(answered(&platform), expected.map(|(text, way)| (text.to_owned(), way)));
}

#[tokio::test]
async fn a_store_that_does_not_commit_takes_nothing() {
    let (platform, world, mut agent) = stage().await;
    world.take(&asks("i1", "ann")).await;
    let locked = world.stop_commits();
    let answer = agent.asked(follow_up(KEY, "one")).await;
    assert!(error(&answer).contains("network"), "{answer}");
    drop(locked);
    assert!(platform.calls().is_empty());
    assert_eq!(world.stages(), ["open"]);
}

#[test]
fn a_crash_leaves_it_what_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Scripted::new(Dedupe::No);
    let before = Crashing::start(folder.path(), platform.clone(), QUICK);
    let (_, mut agent) = before.first_gateway();
    let held = platform.hold();
    before.client.block_on(async {
        before.world.take(&asks("i1", "ann")).await;
        before.world.take(&asks("i2", "bob")).await;
        agent.ask("one", follow_up(KEY, "one")).await;
        agent.ask("two", follow_up("agent:main:fake:group:x-lab:bob", "two")).await;
        before.world.until_states(&["sending", "accepted"]).await;
        before.world.until_texts(&["one"]).await;
        before.world.ends_in("i2", 0);
    });
    before.crash(agent);
    drop(held);
    let again = Crashing::start(folder.path(), platform.clone(), QUICK);
    again.client.block_on(again.world.until_states(&["sent", "failed"]));
    let expected = [("one", Some(Way::Original)), ("one", Some(Way::Original))];
    assert_eq!(answered(&platform), expected.map(|(text, way)| (text.to_owned(), way)));
}
