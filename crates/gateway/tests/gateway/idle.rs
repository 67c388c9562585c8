//! Going quiet, and ending.

use std::time::Duration;

use angelia_contract::{ActionResult, ConnectorFrame, GatewayFrame, close};
use angelia_gateway::{AckWhen, CallError, Conversation, Event};
use tokio::time::{Instant, sleep, timeout};

use crate::support::{Server, deaf, message, run, run_gated, soon};

#[tokio::test(start_paused = true)]
async fn going_idle_is_announced_confirmed_and_kept() {
    let server = Server::start().await;
    let (handle, _running) = run(server.builder(), deaf);
    let mut peer = server.greet().await;
    sleep(Duration::from_millis(10)).await;
    let idling = tokio::spawn({
        let handle = handle.clone();
        async move { handle.go_idle().await }
    });
    assert_eq!(peer.next().await, GatewayFrame::GoingIdle);
    peer.silence(Duration::from_secs(5)).await;
    peer.send(&ConnectorFrame::GoingIdleAck).await;
    assert_eq!(peer.closed().await, 1000);
    drop(peer);
    assert_eq!(idling.await.unwrap(), Ok(()));
    sleep(Duration::from_secs(120)).await;
    assert_eq!((handle.is_connected(), handle.stats().dials), (false, 1));
    handle.wake();
    let _peer = server.greet().await;
    sleep(Duration::from_millis(10)).await;
    assert!(handle.is_connected());
}

#[tokio::test(start_paused = true)]
async fn an_unconfirmed_shutdown_ends_all_the_same() {
    let server = Server::start().await;
    let (handle, running) = run(server.builder(), deaf);
    let mut peer = server.greet().await;
    sleep(Duration::from_millis(10)).await;
    let begun = Instant::now();
    let ending = tokio::spawn(async move { handle.shutdown().await });
    assert_eq!(peer.next().await, GatewayFrame::GoingIdle);
    assert_eq!(peer.closed().await, 1000);
    drop(peer);
    assert_eq!(running.await.unwrap(), Ok(()));
    assert_eq!(ending.await.unwrap(), Err(CallError::TimedOut));
    let waited = begun.elapsed().as_secs();
    assert!((10..13).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_leaves_what_was_not_acknowledged_to_the_connector() {
    let server = Server::start().await;
    let (handle, running) =
        run(server.builder().ack(AckWhen::Taken), |event: Event, c: Conversation| async move {
            sleep(Duration::from_secs(3)).await;
            c.send(&event.text).await.unwrap();
        });
    let mut peer = server.greet().await;
    peer.event(message("1", "42", "m1", "running"), "b1").await;
    peer.event(message("1", "42", "m2", "waiting"), "b2").await;
    assert_eq!(peer.ack().await, "b1");
    let ending = tokio::spawn(async move { handle.shutdown().await });
    assert_eq!(peer.next().await, GatewayFrame::GoingIdle);
    // One that raced the announcement is left alone, too.
    peer.event(message("2", "42", "m3", "racing"), "b3").await;
    peer.send(&ConnectorFrame::GoingIdleAck).await;
    let outbound = peer.outbound().await;
    peer.answer(&outbound, ActionResult::ok()).await;
    assert_eq!(peer.closed().await, 1000);
    drop(peer);
    assert_eq!(ending.await.unwrap(), Ok(()));
    assert_eq!(running.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_runs_what_was_acknowledged_to_the_end() {
    let server = Server::start().await;
    let (handle, running) = run(server.builder(), |event: Event, c: Conversation| async move {
        sleep(Duration::from_secs(3)).await;
        c.send(&event.text).await.unwrap();
    });
    let mut peer = server.greet().await;
    for id in ["1", "2", "3"] {
        peer.event(message("1", "42", id, id), id).await;
        assert_eq!(peer.ack().await, id);
    }
    let ending = tokio::spawn(async move { handle.shutdown().await });
    assert_eq!(peer.next().await, GatewayFrame::GoingIdle);
    peer.event(message("1", "42", "4", "4"), "4").await;
    peer.send(&ConnectorFrame::GoingIdleAck).await;
    for id in ["1", "2", "3"] {
        assert_eq!(peer.take_text(id).await, format!("send {id}"));
    }
    // Neither run nor acknowledged.
    assert_eq!(peer.last().await, None);
    drop(peer);
    assert_eq!(ending.await.unwrap(), Ok(()));
    assert_eq!(running.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn what_was_left_before_a_rest_is_handled_after_it() {
    let server = Server::start().await;
    let (handle, _running, mut texts, gate) = run_gated(server.builder().ack(AckWhen::Taken));
    let mut peer = server.greet().await;
    for (user, id) in [("42", "a1"), ("42", "a2"), ("43", "b1")] {
        peer.event(message("1", user, id, id), id).await;
    }
    assert_eq!(peer.ack().await, "a1");
    assert_eq!(soon(texts.recv()).await.unwrap(), "a1");
    assert_eq!(soon(texts.recv()).await.unwrap(), "b1");
    let idling = tokio::spawn({
        let handle = handle.clone();
        async move { handle.go_idle().await }
    });
    assert_eq!(peer.next().await, GatewayFrame::GoingIdle);
    peer.send(&ConnectorFrame::GoingIdleAck).await;
    gate.add_permits(2);
    // The acknowledgement of b1 would be taken for that of a2.
    assert_eq!(peer.last().await, None);
    drop(peer);
    assert_eq!(idling.await.unwrap(), Ok(()));
    handle.wake();
    let mut peer = server.greet().await;
    for (user, id) in [("42", "a2"), ("43", "b1")] {
        peer.event(message("1", user, id, id), id).await;
        assert_eq!(peer.ack().await, id);
    }
    assert_eq!(soon(texts.recv()).await.unwrap(), "a2");
    assert!(timeout(Duration::from_secs(1), texts.recv()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_without_a_connection_lets_turns_end_as_well() {
    let server = Server::start().await;
    let (handle, running, mut texts, gate) = run_gated(server.builder());
    let mut peer = server.greet().await;
    for id in ["1", "2"] {
        peer.event(message("1", "42", id, id), id).await;
        assert_eq!(peer.ack().await, id);
    }
    peer.close(close::GOING_AWAY, "").await;
    sleep(Duration::from_millis(10)).await;
    let ending = tokio::spawn(async move { handle.shutdown().await });
    assert_eq!(soon(texts.recv()).await.unwrap(), "1");
    gate.add_permits(2);
    assert_eq!(soon(texts.recv()).await.unwrap(), "2");
    assert_eq!(ending.await.unwrap(), Ok(()));
    assert_eq!(running.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_a_connection() {
    let server = Server::start().await;
    let (handle, running) = run(server.builder(), deaf);
    server.refuse("503 Service Unavailable", "retry-after: 200\r\n").await;
    sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    assert_eq!(handle.shutdown().await, Ok(()));
    assert_eq!(running.await.unwrap(), Ok(()));
    assert!(begun.elapsed() < Duration::from_secs(1));
}
