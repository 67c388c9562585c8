//! One person who was invited, and takes more than their share: by not reading,
//! and by writing without end.

use crate::crowd::sink;
use crate::peer::{PLAIN, Peer};
use crate::raw_http::RawHttp;
use crate::room::Room;
use crate::server::{Server, client, fresh_folder};
use crate::stage::{Others, alone, busy, report};
use angelia_contract::frame::ConnectorFrame;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::slice;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const TEST: &str = "hostile_guests";
/// What a server of a small machine has.
const ADDRESS_SPACE: &str = "--as=1073741824";
const MAX_GROWTH_KIB: u64 = 256 * 1024;
const USUAL_PACE: [&str; 2] = ["ANGELIA_WEBCHAT__POSTS_BURST=30", "ANGELIA_WEBCHAT__POSTS_PER_MINUTE=120"];
/// How long the others are watched.
const WATCHED: Duration = Duration::from_secs(3);

/// A server with little memory, and these settings.
async fn start(test: &str, settings: &[&str]) -> Server {
    let folder = fresh_folder(test);
    let data = folder.join("data");
    let wrap = [&["env"], settings, &["prlimit", ADDRESS_SPACE]].concat();
    Server::start_in(folder, data, &wrap).await
}

/// 150 reads of a room full of the longest lines, none of which is taken: the key has
/// a few answers lying there, the others are refused, and nobody else notices.
#[test]
fn reads_that_nobody_takes() {
    const READS: usize = 150;
    alone(async {
        let server = start("unread_reads", &[]).await;
        server.gateway("default", "gw").await;
        let (room, other) =
            (Room::enter(&server, "hall", "gw").await, Room::enter(&server, "den", "gw").await);
        let long = "\u{1f427}".repeat(8_000);
        for n in 0..200 {
            room.post(&format!("long-{n}"), &long).await;
        }
        let get = format!(
            "GET /chat/api/rooms/hall/messages?html=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
            room.key()
        );
        let mut others = Others::default();
        let nothing = sink().await;
        let asked = ask_unread(("127.0.0.1", nothing.port()), READS, &get).await;
        others.beside_sink = posts(slice::from_ref(&other), "calm", WATCHED).await;
        drop(asked);
        let before = server.rss_kib();
        let mut unread = ask_unread(server.address(), READS, &get).await;
        let (taken, most) =
            tokio::join!(posts(slice::from_ref(&other), "during", WATCHED), most_memory(&server, WATCHED));
        others.beside_flood = taken;
        let mut statuses = Vec::new();
        for connection in &mut unread {
            statuses.push(connection.head().await);
        }
        let count = |status: u16| statuses.iter().filter(|it| **it == Some(status)).count();
        let (given, refused) = (count(200), count(429));
        report(
            TEST,
            &format!(
                "{READS} unread reads: {given} given, {refused} refused, memory at most +{} KiB; another room's posts: {}",
                most.saturating_sub(before),
                others.told()
            ),
        );
        assert!(most < before + MAX_GROWTH_KIB, "from {before} to {most} KiB");
        assert_eq!(given + refused, READS, "{statuses:?}");
        // How many the kernel takes off the server's hands depends on the machine.
        assert!(given > 0 && refused > 0, "{given} of them were given");
        others.verdict().unwrap();
        drop(unread);
        // The places are free again, and the room can be read to its end.
        let deadline = Instant::now() + Duration::from_secs(10);
        while read_all(&server, &room).await != Some(200) {
            assert!(Instant::now() < deadline, "the room cannot be read any more");
            sleep(Duration::from_millis(100)).await;
        }
        server.assert_never_panicked();
    });
}

/// How many lines the room has, read page by page; `None` if a read was refused.
async fn read_all(server: &Server, room: &Room) -> Option<usize> {
    let (mut after, mut count) = (0, 0);
    loop {
        let url = format!("{}/chat/api/rooms/{}/messages?after={after}", server.url(), room.name);
        let answer = client().get(url).bearer_auth(room.key()).send().await.ok()?;
        if !answer.status().is_success() {
            return None;
        }
        let text = answer.bytes().await.ok()?;
        assert!(text.len() < 300 * 1024, "a page of {} bytes", text.len());
        let page: Value = serde_json::from_slice(&text).unwrap();
        let lines = page["messages"].as_array().unwrap();
        count += lines.len();
        match (lines.last(), page["more"].as_bool().unwrap()) {
            (Some(last), true) => after = last["id"].as_i64().unwrap(),
            _ => return Some(count),
        }
    }
}

/// Asks on so many connections, and reads none of the answers.
async fn ask_unread(of: (&str, u16), connections: usize, request: &str) -> Vec<RawHttp> {
    let mut asked = Vec::new();
    for _ in 0..connections {
        let mut connection = RawHttp::connect_small(of).await;
        assert!(connection.write(request.as_bytes()).await);
        asked.push(connection);
    }
    asked
}

/// How long each post takes, one after the other, in these rooms in turn.
async fn posts(rooms: &[Room], name: &str, lasting: Duration) -> Vec<Duration> {
    let (until, mut taken) = (Instant::now() + lasting, Vec::new());
    for room in rooms.iter().cycle() {
        if Instant::now() >= until {
            break;
        }
        let (began, id) = (Instant::now(), format!("{name}-{}", taken.len()));
        assert_eq!(room.post_once(&id, "hello").await, Some(201), "{id}");
        taken.push(began.elapsed());
        sleep(Duration::from_millis(5)).await;
    }
    taken
}

async fn most_memory(server: &Server, lasting: Duration) -> u64 {
    let (until, mut most) = (Instant::now() + lasting, 0);
    while Instant::now() < until {
        most = most.max(server.rss_kib());
        sleep(Duration::from_millis(50)).await;
    }
    most
}

/// Somebody posts as fast as they can: what is beyond their pace is refused, with how
/// long to wait, and what was taken of anybody is there when the agent comes.
#[test]
fn a_flood_of_posts_at_the_usual_pace() {
    busy(async {
        let server = start("guest_pace", &USUAL_PACE).await;
        let gateway = server.gateway("default", "gw").await;
        let (flood, quiet) =
            (Room::enter(&server, "flood", "gw").await, Room::enter(&server, "quiet", "gw").await);
        let mut taken = BTreeSet::new();
        for n in 0..5 {
            quiet.post(&format!("q{n}"), &format!("q{n}")).await;
            taken.insert(format!("q{n}"));
        }
        let began = Instant::now();
        let flooded = pour(&flood, "f", 4_000, 3).await;
        let seconds = began.elapsed().as_secs_f64();
        report(TEST, &format!("at the usual pace: {} in {seconds:.1} s", flooded.told()));
        let fair = 30.0 + 2.0 * seconds + 2.0;
        #[expect(clippy::cast_precision_loss)]
        let accepted = flooded.taken.len() as f64;
        assert!((30.0..=fair).contains(&accepted), "{accepted} were taken in {seconds:.1} s");
        assert!(flooded.too_fast > 0 && flooded.full == 0);
        assert!(flooded.waits.iter().all(|wait| (1..=60).contains(wait)), "{:?}", flooded.waits);
        quiet.post("q5", "q5").await;
        taken.insert("q5".to_owned());
        taken.extend(flooded.taken);
        assert_drains(&server, &gateway, taken).await;
    });
}

/// Meanwhile people of another tenant write as if nothing happened: beside somebody
/// who posts the same to a server that only refuses.
#[test]
fn a_flood_of_posts_is_not_felt() {
    // So many that nobody of them is over their own pace.
    const ROOMS: usize = 40;
    alone(async {
        let server = start("guest_felt", &USUAL_PACE).await;
        server.gateway("default", "gw").await;
        server.gateway("others", "gw-others").await;
        let flood = Room::enter(&server, "flood", "gw").await;
        let flood_of_nothing = flood.at(refusing().await);
        let mut rooms = Vec::new();
        for n in 0..ROOMS {
            rooms.push(Room::enter(&server, &format!("den-{n}"), "gw-others").await);
        }
        let mut others = Others::default();
        for name in ["first-", "second-"] {
            let (calm, during) = (format!("{name}calm"), format!("{name}during"));
            let (_, taken) = tokio::join!(
                pour(&flood_of_nothing, "f", usize::MAX, WATCHED.as_secs()),
                posts(&rooms, &calm, WATCHED)
            );
            others.beside_sink.extend(taken);
            let (flooded, taken) = tokio::join!(
                pour(&flood, name, usize::MAX, WATCHED.as_secs()),
                posts(&rooms, &during, WATCHED)
            );
            others.beside_flood.extend(taken);
            assert!(flooded.too_fast > 100, "{}", flooded.told());
        }
        report(TEST, &format!("a flood of posts; another tenant's: {}", others.told()));
        others.verdict().unwrap();
        server.assert_never_panicked();
    });
}

/// Answers every post with 429, and does nothing else.
async fn refusing() -> String {
    let refuse = async |_: axum::body::Bytes| {
        (axum::http::StatusCode::TOO_MANY_REQUESTS, [("retry-after", "1")], "faster than this goes")
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(refuse)).await });
    url
}

/// The same by somebody whom no pace holds, as many people together would be: the
/// inbox fills, is closed to them and not to the others, and loses nothing.
#[test]
fn a_flood_of_posts_into_a_small_inbox() {
    busy(async {
        let server = start("guest_flood", &["ANGELIA_INBOX__MAX_ENTRIES=400"]).await;
        let gateway = server.gateway("default", "gw").await;
        let (flood, quiet) =
            (Room::enter(&server, "flood", "gw").await, Room::enter(&server, "quiet", "gw").await);
        let mut taken = BTreeSet::new();
        for n in 0..5 {
            quiet.post(&format!("q{n}"), &format!("q{n}")).await;
            taken.insert(format!("q{n}"));
        }
        let flooded = pour(&flood, "f", 2_000, 60).await;
        report(TEST, &format!("into an inbox of 400: {}", flooded.told()));
        assert_eq!(flooded.taken.len(), 345, "seven eighths, less what others have there");
        assert_eq!(flooded.too_fast, 0);
        assert_eq!(flooded.full, 2_000 - 345);
        for n in 5..10 {
            assert_eq!(
                quiet.post_once(&format!("q{n}"), &format!("q{n}")).await,
                Some(201),
                "others have room"
            );
            taken.insert(format!("q{n}"));
        }
        taken.extend(flooded.taken);
        assert_drains(&server, &gateway, taken).await;
    });
}

/// What came of a flood.
#[derive(Default)]
struct Flooded {
    /// Texts that were answered with 201.
    taken: BTreeSet<String>,
    too_fast: usize,
    full: usize,
    /// How long whoever was too fast is told to wait.
    waits: BTreeSet<u64>,
}

impl Flooded {
    fn told(&self) -> String {
        format!("{} taken, {} too fast, {} beyond the quota", self.taken.len(), self.too_fast, self.full)
    }
}

/// Posts as fast as eight connections can, so many or so many seconds.
async fn pour(room: &Room, name: &'static str, posts: usize, seconds: u64) -> Flooded {
    const LANES: usize = 8;
    let room = Arc::new(room.clone());
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut lanes = JoinSet::new();
    for lane in 0..LANES {
        let room = room.clone();
        lanes.spawn(async move {
            let mut answers = Vec::new();
            for n in (lane..posts).step_by(LANES) {
                if Instant::now() >= until {
                    break;
                }
                let text = format!("{name}{n}");
                let (status, wait, words) = room.post_telling(&text, &text).await;
                answers.push((text, status, wait, words));
            }
            answers
        });
    }
    let mut flooded = Flooded::default();
    for (text, status, wait, words) in lanes.join_all().await.into_iter().flatten() {
        match status {
            201 => assert!(flooded.taken.insert(text)),
            429 => {
                flooded.too_fast += 1;
                flooded.waits.insert(wait.expect("how long to wait"));
                assert!(words.contains("faster"), "{words}");
            }
            503 => {
                flooded.full += 1;
                assert!(wait.is_some() && words.contains("nothing was written"), "{words}");
            }
            other => panic!("{text}: {other} {words}"),
        }
    }
    flooded
}

/// The agent comes: it gets exactly what was taken, and nothing is missing.
async fn assert_drains(server: &Server, gateway: &crate::server::Credentials, taken: BTreeSet<String>) {
    let mut peer = Peer::greet(server, gateway, PLAIN).await;
    let mut given = BTreeSet::new();
    while given.len() < taken.len() {
        match peer.next().await {
            ConnectorFrame::Inbound(inbound) => {
                peer.ack(&inbound.buffer_id.unwrap_or_default()).await;
                assert!(given.insert(inbound.event.text), "twice");
            }
            other => panic!("expected an inbound, got {other:?}"),
        }
    }
    assert_eq!(given, taken);
    assert_eq!(server.gaps().await, json!([]), "no gap");
    server.assert_never_panicked();
}
