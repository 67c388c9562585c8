//! A quarter of a million frames of a gateway that means no good.

use crate::dice::Dice;
use crate::peer::{PLAIN, Peer};
use crate::room::Room;
use crate::server::{Credentials, Server};
use crate::stage::{alone, milliseconds, quantile, report};
use angelia_contract::frame::{ConnectorFrame, GatewayFrame, Hello};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_tungstenite::tungstenite::Message;

const TEST: &str = "hostile_frames";
const FRAMES: usize = 250_000;
const ATTACKERS: usize = 4;
const PER_MESSAGE: usize = 40;
/// The longest a message to the well-behaved gateway may take at the p99 meanwhile.
const STEADY: Duration = Duration::from_millis(250);
const MAX_GROWTH_KIB: u64 = 48 * 1024;

/// Hostile frames on their sockets, while a gateway of another tenant keeps
/// getting its messages in good time. None of its entries is touched.
#[test]
fn a_quarter_million_hostile_frames() {
    alone(async {
        let mut dice = Dice::roll_for(TEST);
        let began = Instant::now();
        let server = Arc::new(Server::start(TEST).await);
        let good = server.gateway("good", "gw-good").await;
        let room = Room::enter(&server, "den", "gw-good").await;
        let mut peer = Peer::greet(&server, &good, PLAIN).await;
        let mut calm = Vec::new();
        for number in 0..200 {
            calm.push(echo(&room, &mut peer, &format!("calm-{number}")).await);
        }
        let before = server.rss_kib();
        let mut attackers = Vec::new();
        for number in 0..ATTACKERS {
            let credentials = server.gateway("evil", &format!("gw-evil{number}")).await;
            let (server, dice) = (server.clone(), dice.fork());
            // Threads of their own: what they cost here is not the server's delay.
            attackers.push(std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime").block_on(attack(server, credentials, dice))
            }));
        }
        let mut meanwhile = Vec::new();
        while attackers.iter().any(|attacker| !attacker.is_finished()) {
            meanwhile.push(echo(&room, &mut peer, &format!("storm-{}", meanwhile.len())).await);
        }
        let (mut sent, mut sockets) = (0, 0);
        for attacker in attackers {
            let (frames, dials) = attacker.join().expect("the attack runs to its end");
            sent += frames;
            sockets += dials;
        }
        let growth = server.rss_kib().saturating_sub(before);
        let (calm_p99, storm_p99) = (quantile(&mut calm, 0.99), quantile(&mut meanwhile, 0.99));
        report(
            TEST,
            &format!(
                "{sent} frames on {sockets} sockets; echo p50/p99 {:.1}/{:.1} ms before, {:.1}/{:.1} ms \
                 meanwhile ({} echoes); memory +{growth} KiB; {:.1?}",
                milliseconds(quantile(&mut calm, 0.5)),
                milliseconds(calm_p99),
                milliseconds(quantile(&mut meanwhile, 0.5)),
                milliseconds(storm_p99),
                meanwhile.len(),
                began.elapsed()
            ),
        );
        assert!(sent >= FRAMES);
        assert!(meanwhile.len() >= 20, "{} echoes are too few to judge", meanwhile.len());
        assert!(storm_p99 < STEADY, "the well-behaved gateway waited {storm_p99:?}");
        assert!(growth < MAX_GROWTH_KIB, "memory grew by {growth} KiB");
        assert_eq!(server.probe("/livez").await, Some(200));
        assert_eq!(server.probe("/readyz").await, Some(200));
        assert!(room.answers().await.is_empty(), "nobody of another tenant wrote in the room");
        server.assert_never_panicked();
    });
}

/// Posts and waits for the frame; every frame must be the one just posted.
async fn echo(room: &Room, peer: &mut Peer, text: &str) -> Duration {
    let posted = Instant::now();
    room.post(text, text).await;
    match peer.next().await {
        ConnectorFrame::Inbound(inbound) => {
            let took = posted.elapsed();
            assert_eq!(inbound.event.text, text);
            peer.ack(&inbound.buffer_id.unwrap_or_default()).await;
            took
        }
        other => panic!("expected an inbound, got {other:?}"),
    }
}

/// Sends its share of the frames; dials again where it is thrown out. Returns
/// the frames and the sockets it took.
async fn attack(server: Arc<Server>, credentials: Credentials, mut dice: Dice) -> (usize, usize) {
    let (mut sent, mut sockets) = (0, 0);
    while sent < FRAMES / ATTACKERS {
        let Ok(peer) = Peer::dial(&server, &credentials, PLAIN, None).await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        sockets += 1;
        let (mut sink, mut stream) = peer.socket.split();
        let reader = tokio::spawn(async move { while let Some(Ok(_)) = stream.next().await {} });
        // Every other socket starts as a gateway does, so that its frames mean something.
        if dice.one_in(2) || sockets == 1 {
            let hello = GatewayFrame::Hello(Hello::default()).to_line();
            let _ = sink.send(Message::Text(hello.into())).await;
        }
        while sent < FRAMES / ATTACKERS {
            let message = match dice.within(0, 400) {
                // No UTF-8 in a binary message, and the end of most sockets: an oversized one.
                0..20 => Message::Binary(dice.bytes(500).into()),
                20 => Message::Binary(vec![b'x'; 9 * 1024 * 1024].into()),
                21..30 => Message::Ping(dice.bytes(100).into()),
                30..40 => Message::Pong(dice.bytes(8).into()),
                _ => Message::Text((0..PER_MESSAGE).map(|_| line(&mut dice)).collect::<String>().into()),
            };
            sent += if message.is_text() { PER_MESSAGE } else { 1 };
            if sink.send(message).await.is_err() {
                break;
            }
        }
        reader.abort();
    }
    (sent, sockets)
}

/// One hostile line.
fn line(dice: &mut Dice) -> String {
    let number = dice.next();
    let small = dice.within(0, 40);
    let text = match dice.within(0, 16) {
        0 => String::from_utf8_lossy(&dice.bytes(60)).replace('\n', " "),
        1 => format!("{}{}", "[".repeat(600), "]".repeat(600)),
        2 => format!("{}1{}", "{\"type\":".repeat(300), "}".repeat(300)),
        3 => json!({ "type": number, "bufferId": null }).to_string(),
        4 => format!("{{\"type\":\"inbound_ack\",\"bufferId\":{}}}", "9".repeat(400)),
        // Acknowledgements of entries that may exist, of another tenant.
        5 | 6 => json!({ "type": "inbound_ack", "bufferId": format!("b{}", number % 2_000) }).to_string(),
        7 => json!({ "type": "inbound_ack", "bufferId": format!("b{number}") }).to_string(),
        8 => json!({ "type": "going_idle" }).to_string(),
        9 => json!({ "type": "hello", "platform": small, "botId": [small] }).to_string(),
        10 => json!({ "type": "interrupt", "session_key": "agent:main:relay:group:web-den:ann" }).to_string(),
        11 => outbound(number, &json!({ "op": "send", "chat_id": "web-den", "content": "let me in" })),
        12 => outbound(number, &json!({ "op": format!("op{small}"), "chat_id": [1, 2], "content": 1e308 })),
        13 => json!({ "type": "descriptor", "descriptor": null }).to_string(),
        14 => {
            let mut right = outbound(number, &json!({ "op": "typing", "chat_id": "web-den" })).into_bytes();
            let at = usize::try_from(number).unwrap_or(0) % right.len();
            right[at] = b' ' + u8::try_from(small).unwrap();
            String::from_utf8_lossy(&right).into_owned()
        }
        _ => format!("{{\"type\":\"outbound\",\"requestId\":\"\\ud800{number}\",\"action\":NaN}}"),
    };
    format!("{text}\n")
}

fn outbound(number: u64, action: &serde_json::Value) -> String {
    json!({ "type": "outbound", "requestId": format!("{number:032x}"), "action": action }).to_string()
}
