//! When events are acknowledged, and in which order.

use std::time::Duration;

use angelia_contract::{ConnectorFrame, GatewayFrame, PassthroughForward, close};
use angelia_gateway::{AckWhen, Conversation, Event};
use tokio::time::{sleep, timeout};

use crate::support::{Peer, Running, Server, message, run, run_gated, soon};

const MOMENT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(20);

/// A slow conversation with two events, then one of another conversation.
async fn two_conversations(peer: &mut Peer) {
    for (user, id) in [("42", "a1"), ("42", "a2"), ("43", "b1")] {
        peer.event(message("1", user, id, id), id).await;
    }
}

/// A gateway whose turns of user 42 take ten seconds each, all others none.
fn run_slow(server: &Server, when: AckWhen) -> Running {
    let (_handle, running) = run(server.builder().ack(when), |event: Event, _: Conversation| async move {
        if event.source.user_id.as_deref() == Some("42") {
            sleep(Duration::from_secs(10)).await;
        }
    });
    running
}

#[tokio::test(start_paused = true)]
async fn an_event_can_be_acknowledged_when_the_agent_takes_it() {
    let server = Server::start().await;
    let (_handle, _running, mut texts, gate) = run_gated(server.builder().ack(AckWhen::Taken));
    let mut peer = server.greet().await;
    peer.event(message("1", "42", "m1", "one"), "b1").await;
    peer.event(message("1", "42", "m2", "two"), "b2").await;
    assert_eq!(peer.ack().await, "b1");
    assert_eq!(soon(texts.recv()).await.unwrap(), "one");
    // The second stands behind the first, untaken.
    peer.silence(Duration::from_secs(20)).await;
    gate.add_permits(1);
    assert_eq!(peer.ack().await, "b2");
    assert_eq!(soon(texts.recv()).await.unwrap(), "two");
}

#[tokio::test(start_paused = true)]
async fn an_event_can_be_acknowledged_when_it_was_handled() {
    let server = Server::start().await;
    let builder = server.builder().ack_after_handled();
    let (_handle, _running, mut texts, gate) = run_gated(builder);
    let mut peer = server.greet().await;
    peer.event(message("1", "42", "m1", "one"), "b1").await;
    assert_eq!(soon(texts.recv()).await.unwrap(), "one");
    peer.silence(Duration::from_secs(20)).await;
    gate.add_permits(1);
    assert_eq!(peer.ack().await, "b1");
}

#[tokio::test(start_paused = true)]
async fn an_event_is_acknowledged_when_it_is_queued() {
    let server = Server::start().await;
    let (_handle, _running, _texts, _gate) = run_gated(server.builder());
    let mut peer = server.greet().await;
    for id in ["1", "2", "3"] {
        peer.event(message("1", "42", id, id), id).await;
    }
    for id in ["1", "2", "3"] {
        assert_eq!(peer.ack().await, id);
    }
    peer.event(message("1", "42", "2", "2"), "again").await;
    assert_eq!(peer.ack().await, "again");
}

#[tokio::test(start_paused = true)]
async fn an_event_without_an_id_is_not_acknowledged() {
    let server = Server::start().await;
    let (_handle, _running, mut texts, _gate) = run_gated(server.builder());
    let mut peer = server.greet().await;
    peer.event(message("1", "42", "m1", "one"), "").await;
    assert_eq!(soon(texts.recv()).await.unwrap(), "one");
    peer.silence(Duration::from_secs(20)).await;
}

#[tokio::test(start_paused = true)]
async fn queued_events_are_acknowledged_at_once_whatever_runs() {
    let server = Server::start().await;
    let (_handle, _running, _texts, _gate) = run_gated(server.builder());
    let mut peer = server.greet().await;
    two_conversations(&mut peer).await;
    for id in ["a1", "a2", "b1"] {
        assert_eq!(timeout(MOMENT, peer.ack()).await.unwrap(), id);
    }
}

#[tokio::test(start_paused = true)]
async fn taken_events_are_acknowledged_in_the_order_they_came() {
    let server = Server::start().await;
    let _running = run_slow(&server, AckWhen::Taken);
    let mut peer = server.greet().await;
    two_conversations(&mut peer).await;
    assert_eq!(peer.ack().await, "a1");
    // The other conversation is done, but its event came behind one that waits.
    peer.silence(Duration::from_secs(9)).await;
    assert_eq!(peer.ack().await, "a2");
    assert_eq!(timeout(MOMENT, peer.ack()).await.unwrap(), "b1");
}

#[tokio::test(start_paused = true)]
async fn handled_events_are_acknowledged_in_the_order_they_came() {
    let server = Server::start().await;
    let _running = run_slow(&server, AckWhen::Handled);
    let mut peer = server.greet().await;
    two_conversations(&mut peer).await;
    peer.silence(Duration::from_secs(9)).await;
    assert_eq!(peer.ack().await, "a1");
    peer.silence(Duration::from_secs(9)).await;
    assert_eq!(peer.ack().await, "a2");
    assert_eq!(timeout(MOMENT, peer.ack()).await.unwrap(), "b1");
}

#[tokio::test(start_paused = true)]
async fn what_needs_no_handling_waits_in_line_as_well() {
    let server = Server::start().await;
    let (_handle, _running, mut texts, gate) = run_gated(server.builder().ack_after_handled());
    let mut peer = server.greet().await;
    peer.event(message("2", "7", "m0", "zero"), "b0").await;
    gate.add_permits(1);
    assert_eq!(peer.ack().await, "b0");
    peer.event(message("1", "42", "m1", "one"), "b1").await;
    peer.send_raw("{\"type\":\"inbound\",\"event\":null,\"bufferId\":\"unreadable\"}\n").await;
    peer.event(message("2", "7", "m0", "zero"), "known").await;
    peer.event(message("1", "42", "m1", "one"), "held").await;
    let forward = PassthroughForward { platform: "twilio".to_owned(), ..PassthroughForward::default() };
    let buffer_id = Some("forward".to_owned());
    peer.send(&ConnectorFrame::PassthroughForward { forward, buffer_id, platform: None, bot_id: None }).await;
    peer.silence(LONG).await;
    gate.add_permits(1);
    for id in ["b1", "unreadable", "known", "held", "forward"] {
        assert_eq!(peer.ack().await, id);
    }
    assert_eq!(soon(texts.recv()).await.unwrap(), "zero");
    assert_eq!(soon(texts.recv()).await.unwrap(), "one");
}

#[tokio::test(start_paused = true)]
async fn a_request_is_acknowledged_when_it_is_queued_in_any_mode() {
    let server = Server::start().await;
    let (_handle, _running, mut texts, _gate) = run_gated(server.builder().ack_after_handled());
    let mut peer = server.greet().await;
    let body = br#"{"type":2,"id":"77","channel_id":"1","guild_id":"9","member":{"user":{"id":"42"}},
        "data":{"name":"help"}}"#;
    let forward = PassthroughForward {
        platform: "discord".to_owned(),
        body: body.to_vec(),
        ..PassthroughForward::default()
    };
    let buffer_id = Some("b1".to_owned());
    peer.send(&ConnectorFrame::PassthroughForward { forward, buffer_id, platform: None, bot_id: None }).await;
    assert_eq!(peer.ack().await, "b1");
    assert_eq!(soon(texts.recv()).await.unwrap(), "/help");
}

#[tokio::test(start_paused = true)]
async fn a_death_leaves_all_that_was_not_handled_to_the_connector() {
    let server = Server::start().await;
    let running = run_slow(&server, AckWhen::Handled);
    let mut peer = server.greet().await;
    two_conversations(&mut peer).await;
    peer.silence(Duration::from_secs(5)).await;
    running.abort();
    assert_eq!(peer.last().await, None);

    // The connector delivers to the next process, which starts from nothing.
    let _running = run_slow(&server, AckWhen::Handled);
    let mut peer = server.greet().await;
    two_conversations(&mut peer).await;
    for id in ["a1", "a2", "b1"] {
        assert_eq!(peer.ack().await, id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_backlog_holds_back_acknowledgements_and_nothing_else() {
    let server = Server::start().await;
    let (handle, _running, mut texts, gate) = run_gated(server.builder().max_backlog(1));
    let mut peer = server.greet().await;
    peer.event(message("1", "42", "1", "1"), "1").await;
    assert_eq!(soon(texts.recv()).await.unwrap(), "1");
    for id in ["2", "3", "4"] {
        peer.event(message("1", "42", id, id), id).await;
    }
    assert_eq!((peer.ack().await, peer.ack().await), ("1".to_owned(), "2".to_owned()));
    peer.silence(LONG).await;
    // Interrupts are heard, and one turn less is room for one event more.
    peer.interrupt("agent:main:discord:group:1:42", "1").await;
    assert_eq!(soon(texts.recv()).await.unwrap(), "2");
    assert_eq!(peer.ack().await, "3");
    peer.silence(LONG).await;
    gate.add_permits(3);
    assert_eq!(peer.ack().await, "4");
    assert_eq!(soon(texts.recv()).await.unwrap(), "3");
    assert_eq!(soon(texts.recv()).await.unwrap(), "4");
    assert_eq!(handle.stats().shed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_connector_that_does_not_wait_is_left_and_delivers_again() {
    let server = Server::start().await;
    let (handle, _running, mut texts, gate) = run_gated(server.builder().max_backlog(1));
    let mut peer = server.greet().await;
    peer.event(message("1", "42", "0", "0"), "0").await;
    assert_eq!(soon(texts.recv()).await.unwrap(), "0");
    assert_eq!(peer.ack().await, "0");
    for id in 1..=66 {
        let id = id.to_string();
        peer.event(message("1", "42", &id, &id), &id).await;
    }
    // Perhaps the first one more, which there was room for.
    while let Some(frame) = peer.last().await {
        assert_eq!(frame, GatewayFrame::InboundAck { buffer_id: "1".to_owned() });
    }
    assert_eq!(handle.stats().shed, 1);
    gate.add_permits(100);
    let mut peer = server.greet().await;
    for id in 1..=66 {
        let id = id.to_string();
        peer.event(message("1", "42", &id, &id), &id).await;
    }
    for id in 1..=66 {
        assert_eq!(peer.ack().await, id.to_string());
    }
    for id in 1..=66 {
        assert_eq!(soon(texts.recv()).await.unwrap(), id.to_string());
    }
    assert!(timeout(MOMENT, texts.recv()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_repeat_after_a_reconnect_is_acknowledged_but_not_handled_again() {
    let server = Server::start().await;
    let builder = server.builder().ack_after_handled();
    let (handle, _running, mut texts, gate) = run_gated(builder);
    let mut peer = server.greet().await;
    peer.event(message("1", "42", "m1", "one"), "b1").await;
    assert_eq!(soon(texts.recv()).await.unwrap(), "one");
    peer.close(close::GOING_AWAY, "").await;
    let mut peer = server.greet().await;
    peer.event(message("1", "43", "m2", "other"), "b2").await;
    assert_eq!(soon(texts.recv()).await.unwrap(), "other");
    peer.event(message("1", "42", "m1", "one"), "b1").await;
    peer.silence(MOMENT).await;
    gate.add_permits(2);
    // In the order of this socket: the other one's says nothing here.
    assert_eq!(peer.ack().await, "b2");
    assert_eq!(peer.ack().await, "b1");
    peer.event(message("1", "42", "m1", "one"), "b1-late").await;
    assert_eq!(peer.ack().await, "b1-late");
    assert!(timeout(MOMENT, texts.recv()).await.is_err());
    assert_eq!(handle.stats().repeated, 2);
}

#[tokio::test(start_paused = true)]
async fn an_event_survives_the_reconnect_it_waits_through() {
    let server = Server::start().await;
    let (_handle, _running, mut texts, gate) = run_gated(server.builder().ack(AckWhen::Taken));
    let mut peer = server.greet().await;
    for id in ["1", "2"] {
        peer.event(message("1", "42", id, id), id).await;
    }
    assert_eq!(peer.ack().await, "1");
    peer.close(close::GOING_AWAY, "").await;
    let mut peer = server.greet().await;
    gate.add_permits(1);
    assert_eq!(soon(texts.recv()).await.unwrap(), "1");
    assert_eq!(soon(texts.recv()).await.unwrap(), "2");
    // Its acknowledgement was lost with the socket, so it is delivered again.
    peer.silence(MOMENT).await;
    peer.event(message("1", "42", "2", "2"), "2").await;
    assert_eq!(peer.ack().await, "2");
    assert!(timeout(MOMENT, texts.recv()).await.is_err());
}
