//! How a gateway is given an interaction: by what it is known to read, and by
//! what the operator wants.

use super::platform::Scripted;
use super::vault::{Asks, asks, interaction};
use super::world::World;
use angelia_contract::frame::ConnectorFrame;
use angelia_contract::token;
use angelia_core::egress::Dedupe;
use angelia_core::inbox::Rendering;
use angelia_core::store::{JournalStore, Log};
use angelia_testkit::connector::Credentials;
use angelia_testkit::socket::{Next, Socket, now};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const PUBLISHED: &str = "Python/3.11 websockets/15.0.1";
const RUST_HALF: &str = "angelia-gateway/0.1";

async fn dial(world: &World, credentials: &Credentials, agent: &str, hello: Value) -> Socket {
    let token = token::mint(&credentials.gateway_id, &credentials.secret, now(), 300);
    let mut socket = Socket::dial_with(&world.url, Some(&format!("Bearer {token}")), agent).await.unwrap();
    socket.send(&hello).await;
    assert_eq!(socket.frame().await["type"], "descriptor");
    socket
}

fn hello() -> Value {
    json!({"type": "hello", "platform": "fake", "botId": "bot"})
}

fn with_manifest() -> Value {
    json!({"type": "hello", "platform": "fake", "botId": "bot", "command_manifest": []})
}

/// The frame this peer is given of an interaction.
async fn given(rendering: Rendering, agent: &str, hello: Value) -> Value {
    let platform = Scripted::new(Dedupe::No);
    *platform.rendering.lock().unwrap() = rendering;
    let world = World::new(platform).await;
    let credentials = world.gateway("acme", "gw").await;
    world.take(&asks("i1", "ann")).await;
    dial(&world, &credentials, agent, hello).await.frame().await
}

#[tokio::test]
async fn the_form_is_what_the_peer_reads_or_the_operator_wants() {
    use Rendering::{Auto, Event, Passthrough};
    let (event, forward) = ("inbound", "passthrough_forward");
    let cases = [
        (Auto, PUBLISHED, hello(), event),
        (Auto, PUBLISHED, with_manifest(), forward),
        (Auto, RUST_HALF, hello(), forward),
        (Auto, "another/1.0", hello(), forward),
        (Passthrough, PUBLISHED, hello(), forward),
        (Event, RUST_HALF, hello(), event),
        (Event, PUBLISHED, with_manifest(), event),
    ];
    let all = cases.map(|(rendering, agent, hello, expected)| async move {
        let frame = given(rendering, agent, hello).await;
        assert_eq!(frame["type"], expected, "{rendering:?} for {agent}: {frame}");
    });
    // Some are left to settle in for seconds: all at once.
    futures_util::future::join_all(all).await;
}

#[tokio::test]
async fn an_event_says_what_was_typed() {
    let frame = given(Rendering::Event, RUST_HALF, hello()).await;
    assert_eq!((&frame["platform"], &frame["botId"]), (&"fake".into(), &"bot".into()));
    assert!(frame["bufferId"].is_string(), "{frame}");
    let event = serde_json::to_value(interaction(&asks("i1", "ann")).event).unwrap();
    assert_eq!(frame["event"], event);
    assert_eq!((&event["text"], &event["message_id"]), (&"/ask why".into(), &"i1".into()));
}

#[tokio::test]
async fn a_forward_is_the_request_byte_by_byte() {
    let frame = given(Rendering::Auto, RUST_HALF, hello()).await;
    let expected = interaction(&asks("i1", "ann")).into_forward("fake", "bot");
    let read = ConnectorFrame::parse(frame.to_string().as_bytes()).unwrap();
    let ConnectorFrame::PassthroughForward { forward, buffer_id, platform, bot_id } = read else {
        panic!("{frame}")
    };
    assert_eq!(forward, expected);
    assert_eq!(forward.body, interaction(&asks("i1", "ann")).request.body.into_bytes());
    assert!(buffer_id.is_some());
    assert_eq!((platform.as_deref(), bot_id.as_deref()), (Some("fake"), Some("bot")));
}

async fn stage() -> (Arc<Scripted>, World, Credentials) {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let credentials = world.gateway("acme", "gw").await;
    (platform, world, credentials)
}

async fn until_outcome(world: &World, id: &str, outcome: &str) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(12);
    loop {
        let story = world.store.explain(id).await.unwrap().remove(0);
        if story.outcome.as_deref() == Some(outcome) {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "{id}: {story:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_forward_settles_without_an_acknowledgement_and_is_not_repeated() {
    let (_, world, credentials) = stage().await;
    world.take(&asks("i1", "ann")).await;
    let mut socket = dial(&world, &credentials, RUST_HALF, hello()).await;
    assert_eq!(socket.frame().await["type"], "passthrough_forward");
    // Reading is enough: its pings are answered.
    let reading = tokio::spawn(async move { socket.next(Duration::from_secs(9)).await });
    until_outcome(&world, "i1", "settled by pong").await;
    reading.abort();
    let mut again = dial(&world, &credentials, RUST_HALF, hello()).await;
    assert_eq!(again.next(Duration::from_millis(300)).await, Next::Silence);
}

#[tokio::test]
async fn an_acknowledgement_settles_a_forward_and_an_event() {
    let (platform, world, credentials) = stage().await;
    let mut socket = dial(&world, &credentials, RUST_HALF, hello()).await;
    for (id, rendering) in [("i1", Rendering::Passthrough), ("i2", Rendering::Event)] {
        *platform.rendering.lock().unwrap() = rendering;
        world.take(&asks(id, "ann")).await;
        let frame = socket.frame().await;
        socket.ack(&frame).await;
        until_outcome(&world, id, "acknowledged").await;
    }
}

#[tokio::test]
async fn what_goes_ahead_overtakes_what_waits() {
    let (platform, world, credentials) = stage().await;
    *platform.rendering.lock().unwrap() = Rendering::Event;
    for n in 0..12 {
        world.take(&asks(&format!("i{n}"), "ann")).await;
    }
    world.take(&Asks { ahead: true, ..asks("first", "ann") }).await;
    let mut socket = dial(&world, &credentials, RUST_HALF, hello()).await;
    let mut ids = Vec::new();
    for _ in 0..8 {
        ids.push(socket.frame().await["event"]["message_id"].clone());
    }
    assert_eq!(ids[..3], ["first", "i0", "i1"]);
    assert_eq!(socket.next(Duration::from_millis(200)).await, Next::Silence, "the window is full");
    // As a forward, which nobody has to acknowledge, it does not wait for the others either.
    *platform.rendering.lock().unwrap() = Rendering::Passthrough;
    world.take(&Asks { ahead: true, ..asks("second", "ann") }).await;
    assert_eq!(socket.frame().await["type"], "passthrough_forward");
}

#[tokio::test]
async fn what_cannot_be_read_holds_up_nothing() {
    let (_, world, credentials) = stage().await;
    let mut socket = dial(&world, &credentials, RUST_HALF, hello()).await;
    world.take_body(&asks("broken", "ann"), b"{\"event\": 7}".to_vec()).await;
    world.take(&Asks { chat: "x-den", ..asks("i2", "ann") }).await;
    let frame = socket.frame().await;
    assert_eq!(frame["type"], "passthrough_forward", "{frame}");
    socket.ack(&frame).await;
    until_outcome(&world, "broken", "dropped: the connector could not read it").await;
    until_outcome(&world, "i2", "acknowledged").await;
    let instance = world.instance("acme", "gw").await;
    assert_eq!(world.store.usage(instance).await.unwrap().entries, 0, "something waits");
}
