//! One tenant's agent does its worst: frames without measure, sockets without
//! end, a disk to itself. The server has one gigabyte of address space. Nobody
//! else may notice, and a restart must work.

use crate::full_disk::Disk;
use crate::peer::{PLAIN, Peer};
use crate::room::Room;
use crate::server::{Credentials, Server, fresh_folder};
use crate::stage::{Others, alone, busy, report};
use angelia_contract::frame::ConnectorFrame;
use angelia_core::clock;
use angelia_core::ports::NewAction;
use angelia_core::records::rows::GatewayRow;
use angelia_engines::inspect::Inspect;
use angelia_engines::store::sqlite::DATABASE;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Message;

const TEST: &str = "rogue_gateway";
/// One gigabyte of address space.
pub(crate) const ONE_GIB: [&str; 3] = ["prlimit", "--as=1073741824", "--"];
/// What an attack may add to the server's memory.
const MAX_GROWTH_KIB: u64 = 256 * 1024;
const SOON: Duration = Duration::from_secs(30);
/// A tenant's share of it is an eighth.
const SMALL_DISK: &str = "size=200m";
const NOT_SHOWN: &str = "NOT SHOWN: mounting is not permitted, and a limit on files is no small disk";
/// Twice what the share holds of them.
const SENDS: usize = 36_000;

/// A server in one gigabyte, with a tenant that means well and one that does not.
pub(crate) struct Stage {
    pub(crate) server: Server,
    good: Peer,
    room: Room,
    pub(crate) evil: Credentials,
    rss: u64,
}

impl Stage {
    async fn set(test: &str) -> Self {
        let folder = fresh_folder(test);
        let data = folder.join("data");
        Self::over(Server::start_in(folder, data, &ONE_GIB).await).await
    }

    pub(crate) async fn over(server: Server) -> Self {
        let good = server.gateway("good", "gw-good").await;
        let evil = server.gateway("evil", "gw-evil").await;
        let room = Room::enter(&server, "den", "gw-good").await;
        let good = Peer::greet(&server, &good, PLAIN).await;
        let rss = server.rss_kib();
        Self { server, good, room, evil, rss }
    }

    /// The one who means well is served, both ways, and so is the operator.
    pub(crate) async fn others_are_served(&mut self, name: &str) -> Duration {
        let began = Instant::now();
        self.room.post(name, name).await;
        let ConnectorFrame::Inbound(inbound) = self.good.next().await else { panic!("an inbound is due") };
        assert_eq!(inbound.event.text, name);
        self.good.ack(&inbound.buffer_id.unwrap_or_default()).await;
        let taken = began.elapsed();
        let send = json!({"op": "send", "chat_id": "web-den", "content": format!("answer to {name}")});
        ask(&mut self.good, name, &send).await;
        match self.good.next().await {
            ConnectorFrame::OutboundResult { result, .. } => assert!(result.success, "{result:?}"),
            other => panic!("a result is due, not {other:?}"),
        }
        self.server.admin_request(reqwest::Method::GET, "/admin/tenants", None).await;
        taken
    }

    /// What it held at its worst, not what it holds afterwards.
    pub(crate) fn check_memory(&self, what: &str) {
        let grown = self.server.peak_kib().saturating_sub(self.rss);
        report(TEST, &format!("{what}: resident memory grew by {} MiB at most", grown / 1024));
        assert!(grown < MAX_GROWTH_KIB, "{what}: grew by {grown} KiB");
    }

    /// It ends, starts again in one gigabyte, and the culprit can be ended.
    async fn restarts(self) {
        self.starts_again().await.ends_the_culprit().await;
    }

    pub(crate) async fn starts_again(mut self) -> Self {
        self.server.process.kill().await;
        self.server.respawn(None);
        self.server.wait_ready().await;
        self
    }

    pub(crate) async fn ends_the_culprit(mut self) {
        self.server.revoke("evil", &self.evil.id).await;
        self.server.assert_never_panicked();
        self.server.process.kill().await;
    }
}

async fn ask(peer: &mut Peer, id: &str, action: &Value) {
    let frame = json!({"type": "outbound", "requestId": id, "action": action});
    peer.socket.send(Message::Text(format!("{frame}\n").into())).await.expect("the socket takes a frame");
}

/// Everything that could be made large, made large.
fn oversized(size: usize) -> Vec<Value> {
    let huge = "x".repeat(size);
    let outbound = |action: Value| json!({"type": "outbound", "requestId": "r", "action": action});
    vec![
        outbound(
            json!({"op": "send", "chat_id": "web-lair", "content": "hi", "metadata": {"padding": huge}}),
        ),
        outbound(json!({"op": "send", "chat_id": "web-lair", "content": "hi", "reply_to": huge})),
        outbound(json!({"op": "send", "chat_id": huge, "content": "hi"})),
        outbound(json!({"op": "send", "chat_id": "web-lair", "content": huge})),
        outbound(json!({"op": "edit", "chat_id": "web-lair", "message_id": huge, "content": "hi"})),
        outbound(json!({"op": huge, "chat_id": "web-lair"})),
        json!({"type": "outbound", "requestId": huge, "action": {"op": "typing", "chat_id": "web-lair"}}),
        json!({"type": "hello", "platform": huge, "botId": huge}),
        json!({"type": "interrupt", "session_key": huge}),
        json!({"type": "inbound_ack", "bufferId": huge}),
        json!({"type": "dance", "list": [huge]}),
        json!({"type": "outbound", "requestId": "r", "action": vec![0; size / 2]}),
    ]
}

/// Fields of seven megabytes are refused, the socket lives, and nothing of them is kept.
#[test]
fn fields_without_measure() {
    busy(async {
        let mut stage = Stage::set("rogue_fields").await;
        let mut evil = Peer::greet(&stage.server, &stage.evil, PLAIN).await;
        let _lair = Room::enter(&stage.server, "lair", &stage.evil.id).await;
        let mut frames = 0;
        for size in [700, 64 * 1024, 300 * 1024, 7 << 20] {
            for frame in oversized(size) {
                let text = format!("{frame}\n");
                evil.socket.send(Message::Text(text.into())).await.expect("the socket takes it");
                frames += 1;
            }
            stage.others_are_served(&format!("size-{size}")).await;
        }
        // The socket lives, and whoever asked something small is answered.
        ask(&mut evil, "last", &json!({"op": "send", "chat_id": "web-lair", "content": "still here"})).await;
        let mut taken = 0;
        let last = async {
            loop {
                let ConnectorFrame::OutboundResult { request_id, result } = evil.next().await else {
                    continue;
                };
                if request_id == "last" {
                    return result;
                }
                taken += usize::from(result.success);
            }
        };
        assert!(timeout(SOON, last).await.expect("the last one is answered").success);
        // Padding that nobody reads, up to the longest line, and texts up to the longest text.
        assert_eq!(taken, 3 + 2, "so many were within bounds");
        stage.check_memory(&format!("{frames} frames of up to 7 MiB"));
        stage.restarts().await;
    });
}

/// On a disk of 200 MB, sends that name a message of seven megabytes, and the longest texts there
/// are, leave room for everybody else.
#[test]
fn a_disk_to_itself() {
    busy(async {
        let folder = fresh_folder("rogue_disk");
        let disk = Disk::make(&folder, SMALL_DISK);
        let Disk::Mounted(path) = &disk else { return report(TEST, NOT_SHOWN) };
        let free =
            || rustix::fs::statvfs(path).map(|it| it.f_bavail * it.f_frsize).expect("look at the disk");
        let mut stage = Stage::over(Server::start_in(folder, disk.data(), &ONE_GIB).await).await;
        let _lair = Room::enter(&stage.server, "lair", &stage.evil.id).await;
        let evil = Peer::greet(&stage.server, &stage.evil, PLAIN).await;
        let before = free();
        let (mut sink, mut stream) = evil.socket.split();
        let reads = tokio::spawn(async move { while let Some(Ok(_)) = stream.next().await {} });
        for (count, reply_to, text) in [(8, 7 << 20, 2), (20, 2, 256 * 1024)] {
            let action = json!({"op": "send", "chat_id": "web-lair", "content": "y".repeat(text), "reply_to": "x".repeat(reply_to)});
            let frame = format!("{}\n", json!({"type": "outbound", "requestId": "r", "action": action}));
            for number in 0..count {
                sink.send(Message::Text(frame.clone().into())).await.expect("the socket takes it");
                if number % 4 == 0 {
                    stage.others_are_served(&format!("{text}-{number}")).await;
                    assert_eq!(stage.server.probe("/readyz").await, Some(200));
                }
            }
        }
        reads.abort();
        let taken = before.saturating_sub(free()) >> 20;
        report(TEST, &format!("a disk of 200 MB: {taken} MiB taken by 60 MB of frames"));
        assert!(taken < 64, "{taken} MiB of the disk are gone");
        stage.check_memory("60 MB of frames");
        stage.restarts().await;
    });
}

/// Small sends with the longest ids there are, and messages that nobody fetches, on a disk of which
/// a tenant's share is 25 MiB: what they leave is the share and no more, then the tenant is refused,
/// with words, and nobody else is.
#[test]
fn a_share_of_the_disk_is_all_it_gets() {
    busy(async {
        let folder = fresh_folder("rogue_share");
        let disk = Disk::make(&folder, SMALL_DISK);
        let Disk::Mounted(path) = &disk else { return report(TEST, NOT_SHOWN) };
        let database = path.join("data").join(DATABASE);
        let mut stage = Stage::over(Server::start_in(folder, disk.data(), &ONE_GIB).await).await;
        let lair = Room::enter(&stage.server, "lair", &stage.evil.id).await;
        let mut evil = Peer::greet(&stage.server, &stage.evil, PLAIN).await;
        for round in 0..SENDS / 500 {
            for number in 0..500 {
                let reply_to = format!("{:0>512}", round * 500 + number);
                let send =
                    json!({"op": "send", "chat_id": "web-lair", "content": "hi", "reply_to": reply_to});
                ask(&mut evil, "r", &send).await;
            }
            for _ in 0..500 {
                evil.next().await;
            }
            if round % 10 == 0 {
                stage.others_are_served(&format!("sends-{round}")).await;
            }
        }
        let kept = std::fs::metadata(&database).expect("a database").len() >> 20;
        report(TEST, &format!("{SENDS} small sends with long ids: a database of {kept} MiB"));
        assert!(kept < 45, "{kept} MiB for a share of 25");

        let (words, posted) = post_until_refused(&lair).await;
        assert!(words.contains("share of the server's disk"), "{words}");
        let kept = std::fs::metadata(&database).expect("a database").len() >> 20;
        report(TEST, &format!("and {posted} posts that nobody fetches: {kept} MiB"));
        assert!(kept < 50, "{kept} MiB for a share of 25, and what the room shows");
        let large = json!({"op": "send", "chat_id": "web-lair", "content": "y".repeat(200_000)});
        ask(&mut evil, "large", &large).await;
        let refused = loop {
            if let ConnectorFrame::OutboundResult { request_id, result } = evil.next().await
                && request_id == "large"
            {
                break result;
            }
        };
        assert!(!refused.success && format!("{refused:?}").contains("share of the disk"), "{refused:?}");
        stage.others_are_served("after").await;
        stage.check_memory("a share of the disk that is used up");
        stage.restarts().await;
    });
}

/// Posts that fill the inbox of an agent which fetches nothing; the words of the
/// refusal, and how many were taken.
async fn post_until_refused(room: &Room) -> (String, usize) {
    let text = "z".repeat(7_900);
    for number in 0..5_000 {
        let (status, wait, words) = room.post_telling(&format!("p{number}"), &text).await;
        if status == 503 {
            assert!(wait.is_some(), "{words}");
            return (words, number);
        }
        assert_eq!(status, 201, "{words}");
    }
    panic!("nobody refused 40 MB for a share of 25");
}

/// A hello of seven megabytes gets a descriptor, and not its own words back.
#[test]
fn a_hello_without_measure_is_answered() {
    busy(async {
        let stage = Stage::set("rogue_hello").await;
        for (platform, bot) in
            [("x".repeat(7 << 20), "b".to_owned()), ("webchat".to_owned(), "y".repeat(7 << 20))]
        {
            let mut evil = Peer::dial(&stage.server, &stage.evil, PLAIN, None).await.expect("let in");
            let hello = format!("{}\n", json!({"type": "hello", "botId": bot, "platform": platform}));
            evil.socket.send(Message::Text(hello.into())).await.expect("the socket takes it");
            match evil.next().await {
                ConnectorFrame::Descriptor { descriptor } => assert!(descriptor.platform.len() < 100),
                other => panic!("a hello was answered with {other:?}"),
            }
        }
        stage.check_memory("hellos of 7 MiB");
    });
}

/// Sockets of one gateway are capped, and what hangs in them is small.
#[test]
fn sockets_without_end() {
    busy(async {
        let mut stage = Stage::set("rogue_sockets").await;
        let (mut open, mut refused) = (Vec::new(), 0);
        for _ in 0..40 {
            match Peer::dial(&stage.server, &stage.evil, PLAIN, None).await {
                Ok(peer) => open.push(peer),
                Err(_) => refused += 1,
            }
        }
        assert_eq!((open.len(), refused), (4, 36), "four sockets, and no more");
        let mut others = Vec::new();
        for number in 0..36 {
            let one = stage.server.gateway("evil", &format!("gw-evil-{number}")).await;
            others.push(Peer::dial(&stage.server, &one, PLAIN, None).await.expect("a gateway of its own"));
        }
        // Each begins a line of two megabytes and does not end it: before a hello, and after one.
        for (number, peer) in open.iter_mut().chain(&mut others).enumerate() {
            let hello = if number % 2 == 0 { "" } else { "{\"type\":\"hello\"}\n" };
            let text = format!("{hello}{{\"type\":\"outbound\",\"requestId\":\"{}", "x".repeat(2_000_000));
            // Whoever is not read any more is not waited for.
            let _ = timeout(Duration::from_secs(2), peer.socket.send(Message::Text(text.into()))).await;
        }
        for round in 0..5 {
            stage.others_are_served(&format!("round-{round}")).await;
        }
        stage.check_memory("40 sockets with a line of 2 MB each that does not end");
        drop((open, others));
        stage.restarts().await;
    });
}

/// What an earlier release kept of such a gateway does not end the server at its start.
#[test]
fn what_was_left_behind_is_read_piece_by_piece() {
    busy(async {
        let mut stage = Stage::set("rogue_ledger").await;
        stage.others_are_served("before").await;
        let Stage { mut server, room, evil, .. } = stage;
        server.process.kill().await;
        let left = leave_behind(server.data(), 150, 7 << 20);
        server.respawn(None);
        server.wait_ready().await;
        let peak = server.peak_kib();
        report(TEST, &format!("a start over {left} MiB of unfinished actions: {} MiB at most", peak / 1024));
        assert!(peak < 512 * 1024, "{peak} KiB at the start");
        assert_eq!(room.post_once("after", "after").await, Some(201));
        server.revoke("evil", &evil.id).await;
        server.assert_never_panicked();
        server.process.kill().await;
    });
}

/// Unfinished actions as an earlier release accepted them; answers how many MiB.
fn leave_behind(data: &Path, count: usize, bytes: usize) -> usize {
    let disk = Inspect::of(data);
    let gateways = disk.records::<GatewayRow>();
    let culprit = gateways.iter().find(|gateway| gateway.gateway_id == "gw-evil").expect("it is known");
    let body = json!({"op": "send", "chat_id": "web-den", "content": "hi", "reply_to": "x".repeat(bytes)});
    let action = NewAction {
        tenant: culprit.tenant.clone(),
        instance: culprit.instance,
        gateway_id: None,
        platform: "webchat".into(),
        bot: "webchat".into(),
        chat_id: "web-den".into(),
        thread_id: None,
        op: "send".into(),
        edits: None,
        reply_to: None,
        body: body.to_string().into_bytes(),
        answering: None,
        received_at: clock::wall(),
    };
    for _ in 0..count {
        disk.leave_action(&action);
    }
    let unfinished =
        disk.actions().iter().filter(|action| !action.state.is_over() && action.has_body).count();
    assert!(unfinished >= count, "{unfinished} of {count} are there");
    (count * bytes) >> 20
}

/// Others' posts and answers while somebody floods the server, beside the same
/// bytes written to a sink.
#[test]
fn a_flood_is_not_felt() {
    alone(async {
        let mut stage = Stage::set("rogue_flood").await;
        let _lair = Room::enter(&stage.server, "lair", &stage.evil.id).await;
        let sink = Sink::open().await;
        let mut others = Others::default();
        for round in 0..3 {
            let flood = tokio::spawn(flood_sink(sink.port));
            others.beside_sink.extend(measure(&mut stage, &format!("quiet-{round}")).await);
            flood.abort();
            let evil = Peer::greet(&stage.server, &stage.evil, PLAIN).await;
            let flood = tokio::spawn(flood_server(evil));
            others.beside_flood.extend(measure(&mut stage, &format!("loud-{round}")).await);
            flood.abort();
        }
        report(TEST, &format!("others' posts, from a sink's flood to the server's: {}", others.told()));
        stage.check_memory("a flood of large frames");
        others.verdict().unwrap();
        stage.restarts().await;
    });
}

const ROUNDS: usize = 60;

async fn measure(stage: &mut Stage, name: &str) -> Vec<Duration> {
    let mut taken = Vec::new();
    for round in 0..ROUNDS {
        taken.push(stage.others_are_served(&format!("{name}-{round}")).await);
    }
    taken
}

/// The frames of the flood: large texts, large hints, arrays of numbers.
fn flood_frames() -> Vec<String> {
    let frames = [
        json!({"type": "outbound", "requestId": "a", "action": {"op": "send", "chat_id": "web-lair", "content": "x".repeat(200_000)}}),
        json!({"type": "outbound", "requestId": "b", "action": {"op": "send", "chat_id": "web-lair", "content": "y", "metadata": {"pad": "p".repeat(1_500_000)}}}),
        json!({"type": "outbound", "requestId": "c", "action": vec![1; 700_000]}),
    ];
    frames.iter().map(|frame| format!("{frame}\n")).collect()
}

async fn flood_server(evil: Peer) {
    let (mut sink, mut stream) = evil.socket.split();
    let reads = async { while let Some(Ok(_)) = stream.next().await {} };
    let writes = async {
        let frames = flood_frames();
        loop {
            for frame in &frames {
                if sink.send(Message::Text(frame.clone().into())).await.is_err() {
                    return;
                }
            }
        }
    };
    tokio::join!(reads, writes);
}

/// Takes bytes and throws them away, as fast as the server reads them.
struct Sink {
    port: u16,
}

impl Sink {
    async fn open() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut buffer = vec![0; 16 * 1024];
                    let began = Instant::now();
                    let mut taken = 0_usize;
                    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                        taken += read;
                        // What the server takes of one instance: the same bytes in the same time.
                        let due = Duration::from_secs_f64(
                            taken.saturating_sub(4 << 20) as f64 / f64::from(2 << 20),
                        );
                        tokio::time::sleep_until(began + due).await;
                    }
                });
            }
        });
        Self { port }
    }
}

async fn flood_sink(port: u16) {
    use tokio::io::AsyncWriteExt;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the sink listens");
    let frames = flood_frames();
    loop {
        for frame in &frames {
            if stream.write_all(frame.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}
