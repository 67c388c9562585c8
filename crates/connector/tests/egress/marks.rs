//! Marks on messages: answered at once, shown in order and beside everything else, and the first
//! to go.

use super::platform::Scripted;
use super::world::{World, send, until};
use angelia_contract::action::ActionResult;
use angelia_core::egress::{Dedupe, Rate};
use serde_json::{Value, json};
use std::time::Duration;

fn react(chat: &str, message: &str, emoji: &str, remove: bool) -> Value {
    json!({"op": "react", "chat_id": chat, "message_id": message, "emoji": emoji, "remove": remove})
}

#[tokio::test]
async fn a_gateway_is_answered_at_once_although_the_provider_hangs() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let shown = platform.hold_mark();
    assert_eq!(agent.asked(react("x-lab", "m1", "👀", false)).await["success"], true);
    world.until_texts(&["(👀 m1)"]).await;
    assert_eq!(agent.asked(send("x-lab", "hello")).await["success"], true, "it does not wait for the mark");
    for (emoji, remove) in [("👀", true), ("✅", false)] {
        assert_eq!(agent.asked(react("x-lab", "m1", emoji, remove)).await["success"], true);
    }
    assert_eq!(agent.asked(react("x-lab", "m2", "👀", false)).await["success"], true);
    world.until_texts(&["(👀 m1)", "hello", "(👀 m2)"]).await;
    shown.send(ActionResult::ok()).unwrap();
    world.until_texts(&["(👀 m1)", "hello", "(👀 m2)", "(-👀 m1)", "(✅ m1)"]).await;
    assert_eq!(world.ledger().len(), 1, "marks are not written down");
}

#[tokio::test]
async fn when_calls_are_short_messages_are_sent_and_marks_are_not() {
    let rate = Rate { calls: 1, per: Duration::from_secs(2), burst: 1 };
    let platform = Scripted::with_rate(Dedupe::Yes, Some(rate));
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    assert_eq!(agent.asked(send("x-lab", "one")).await["success"], true);
    for message in ["m1", "m2", "m3"] {
        assert_eq!(agent.asked(react("x-lab", message, "✅", false)).await["success"], true);
    }
    assert_eq!(agent.asked(send("x-lab", "two")).await["success"], true);
    assert_eq!(platform.texts(), ["one", "two"]);
}

#[tokio::test]
async fn where_a_mark_was_refused_none_is_tried_for_a_while() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let refused = platform.hold_mark();
    refused.send(ActionResult::failed("the bot may not")).unwrap();
    for message in ["m1", "m1"] {
        assert_eq!(agent.asked(react("x-lab", message, "👀", false)).await["success"], true);
    }
    agent.asked(react("x-den", "m1", "👀", false)).await;
    let in_den = || platform.calls().iter().any(|call| call.chat == "x-den");
    until(in_den, || "another chat has its mark".into()).await;
    let in_lab = platform.calls().iter().filter(|call| call.chat == "x-lab").count();
    assert_eq!(in_lab, 1);
}

#[tokio::test]
async fn nobody_marks_what_is_not_theirs() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::new(platform.clone()).await;
    let mut stranger = world.join(&world.gateway("other", "gw2").await).await;
    assert_eq!(stranger.asked(react("x-lab", "m1", "👀", false)).await["code"], "egress_declined");
    assert_eq!(platform.texts(), [""; 0]);
}
