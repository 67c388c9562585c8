//! Single messages, as large as the server takes them, made of the smallest frames.

use crate::peer::{PLAIN, Peer};
use crate::room::Room;
use crate::server::Server;
use crate::stage::{alone, milliseconds, report};
use angelia_contract::frame::ConnectorFrame;
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

const TEST: &str = "hostile_bombs";
/// A little less than the largest message the server takes.
const SIZE: usize = 7_900_000;
/// How long others are watched after each.
const WATCH: Duration = Duration::from_secs(3);
/// The longest another tenant's message may take meanwhile.
const LONGEST: Duration = Duration::from_millis(500);
/// A hiccup of the machine can look like a bomb, but not as often as this.
const ATTEMPTS: usize = 3;
/// Answers written while another tenant floods the chat.
const ANSWERS: usize = 100;
/// What one message may make the server hold.
const MAX_GROWTH_KIB: u64 = 96 * 1024;

/// One message with a hundred thousand requests, acknowledgements, interrupts
/// or empty objects neither stops other tenants nor bloats the server.
#[test]
fn a_hundred_thousand_frames_in_one_message() {
    alone(async {
        let server = Server::start(TEST).await;
        let good = server.gateway("good", "gw-good").await;
        let room = Room::enter(&server, "den", "gw-good").await;
        let mut peer = Peer::greet(&server, &good, PLAIN).await;
        let bombs = [
            ("objects", "{}\n"),
            (
                "interrupts",
                "{\"type\":\"interrupt\",\"session_key\":\"agent:main:relay:group:web-den:ann\"}\n",
            ),
            ("acknowledgements", "{\"type\":\"inbound_ack\",\"bufferId\":\"b1\"}\n"),
            (
                "requests",
                "{\"type\":\"outbound\",\"requestId\":\"r\",\"action\":{\"op\":\"typing\",\"chat_id\":\"web-x\"}}\n",
            ),
        ];
        let mut failures = Vec::new();
        for (kind, frame) in bombs {
            let credentials = server.gateway("evil", &format!("gw-{kind}")).await;
            for attempt in 1..=ATTEMPTS {
                let name = format!("{kind}-{attempt}");
                let evil = Peer::greet(&server, &credentials, PLAIN).await;
                let (longest, growth) = throw(&server, evil, frame, &room, &mut peer, &name).await;
                report(
                    TEST,
                    &format!(
                        "{} {kind} in one message: longest echo of another tenant {:.0} ms, memory at most +{growth} KiB",
                        SIZE / frame.len(),
                        milliseconds(longest)
                    ),
                );
                if longest <= LONGEST && growth <= MAX_GROWTH_KIB {
                    break;
                }
                if attempt == ATTEMPTS {
                    failures.push((kind, longest, growth));
                }
            }
        }
        server.assert_never_panicked();
        assert!(failures.is_empty(), "felt by others or too large: {failures:?}");
    });
}

/// Sends one message full of `frame` and watches; returns the longest echo and
/// the growth of the server's memory.
async fn throw(
    server: &Server,
    evil: Peer,
    frame: &str,
    room: &Room,
    peer: &mut Peer,
    name: &str,
) -> (Duration, u64) {
    let (mut sink, mut stream) = evil.socket.split();
    let reader = tokio::spawn(async move { while let Some(Ok(_)) = stream.next().await {} });
    let before = server.rss_kib();
    let bomb = frame.repeat(SIZE / frame.len());
    let sender = tokio::spawn(async move {
        sink.send(Message::Text(bomb.into())).await.expect("the server takes it");
        sink
    });
    let (mut longest, mut most, mut echoes) = (Duration::ZERO, before, 0);
    let until = Instant::now() + WATCH;
    while Instant::now() < until {
        longest = longest.max(echo(room, peer, &format!("{name}-{echoes}")).await);
        most = most.max(server.rss_kib());
        echoes += 1;
    }
    drop(sender.await.expect("the whole message was sent"));
    reader.abort();
    (longest, most - before)
}

/// A tenant that names another's chat in floods of requests gets nothing done
/// there, and does not keep the chat's own gateway from writing in it either.
#[test]
fn floods_of_requests_for_somebody_elses_chat() {
    alone(async {
        let server = Server::start("hostile_chat").await;
        let good = server.gateway("good", "gw-good").await;
        let evil = server.gateway("evil", "gw-evil").await;
        let room = Room::enter(&server, "den", "gw-good").await;
        let mut peer = Peer::greet(&server, &good, PLAIN).await;
        let (mut sink, mut stream) = Peer::greet(&server, &evil, PLAIN).await.socket.split();
        let reader = tokio::spawn(async move { while let Some(Ok(_)) = stream.next().await {} });
        let flood = tokio::spawn(async move {
            let batch = send("r", "let me in").repeat(5_000);
            while sink.send(Message::Text(batch.clone().into())).await.is_ok() {}
        });
        let (mut longest, mut refused) = (Duration::ZERO, Vec::new());
        for number in 0..ANSWERS {
            let asked = Instant::now();
            let (id, text) = (format!("good-{number}"), format!("answer-{number}"));
            peer.socket.send(Message::Text(send(&id, &text).into())).await.expect("the socket is open");
            match peer.next().await {
                ConnectorFrame::OutboundResult { request_id, result } => {
                    assert_eq!(request_id, id);
                    if !result.success {
                        refused.push(result.error);
                    }
                }
                other => panic!("expected a result, got {other:?}"),
            }
            longest = longest.max(asked.elapsed());
        }
        flood.abort();
        reader.abort();
        let written = room.answers().await;
        report(
            TEST,
            &format!(
                "{ANSWERS} answers of a chat's own gateway while another tenant floods it: {} refused, longest {:.0} ms",
                refused.len(),
                milliseconds(longest)
            ),
        );
        server.assert_never_panicked();
        assert!(written.iter().all(|text| text.starts_with("answer-")), "the other tenant wrote in the room");
        assert!(refused.is_empty(), "{} of {ANSWERS} refused: {:?}", refused.len(), refused.first());
        assert_eq!(written.len(), ANSWERS);
        assert!(longest < 2 * LONGEST, "an answer took {longest:?}");
    });
}

/// A request to write in the room.
fn send(id: &str, text: &str) -> String {
    let action = json!({ "op": "send", "chat_id": "web-den", "content": text });
    format!("{}\n", json!({ "type": "outbound", "requestId": id, "action": action }))
}

/// Posts and waits for the frame.
async fn echo(room: &Room, peer: &mut Peer, text: &str) -> Duration {
    let posted = Instant::now();
    room.post(text, text).await;
    match peer.next().await {
        ConnectorFrame::Inbound(inbound) => {
            assert_eq!(inbound.event.text, text);
            peer.ack(&inbound.buffer_id.unwrap_or_default()).await;
            posted.elapsed()
        }
        other => panic!("expected an inbound, got {other:?}"),
    }
}
