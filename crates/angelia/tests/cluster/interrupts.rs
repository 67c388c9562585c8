//! Stops find the node with the agent's socket.

use super::stage::{AT_ONCE, Stage, timed};
use angelia_contract::token;
use angelia_testkit::socket::{Next, Socket, now};
use serde_json::json;
use std::time::Duration;

const KEY: &str = "agent:main:relay:group:web-lab:ann";

/// A socket of a peer that acts on interrupts.
async fn join(stage: &Stage, node: usize) -> Socket {
    let token = token::mint(&stage.gateway.gateway_id, &stage.gateway.secret, now(), 300);
    let bearer = format!("Bearer {token}");
    let url = stage.cluster[node].url();
    let mut socket = Socket::dial_with(&url, Some(&bearer), "angelia-gateway/0.1").await.unwrap();
    socket.hello("webchat", "webchat").await;
    assert_eq!(socket.frame().await["type"], "descriptor");
    socket
}

#[tokio::test]
async fn a_stop_reaches_the_agent_on_another_node() {
    let stage = Stage::new("interrupts", 2).await;
    let mut agent = join(&stage, 1).await;
    stage.post(0, "a turn").await;
    assert_eq!(agent.take_text().await, "a turn");

    stage.post(0, "/stop").await;
    let frame = timed("a typed stop", AT_ONCE, agent.frame()).await;
    assert_eq!(frame, json!({"type": "interrupt_inbound", "session_key": KEY, "chat_id": "web-lab"}));

    let url = format!("{}/chat/api/rooms/lab/interrupt", stage.cluster[0].url());
    assert_eq!(stage.http.post(url).bearer_auth(&stage.key).send().await.unwrap().status(), 202);
    let frame = timed("the stop button", AT_ONCE, agent.frame()).await;
    assert_eq!(frame["type"], "interrupt_inbound");

    let sibling = stage.cluster[0].gateway("acme", "sibling").await;
    let stranger = stage.cluster[0].gateway("other", "stranger").await;
    for gateway in [&sibling, &stranger] {
        stage.until_known(0, gateway).await;
    }
    let ask = json!({"type": "interrupt", "session_key": KEY, "reason": null});
    stage.join_as(0, &stranger).await.send(&ask).await;
    assert_eq!(agent.next(Duration::from_millis(400)).await, Next::Silence, "nobody else's");
    let mut sibling = stage.join_as(0, &sibling).await;
    sibling.send(&ask).await;
    let frame = timed("an interrupt of a gateway on another node", AT_ONCE, agent.frame()).await;
    assert_eq!(frame["session_key"], KEY);
    stage.cluster.assert_never_panicked();
}
