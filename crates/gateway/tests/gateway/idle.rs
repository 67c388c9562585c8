//! Going quiet, and ending.

use std::time::Duration;

use angelia_contract::{ActionResult, ConnectorFrame, GatewayFrame};
use angelia_gateway::{CallError, Conversation, Event};
use tokio::time::{Instant, sleep};

use crate::support::{Server, deaf, message, run};

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
async fn a_shutdown_lets_turns_end_and_leaves_the_rest_to_the_connector() {
    let server = Server::start().await;
    let (handle, running) = run(server.builder(), |event: Event, c: Conversation| async move {
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
