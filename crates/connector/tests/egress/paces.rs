//! Chats are written to as fast as the provider allows, and a provider that says
//! "not now" is left alone.

use super::platform::{Scripted, later_for, unknown};
use super::vault::{asks, reply};
use super::world::{World, edit, send};
use angelia_core::egress::{Dedupe, Rate};
use angelia_platforms::Reach;
use std::time::Duration;
use tokio::time::Instant;

const RATE: Rate = Rate { calls: 5, per: Duration::from_secs(1), burst: 2 };
const BOT: Rate = Rate { calls: 1_000, per: Duration::from_secs(1), burst: 100 };

#[tokio::test]
async fn one_chat_does_not_hurry_and_others_do_not_wait() {
    let platform = Scripted::new(Dedupe::Yes);
    *platform.chat_rate.lock().unwrap() = Some(RATE);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let start = Instant::now();
    for n in 0..7 {
        agent.ask(&format!("l{n}"), send("x-lab", "lab")).await;
    }
    agent.ask("d", send("x-den", "den")).await;
    assert_eq!(agent.answer("d").await["success"], true);
    let before = platform.texts().iter().filter(|text| *text == "lab").count();
    assert!(before < 7, "the other chat waited for this one");
    for n in 0..7 {
        assert_eq!(agent.answer(&format!("l{n}")).await["success"], true);
    }
    assert!(
        start.elapsed() >= Duration::from_millis(990),
        "two at once, then five a second: {:?}",
        start.elapsed()
    );
}

/// Everybody in a chat may have asked in the same second, and their time runs out.
#[tokio::test]
async fn answers_to_interactions_do_not_take_turns_in_their_chat() {
    let platform = Scripted::new(Dedupe::Yes);
    *platform.chat_rate.lock().unwrap() = Some(Rate { calls: 1, per: Duration::from_secs(3600), burst: 1 });
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    for n in 0..5 {
        world.take(&asks(&format!("i{n}"), "ann")).await;
        assert_eq!(agent.asked(reply("x-lab", "yes", &format!("i{n}"))).await["success"], true);
    }
    assert_eq!(
        agent.asked(send("x-lab", "a message")).await["success"],
        true,
        "and they took nothing from it"
    );
}

#[tokio::test]
async fn of_a_growing_text_the_last_one_arrives_soon_and_whole() {
    let platform = Scripted::new(Dedupe::Yes);
    // Two calls for this test: whoever needs a third waits longer than it lasts.
    *platform.chat_rate.lock().unwrap() = Some(Rate { calls: 1, per: Duration::from_secs(3600), burst: 2 });
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    assert_eq!(agent.asked(send("x-lab", "…")).await["success"], true);
    for n in 0..100 {
        agent.ask(&format!("e{n}"), edit("x-lab", "m1", &format!("grows {n} ▉"))).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    agent.ask("last", edit("x-lab", "m1", "grown")).await;
    assert_eq!(agent.answer("last").await["success"], true, "a call was left for it");
    for n in 0..100 {
        assert_eq!(agent.answer(&format!("e{n}")).await["success"], true);
    }
    let texts = platform.texts();
    assert_eq!(texts.last().unwrap(), "grown");
    assert!(texts.len() <= 4, "{texts:?}");
}

#[tokio::test]
async fn a_chat_that_is_not_ready_waits_alone() {
    let platform = Scripted::with_rate(Dedupe::Yes, Some(BOT));
    *platform.chat_rate.lock().unwrap() = Some(Rate { burst: 5, ..RATE });
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let pause = Duration::from_secs(2);
    platform.give([later_for(Reach::Chat, pause)]);
    let start = Instant::now();
    agent.ask("a", send("x-lab", "lab")).await;
    world.until_texts(&["lab"]).await;
    agent.ask("b", send("x-den", "den")).await;
    assert_eq!(agent.answer("b").await["success"], true);
    assert_eq!(platform.texts(), ["lab", "den"], "the one did not wait for the other to be ready");
    assert_eq!(agent.answer("a").await["success"], true);
    assert!(start.elapsed() >= pause, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_bot_that_is_told_to_wait_makes_no_call() {
    let platform = Scripted::with_rate(Dedupe::Yes, Some(BOT));
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let pause = Duration::from_millis(700);
    platform.give([later_for(Reach::Bot, pause)]);
    let start = Instant::now();
    agent.ask("a", send("x-lab", "lab")).await;
    world.until_texts(&["lab"]).await;
    for n in 0..5 {
        agent.ask(&format!("b{n}"), send(&format!("x-{n}"), "den")).await;
    }
    assert_eq!(agent.answer("b0").await["success"], true);
    assert!(start.elapsed() >= pause, "{:?}", start.elapsed());
    assert_eq!(agent.answer("a").await["success"], true);
}

#[tokio::test]
async fn what_waited_for_longer_than_it_is_recognised_is_not_repeated() {
    let platform = Scripted::with_rate(Dedupe::For(Duration::from_millis(400)), Some(BOT));
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let first = platform.hold();
    agent.ask("a", send("x-lab", "lab")).await;
    world.until_texts(&["lab"]).await;
    // While its fate is unknown, another chat's call has the whole bot wait.
    platform.give([later_for(Reach::Bot, Duration::from_secs(1))]);
    agent.ask("b", send("x-den", "den")).await;
    world.until_texts(&["lab", "den"]).await;
    first.send(unknown()).unwrap();
    let answer = agent.answer("a").await;
    assert!(super::world::error(&answer).contains("timed out"), "{answer}");
    assert_eq!(agent.answer("b").await["success"], true);
    world.until_states(&["ambiguous", "sent", "sent"]).await;
    let labs = platform.texts().into_iter().filter(|text| text == "lab").count();
    assert_eq!(labs, 1, "the first was not said again");
}

#[tokio::test]
async fn what_is_recognised_for_a_while_is_repeated_for_that_while() {
    let platform = Scripted::new(Dedupe::For(Duration::from_millis(400)));
    *platform.always.lock().unwrap() = Some(unknown());
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let answer = agent.asked(send("x-lab", "one")).await;
    assert!(super::world::error(&answer).contains("timed out"), "{answer}");
    world.until_states(&["ambiguous", "ambiguous"]).await;
    let calls: Vec<_> = platform.calls().into_iter().filter(|call| call.text == "one").collect();
    assert!((2..=6).contains(&calls.len()), "repeated, and then not any more: {}", calls.len());
    assert!(calls.iter().all(|call| call.state == "sending"), "{calls:?}");
}
