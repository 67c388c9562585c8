//! What the bus on Redis does besides: it brings what is followed and nothing else, and it
//! lives without its server, and next to others who write to it.

use super::contract::{Heard, TOPIC, gone, say_until};
use super::redis_server::RedisServer;
use angelia_core::inbox::{Entry, EntryKind, InstanceId, Mark, Seq};
use angelia_core::ports::{Bus, Control, Following, Hint, HintKind, Topic};
use angelia_engines::redis_bus::{Config, RedisBus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A dead server has to be noticed by then.
const NOTICED: Duration = Duration::from_secs(2);
const HEALED: Duration = Duration::from_secs(10);

/// Two nodes of one bus.
pub(super) struct Nodes {
    pub(super) here: Arc<dyn Bus>,
    pub(super) there: Arc<dyn Bus>,
}

impl From<[Arc<RedisBus>; 2]> for Nodes {
    fn from([here, there]: [Arc<RedisBus>; 2]) -> Self {
        Self { here, there }
    }
}

fn config(url: &str, node: &str) -> Config {
    Config { url: url.into(), authority: None, prefix: "test".into(), node: node.into(), key: [7; 32] }
}

fn node(url: &str, node: &str) -> Arc<RedisBus> {
    RedisBus::start(&config(url, node)).unwrap()
}

/// Two nodes that are connected.
pub(super) async fn joined(url: &str) -> [Arc<RedisBus>; 2] {
    let nodes = [node(url, "a"), node(url, "b")];
    until(HEALED, || nodes.iter().all(|node| node.is_connected())).await;
    nodes
}

/// Waits for it; answers how long it took.
#[allow(clippy::disallowed_methods, reason = "how long a server takes is real time")]
async fn until(within: Duration, is_so: impl Fn() -> bool) -> Duration {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < within, "not within {within:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    began.elapsed()
}

fn entry(seq: i64, bytes: usize) -> Hint {
    let entry = Entry {
        seq: Seq(seq),
        kind: EntryKind::Message,
        platform: "webchat".into(),
        bot: "bot".into(),
        chat_id: "room".into(),
        session_key: "agent:main:webchat:dm:room".into(),
        body: vec![b'x'; bytes].into(),
        revision: 0,
        while_busy: None,
    };
    let mark = Mark { tail: Seq(seq), redrives: 0 };
    Hint::Log { instance: InstanceId(1), mark, entry, kind: HintKind::Appended }
}

fn changed(id: i64) -> Hint {
    Hint::Control(Control::Changed { id })
}

fn says_changed(heard: &Heard, wanted: i64) -> bool {
    heard.all().iter().any(|hint| matches!(hint, Hint::Control(Control::Changed { id }) if *id == wanted))
}

#[tokio::test]
async fn a_node_hears_nothing_of_what_it_does_not_follow() {
    for cluster in [false, true] {
        let servers = if cluster { RedisServer::start_cluster(1) } else { vec![RedisServer::start()] };
        let [here, there] = joined(&servers[0].url()).await;
        let heard = Heard::on(&*there);
        (0..1_000).for_each(|seq| here.publish(gone(seq)));
        until(HEALED, || here.stats().sent >= 1_000).await;
        say_until(&*here, changed(1), || says_changed(&heard, 1)).await;
        let received = there.stats().received;
        assert!(received < 100, "only what nodes say: {received}");
        assert!(heard.numbers().is_empty());

        let bus: Arc<dyn Bus> = there.clone();
        let following = Following::new(&bus, TOPIC);
        until(HEALED, || heard.missed().contains(&Some(TOPIC))).await;
        here.publish(gone(2_000));
        until(HEALED, || heard.numbers() == [2_000]).await;
        drop(following);
        // A later wish is granted after this one.
        there.follow(Topic::Room("r".into()));
        until(HEALED, || heard.missed().contains(&Some(Topic::Room("r".into())))).await;
        here.publish(gone(2_001));
        say_until(&*here, changed(2), || says_changed(&heard, 2)).await;
        assert_eq!(heard.numbers(), [2_000]);
        assert_eq!(there.stats().reconnects, 0);
    }
}

#[tokio::test]
async fn what_a_node_follows_itself_it_keeps_and_says_so_when_it_leaves() {
    let server = RedisServer::start();
    let [here, there] = joined(&server.url()).await;
    let heard = Heard::on(&*there);
    here.follow(TOPIC);
    there.follow(TOPIC);
    until(HEALED, || heard.missed().contains(&Some(TOPIC))).await;
    heard.forget();
    (0..100).for_each(|seq| here.publish(gone(seq)));
    say_until(&*here, changed(1), || says_changed(&heard, 1)).await;
    assert!(heard.numbers().is_empty(), "its socket is there");
    assert!(here.stats().sent < 100);
    here.unfollow(&TOPIC);
    until(HEALED, || heard.missed() == [Some(TOPIC)]).await;
    say_until(&*here, gone(7), || heard.numbers().contains(&7)).await;
}

#[tokio::test]
async fn ten_thousand_topics_are_followed_with_few_commands() {
    for cluster in [false, true] {
        let servers = if cluster { RedisServer::start_cluster(1) } else { vec![RedisServer::start()] };
        let [here, there] = joined(&servers[0].url()).await;
        let heard = Heard::on(&*there);
        let ids = 1..=10_000;
        ids.clone().for_each(|id| there.follow(Topic::Instance(InstanceId(id))));
        until(HEALED, || heard.missed().len() >= 10_000).await;
        let commands = commands(&servers[0]);
        assert!(commands < 1_500, "{commands} commands");
        for instance in ids.map(InstanceId) {
            here.publish(Hint::Removed { instance, seqs: vec![Seq(instance.0)] });
        }
        until(HEALED, || heard.numbers().len() == 10_000).await;
    }
}

/// How many subscriptions were asked for, however many channels each had.
fn commands(server: &RedisServer) -> u64 {
    let says = server.say(&[b"INFO", b"commandstats"]);
    let of = |name: &str| {
        let line = says.lines().find(|line| line.starts_with(name))?;
        line.split_once("calls=")?.1.split_once(',')?.0.parse::<u64>().ok()
    };
    of("cmdstat_subscribe:").unwrap_or_default() + of("cmdstat_ssubscribe:").unwrap_or_default()
}

/// Breaks and mends a server, and looks what the nodes make of it.
async fn survives(servers: &mut [RedisServer], breaks: fn(&mut RedisServer), mends: fn(&mut RedisServer)) {
    let url = servers.iter().map(RedisServer::url).collect::<Vec<_>>().join(",");
    let [here, there] = joined(&url).await;
    let heard = Heard::on(&*there);
    there.follow(TOPIC);
    say_until(&*here, gone(1), || heard.numbers().contains(&1)).await;

    breaks(&mut servers[0]);
    let took = until(NOTICED, || !here.is_connected() && !there.is_connected()).await;
    println!("noticed after {took:?}");
    let dropped = here.stats().dropped;
    here.publish(gone(2));
    assert_eq!(here.stats().dropped, dropped + 1);
    heard.forget();

    mends(&mut servers[0]);
    let took = until(HEALED, || here.is_connected() && there.is_connected()).await;
    println!("healed after {took:?}");
    until(HEALED, || heard.missed().contains(&None)).await;
    say_until(&*here, gone(3), || heard.numbers().contains(&3)).await;
    assert!(!heard.numbers().contains(&2));
    assert!(here.stats().reconnects >= 1);
}

#[tokio::test]
async fn a_server_that_was_killed_is_missed_and_found_again() {
    survives(&mut [RedisServer::start()], RedisServer::kill, RedisServer::start_again).await;
    survives(&mut RedisServer::start_cluster(1), RedisServer::kill, RedisServer::start_again).await;
}

#[tokio::test]
async fn a_server_that_stands_still_is_missed_and_found_again() {
    survives(&mut [RedisServer::start()], |server| server.pause(), |server| server.resume()).await;
    survives(&mut RedisServer::start_cluster(1), |server| server.pause(), |server| server.resume()).await;
}

#[tokio::test]
async fn a_cluster_of_several_servers_is_one_bus() {
    let mut servers = RedisServer::start_cluster(3);
    let url = servers[0].url();
    let [here, there] = joined(&url).await;
    let heard = Heard::on(&*there);
    let ids = 1..=300;
    ids.clone().for_each(|id| there.follow(Topic::Instance(InstanceId(id))));
    until(HEALED, || heard.missed().len() >= 300).await;
    for instance in ids.map(InstanceId) {
        here.publish(Hint::Removed { instance, seqs: vec![Seq(instance.0)] });
    }
    until(HEALED, || heard.numbers().len() == 300).await;
    let busy = servers.iter().filter(|server| commands(server) > 0).count();
    assert_eq!(busy, 3, "each server has its share");

    // A slot moves, and its channels with it.
    heard.forget();
    let slot = servers[0].say(&[b"CLUSTER", b"KEYSLOT", b"{test.0}c"]);
    let slot: usize = slot.trim_matches([':', '\r', '\n']).parse().unwrap();
    let to = servers[(slot / (16_384 / 3) + 1) % 3].say(&[b"CLUSTER", b"MYID"]);
    let to = to.lines().nth(1).unwrap().as_bytes();
    for server in servers.iter().cycle().skip((slot / (16_384 / 3) + 1) % 3).take(3) {
        let said = server.say(&[b"CLUSTER", b"SETSLOT", slot.to_string().as_bytes(), b"NODE", to]);
        assert_eq!(said, "+OK\r\n");
    }
    until(HEALED, || there.stats().reconnects >= 1 && there.is_connected()).await;
    assert!(heard.missed().contains(&None));
    say_until(&*here, changed(9), || says_changed(&heard, 9)).await;
    drop((here, there));
    survives(&mut servers, |server| server.pause(), |server| server.resume()).await;
}

#[tokio::test]
async fn a_server_behind_tls_has_to_be_one_that_is_trusted() {
    let (server, authority) = RedisServer::start_tls();
    let trusting = |node| Config { authority: Some(authority.clone()), ..config(&server.url(), node) };
    let [here, there] = ["a", "b"].map(|node| RedisBus::start(&trusting(node)).unwrap());
    let wary = node(&server.url(), "c");
    until(HEALED, || here.is_connected() && there.is_connected()).await;
    let heard = Heard::on(&*there);
    say_until(&*here, changed(1), || says_changed(&heard, 1)).await;
    assert!(!wary.is_connected(), "nobody the system trusts has signed it");
}

#[tokio::test]
async fn what_is_forged_or_garbled_is_counted_and_dropped() {
    let server = RedisServer::start();
    let [here, there] = joined(&server.url()).await;
    let heard = Heard::on(&*there);
    there.follow(TOPIC);
    until(HEALED, || heard.missed().contains(&Some(TOPIC))).await;
    let stranger = RedisBus::start(&Config { key: [8; 32], ..config(&server.url(), "z") }).unwrap();
    until(HEALED, || stranger.is_connected()).await;
    stranger.publish(changed(666));
    let control: &[u8] = b"{test.0}c";
    let huge = vec![b'x'; 1024 * 1024];
    for message in [b"".as_slice(), b"hello", &[0; 16], &[0; 64], b"{\"n\":\"a\"}", &huge] {
        assert_eq!(server.say(&[b"PUBLISH", control, message]), ":3\r\n", "all of them listen");
    }
    until(HEALED, || [&here, &there].iter().all(|node| node.stats().forged == 7)).await;
    assert!(!says_changed(&heard, 666));
    say_until(&*here, gone(3), || heard.numbers().contains(&3)).await;
    assert_eq!(there.stats().reconnects, 0, "nobody stumbled");
}

#[tokio::test]
async fn a_large_entry_stays_in_the_store() {
    let server = RedisServer::start();
    let [here, there] = joined(&server.url()).await;
    let (heard, own) = (Heard::on(&*there), Heard::on(&*here));
    there.follow(TOPIC);
    until(HEALED, || heard.missed().contains(&Some(TOPIC))).await;
    heard.forget();
    here.publish(entry(1, 16 * 1024));
    here.publish(entry(2, 16 * 1024 + 1));
    here.publish(Hint::Room { room: "r".into(), event: "x".repeat(1024 * 1024) });
    here.publish(Hint::Removed { instance: InstanceId(1), seqs: vec![Seq(1_234_567); 100_000] });
    until(HEALED, || heard.all().len() == 3).await;
    let heard = heard.all();
    assert!(matches!(&heard[0], Hint::Log { entry, .. } if entry.body.len() == 16 * 1024));
    assert!(matches!(&heard[1], Hint::Reached { mark, .. } if mark.tail == Seq(2)), "{:?}", heard[1]);
    assert!(matches!(&heard[2], Hint::Missed(Some(topic)) if *topic == TOPIC), "too long to be said");
    let full = |hint: &Hint| matches!(hint, Hint::Log { entry, .. } if entry.body.len() > 16 * 1024);
    assert!(own.all().iter().any(full), "here it costs nothing");
}

#[tokio::test]
async fn a_flood_into_a_dead_bus_neither_waits_nor_grows() {
    let mut server = RedisServer::start();
    let [here, there] = joined(&server.url()).await;
    let heard = Heard::on(&*there);
    there.follow(TOPIC);
    // It is not known to be gone yet: what is said now goes in line.
    server.pause();
    flood(&here, 100_000);
    let stats = here.stats();
    assert!(stats.waiting <= 16_384 && stats.waiting_bytes <= 16 * 1024 * 1024, "{stats:?}");
    until(NOTICED, || !here.is_connected()).await;
    flood(&here, 100_000);
    assert_eq!((here.stats().waiting, here.stats().waiting_bytes), (0, 0));
    assert!(here.stats().dropped >= 180_000, "{:?}", here.stats());
    server.resume();
    until(HEALED, || here.is_connected() && there.is_connected()).await;
    until(HEALED, || heard.missed().contains(&Some(TOPIC))).await;
    say_until(&*here, gone(3), || heard.numbers().contains(&3)).await;
    server.kill();
}

#[allow(clippy::disallowed_methods, reason = "how long it takes is what is asked")]
fn flood(bus: &Arc<RedisBus>, hints: i64) {
    let began = Instant::now();
    (0..hints).for_each(|seq| bus.publish(entry(seq, 4 * 1024)));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test]
async fn what_can_never_work_is_refused_and_passwords_are_not_told() {
    let prefix = |prefix: &str| Config { prefix: prefix.into(), ..config("redis://h", "a") };
    let pem = |url: &str| Config { authority: Some(b"no certificate".to_vec()), ..config(url, "a") };
    let urls = ["http://x", "", "redis://h,", "redis://h,http://x"].map(|url| config(url, "a"));
    for bad in urls.into_iter().chain(["", "{p}"].map(prefix)).chain([pem("redis://h"), pem("rediss://h")]) {
        assert!(RedisBus::start(&bad).is_err(), "{bad:?}");
    }
    let secret = config("nonsense://me:hunter2@host:1", "a");
    let told = format!("{} {secret:?}", RedisBus::start(&secret).err().unwrap());
    assert!(!told.contains("hunter2") && !told.contains('7'), "{told}");
}

/// Not a test: how long a hint takes, and how many a second pass.
///
/// `cargo test --release -p angelia-engines --test bus -- --ignored --nocapture`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it measures"]
#[allow(clippy::disallowed_methods, reason = "how long it takes is what is asked")]
async fn measure() {
    for cluster in [false, true] {
        let servers = if cluster { RedisServer::start_cluster(1) } else { vec![RedisServer::start()] };
        let [here, there] = joined(&servers[0].url()).await;
        let (tell, mut told) = tokio::sync::mpsc::channel(1);
        let count = Arc::new(AtomicU64::new(0));
        let counted = count.clone();
        there.subscribe(Arc::new(move |hint| match hint {
            Hint::Log { .. } => {
                counted.fetch_add(1, Ordering::Relaxed);
                let _ = tell.try_send(Some(Instant::now()));
            }
            Hint::Missed(Some(_)) => drop(tell.try_send(None)),
            _ => {}
        }));
        there.follow(TOPIC);
        assert_eq!(told.recv().await, Some(None), "it is followed");
        let mut took = Vec::new();
        for seq in 0..5_000 {
            let began = Instant::now();
            here.publish(entry(seq, 600));
            took.push(told.recv().await.unwrap().unwrap() - began);
        }
        took.sort();
        println!("cluster {cluster}: p50 {:?}, p99 {:?}, max {:?}", took[2_500], took[4_950], took[4_999]);
        count.store(0, Ordering::Relaxed);
        let (hints, began) = (200_000, Instant::now());
        let mut publishing = Duration::ZERO;
        for seq in 0..hints {
            let one = Instant::now();
            here.publish(entry(seq, 600));
            publishing += one.elapsed();
            if seq % 64 == 0 {
                tokio::task::yield_now().await;
            }
            while here.stats().sent + 10_000 < seq as u64 {
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        }
        until(HEALED, || count.load(Ordering::Relaxed) >= hints as u64).await;
        let rate = hints as f64 / began.elapsed().as_secs_f64();
        println!("cluster {cluster}: {rate:.0} hints/s, publish {:?} each", publishing / hints as u32);
    }
}
