//! Stopping a turn.

use super::world::{World, credentials};
use angelia_contract::token;
use angelia_core::clock;
use angelia_testkit::socket::{Next, Socket, now};
use serde_json::json;
use std::time::Duration;

const KEY: &str = "agent:main:relay:group:web-lab:ann";

pub(crate) async fn join_as(world: &World, agent: &str) -> Socket {
    let token = token::mint(&world.gateway.gateway_id, &world.gateway.secret, now(), 300);
    let mut socket =
        Socket::dial_with(&world.connector.url(), Some(&format!("Bearer {token}")), agent).await.unwrap();
    socket.hello("webchat", "webchat").await;
    assert_eq!(socket.frame().await["type"], "descriptor");
    socket
}

#[tokio::test]
async fn a_typed_stop_is_an_interrupt_for_peers_that_act_on_one() {
    let world = World::new().await;
    let mut socket = join_as(&world, "angelia-gateway/0.1").await;
    for n in 0..20 {
        world.post(&format!("m{n}")).await;
    }
    for _ in 0..8 {
        assert_eq!(socket.frame().await["type"], "inbound");
    }
    assert_eq!(socket.next(Duration::from_millis(200)).await, Next::Silence, "the window is full");
    world.post("/stop").await;
    let frame = socket.frame().await;
    assert_eq!(frame, json!({"type": "interrupt_inbound", "session_key": KEY, "chat_id": "web-lab"}));
}

#[tokio::test]
async fn a_typed_stop_goes_ahead_of_the_queue_for_the_others() {
    let world = World::new().await;
    for text in ["one", "two", "/stop"] {
        world.post(text).await;
    }
    let mut socket = join_as(&world, "test").await;
    assert_eq!(socket.take_text().await, "/stop");
    assert_eq!(socket.take_text().await, "one");
    assert_eq!(socket.take_text().await, "two");
    world.until_waiting(0).await;
}

/// What published gateways file under `relay` they interrupt, and a text would make them deaf.
#[tokio::test]
async fn a_typed_stop_in_the_web_chat_is_an_interrupt_for_published_gateways() {
    let world = World::new().await;
    let mut socket = join_as(&world, "Python/3.11 websockets/15.0.1").await;
    world.post("one").await;
    assert_eq!(socket.take_text().await, "one");
    world.post("two").await;
    world.post("/stop").await;
    assert_eq!(socket.frame().await["type"], "interrupt_inbound");
    let answer = json!({"op": "send", "chat_id": "web-lab", "content": "yes", "metadata": {"notify": true}});
    assert_eq!(socket.ask(answer).await["success"], true);
    assert_eq!(socket.take_text().await, "two", "it waited for the end of the turn");
}

#[tokio::test]
async fn an_interrupt_frame_finds_its_conversation_within_the_tenant_only() {
    let world = World::new().await;
    let mut socket = join_as(&world, "test").await;
    world.post("a turn").await;
    socket.take_text().await;
    let sibling = world.connector.command(&["gateway", "create", "sibling"]).await;
    let mut sibling = Socket::join(&world.connector.url(), &credentials(&sibling)).await;
    sibling.send(&json!({"type": "interrupt", "session_key": KEY, "reason": null})).await;
    let frame = socket.frame().await;
    assert_eq!(frame, json!({"type": "interrupt_inbound", "session_key": KEY, "chat_id": "web-lab"}));

    // A key of another spelling still names the chat.
    let spelled = "agent:main:relay:group:web-lab";
    sibling.send(&json!({"type": "interrupt", "session_key": spelled, "reason": "enough"})).await;
    assert_eq!(socket.frame().await["session_key"], spelled);

    let stranger = world.connector.gateway("other", "gw").await;
    let mut stranger = Socket::join(&world.connector.url(), &stranger).await;
    stranger.send(&json!({"type": "interrupt", "session_key": KEY, "reason": null})).await;
    assert_eq!(socket.next(Duration::from_millis(400)).await, Next::Silence);
}

#[tokio::test]
async fn the_stop_button_does_the_same_as_the_word() {
    let world = World::new().await;
    let mut socket = join_as(&world, "angelia-gateway/0.1").await;
    let url = format!("{}/chat/api/rooms/lab/interrupt", world.connector.url());
    let answer = world.http.post(url).bearer_auth(&world.key).send().await.unwrap();
    assert_eq!(answer.status(), 202);
    assert_eq!(socket.frame().await["type"], "interrupt_inbound");
    assert_eq!(world.lines().await.len(), 0, "a button is no line");
}

#[tokio::test]
async fn a_hundred_stops_that_waited_hold_up_nothing() {
    let world = World::new().await;
    for _ in 0..100 {
        world.post("/stop").await;
    }
    world.post("a message").await;
    let mut socket = join_as(&world, "angelia-gateway/0.1").await;
    let (mut stops, mut texts, begun) = (0, 0, clock::mono());
    while stops < 100 || texts < 1 {
        let Next::Frame(frame) = socket.next(Duration::from_secs(20)).await else {
            panic!("only {stops} stops and {texts} texts came")
        };
        match frame["type"].as_str() {
            Some("interrupt_inbound") => stops += 1,
            Some("inbound") => {
                texts += 1;
                socket.ack(&frame).await;
            }
            _ => panic!("{frame}"),
        }
    }
    assert!(clock::mono().since(begun) < Duration::from_secs(4), "the text waited for them to settle");
    assert_eq!(socket.next(Duration::from_millis(500)).await, Next::Silence, "each once");
}
