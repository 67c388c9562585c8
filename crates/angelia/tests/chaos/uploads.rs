//! Hundreds of the largest files at once: what they cost in memory, what others feel of them, and what
//! is left of them when the server is killed.

use crate::dice::Dice;
use crate::file_load::{Carrier, Pace, TestFile, sink};
use crate::peer::{PLAIN, Peer};
use crate::room::Room;
use crate::server::{Server, fresh_folder};
use crate::stage::{alone, busy, milliseconds, quantile, report};
use angelia_contract::frame::ConnectorFrame;
use angelia_core::clock;
use angelia_core::media::{FILE_BYTES, sealed_bytes};
use angelia_services::S3;
use angelia_testkit::canary::files_below;
use angelia_testkit::process::until;
use reqwest::Method;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, UNIX_EPOCH};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

const TEST: &str = "uploads";
/// A tenant has room for forty of the largest.
const TENANTS: u64 = 8;
const AT_ONCE: u64 = 200;
/// What they may cost the server.
const MAX_GROWTH_KIB: u64 = 100 * 1024;
/// How many of others' posts are measured at the least, and how often one is written.
const POSTS: usize = 200;
const EVERY: Duration = Duration::from_millis(20);
/// A build that is not optimised seals 8 MiB a second. Memory goes by how many files there are and not
/// by how large they are, so it has small ones; `CHAOS_FILE_MIB=25` makes them as large as they may be.
const UNOPTIMISED: u64 = 512 * 1024;
const SOON: Duration = Duration::from_secs(30);

const KILLS: u64 = 3;
/// Files of which some are whole and most are on their way when the server dies.
const KILLED_AMONG: u64 = 64;

/// One that is sent before anything begins.
const FIRST: TestFile = TestFile { number: u64::MAX, size: 1024 };

/// How large the files of this run are.
fn size() -> u64 {
    let asked = std::env::var("CHAOS_FILE_MIB").map(|text| text.trim().parse().expect("a number of MiB"));
    let usual = if cfg!(debug_assertions) { UNOPTIMISED } else { FILE_BYTES };
    asked.map_or(usual, |mib: u64| mib * 1024 * 1024).min(FILE_BYTES)
}

/// Two hundred uploads, and as many downloads, cost less than half a MiB each, and what others write
/// arrives nearly as soon as beside the same bytes into a sink.
#[test]
fn two_hundred_at_once() {
    alone(async {
        let stage = Stage::set(TEST).await;
        let nothing = LOAD.spawn(sink()).await.expect("a sink");
        let into_sink: Vec<Carrier> = stage.carriers.iter().map(|carrier| carrier.to(nothing)).collect();
        let files: Vec<TestFile> = (0..AT_ONCE).map(|number| TestFile { number, size: size() }).collect();

        let mut beside_sink = stage.beside(POSTS, async || drop(send_all(&into_sink, &files).await)).await.1;
        let sending = async || stage.watched(send_all(&stage.carriers, &files)).await;
        let ((ids, grown, took), mut beside) = stage.beside(1, sending).await;
        let told = format!("{AT_ONCE} uploads of {} KiB in {took:.1?}: {grown}", size() >> 10);
        report(
            TEST,
            &format!("{told}; posts {} beside a sink, {} then", times(&mut beside_sink), times(&mut beside)),
        );
        let ids: Vec<String> = ids.into_iter().map(|id| id.expect("it was kept")).collect();
        let (mut most, mut slowest) = (grown.all, quantile(&mut beside, 0.5));

        for pace in [Pace::AsItComes, Pace::Slowly(Duration::from_millis(20))] {
            let fetching = async || stage.watched(fetch_all(&stage.carriers, &files, &ids, pace)).await;
            let (((), grown, took), mut beside) = stage.beside(1, fetching).await;
            let told = format!("{AT_ONCE} downloads in {took:.1?}, {pace:?}: {grown}");
            report(TEST, &format!("{told}; posts {}", times(&mut beside)));
            most = most.max(grown.all);
            slowest = slowest.max(quantile(&mut beside, 0.5));
        }
        stage.server.assert_never_panicked();
        assert!(most < MAX_GROWTH_KIB, "memory grew by {most} KiB");
        let usual = quantile(&mut beside_sink, 0.5);
        let felt = format!("others' posts took {usual:?} beside a sink, and {slowest:?} beside the server");
        assert!(slowest <= usual * 3, "{felt}");
    });
}

/// The same uploads cost as little where files go to a bucket, and a death leaves nothing half there.
#[test]
fn two_hundred_into_a_bucket() {
    alone(async {
        let s3 = S3::start().expect("a bucket");
        let settings = [
            format!("ANGELIA_MEDIA__URL=s3://{}", S3::BUCKET),
            format!("ANGELIA_MEDIA__ENDPOINT={}", s3.endpoint()),
            format!("ANGELIA_MEDIA__ACCESS_KEY_ID={}", s3.access_key_id()),
            "ANGELIA_MEDIA__SECRET_ACCESS_KEY__ENV=BUCKET_SECRET".to_owned(),
            format!("BUCKET_SECRET={}", s3.secret_access_key()),
        ];
        let wrap: Vec<&str> = ["env"].into_iter().chain(settings.iter().map(String::as_str)).collect();
        let mut stage = Stage::set_in("uploads_bucket", &wrap).await;
        let file = |number| TestFile { number, size: size().min(UNOPTIMISED) };
        let files: Vec<TestFile> = (0..AT_ONCE).map(file).collect();
        let (ids, grown, took) = stage.watched(send_all(&stage.carriers, &files)).await;
        report(
            TEST,
            &format!("{AT_ONCE} uploads of {} KiB into a bucket in {took:.1?}: {grown}", files[0].size >> 10),
        );
        assert!(ids.iter().all(Option::is_some));
        assert!(grown.all < MAX_GROWTH_KIB, "memory grew by {} KiB", grown.all);

        let more: Vec<TestFile> = (AT_ONCE..AT_ONCE + KILLED_AMONG).map(file).collect();
        let kept = stage.kill_among(&more, 8, Duration::ZERO).await;
        stage.comes_back().await;
        stage.serves(&more, &kept).await;
        let there = s3.objects().expect("objects");
        let (whole, answered) = (sealed_bytes(files[0].size), 1 + files.len() + kept.len());
        assert!(
            there.iter().all(|(_, size)| *size == whole || *size == sealed_bytes(FIRST.size)),
            "{there:?}"
        );
        assert!(there.len() >= answered, "{} objects, {answered} were answered", there.len());
        assert_eq!(stage.objects(), [0; 0], "nothing is left on this machine");
        report(
            TEST,
            &format!(
                "killed: {answered} were answered, {} objects are in the bucket, all whole",
                there.len()
            ),
        );
        stage.server.process.kill().await;
    });
}

/// Killed among uploads, it serves what it had said it keeps, whole, and nothing is left of the others.
#[test]
fn killed_in_the_middle() {
    busy(async {
        let mut dice = Dice::roll_for(TEST);
        for kill in 0..KILLS {
            let mut stage = Stage::set("uploads_killed").await;
            // Of all sizes, so that they do not end together.
            let files: Vec<TestFile> = (1..=KILLED_AMONG)
                .map(|number| TestFile {
                    number,
                    size: size() * number / KILLED_AMONG - dice.within(0, 8_000),
                })
                .collect();
            let moment = usize::try_from(dice.within(1, KILLED_AMONG * 3 / 4)).unwrap();
            let kept = stage.kill_among(&files, moment, Duration::from_micros(dice.within(0, 30_000))).await;
            let sent: u64 = stage.carriers.iter().map(|carrier| carrier.sent.load(Ordering::Relaxed)).sum();
            stage.comes_back().await;
            stage.serves(&files, &kept).await;
            let (left, rows) = (stage.objects(), stage.rows().await);

            stage.server.process.kill().await;
            stage.set_back();
            stage.comes_back().await;
            let swept = async || u64::try_from(stage.objects().len()).unwrap() == rows;
            until("only what has a row is left", SOON, swept).await;
            let all = files.iter().chain([&FIRST]);
            let whole: BTreeSet<u64> = all.map(|file| sealed_bytes(file.size)).collect();
            assert!(stage.objects().iter().all(|bytes| whole.contains(bytes)), "half of a file is kept");
            stage.serves(&files, &kept).await;
            // Of some the answer was lost, though all of them had come.
            let answered = kept.len() as u64 + 1;
            assert!(answered <= rows && rows <= sent, "{answered} answered, {rows} kept, {sent} sent");
            report(
                TEST,
                &format!(
                    "kill {kill}: {answered} of {KILLED_AMONG} were answered, {rows} kept; {} objects \
                     were there after the kill, {rows} after the sweep",
                    left.len()
                ),
            );
            stage.server.assert_never_panicked();
            stage.server.process.kill().await;
        }
    });
}

/// Who sends and fetches has threads of their own: what is measured does not wait for them.
static LOAD: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime"));

async fn send_all(carriers: &[Carrier], files: &[TestFile]) -> Vec<Option<String>> {
    let sending = files.iter().zip(carriers.iter().cycle()).map(|(file, carrier)| {
        let (carrier, file) = (carrier.clone(), *file);
        LOAD.spawn(async move { carrier.send(file).await })
    });
    let sending: Vec<_> = sending.collect();
    let mut ids = Vec::new();
    for sent in sending {
        ids.push(sent.await.expect("it is sent, or it is not"));
    }
    ids
}

async fn fetch_all(carriers: &[Carrier], files: &[TestFile], ids: &[String], pace: Pace) {
    let fetching = files.iter().zip(ids).zip(carriers.iter().cycle()).map(|((file, id), carrier)| {
        let (carrier, file, id) = (carrier.clone(), *file, id.clone());
        LOAD.spawn(async move { carrier.fetch(&id, file, pace).await })
    });
    let fetching: Vec<_> = fetching.collect();
    for fetched in fetching {
        fetched.await.expect("it comes whole");
    }
}

/// What an act added to a server's memory, in KiB.
struct Growth {
    all: u64,
    own: u64,
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "memory +{:.1} MiB, {:.1} of it its own",
            self.all as f64 / 1024.0,
            self.own as f64 / 1024.0
        )
    }
}

fn times(times: &mut [Duration]) -> String {
    let (median, p99) = (milliseconds(quantile(times, 0.5)), milliseconds(quantile(times, 0.99)));
    format!("{median:.1} ms, p99 {p99:.1} ms ({})", times.len())
}

/// A server, gateways that have files, and a room of another tenant whose gateway reads.
struct Stage {
    server: Server,
    carriers: Vec<Carrier>,
    room: Room,
    clock: Instant,
    posted: AtomicUsize,
    /// How long posts took to get to their gateway, which acknowledges them.
    times: Arc<Mutex<Vec<Duration>>>,
}

impl Stage {
    async fn set(test: &str) -> Self {
        Self::set_in(test, &[]).await
    }

    async fn set_in(test: &str, wrap: &[&str]) -> Self {
        let folder = fresh_folder(test);
        let data = folder.join("data");
        let server = Server::start_in(folder, data, wrap).await;
        let mut carriers = Vec::new();
        for number in 0..TENANTS {
            let gateway = server.gateway(&format!("tenant{number}"), &format!("gw-{number}")).await;
            carriers.push(Carrier::of(&server, &gateway));
        }
        let gateway = server.gateway("default", "gw-calm").await;
        let room = Room::enter(&server, "den", "gw-calm").await;
        let (clock, times) = (Instant::now(), Arc::default());
        tokio::spawn(read(Peer::greet(&server, &gateway, PLAIN).await, clock, Arc::clone(&times)));
        let stage = Self { server, carriers, room, clock, posted: AtomicUsize::new(0), times };
        // Everything is there once before anything is measured.
        send_all(&stage.carriers, &[FIRST]).await;
        stage.beside(20, async || sleep(EVERY).await).await;
        stage
    }

    /// Writes at a steady pace while something is done, once or until there are so many posts; what came
    /// of it the last time, and how long each post took to its gateway.
    async fn beside<T>(&self, least: usize, act: impl AsyncFn() -> T) -> (T, Vec<Duration>) {
        self.times.lock().unwrap().clear();
        let mut acts = pin!(async {
            loop {
                let done = act().await;
                if self.times.lock().unwrap().len() >= least {
                    return done;
                }
            }
        });
        let (mut pace, mut posted) = (interval(EVERY), 0);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let done = loop {
            let posting = async {
                pace.tick().await;
                self.post().await;
            };
            let mut posting = pin!(posting);
            tokio::select! {
                () = &mut posting => posted += 1,
                done = &mut acts => {
                    posting.await;
                    posted += 1;
                    break done;
                }
            }
        };
        let all = async || self.times.lock().unwrap().len() == posted;
        until("all posts arrive", SOON, all).await;
        (done, std::mem::take(&mut self.times.lock().unwrap()))
    }

    async fn post(&self) {
        let id = format!("den-{}", self.posted.fetch_add(1, Ordering::Relaxed));
        let text = format!("{id} {}", self.clock.elapsed().as_micros());
        assert_eq!(self.room.post_once(&id, &text).await, Some(201), "{id}");
    }

    /// Does something; how much more memory the server had meanwhile, at the most, and how long it took.
    async fn watched<T>(&self, act: impl Future<Output = T>) -> (T, Growth, Duration) {
        let (began, all, own) = (Instant::now(), self.server.rss_kib(), self.server.own_kib());
        let (mut most, mut act) = (Growth { all, own }, pin!(act));
        let done = loop {
            tokio::select! {
                done = &mut act => break done,
                () = sleep(Duration::from_millis(20)) => {}
            }
            most =
                Growth { all: most.all.max(self.server.rss_kib()), own: most.own.max(self.server.own_kib()) };
        };
        (done, Growth { all: most.all - all, own: most.own - own }, began.elapsed())
    }

    /// Sends files, and kills the server when so many were answered; the ids of those that were.
    async fn kill_among(
        &mut self,
        files: &[TestFile],
        moment: usize,
        later: Duration,
    ) -> Vec<(usize, String)> {
        let (kept, mut sending) = (Arc::new(Mutex::new(Vec::new())), JoinSet::new());
        for (index, (file, carrier)) in files.iter().zip(self.carriers.iter().cycle()).enumerate() {
            let (kept, carrier, file) = (Arc::clone(&kept), carrier.clone(), *file);
            let sent = async move {
                if let Some(id) = carrier.send(file).await {
                    kept.lock().unwrap().push((index, id));
                }
            };
            sending.spawn_on(sent, LOAD.handle());
        }
        let so_many = async || kept.lock().unwrap().len() >= moment;
        until("so many are answered", SOON, so_many).await;
        sleep(later).await;
        self.server.process.kill().await;
        sending.join_all().await;
        std::mem::take(&mut kept.lock().unwrap())
    }

    async fn comes_back(&mut self) {
        self.server.respawn(None);
        self.server.wait_ready().await;
    }

    async fn serves(&self, files: &[TestFile], kept: &[(usize, String)]) {
        for (index, id) in kept {
            let carrier = &self.carriers[index % self.carriers.len()];
            carrier.fetch(id, files[*index], Pace::AsItComes).await;
        }
    }

    /// How long the objects are that are there, with those that are not finished.
    fn objects(&self) -> Vec<u64> {
        let paths = files_below(&self.server.data().join("media"));
        paths.iter().filter_map(|path| Some(fs::metadata(path).ok()?.len())).collect()
    }

    /// How many files the server has, by its own account.
    async fn rows(&self) -> u64 {
        let status = self.server.admin_request(Method::GET, "/admin/status", None).await;
        status["files"]["count"].as_u64().unwrap_or_else(|| panic!("no count: {status}"))
    }

    /// Makes all objects look two hours older.
    fn set_back(&self) {
        let then = UNIX_EPOCH + Duration::from_secs(clock::wall().seconds() - 2 * 3_600);
        for path in files_below(&self.server.data().join("media")) {
            File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
        }
    }
}

/// Reads for as long as the socket lives; every text ends with the moment it was posted.
async fn read(mut peer: Peer, clock: Instant, times: Arc<Mutex<Vec<Duration>>>) {
    while let Some(frame) = peer.next_or_end().await {
        let ConnectorFrame::Inbound(inbound) = frame else { continue };
        let posted = inbound.event.text.rsplit(' ').next().and_then(|text| text.parse().ok());
        let posted = Duration::from_micros(posted.expect("a moment in every text"));
        times.lock().unwrap().push(clock.elapsed().saturating_sub(posted));
        peer.ack(&inbound.buffer_id.unwrap_or_default()).await;
    }
}
