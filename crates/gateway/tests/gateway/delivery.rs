//! Events on their way to the agent.

use std::time::Duration;

use angelia_contract::{ConnectorFrame, Inbound};
use angelia_gateway::{Conversation, Event};
use tokio::time::{Instant, sleep, timeout};

use crate::support::{Server, message, run, run_gated, run_turns, soon};

const MOMENT: Duration = Duration::from_millis(50);

#[tokio::test(start_paused = true)]
async fn one_conversation_is_in_order_and_others_do_not_wait() {
    let server = Server::start().await;
    let (_handle, _running, mut texts, gate) = run_gated(server.builder());
    let mut peer = server.greet().await;
    for (user, text) in [("42", "a1"), ("42", "a2"), ("43", "b1"), ("42", "a3"), ("44", "c1")] {
        peer.event(message("1", user, text, text), "").await;
    }
    let mut begun = Vec::new();
    while let Ok(Some(text)) = timeout(MOMENT, texts.recv()).await {
        begun.push(text);
    }
    begun.sort();
    assert_eq!(begun, ["a1", "b1", "c1"]);
    gate.add_permits(3);
    assert_eq!(soon(texts.recv()).await.unwrap(), "a2");
    gate.add_permits(1);
    assert_eq!(soon(texts.recv()).await.unwrap(), "a3");
}

#[tokio::test(start_paused = true)]
async fn only_so_many_turns_run_at_once() {
    let server = Server::start().await;
    let (_handle, _running, mut texts, gate) = run_gated(server.builder().max_turns(2));
    let mut peer = server.greet().await;
    for user in ["1", "2", "3"] {
        peer.event(message("1", user, user, user), "").await;
    }
    assert!(soon(texts.recv()).await.is_some());
    assert!(soon(texts.recv()).await.is_some());
    assert!(timeout(MOMENT, texts.recv()).await.is_err());
    gate.add_permits(1);
    assert_eq!(soon(texts.recv()).await.unwrap(), "3");
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_one_turn_only() {
    let server = Server::start().await;
    let builder = server.builder().ack_after_handled();
    let (_handle, _running) = run(builder, |event: Event, _: Conversation| {
        assert_ne!(event.text, "at once");
        async move { assert_ne!(event.text, "later") }
    });
    let mut peer = server.greet().await;
    for text in ["at once", "later", "fine"] {
        peer.event(message("1", "42", text, text), text).await;
        assert_eq!(peer.ack().await, text);
    }
}

#[tokio::test(start_paused = true)]
async fn frames_and_messages_are_independent() {
    let server = Server::start().await;
    let (_handle, _running, mut turns) = run_turns(server.builder());
    let mut peer = server.greet().await;
    let line = |text: &str| {
        let event = message("1", "42", text, text);
        let inbound = Inbound { event, ..Inbound::default() };
        ConnectorFrame::Inbound(inbound).to_line()
    };
    peer.send_raw(&format!("{}{}", line("one"), line("two"))).await;
    let long = line(&"long ".repeat(500_000));
    let (start, end) = long.split_at(900_000);
    peer.send_raw(start).await;
    peer.send_raw(&format!("{end}{}", &line("last")[..10])).await;
    peer.send_raw(&line("last")[10..]).await;
    let mut lengths = Vec::new();
    for _ in 0..4 {
        lengths.push(soon(turns.recv()).await.unwrap().0.text.len());
    }
    assert_eq!(lengths, [3, 3, 2_500_000, 4]);
}

#[tokio::test(start_paused = true)]
async fn malformed_lines_hurt_nobody() {
    let server = Server::start().await;
    let (handle, _running, mut turns) = run_turns(server.builder());
    let mut peer = server.greet().await;
    let bad = [
        "not json",
        "[1,2]",
        "null",
        "{}",
        r#"{"type":7}"#,
        r#"{"type":"descriptor","descriptor":{}}"#,
        r#"{"type":"descriptor"}"#,
        r#"{"type":"inbound","event":null}"#,
        r#"{"type":"inbound","event":{"source":5}}"#,
        r#"{"type":"outbound_result","requestId":"x","result":[]}"#,
        r#"{"type":"interrupt_inbound"}"#,
    ];
    for line in bad {
        peer.send_raw(&format!("{line}\n")).await;
    }
    peer.send_raw("{\"type\":\"news\"}\n\r\n\n").await;
    peer.send_raw("{\"type\":\"outbound_result\",\"requestId\":\"x\",\"result\":{}}\n").await;
    // No other delivery would make this readable.
    peer.send_raw("{\"type\":\"inbound\",\"event\":null,\"bufferId\":\"b0\"}\n").await;
    assert_eq!(peer.ack().await, "b0");
    peer.event(message("1", "42", "m1", "still here"), "b1").await;
    assert_eq!(peer.ack().await, "b1");
    assert_eq!(soon(turns.recv()).await.unwrap().0.text, "still here");
    assert_eq!(handle.stats().malformed, bad.len() as u64 + 1);
    assert_eq!(handle.stats().dials, 1);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_its_answer_does_not_hold_up_the_reader() {
    let server = Server::start().await;
    let (_handle, _running) = run(server.builder(), |event: Event, c: Conversation| async move {
        let _ = c.send(&event.text).await;
    });
    let mut peer = server.greet().await;
    let begun = Instant::now();
    let mut calls = Vec::new();
    for user in ["1", "2", "3", "4"] {
        peer.event(message("1", user, user, user), user).await;
        assert_eq!(peer.ack().await, user);
        calls.push(peer.outbound().await);
    }
    assert!(begun.elapsed() < Duration::from_secs(1));
    sleep(MOMENT).await;
    assert_eq!(calls.len(), 4);
}
