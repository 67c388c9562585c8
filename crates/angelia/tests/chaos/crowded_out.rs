//! Nobody takes every connection: whoever asks and reads is served, whatever
//! thousands of others do with theirs.

use crate::crowd::{Crowd, Kind, sink};
use crate::peer::{PLAIN, Peer};
use crate::room::Room;
use crate::server::{Server, fresh_folder, keep_alive_client};
use crate::stage::{Others, alone, quantile, report};
use angelia_contract::frame::{ConnectorFrame, GatewayFrame, Hello};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_tungstenite::tungstenite::Error;

const TEST: &str = "crowded_out";
/// What the server may open; the crowd opens far more.
const DESCRIPTORS: [&str; 2] = ["prlimit", "--nofile=1024:1024"];
/// The same for those who stay: 150 of them are for connections.
const FEW: [&str; 2] = ["prlimit", "--nofile=300:300"];
const PLACES: usize = 150;
const LASTING: Duration = Duration::from_secs(4);
/// Pairs of rounds against a sink and against the server; in doubt more are measured.
const MAX_PAIRS: usize = 4;
const MAX_GROWTH_KIB: u64 = 256 * 1024;
const SOON: Duration = Duration::from_secs(20);
/// Where nothing is measured, this is still an answer.
const AN_ANSWER: Duration = Duration::from_secs(5);

/// How long things took, by what was asked for.
type Times = BTreeMap<&'static str, Vec<Duration>>;

/// A stranger pipelines on thousands of connections and reads nothing, at a
/// server that may open 1,024 files: posts, `/livez` and the admin API go on, a
/// relay socket stays open, and afterwards everything is given back.
#[test]
fn by_thousands_who_do_not_read() {
    alone(async {
        raise_descriptors();
        let stage = Stage::set(TEST, &DESCRIPTORS).await;
        let (before, files) = (stage.server.rss_kib(), stage.files());
        let nothing = sink().await;
        let mut others = BTreeMap::<&str, Others>::new();
        let (mut growth, mut opened) = (0, 0);
        for _ in 0..MAX_PAIRS {
            let (crowd, times) =
                tokio::join!(Crowd::besiege(nothing, Kind::Unread, LASTING), stage.use_it(LASTING));
            drop(crowd);
            for (what, times) in times {
                others.entry(what).or_default().beside_sink.extend(times);
            }
            let (crowd, times, most) = tokio::join!(
                Crowd::besiege(stage.address(), Kind::Unread, LASTING),
                stage.use_it(LASTING),
                stage.most_memory(LASTING)
            );
            for (what, times) in times {
                others.entry(what).or_default().beside_flood.extend(times);
            }
            growth = growth.max(most.saturating_sub(before));
            opened += crowd.opened;
            assert_eq!(crowd.refused, 0, "of {} connections", crowd.opened);
            assert!(crowd.ended > 100, "those that do not read lose their places: {}", crowd.ended);
            drop(crowd);
            if others.values_mut().all(|times| times.verdict().is_ok()) {
                break;
            }
        }
        let given_back = stage.wait_given_back(files).await;
        for (what, times) in &mut others {
            report(TEST, &format!("{what}: {}", times.told()));
        }
        report(
            TEST,
            &format!("{opened} connections; memory +{growth} KiB; given back after {given_back:.1?}"),
        );
        assert!(growth < MAX_GROWTH_KIB, "memory grew by {growth} KiB");
        stage.relay_is_alive().await;
        for (what, times) in &mut others {
            times.verdict().unwrap_or_else(|why| panic!("{what}: {why}"));
        }
        stage.server.assert_never_panicked();
        let lines = stage.server.log().lines().filter(|line| line.contains("WARN")).count();
        assert!(lines < 10, "a crowd fills the log: {lines} warnings");
    });
}

/// The same with connections that say nothing, half of something, or nothing more.
#[test]
fn by_thousands_who_do_not_ask() {
    alone(async {
        raise_descriptors();
        let stage = Stage::set("crowded_out_slow", &DESCRIPTORS).await;
        let files = stage.files();
        for kind in [Kind::Silent, Kind::HalfHead, Kind::HalfBody, Kind::Once] {
            let (crowd, mut times) =
                tokio::join!(Crowd::besiege(stage.address(), kind, LASTING / 2), stage.use_it(LASTING / 2));
            assert_eq!(crowd.refused, 0, "of {} connections", crowd.opened);
            for (what, times) in &mut times {
                let worst = quantile(times, 1.0);
                report("crowded_out_slow", &format!("{kind:?}: {what} took {worst:.1?} at most"));
                assert!(worst < AN_ANSWER, "{kind:?}: {what} took {worst:?}");
            }
        }
        stage.wait_given_back(files).await;
        stage.relay_is_alive().await;
        stage.server.assert_never_panicked();
    });
}

/// One tenant's gateways and guests take as many relay sockets and event streams as
/// they can, and keep them, at a server with few places: they are told when there are
/// no more for them, and everybody else goes on, with a dial of another tenant.
#[test]
fn by_those_who_stay() {
    const TEST: &str = "crowded_out_staying";
    alone(async {
        let stage = Stage::set(TEST, &FEW).await;
        let (files, mut sockets, mut refused) = (stage.files(), Vec::new(), 0);
        for number in 0..PLACES * 11 / 16 {
            let credentials = stage.server.gateway("rogue", &format!("rogue-{number}")).await;
            match Peer::dial(&stage.server, &credentials, PLAIN, None).await {
                Ok(mut peer) => {
                    peer.send(&GatewayFrame::Hello(Hello::default())).await;
                    sockets.push(peer);
                }
                Err(Error::Http(answer)) => {
                    assert_eq!(answer.status(), 503);
                    assert!(answer.headers().contains_key("retry-after"));
                    refused += 1;
                }
                Err(error) => panic!("dial {number}: {error}"),
            }
        }
        assert_eq!(sockets.len(), PLACES * 9 / 16, "a tenant's part; {refused} were refused");
        let (streams, told) = stage.follow("pit", "rogue-0", PLACES).await;
        assert_eq!(streams.len(), PLACES * 3 / 16, "the part of streams");
        assert!(told.contains("too many people are following rooms"), "{told}");

        let times = stage.use_it(LASTING / 2).await;
        for (what, mut times) in times {
            let worst = quantile(&mut times, 1.0);
            report(TEST, &format!("{what} took {worst:.1?} at most"));
            assert!(worst < AN_ANSWER, "{what} took {worst:?}");
        }
        let other = stage.server.gateway("other", "gw-other").await;
        drop(Peer::greet(&stage.server, &other, PLAIN).await);
        stage.relay_is_alive().await;
        report(TEST, &format!("{} sockets and {} streams stayed", sockets.len(), streams.len()));
        drop((sockets, streams));
        stage.wait_given_back(files).await;
        let (streams, _) = stage.follow("pit", "rogue-0", 1).await;
        assert_eq!(streams.len(), 1, "there are places again");
        stage.server.assert_never_panicked();
    });
}

/// A server, a room whose gateway reads, and what is asked of it.
struct Stage {
    server: Server,
    room: Room,
    posted: AtomicUsize,
    received: Arc<AtomicUsize>,
}

impl Stage {
    async fn set(test: &str, descriptors: &[&str]) -> Self {
        let folder = fresh_folder(test);
        let data = folder.join("data");
        let server = Server::start_in(folder, data, descriptors).await;
        let credentials = server.gateway("default", "gw-calm").await;
        let room = Room::enter(&server, "den", "gw-calm").await;
        let received = Arc::new(AtomicUsize::new(0));
        let peer = Peer::greet(&server, &credentials, PLAIN).await;
        tokio::spawn(read(peer, received.clone()));
        let stage = Self { server, room, posted: AtomicUsize::new(0), received };
        // Everything is there once before anything is measured.
        stage.use_it(Duration::from_millis(300)).await;
        stage
    }

    fn address(&self) -> SocketAddr {
        let (host, port) = self.server.address();
        SocketAddr::new(host.parse().unwrap(), port)
    }

    /// Posts, probes and commands at a steady pace; every one of them must succeed.
    async fn use_it(&self, lasting: Duration) -> Times {
        let (posts, probes, commands) = tokio::join!(
            every(Duration::from_millis(20), lasting, async || {
                let id = format!("den-{}", self.posted.fetch_add(1, Ordering::Relaxed));
                assert_eq!(self.room.post_once(&id, &id).await, Some(201), "{id}");
            }),
            every(Duration::from_millis(40), lasting, async || {
                assert_eq!(self.server.probe("/livez").await, Some(200));
            }),
            every(Duration::from_millis(100), lasting, async || {
                self.server.admin_request(reqwest::Method::GET, "/admin/tenants", None).await;
            })
        );
        Times::from([("posts", posts), ("probes", probes), ("commands", commands)])
    }

    /// Opens so many event streams in a room, eight for each guest; those that were
    /// opened, and what the first of the others was told.
    async fn follow(&self, room: &str, gateway: &str, most: usize) -> (Vec<reqwest::Response>, String) {
        let (mut streams, mut told) = (Vec::new(), String::new());
        let url = format!("{}/chat/api/rooms/{room}/events", self.server.url());
        let client = keep_alive_client();
        let mut key = String::new();
        for number in 0..most {
            if number % 8 == 0 {
                key = self.server.invite(room, &format!("person-{number}"), gateway).await;
            }
            let answer = client.get(&url).bearer_auth(&key).send().await.expect("an answer");
            match answer.status().as_u16() {
                200 => streams.push(answer),
                503 => {
                    assert!(answer.headers().contains_key("retry-after"));
                    told = answer.text().await.expect("words");
                }
                other => panic!("stream {number} was answered with {other}"),
            }
        }
        (streams, told)
    }

    async fn most_memory(&self, lasting: Duration) -> u64 {
        let (over, mut most) = (Instant::now() + lasting, 0);
        while Instant::now() < over {
            most = most.max(self.server.rss_kib());
            sleep(Duration::from_millis(50)).await;
        }
        most
    }

    /// Files the server has open.
    fn files(&self) -> usize {
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.server.process.id()));
        files.expect("the server runs").count()
    }

    async fn wait_given_back(&self, before: usize) -> Duration {
        let gone = Instant::now();
        while self.files() > before + 10 {
            assert!(gone.elapsed() < SOON, "{} files are open, {before} were", self.files());
            sleep(Duration::from_millis(20)).await;
        }
        gone.elapsed()
    }

    /// The socket that was there from the beginning has brought everything.
    async fn relay_is_alive(&self) {
        let all = self.posted.load(Ordering::Relaxed);
        let arrived = async {
            while self.received.load(Ordering::Relaxed) < all {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let received = || self.received.load(Ordering::Relaxed);
        timeout(SOON, arrived).await.unwrap_or_else(|_| panic!("{} of {all} arrived", received()));
    }
}

/// Reads for as long as this one socket lives.
async fn read(mut peer: Peer, received: Arc<AtomicUsize>) {
    while let Some(frame) = peer.next_or_end().await {
        if let ConnectorFrame::Inbound(inbound) = frame {
            received.fetch_add(1, Ordering::Relaxed);
            peer.ack(&inbound.buffer_id.unwrap_or_default()).await;
        }
    }
}

/// Does something at a steady pace, and says how long each took.
async fn every(pace: Duration, lasting: Duration, act: impl AsyncFn()) -> Vec<Duration> {
    let (mut ticks, over, mut times) = (interval(pace), Instant::now() + lasting, Vec::new());
    while Instant::now() < over {
        ticks.tick().await;
        let began = Instant::now();
        act().await;
        times.push(began.elapsed());
    }
    times
}

/// The crowd is in this process.
fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("more files");
}
