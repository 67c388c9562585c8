//! Chats run in parallel, each in its order; an overtaken edit is not performed.

use super::platform::{Scripted, later, sent};
use super::world::{QUICK, World, edit, error, send};
use angelia_core::egress::Dedupe;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_chat_keeps_its_order_and_does_not_hold_up_others() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let first = platform.hold();
    for n in 0..30 {
        agent.ask(&format!("a{n}"), send("x-a", &format!("a{n}"))).await;
    }
    world.until_texts(&["a0"]).await;
    for n in 0..30 {
        agent.ask(&format!("b{n}"), send("x-b", &format!("b{n}"))).await;
    }
    for n in 0..30 {
        assert_eq!(agent.answer(&format!("b{n}")).await["success"], true);
    }
    first.send(sent("m0")).unwrap();
    for n in 0..30 {
        assert_eq!(agent.answer(&format!("a{n}")).await["success"], true);
    }
    let in_chat = |chat: &str| -> Vec<String> {
        let calls = platform.calls().into_iter();
        calls.filter(|call| call.chat == chat).map(|call| call.text).collect()
    };
    let expected = |chat: &str| (0..30).map(|n| format!("{chat}{n}")).collect::<Vec<_>>();
    assert_eq!((in_chat("x-a"), in_chat("x-b")), (expected("a"), expected("b")));
}

#[tokio::test]
async fn a_full_chat_takes_no_more() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::new(platform.clone()).await;
    let credentials = world.gateway("acme", "gw").await;
    let held = platform.hold();
    // A socket has 64 requests open at most; whoever leaves does not take them along.
    let mut asked = 0;
    for _ in 0..16 {
        let mut agent = world.join(&credentials).await;
        for _ in 0..63 {
            agent.ask("r", send("x-lab", "more")).await;
            asked += 1;
        }
        super::world::until(|| world.ledger().len() == asked, || format!("{asked} were asked for")).await;
        agent.close().await;
    }
    let mut agent = world.join(&credentials).await;
    for n in asked..1_024 + 1 {
        agent.ask(&format!("r{n}"), send("x-lab", "more")).await;
    }
    super::world::until(|| world.ledger().len() == 1_025, || "one under way and 1024 waiting".into()).await;
    let answer = agent.asked(send("x-lab", "too much")).await;
    assert!(error(&answer).contains("network"), "{answer}");
    assert_eq!(agent.asked(send("x-den", "elsewhere")).await["success"], true, "another chat has room");
    assert_eq!(world.ledger().len(), 1_026, "what was not taken is not in the ledger");
    held.send(sent("m1")).unwrap();
    super::world::until(|| platform.calls().len() > 3, || "it goes on".into()).await;
    agent.ask("again", send("x-lab", "again")).await;
    super::world::until(|| world.ledger().len() == 1_027, || "there is no room again".into()).await;
}

#[tokio::test]
async fn an_edit_that_is_overtaken_is_answered_and_not_performed() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let first = platform.hold();
    agent.ask("s", send("x-lab", "hello")).await;
    world.until_texts(&["hello"]).await;
    for n in 1..=4 {
        agent.ask(&format!("e{n}"), edit("x-lab", "m1", &format!("v{n}"))).await;
        if n == 2 {
            agent.ask("other", edit("x-lab", "m2", "other")).await;
        }
    }
    for n in 1..=3 {
        let answer = agent.answer(&format!("e{n}")).await;
        assert_eq!(answer, json!({"success": true, "message_id": "m1"}), "e{n}");
    }
    world.until_states(&["sending", "superseded", "superseded", "accepted", "superseded", "accepted"]).await;
    assert!(agent.waits_for("e4").await);
    first.send(sent("m1")).unwrap();
    assert_eq!(agent.answer("e4").await["message_id"], "m1");
    assert_eq!(agent.answer("other").await["message_id"], "m2");
    assert_eq!(platform.texts(), ["hello", "other", "v4"]);
    world.until_states(&["sent", "superseded", "superseded", "sent", "superseded", "sent"]).await;
}

#[tokio::test]
async fn an_edit_that_waits_to_be_tried_again_is_overtaken_too() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    platform.give([later(Duration::from_secs(20))]);
    agent.ask("e1", edit("x-lab", "m1", "v1")).await;
    world.until_texts(&["v1"]).await;
    agent.ask("e2", edit("x-lab", "m1", "v2")).await;
    assert_eq!(agent.answer("e1").await["message_id"], "m1");
    assert_eq!(agent.answer("e2").await["message_id"], "m1");
    assert_eq!(platform.texts(), ["v1", "v2"], "the newest is sent in the end");
    world.until_states(&["superseded", "sent"]).await;
}

#[tokio::test]
async fn an_overtaken_edit_ends_before_the_newer_one_is_sent() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::with(platform.clone(), QUICK).await;
    let mut agent = world.agent().await;
    let first = platform.hold();
    agent.ask("s", send("x-lab", "hello")).await;
    agent.ask("e1", edit("x-lab", "m1", "v1")).await;
    agent.ask("e2", edit("x-lab", "m1", "v2")).await;
    assert_eq!(agent.answer("e1").await["success"], true);
    first.send(sent("m1")).unwrap();
    assert_eq!(agent.answer("e2").await["success"], true);
    world.until_states(&["sent", "superseded", "sent"]).await;
    assert_eq!(platform.texts(), ["hello", "v2"]);
}
