//! Single messages, as large as the server takes them, made of the smallest frames.

use crate::peer::{PYTHON, Peer};
use crate::room::Room;
use crate::server::Server;
use crate::stage::{alone, milliseconds, report};
use angelia_contract::frame::ConnectorFrame;
use futures_util::{SinkExt, StreamExt};
use std::time::Duration;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

const TEST: &str = "hostile_bombs";
/// A little less than the largest message the server takes.
const SIZE: usize = 7_900_000;
/// How long others are watched after each.
const WATCH: Duration = Duration::from_secs(4);
/// The longest another tenant's message may take meanwhile.
const LONGEST: Duration = Duration::from_millis(750);
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
        let mut peer = Peer::greet(&server, &good, PYTHON).await;
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
            let evil = Peer::greet(&server, &credentials, PYTHON).await;
            let (mut sink, mut stream) = evil.socket.split();
            let reader = tokio::spawn(async move { while let Some(Ok(_)) = stream.next().await {} });
            let before = server.rss_kib();
            let bomb = frame.repeat(SIZE / frame.len());
            let sender = tokio::spawn(async move {
                let _ = sink.send(Message::Text(bomb.into())).await;
                sink
            });
            let (mut longest, mut most, mut echoes) = (Duration::ZERO, before, 0);
            let until = Instant::now() + WATCH;
            while Instant::now() < until {
                longest = longest.max(echo(&room, &mut peer, &format!("{kind}-{echoes}")).await);
                most = most.max(server.rss_kib());
                echoes += 1;
            }
            let growth = most - before;
            report(
                TEST,
                &format!(
                    "{} {kind} in one message: longest echo of another tenant {:.0} ms ({echoes} echoes), \
                     memory at most +{growth} KiB",
                    SIZE / frame.len(),
                    milliseconds(longest)
                ),
            );
            if longest > LONGEST || growth > MAX_GROWTH_KIB {
                failures.push((kind, longest, growth));
            }
            reader.abort();
            drop(sender.await);
        }
        server.assert_never_panicked();
        assert!(failures.is_empty(), "felt by others or too large: {failures:?}");
    });
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
