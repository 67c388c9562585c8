//! A server that is about to stop lets agents finish.

use super::platform::{Scripted, sent};
use super::world::{Agent, World, error, send};
use angelia_core::egress::Dedupe;
use angelia_testkit::socket::{Next, Refused, Socket};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer than any test waits.
const FOR_EVER: Duration = Duration::from_secs(3_600);
const SOON: Duration = Duration::from_secs(30);

/// A world that is asked to stop while the answer `one` is on its way.
async fn asked_to_stop(platform: &Arc<Scripted>, drain: Duration) -> (World, Agent, JoinHandle<()>) {
    let world = World::draining(platform.clone(), drain).await;
    let mut agent = world.agent().await;
    agent.ask("one", send("x-lab", "one")).await;
    world.until_texts(&["one"]).await;
    let stopping = stop(&world);
    world.until_ready_says("stopping\n").await;
    (world, agent, stopping)
}

fn stop(world: &World) -> JoinHandle<()> {
    let server = world.server.clone();
    tokio::spawn(async move { server.finish_turns().await })
}

#[tokio::test]
async fn an_answer_under_way_is_waited_for_and_what_follows_it_is_sent_too() {
    let platform = Scripted::new(Dedupe::No);
    let one = platform.hold();
    let (world, mut agent, stopping) = asked_to_stop(&platform, FOR_EVER).await;
    let refused = Socket::dial(&world.url, &world.gateway("acme", "late").await).await;
    assert!(matches!(refused, Err(Refused { status: 503, .. })), "nobody is let in any more");
    platform.give([sent("m2")]);
    assert_eq!(agent.asked(send("x-den", "two")).await["success"], true, "what agents send is sent");
    assert!(!stopping.is_finished(), "the call under way is waited for");
    one.send(sent("m1")).unwrap();
    assert_eq!(agent.answer("one").await["message_id"], "m1");
    assert_eq!(agent.next().await, Next::Closed(1001, "restarting".into()));
    timeout(SOON, stopping).await.expect("it ends once all is answered").unwrap();
    assert_eq!(world.states(), ["sent", "sent"]);
}

#[tokio::test]
async fn who_is_at_nothing_is_not_waited_for() {
    let world = World::draining(Scripted::new(Dedupe::No), FOR_EVER).await;
    let mut agent = world.agent().await;
    let stopping = stop(&world);
    assert_eq!(agent.next().await, Next::Closed(1001, "restarting".into()));
    timeout(SOON, stopping).await.expect("nothing is open").unwrap();
}

#[tokio::test]
async fn the_wait_has_an_end() {
    let platform = Scripted::new(Dedupe::No);
    let _one = platform.hold();
    let (_world, mut agent, stopping) = asked_to_stop(&platform, Duration::from_secs(2)).await;
    assert!(error(&agent.answer("one").await).contains("timed out"), "it may still be sent");
    assert_eq!(agent.next().await, Next::Closed(1001, "restarting".into()));
    timeout(SOON, stopping).await.expect("time is over").unwrap();
}

#[tokio::test]
async fn a_sterner_word_ends_the_wait() {
    for revoked in [true, false] {
        let platform = Scripted::new(Dedupe::No);
        let one = platform.hold();
        let (world, mut agent, stopping) = asked_to_stop(&platform, FOR_EVER).await;
        let code = if revoked {
            world.admin("gateways/gw/revoke", serde_json::json!({})).await;
            4401
        } else {
            // As a second signal does.
            let server = world.server.clone();
            tokio::spawn(async move { server.stop().await });
            1001
        };
        assert!(error(&agent.answer("one").await).contains("timed out"), "it may still be sent");
        let Next::Closed(closed, _) = agent.next().await else { panic!("it is not told") };
        assert_eq!(closed, code);
        timeout(SOON, stopping).await.expect("nobody is left").unwrap();
        one.send(sent("m1")).unwrap();
        world.until_states(&["sent"]).await;
    }
}
