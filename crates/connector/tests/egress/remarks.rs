//! What a chat hears of a message of which nobody knows whether it arrived: once, and never the
//! message itself without a mark.

use super::ledger::{Crashing, TOLD};
use super::platform::{Scripted, later, open, refused, sent, unknown};
use super::vault::{asks, follow_up};
use super::world::{QUICK, World, edit, error, send};
use angelia_connector::Notices;
use angelia_core::directory::{BotKey, Chat, ChatKind};
use angelia_core::egress::{Dedupe, Remark};
use angelia_core::own_words::{Language, OwnWords};
use angelia_core::ports::Ingest;
use angelia_core::store::Intake;
use angelia_engines::inspect::Inspect;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const MARK: &str = OwnWords::RepeatMark.text(Language::English);

/// A server that repeats what is in doubt.
async fn repeating(platform: Arc<Scripted>) -> (World, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let notices = Notices { ambiguous: Remark::Repeat, ..Notices::default() };
    (World::open_with(folder.path(), platform, QUICK, notices).await, folder)
}

#[tokio::test]
async fn the_chat_is_told_before_anything_else_is_said() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let first = platform.hold();
    agent.ask("one", send("x-lab", "one")).await;
    agent.ask("two", send("x-lab", "two")).await;
    world.until_states(&["sending", "accepted"]).await;
    first.send(unknown()).unwrap();
    let answer = agent.answer("one").await;
    assert!(error(&answer).contains("timed out"), "its gateway hears what it always heard: {answer}");
    assert_eq!(agent.answer("two").await["success"], true);
    world.until_states(&["ambiguous", "sent", "sent"]).await;
    assert_eq!(platform.texts(), ["one", TOLD, "two"]);
    let ops: Vec<_> = world.ledger().into_iter().map(|row| row.op).collect();
    assert_eq!(ops, ["send", "send", "remark"]);
}

#[tokio::test]
async fn it_is_repeated_once_behind_a_mark_where_an_operator_wants_that() {
    let platform = Scripted::new(Dedupe::No);
    let (world, _folder) = repeating(platform.clone()).await;
    let mut agent = world.agent().await;
    *platform.always.lock().unwrap() = Some(unknown());
    let answer = agent.asked(send("x-lab", "one")).await;
    assert!(error(&answer).contains("timed out"), "{answer}");
    world.until_states(&["ambiguous", "ambiguous"]).await;
    *platform.always.lock().unwrap() = None;
    assert_eq!(agent.asked(send("x-lab", "two")).await["success"], true);
    let repeated = format!("{MARK}\n\none");
    assert_eq!(platform.texts(), ["one", &repeated, "two"], "once, whatever becomes of that");
}

#[tokio::test]
async fn edits_and_what_the_connector_says_are_not_told_of() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    platform.give([unknown()]);
    let answer = agent.asked(edit("x-lab", "m9", "new")).await;
    assert!(error(&answer).contains("timed out"), "{answer}");
    world.until_states(&["ambiguous"]).await;
    *platform.always.lock().unwrap() = Some(unknown());
    agent.asked(send("x-lab", "one")).await;
    world.until_states(&["ambiguous", "ambiguous", "ambiguous"]).await;
    *platform.always.lock().unwrap() = None;
    assert_eq!(agent.asked(send("x-lab", "two")).await["success"], true);
    assert_eq!(platform.texts(), ["new", "one", TOLD, "two"], "that something may be missing is said once");
}

#[tokio::test]
async fn a_follow_up_does_not_become_a_message_of_the_chat() {
    let platform = Scripted::new(Dedupe::No);
    let (world, _folder) = repeating(platform.clone()).await;
    let mut agent = world.agent().await;
    world.take(&asks("i1", "ann")).await;
    platform.give([unknown(), open()]);
    let key = "agent:main:fake:group:x-lab:ann";
    let answer = agent.asked(follow_up(key, "for ann")).await;
    assert!(error(&answer).contains("timed out"), "{answer}");
    world.until_states(&["ambiguous", "sent"]).await;
    let last = platform.calls().pop().unwrap();
    assert_eq!((last.text.as_str(), last.answer), (TOLD, None));
}

#[tokio::test]
async fn whoever_lost_the_place_says_nothing_there() {
    for remark in Remark::ALL {
        let platform = Scripted::new(Dedupe::No);
        let folder = tempfile::tempdir().unwrap();
        let notices = Notices { ambiguous: remark, ..Notices::default() };
        let world = World::open_with(folder.path(), platform.clone(), QUICK, notices).await;
        let mut agent = world.agent().await;
        let first = platform.hold();
        agent.ask("one", send("x-lab", "one")).await;
        world.until_texts(&["one"]).await;
        world.admin("routes/remove", json!({ "place": "fake:*" })).await;
        first.send(unknown()).unwrap();
        world.until_states(&["ambiguous", "failed"]).await;
        assert_eq!(platform.texts(), ["one"]);
    }
}

#[tokio::test]
async fn a_revoked_gateway_repeats_nothing() {
    let platform = Scripted::new(Dedupe::No);
    let (world, _folder) = repeating(platform.clone()).await;
    let mut agent = world.agent().await;
    world.gateway("acme", "another").await;
    let first = platform.hold();
    agent.ask("one", send("x-lab", "one")).await;
    world.until_texts(&["one"]).await;
    world.admin("gateways/gw/revoke", json!({})).await;
    first.send(unknown()).unwrap();
    world.until_states(&["ambiguous", "failed"]).await;
    assert_eq!(platform.texts(), ["one"]);
}

#[tokio::test]
async fn it_is_told_in_the_language_of_the_chat() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let chat = Chat { language: Some(Language::German), ..Chat::new("x-lab", ChatKind::Dm) };
    let intake = Intake { chats: vec![chat], ..Intake::default() };
    world.store.take_in(&BotKey::new("fake", "bot"), None, vec![intake]).await.unwrap();
    platform.give([unknown(), sent("m")]);
    agent.asked(send("x-lab", "eins")).await;
    world.until_texts(&["eins", OwnWords::InDoubt.text(Language::German)]).await;
}

#[test]
fn a_crash_neither_loses_nor_doubles_it() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Scripted::new(Dedupe::No);
    let before = Crashing::start(folder.path(), platform.clone(), QUICK);
    let (credentials, mut agent) = before.first_gateway();
    // It cannot be told for now, and what came after it waits as well.
    platform.give([unknown(), later(Duration::from_secs(20))]);
    before.client.block_on(async {
        agent.asked(send("x-lab", "one")).await;
        before.world.until_texts(&["one", TOLD]).await;
        agent.ask("two", send("x-lab", "two")).await;
        before.world.until_states(&["ambiguous", "accepted", "accepted"]).await;
    });
    before.crash(agent);
    let again = Crashing::start(folder.path(), platform.clone(), QUICK);
    again.client.block_on(async {
        again.world.until_states(&["ambiguous", "sent", "sent"]).await;
        assert_eq!(platform.texts(), ["one", TOLD, TOLD, "two"], "the first of them was not taken");
        // It ends in the middle of telling: that is not told again.
        let mut agent = again.world.join(&credentials).await;
        platform.give([unknown()]);
        let held = platform.hold();
        agent.asked(send("x-lab", "three")).await;
        again.world.until_states(&["ambiguous", "sent", "sent", "ambiguous", "sending"]).await;
        again.world.until_texts(&["one", TOLD, TOLD, "two", "three", TOLD]).await;
        std::mem::forget(held);
        drop(agent);
    });
    let agent = again.client.block_on(again.world.join(&credentials));
    again.crash(agent);
    let last = Crashing::start(folder.path(), platform.clone(), QUICK);
    last.client.block_on(last.world.until_states(&["ambiguous", "sent", "sent", "ambiguous", "ambiguous"]));
    assert_eq!(platform.texts(), ["one", TOLD, TOLD, "two", "three", TOLD]);
}

#[test]
fn however_long_the_server_was_down_the_chat_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Scripted::new(Dedupe::No);
    let before = Crashing::start(folder.path(), platform.clone(), QUICK);
    let (_, mut agent) = before.first_gateway();
    platform.give([unknown(), later(Duration::from_secs(20))]);
    before.client.block_on(async {
        agent.asked(send("x-lab", "one")).await;
        before.world.until_states(&["ambiguous", "accepted"]).await;
        before.world.until_texts(&["one", TOLD]).await;
    });
    before.crash(agent);
    Inspect::of(folder.path()).age_actions(Duration::from_secs(3_600));
    let again = Crashing::start(folder.path(), platform.clone(), QUICK);
    again.client.block_on(again.world.until_states(&["ambiguous", "sent"]));
}

#[tokio::test]
async fn what_the_platform_refuses_is_no_doubt() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    platform.give([refused()]);
    agent.asked(send("x-lab", "one")).await;
    world.until_states(&["failed"]).await;
    assert_eq!(platform.texts(), ["one"]);
}
