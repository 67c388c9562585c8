//! Who may write where is asked right before every call.

use super::platform::{Scripted, later, sent};
use super::world::{World, edit, error, send};
use angelia_core::egress::{Dedupe, Rate};
use serde_json::{Value, json};
use std::time::Duration;

fn is_declined(answer: &Value) -> bool {
    answer["success"] == false && answer["code"] == "egress_declined"
}

#[tokio::test]
async fn a_route_taken_away_ends_what_waits() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let first = platform.hold();
    agent.ask("one", send("x-lab", "one")).await;
    agent.ask("two", send("x-lab", "two")).await;
    world.until_states(&["sending", "accepted"]).await;
    world.until_texts(&["one"]).await;
    world.admin("routes/remove", json!({ "place": "fake:*" })).await;
    first.send(sent("m1")).unwrap();
    assert_eq!(agent.answer("one").await["success"], true, "it was under way");
    assert!(is_declined(&agent.answer("two").await));
    world.until_states(&["sent", "failed"]).await;
    assert_eq!(platform.texts(), ["one"]);
}

#[tokio::test]
async fn a_route_moved_while_it_waits_to_be_tried_again_ends_it() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    world.gateway("other", "gw2").await;
    platform.give([later(Duration::from_millis(500))]);
    agent.ask("one", send("x-lab", "one")).await;
    world.until_texts(&["one"]).await;
    let route = json!({ "place": "fake:lab", "tenant": "other", "allow": ["any"] });
    world.admin("routes", route).await;
    assert!(is_declined(&agent.answer("one").await));
    assert_eq!(platform.texts(), ["one"]);
    world.until_states(&["failed"]).await;
    assert_eq!(agent.asked(send("x-den", "two")).await["success"], true, "elsewhere it may");
}

#[tokio::test]
async fn a_route_taken_away_while_the_bot_may_not_call_ends_it() {
    let rate = Rate { calls: 1, per: Duration::from_secs(1), burst: 1 };
    let platform = Scripted::with_rate(Dedupe::No, Some(rate));
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    assert_eq!(agent.asked(send("x-lab", "one")).await["success"], true);
    agent.ask("two", send("x-den", "two")).await;
    agent.ask("info", json!({"op": "get_chat_info", "chat_id": "x-den"})).await;
    world.until_states(&["sent", "accepted"]).await;
    world.admin("routes/remove", json!({ "place": "fake:*" })).await;
    assert!(is_declined(&agent.answer("two").await));
    assert!(is_declined(&agent.answer("info").await));
    assert_eq!(platform.texts(), ["one"]);
    assert_eq!(world.states(), ["sent", "failed"]);
}

#[tokio::test]
async fn a_gateway_revoked_meanwhile_sends_nothing_more() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    world.gateway("acme", "another").await;
    let first = platform.hold();
    agent.ask("one", send("x-lab", "one")).await;
    agent.ask("two", send("x-lab", "two")).await;
    world.until_states(&["sending", "accepted"]).await;
    world.until_texts(&["one"]).await;
    world.admin("gateways/gw/revoke", json!({})).await;
    first.send(sent("m1")).unwrap();
    world.until_states(&["sent", "failed"]).await;
    assert_eq!(platform.texts(), ["one"]);
}

#[tokio::test]
async fn the_rest_of_a_long_message_is_not_sent_where_it_may_not_go_any_more() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let rest = platform.hold_after("m-first");
    assert_eq!(agent.asked(send("x-lab", "long")).await["message_id"], "m-first");
    world.admin("routes/remove", json!({ "place": "fake:*" })).await;
    rest.send(sent("m-first")).unwrap();
    world.until_states(&["ambiguous", "failed"]).await;
    assert_eq!(platform.texts(), ["long"], "nor is anything said of it there");
    assert_eq!(world.ledger()[0].message_id.as_deref(), Some("m-first"));
}

#[tokio::test]
async fn typing_and_chat_info_are_authorized_and_not_written_down() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let mut stranger = world.join(&world.gateway("other", "gw2").await).await;
    let typing = json!({"op": "typing", "chat_id": "x-lab", "metadata": {}});
    let info = json!({"op": "get_chat_info", "chat_id": "x-lab"});
    assert_eq!(agent.asked(typing.clone()).await["success"], true);
    assert_eq!(agent.asked(info.clone()).await["chat_info"]["name"], "a chat");
    assert!(is_declined(&stranger.asked(typing.clone()).await));
    assert!(is_declined(&stranger.asked(info.clone()).await));
    assert_eq!(platform.texts(), ["(typing)", "(info)"]);
    let held = platform.hold();
    agent.ask("s", send("x-lab", "hello")).await;
    world.until_states(&["sending"]).await;
    assert_eq!(agent.asked(typing).await["success"], true, "left out: the message shows it better");
    assert_eq!(agent.asked(info).await["success"], true, "not held up by the chat");
    held.send(sent("m1")).unwrap();
    assert_eq!(agent.answer("s").await["success"], true);
    assert_eq!(platform.texts(), ["(typing)", "(info)", "hello", "(info)"]);
    assert_eq!(world.ledger().len(), 1);
}

#[tokio::test]
async fn the_thread_is_checked_and_lies_grant_nothing() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    world.gateway("other", "gw2").await;
    world.admin("routes", json!({ "place": "fake:den", "tenant": "other", "allow": ["any"] })).await;
    let with = |mut action: Value, metadata: Value| {
        action["metadata"] = metadata;
        action
    };
    let refused = [
        send("x-den", "a"),
        with(send("x-den", "b"), json!({ "scope_id": "lab", "user_id": "ann" })),
        with(send("x-lab", "c"), json!({ "thread_id": "x-den/t" })),
        with(edit("x-lab", "m1", "d"), json!({ "thread_id": "x-den" })),
        with(json!({"op": "typing", "chat_id": "x-lab"}), json!({ "thread_id": 5 })),
        with(send("web-lab", "e"), json!({ "thread_id": "x-lab" })),
        json!({"op": "get_chat_info", "chat_id": "x-den", "metadata": {}}),
        json!({"op": "delete", "chat_id": "x-den", "message_id": "m1"}),
    ];
    let mut answers = Vec::new();
    for action in refused {
        answers.push(agent.asked(action).await);
    }
    answers.dedup();
    assert!(answers.len() == 1 && is_declined(&answers[0]), "all alike: {answers:?}");
    assert_eq!((platform.calls(), world.ledger()), (vec![], vec![]));
    let own = with(send("x-lab", "f"), json!({ "thread_id": "x-lab/t", "scope_id": "den" }));
    assert_eq!(agent.asked(own).await["success"], true);
    let offered = agent.asked(json!({"op": "task_card", "chat_id": "x-lab", "card_id": "c1"})).await;
    assert!(error(&offered).contains("does not offer"), "{offered}");
    let others = agent.asked(json!({"op": "delete", "chat_id": "x-lab", "message_id": "m99"})).await;
    assert!(error(&others).contains("no such message of yours"), "{others}");
}
