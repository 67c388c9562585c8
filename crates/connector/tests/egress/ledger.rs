//! The ledger is durable before the provider is called, and tells the truth.

use super::platform::{Knows, Scripted, later, refused, sent, unknown};
use super::world::{Agent, QUICK, World, edit, error, send};
use angelia_connector::EgressTimings;
use angelia_core::egress::Dedupe;
use angelia_core::own_words::{Language, OwnWords};
use angelia_core::ports::Ledger;
use angelia_engines::inspect::Inspect;
use angelia_platforms::Outcome;
use angelia_testkit::connector::Credentials;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// What a chat hears of a message in doubt.
pub(crate) const TOLD: &str = OwnWords::InDoubt.text(Language::English);

const SOON: Duration = Duration::from_millis(40);

#[tokio::test]
async fn everything_is_accepted_while_the_first_is_under_way() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let first = platform.hold();
    for text in ["one", "two", "three"] {
        agent.ask(text, send("x-lab", text)).await;
    }
    world.until_states(&["sending", "accepted", "accepted"]).await;
    world.until_texts(&["one"]).await;
    assert!(world.ledger().is_sorted_by_key(|row| row.id));
    assert!(agent.waits_for("one").await);
    first.send(sent("m-one")).unwrap();
    assert_eq!(agent.answer("one").await["message_id"], "m-one");
    assert_eq!(agent.answer("three").await["success"], true);
    world.until_states(&["sent", "sent", "sent"]).await;
    assert_eq!(platform.texts(), ["one", "two", "three"]);
    assert!(platform.calls().iter().all(|call| call.state == "sending"), "{:?}", platform.calls());
    assert!(world.ledger().iter().all(|row| !row.has_body), "the text goes with the end");
}

#[tokio::test]
async fn a_provider_that_dedupes_costs_no_second_commit() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::new(platform.clone()).await;
    assert_eq!(world.agent().await.asked(send("x-lab", "one")).await["success"], true);
    assert_eq!(platform.calls()[0].state, "accepted");
    world.until_states(&["sent"]).await;
}

#[tokio::test]
async fn a_store_that_does_not_commit_takes_nothing() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let locked = world.stop_commits();
    let answer = agent.asked(send("x-lab", "one")).await;
    assert!(error(&answer).contains("network"), "{answer}");
    drop(locked);
    assert_eq!(agent.asked(send("x-lab", "two")).await["success"], true);
    assert_eq!(platform.texts(), ["two"]);
    assert_eq!(world.ledger().len(), 1, "the other was never written");
}

#[tokio::test]
async fn what_is_accepted_waits_for_the_store() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let first = platform.hold();
    agent.ask("one", send("x-lab", "one")).await;
    agent.ask("two", send("x-lab", "two")).await;
    world.until_states(&["sending", "accepted"]).await;
    world.until_texts(&["one"]).await;
    let locked = world.stop_commits();
    first.send(sent("m-one")).unwrap();
    assert_eq!(agent.answer("one").await["success"], true, "the provider has it");
    assert!(agent.waits_for("two").await);
    assert_eq!(platform.texts(), ["one"], "no call without its note in the ledger");
    drop(locked);
    assert_eq!(agent.answer("two").await["success"], true);
    world.until_states(&["sent", "sent"]).await;
}

#[tokio::test]
async fn later_is_tried_again() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    platform.give([later(SOON), later(Duration::from_millis(600))]);
    agent.ask("one", send("x-lab", "one")).await;
    world.until_texts(&["one", "one"]).await;
    world.until_states(&["accepted"]).await;
    assert_eq!(agent.answer("one").await["success"], true);
    assert_eq!(platform.texts().len(), 3);
    assert!(platform.calls().iter().all(|call| call.state == "sending"));
    world.until_states(&["sent"]).await;
}

#[tokio::test]
async fn what_cannot_be_sent_in_time_has_failed() {
    let platform = Scripted::new(Dedupe::No);
    *platform.always.lock().unwrap() = Some(later(SOON));
    let timings = EgressTimings { queued_for: Duration::from_secs(1), ..QUICK };
    let world = World::with(platform.clone(), timings).await;
    let mut agent = world.agent().await;
    let answer = agent.asked(send("x-lab", "one")).await;
    assert!(error(&answer).contains("network"), "{answer}");
    assert!(platform.calls().len() > 3, "it was tried");
    let row = world.ledger().remove(0);
    assert_eq!((row.state.as_str(), row.message_id, row.has_body), ("failed", None, false));
    assert!(row.error.unwrap().contains("too many requests"));
    let calls = platform.calls().len();
    platform.give([later(Duration::from_secs(3_600))]);
    let answer = agent.asked(send("x-lab", "two")).await;
    assert!(error(&answer).contains("network"), "no waiting for what is too late: {answer}");
    assert_eq!(platform.calls().len(), calls + 1);
}

#[tokio::test]
async fn unknown_is_not_repeated_where_it_could_double() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    platform.give([unknown()]);
    let answer = agent.asked(send("x-lab", "one")).await;
    assert!(error(&answer).contains("timed out"), "{answer}");
    assert_eq!(agent.asked(send("x-lab", "two")).await["success"], true, "the chat goes on");
    assert_eq!(platform.texts(), ["one", TOLD, "two"]);
}

#[tokio::test]
async fn unknown_is_repeated_where_it_cannot_double() {
    let platform = Scripted::new(Dedupe::Yes);
    let timings = EgressTimings { queued_for: Duration::from_secs(1), ..QUICK };
    let world = World::with(platform.clone(), timings).await;
    let mut agent = world.agent().await;
    platform.give([unknown(), unknown()]);
    assert_eq!(agent.asked(send("x-lab", "one")).await["success"], true);
    assert_eq!(platform.texts(), ["one", "one", "one"]);
    platform.give([unknown()]);
    *platform.always.lock().unwrap() = Some(later(SOON));
    let answer = agent.asked(send("x-lab", "two")).await;
    assert!(error(&answer).contains("timed out"), "it may be there: {answer}");
    *platform.always.lock().unwrap() = Some(refused());
    world.until_states(&["sent", "ambiguous", "failed"]).await;
    platform.give([unknown()]);
    let answer = agent.asked(send("x-lab", "three")).await;
    assert!(error(&answer).contains("timed out"), "so may this: {answer}");
    world.until_states(&["sent", "ambiguous", "failed", "ambiguous", "failed"]).await;
}

#[tokio::test]
async fn a_refusal_is_told_in_words_that_mean_it() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    platform.give([refused(), Outcome::Refused { why: "the request timed out: network".into() }]);
    assert_eq!(error(&agent.asked(send("x-lab", "one")).await), "no such chat");
    let answer = agent.asked(send("x-lab", "two")).await;
    assert!(!error(&answer).contains("timed out") && !error(&answer).contains("network"), "{answer}");
    let rows = world.ledger();
    assert_eq!((rows[0].state.as_str(), rows[1].state.as_str()), ("failed", "failed"));
    assert!(rows[1].error.as_deref().unwrap().contains("network"), "the ledger keeps the reason");
}

#[tokio::test]
async fn the_first_part_is_answered_before_the_rest() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let rest = platform.hold_after("m-first");
    let answer = agent.asked(send("x-lab", "long")).await;
    assert_eq!((&answer["success"], &answer["message_id"]), (&true.into(), &"m-first".into()));
    agent.ask("next", send("x-lab", "next")).await;
    world.until_states(&["sending", "accepted"]).await;
    rest.send(sent("m-first")).unwrap();
    assert_eq!(agent.answer("next").await["success"], true);
    let rest = platform.hold_after("m-second");
    assert_eq!(agent.asked(send("x-lab", "cut off")).await["success"], true);
    rest.send(later(SOON)).unwrap();
    world.until_states(&["sent", "sent", "ambiguous", "sent"]).await;
    let row = world.ledger().remove(2);
    assert_eq!(row.message_id.as_deref(), Some("m-second"), "what is there can be found");
    assert_eq!(platform.texts(), ["long", "next", "cut off", TOLD], "the whole is not given again");
}

#[tokio::test]
async fn a_server_that_stops_ends_what_it_began_and_begins_nothing() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let first = platform.hold();
    agent.ask("one", send("x-lab", "one")).await;
    agent.ask("two", send("x-lab", "two")).await;
    world.until_states(&["sending", "accepted"]).await;
    world.until_texts(&["one"]).await;
    let server = world.server.clone();
    let stopping = tokio::spawn(async move { server.stop().await });
    assert!(error(&agent.answer("two").await).contains("timed out"), "it may be sent after the next start");
    assert!(!stopping.is_finished(), "the call under way is waited for");
    first.send(sent("m1")).unwrap();
    stopping.await.unwrap();
    assert_eq!(world.states(), ["sent", "accepted"]);
    assert_eq!(platform.texts(), ["one"]);
}

/// A server whose process ends without a word.
pub(crate) struct Crashing {
    server: Runtime,
    pub(crate) client: Runtime,
    pub(crate) world: World,
}

impl Crashing {
    pub(crate) fn start(folder: &Path, platform: Arc<Scripted>, timings: EgressTimings) -> Self {
        let (server, client) = (Runtime::new().unwrap(), Runtime::new().unwrap());
        let world = server.block_on(World::open(folder, platform, timings));
        Self { server, client, world }
    }

    pub(crate) fn first_gateway(&self) -> (Credentials, Agent) {
        self.client.block_on(async {
            let credentials = self.world.gateway("acme", "gw").await;
            let agent = self.world.join(&credentials).await;
            (credentials, agent)
        })
    }

    pub(crate) fn crash(self, agent: Agent) {
        let Self { server, client, world } = self;
        server.shutdown_timeout(Duration::from_secs(5));
        client.block_on(async { drop((agent, world)) });
    }
}

/// Lets the first of two sends and an edit be under way, ends the server, and starts it again.
fn crash_while_sending(dedupe: Dedupe, after: impl FnOnce(&Crashing, &Scripted)) {
    let folder = tempfile::tempdir().unwrap();
    let platform = Scripted::new(dedupe);
    let before = Crashing::start(folder.path(), platform.clone(), QUICK);
    let (_, mut agent) = before.first_gateway();
    let held = platform.hold();
    before.client.block_on(async {
        for (id, action) in [
            ("one", send("x-lab", "one")),
            ("old", edit("x-lab", "m9", "old")),
            ("two", send("x-lab", "two")),
        ] {
            agent.ask(id, action).await;
        }
        let first = if dedupe == Dedupe::Yes { "accepted" } else { "sending" };
        before.world.until_states(&[first, "accepted", "accepted"]).await;
        before.world.until_texts(&["one"]).await;
    });
    before.crash(agent);
    drop(held);
    // A new process has only the store to tell where chats are.
    platform.elsewhere.lock().unwrap().insert("lab".into(), Knows::Store);
    let again = Crashing::start(folder.path(), platform.clone(), QUICK);
    after(&again, &platform);
}

#[test]
fn a_crash_while_sending_is_ambiguous_where_repeating_could_double() {
    crash_while_sending(Dedupe::No, |again, platform| {
        again.client.block_on(again.world.until_states(&["ambiguous", "sent", "sent", "sent"]));
        assert_eq!(
            platform.texts(),
            ["one", TOLD, "old", "two"],
            "the first is not repeated, the others are sent"
        );
    });
}

#[test]
fn a_crash_while_sending_is_repeated_where_it_cannot_double() {
    crash_while_sending(Dedupe::Yes, |again, platform| {
        again.client.block_on(again.world.until_states(&["sent", "sent", "sent"]));
        assert_eq!(platform.texts(), ["one", "one", "old", "two"]);
    });
}

#[test]
fn a_crash_while_sending_is_repeated_for_as_long_as_it_is_recognised() {
    let sent = ["sent", "sent", "sent"];
    crash_while_sending(Dedupe::For(Duration::from_secs(60)), |again, platform| {
        again.client.block_on(again.world.until_states(&sent));
        assert_eq!(platform.texts(), ["one", "one", "old", "two"]);
    });
    crash_while_sending(Dedupe::For(Duration::from_millis(1)), |again, platform| {
        again.client.block_on(again.world.until_states(&["ambiguous", "sent", "sent", "sent"]));
        assert_eq!(platform.texts(), ["one", TOLD, "old", "two"]);
    });
}

#[test]
fn what_was_accepted_long_before_a_start_is_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Scripted::new(Dedupe::No);
    let before = Crashing::start(folder.path(), platform.clone(), QUICK);
    let (_, mut agent) = before.first_gateway();
    let _held = platform.hold();
    before.client.block_on(async {
        agent.ask("one", send("x-lab", "one")).await;
        agent.ask("two", send("x-lab", "two")).await;
        before.world.until_states(&["sending", "accepted"]).await;
        before.world.until_texts(&["one"]).await;
    });
    before.crash(agent);
    Inspect::of(folder.path()).age_actions(Duration::from_secs(40));
    let again = Crashing::start(folder.path(), platform.clone(), QUICK);
    again.client.block_on(again.world.until_states(&["ambiguous", "failed", "sent"]));
    assert_eq!(platform.texts(), ["one", TOLD]);
    assert!(again.world.ledger()[1].error.as_deref().unwrap().contains("time it is kept for"));
}

#[test]
fn a_route_taken_away_before_a_start_ends_what_waits() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Scripted::new(Dedupe::Yes);
    let before = Crashing::start(folder.path(), platform.clone(), QUICK);
    let (_, mut agent) = before.first_gateway();
    let _held = platform.hold();
    before.client.block_on(async {
        agent.ask("one", send("x-lab", "one")).await;
        agent.ask("two", send("x-lab", "two")).await;
        before.world.until_states(&["accepted", "accepted"]).await;
        before.world.until_texts(&["one"]).await;
        before.world.admin("routes/remove", serde_json::json!({ "place": "fake:*" })).await;
    });
    before.crash(agent);
    let again = Crashing::start(folder.path(), platform.clone(), QUICK);
    // Which of them the provider was given before is not written down where it dedupes.
    again.client.block_on(again.world.until_states(&["ambiguous", "ambiguous"]));
    assert_eq!(platform.texts(), ["one"]);
}

#[test]
fn what_a_revoked_gateway_left_never_goes_out_after_a_start() {
    for dedupe in [Dedupe::No, Dedupe::Yes] {
        let folder = tempfile::tempdir().unwrap();
        let platform = Scripted::new(dedupe);
        let before = Crashing::start(folder.path(), platform.clone(), QUICK);
        let (_, mut agent) = before.first_gateway();
        let _held = platform.hold();
        before.client.block_on(async {
            let twin = before.world.gateway("acme", "twin").await;
            let mut twin = before.world.join(&twin).await;
            agent.ask("one", send("x-lab", "one")).await;
            before.world.until_texts(&["one"]).await;
            agent.ask("two", send("x-lab", "two")).await;
            // The tenant keeps its routes, and another gateway that may write there.
            platform.give([later(Duration::from_secs(20))]);
            twin.ask("three", send("x-den", "three")).await;
            before.world.until_texts(&["one", "three"]).await;
            super::world::until(|| before.world.ledger().len() == 3, || "all are accepted".into()).await;
            before.world.admin("gateways/gw/revoke", serde_json::json!({})).await;
        });
        before.crash(agent);
        let calls = platform.calls().len();
        let again = Crashing::start(folder.path(), platform.clone(), QUICK);
        again.client.block_on(async {
            let done = || again.world.ledger().iter().all(|row| !row.has_body);
            super::world::until(done, || format!("{:?}", again.world.ledger())).await;
        });
        let after: Vec<_> = platform.texts().split_off(calls);
        assert_eq!(after, ["three"], "only the gateway that is still there is heard");
    }
}

#[tokio::test]
async fn what_another_process_adopted_is_not_called() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    platform.give([later(Duration::from_millis(500))]);
    agent.ask("one", send("x-lab", "one")).await;
    world.until_texts(&["one"]).await;
    world.until_states(&["accepted"]).await;
    let heir = world.store.new_owner().await.unwrap();
    world.store.adopt(heir, None).await.unwrap();
    let answer = agent.answer("one").await;
    assert!(error(&answer).contains("timed out"), "whoever adopted it may send it: {answer}");
    assert_eq!((platform.texts(), world.states()), (vec!["one".to_owned()], vec!["accepted".to_owned()]));
    // Nobody would look for what it accepted now.
    let answer = agent.asked(send("x-lab", "two")).await;
    assert!(error(&answer).contains("network"), "its agent is to send that elsewhere: {answer}");
    assert_eq!((platform.texts().len(), world.states().len()), (1, 1));
}
