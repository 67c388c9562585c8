//! The gateway stops in its tracks: its sockets stay open, nothing moves.

use crate::agent::Agent;
use crate::judge::{Accepted, judge};
use crate::room::Room;
use crate::server::Server;
use crate::stage::{calm, report};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const TEST: &str = "frozen_gateway";

/// Shorter than the connector's patience: the socket stays.
const SHORT: Duration = Duration::from_secs(30);
/// Longer: the connector gives the socket up, and the gateway dials again.
const LONG: Duration = Duration::from_secs(120);

/// Frozen for 30 s and for 120 s, beside each other; everything arrives after
/// the thaw and no socket sees a frame twice.
#[test]
fn thirty_and_a_hundred_and_twenty_seconds() {
    calm(async {
        let (short, long) = tokio::join!(freeze("short", SHORT), freeze("long", LONG));
        assert_eq!(short, 1, "a freeze of {SHORT:?} must not cost the socket");
        assert!(long >= 2, "after {LONG:?} the gateway has dialled again");
    });
}

/// Freezes a gateway for `time` while messages are posted; returns how many
/// sockets it used.
async fn freeze(name: &str, time: Duration) -> usize {
    let server = Server::start(&format!("{TEST}-{name}")).await;
    let credentials = server.gateway("default", "gw-log").await;
    let agent = Agent::start(&server, &credentials, &[]);
    let room = Room::enter(&server, "den", "gw-log").await;
    let mut texts = Vec::new();
    let mut next = || {
        texts.push(format!("den-{:05}", texts.len()));
        texts.last().cloned().unwrap_or_default()
    };
    for _ in 0..20 {
        let text = next();
        room.post(&text, &text).await;
    }
    agent.wait_for(20, Duration::from_secs(20)).await;

    agent.process.freeze();
    let thaw_at = Instant::now() + time;
    for _ in 0..200 {
        let text = next();
        room.post(&text, &text).await;
    }
    while Instant::now() < thaw_at {
        let text = next();
        room.post(&text, &text).await;
        sleep(Duration::from_millis(250)).await;
    }
    let frozen_at = agent.seen().len();
    agent.process.thaw();
    let began = Instant::now();
    agent.wait_for(texts.len(), Duration::from_secs(40)).await;
    let took = began.elapsed();
    let accepted = Accepted::from([(room.chat(), texts)]);
    let verdict = judge(&accepted, &agent.seen());
    assert_eq!(server.dead_letters().await, 0, "a frozen gateway is no dead letter");
    server.assert_never_panicked();
    report(
        TEST,
        &format!("{name}: frozen {time:?} after {frozen_at} frames: {verdict}; caught up in {took:.1?}"),
    );
    verdict.sockets
}
