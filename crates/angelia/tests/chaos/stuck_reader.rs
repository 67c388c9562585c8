//! One gateway that never reads is nobody else's problem.

use crate::peer::{PLAIN, Peer};
use crate::room::Room;
use crate::server::{Credentials, Server};
use crate::stage::{alone, milliseconds, quantile, report};
use angelia_contract::frame::{ConnectorFrame, GatewayFrame, Hello};
use futures_util::{FutureExt, SinkExt};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

const TEST: &str = "stuck_reader";
const GATEWAYS: usize = 100;
/// Rounds without and with the stuck one, in turns: noise hits both alike.
const ROUNDS: usize = 6;
/// In doubt more rounds are measured, up to this many; every one of them counts.
const MAX_ROUNDS: usize = 24;
const POSTS: usize = 400;
/// One post every so often: a steady load that the machine carries easily.
const EVERY: Duration = Duration::from_millis(8);
/// Messages that wait for the stuck one.
const WAITING: usize = 2_000;
/// Requests it sends without reading a result: far more than socket buffers hold.
const REQUESTS: usize = 200_000;
/// Above it the machine is too busy with other things to measure anything.
const TOO_BUSY: Duration = Duration::from_secs(1);
/// Differences below it are the clock's and the scheduler's.
const FLOOR: Duration = Duration::from_millis(2);
/// What a socket that does not read may cost the server.
const MAX_GROWTH_KIB: u64 = 16 * 1024;

/// Times from post to frame, collected by the gateways.
type Samples = Arc<Mutex<Vec<Duration>>>;

/// The p99 from post to frame of a hundred gateways stays within 20 % when one
/// more socket never reads, and that socket costs the server little memory.
#[test]
fn others_do_not_feel_it() {
    alone(async {
        let server = Server::start(TEST).await;
        let samples = Samples::default();
        let clock = Instant::now();
        let mut readers = JoinSet::new();
        let mut rooms = Vec::new();
        for number in 0..GATEWAYS {
            let id = format!("gw-{number}");
            let credentials = server.gateway("default", &id).await;
            rooms.push(Room::enter(&server, &format!("room{number}"), &id).await);
            let peer = Peer::greet(&server, &credentials, PLAIN).await;
            readers.spawn(read_and_acknowledge(peer, clock, samples.clone()));
        }
        let stuck = server.gateway("default", "gw-stuck").await;
        let stuck_room = Room::enter(&server, "stuck", "gw-stuck").await;
        fill_up(&stuck_room).await;
        round(&rooms, clock, &samples, "warm-up").await;

        let mut growth = 0;
        // One verdict over all pairs: to drop those that do not fit would prove
        // nothing. Who goes first alternates.
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for number in 0..MAX_ROUNDS {
            if number >= ROUNDS && number % 2 == 0 && is_unfelt(&mut without, &mut with) {
                break;
            }
            if number % 2 == 0 {
                without.push(round(&rooms, clock, &samples, &format!("a{number}")).await);
            }
            let before = server.rss_kib();
            let held = get_stuck(&server, &stuck).await;
            growth = growth.max(server.rss_kib().saturating_sub(before));
            with.push(round(&rooms, clock, &samples, &format!("b{number}")).await);
            held.abort();
            if number % 2 == 1 {
                without.push(round(&rooms, clock, &samples, &format!("a{number}")).await);
            }
        }
        let (a, b) = (quantile(&mut without, 0.5), quantile(&mut with, 0.5));
        let spread = |rounds: &mut [Duration]| {
            let (low, high) = (quantile(rounds, 0.25), quantile(rounds, 0.75));
            format!("{:.1} to {:.1}", milliseconds(low), milliseconds(high))
        };
        report(
            TEST,
            &format!(
                "p99 from post to frame of {GATEWAYS} gateways, median of {} rounds (middle half): {:.2} ms \
                 ({}) without, {:.2} ms ({}) with a stuck reader ({:+.1} %); it cost the server at most {growth} KiB",
                without.len(),
                milliseconds(a),
                spread(&mut without),
                milliseconds(b),
                spread(&mut with),
                (milliseconds(b) / milliseconds(a) - 1.0) * 100.0
            ),
        );
        server.assert_never_panicked();
        assert!(growth < MAX_GROWTH_KIB, "a stuck reader cost the server {growth} KiB");
        assert!(a < TOO_BUSY, "the machine is too busy to measure: {a:?} without a stuck reader");
        assert!(
            is_unfelt(&mut without, &mut with),
            "a stuck reader is felt by others: {a:?} without, {b:?} with"
        );
    });
}

/// Whether the median with the stuck reader is within 20 % of that without.
fn is_unfelt(without: &mut [Duration], with: &mut [Duration]) -> bool {
    let (a, b) = (quantile(without, 0.5), quantile(with, 0.5));
    b < a + FLOOR.max(a / 5)
}

/// Reads for ever; every text ends with the moment it was posted.
async fn read_and_acknowledge(mut peer: Peer, clock: Instant, samples: Samples) {
    while let Some(frame) = peer.next_or_end().await {
        let ConnectorFrame::Inbound(inbound) = frame else { continue };
        let posted = inbound.event.text.rsplit(' ').next().and_then(|text| text.parse().ok());
        let posted = Duration::from_micros(posted.expect("a moment in every text"));
        samples.lock().unwrap().push(clock.elapsed().saturating_sub(posted));
        peer.ack(&inbound.buffer_id.unwrap_or_default()).await;
    }
}

/// Posts at a steady pace to all rooms in turn; returns the p99.
async fn round(rooms: &[Room], clock: Instant, samples: &Samples, name: &str) -> Duration {
    samples.lock().unwrap().clear();
    let mut pace = interval(EVERY);
    let mut posts = JoinSet::new();
    for number in 0..POSTS {
        pace.tick().await;
        let (room, id) = (rooms[number % rooms.len()].clone(), format!("{name}-{number}"));
        posts.spawn(async move {
            let text = format!("{id} {}", clock.elapsed().as_micros());
            assert_eq!(room.post_once(&id, &text).await, Some(201));
        });
    }
    posts.join_all().await;
    let deadline = Instant::now() + Duration::from_secs(20);
    while samples.lock().unwrap().len() < POSTS {
        assert!(Instant::now() < deadline, "{} of {POSTS} arrived", samples.lock().unwrap().len());
        sleep(Duration::from_millis(5)).await;
    }
    quantile(&mut samples.lock().unwrap(), 0.99)
}

/// Thousands of long messages that wait for the stuck gateway.
async fn fill_up(room: &Room) {
    let mut posts = JoinSet::new();
    for lane in 0..16 {
        let room = room.clone();
        posts.spawn(async move {
            for number in (lane..WAITING).step_by(16) {
                let id = format!("stuck-{number}");
                room.post(&id, &format!("{id} {}", "x".repeat(7_000))).await;
            }
        });
    }
    posts.join_all().await;
}

/// Opens a socket that says hello, asks for results and never reads one, until
/// the server stops taking requests from it. The task holds it open and goes on
/// trying.
async fn get_stuck(server: &Server, credentials: &Credentials) -> JoinHandle<()> {
    let mut peer = Peer::dial(server, credentials, PLAIN, Some(4 * 1024)).await.expect("the dial succeeds");
    peer.send(&GatewayFrame::Hello(Hello::default())).await;
    let mut sent = 0;
    loop {
        let batch: String = (sent..sent + 50).map(request).collect();
        match timeout(Duration::from_millis(400), peer.socket.send(Message::Text(batch.into()))).await {
            Ok(outcome) => outcome.expect("the socket stays open"),
            Err(_) => break,
        }
        sent += 50;
        assert!(sent < REQUESTS, "the server goes on taking requests from a peer that does not read");
    }
    tokio::spawn(async move {
        loop {
            sleep(Duration::from_millis(100)).await;
            let _ = peer.socket.flush().now_or_never();
        }
    })
}

/// Asks about a chat: cheap to perform, and answered with a result.
fn request(number: usize) -> String {
    let action = json!({ "op": "get_chat_info", "chat_id": "web-stuck" });
    format!("{}\n", json!({ "type": "outbound", "requestId": format!("{number:032}"), "action": action }))
}
