//! Three nodes under traffic while everything breaks: processes, connections, Redis, PostgreSQL.
//!
//! `FAULT_SEED` plays a plan again, `FAULT_SECONDS` and `FAULT_MESSAGES` say how long faults go on at
//! least, `FAULT_GATEWAYS` and `FAULT_PUBLISHED` how many gateways there are and how many of them are
//! published ones. `scripts/fault-run` is the long form.

use super::plan::{Fault, Step, plan};
use super::scene::{NODES, Scene, Sizes};
use super::traffic::Traffic;
use angelia_testkit::cluster::Cluster;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;
use tokio::time::{Instant, sleep};

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().map_or(otherwise, |text| text.trim().parse().unwrap())
}

/// Lets one thing after the other go wrong, at least for so long and for so many messages; how many did.
async fn suffer(
    cluster: &mut Cluster,
    scene: &Scene,
    seed: u64,
    (span, messages): (Duration, usize),
) -> usize {
    let began = Instant::now();
    for (number, step) in plan(seed, NODES).enumerate() {
        if began.elapsed() >= span && scene.progress().0 >= messages {
            return number;
        }
        sleep(step.after).await;
        println!("fault run: {step}");
        perform(cluster, &step).await;
    }
    unreachable!("a plan has no end")
}

async fn perform(cluster: &mut Cluster, Step { fault, lasts, .. }: &Step) {
    match *fault {
        Fault::Killed(node) => {
            cluster.kill(node).await;
            sleep(*lasts).await;
            cluster.restart(node).await;
        }
        Fault::Restarted(node) => {
            cluster.stop(node).await;
            sleep(*lasts).await;
            cluster.restart(node).await;
        }
        Fault::Frozen(node) => {
            cluster.freeze(node);
            sleep(*lasts).await;
            cluster.thaw(node);
        }
        Fault::StoreBroken(node) => cluster.node(node).to_store.as_ref().unwrap().break_connections(),
        Fault::StoreCut(node) | Fault::StoreSlow(node) => {
            let way = cluster.node(node).to_store.as_ref().unwrap();
            interrupt(way, matches!(fault, Fault::StoreCut(_)), *lasts).await;
        }
        Fault::BusCut(node) | Fault::BusSlow(node) => {
            let way = cluster.node(node).to_bus.as_ref().unwrap();
            interrupt(way, matches!(fault, Fault::BusCut(_)), *lasts).await;
        }
        Fault::RedisKilled => {
            tokio::task::block_in_place(|| cluster.redis.kill()).unwrap();
            sleep(*lasts).await;
            tokio::task::block_in_place(|| cluster.redis.start_again()).unwrap();
        }
        Fault::PostgresKilled => {
            let postgres = cluster.postgres.as_ref().unwrap();
            tokio::task::block_in_place(|| postgres.kill()).unwrap();
            sleep(*lasts).await;
            tokio::task::block_in_place(|| postgres.start_again()).unwrap();
        }
        Fault::DiskFull => fill(cluster, *lasts).await,
    }
}

/// Cuts what is between a node and a server, or has everything come later.
async fn interrupt(way: &angelia_testkit::proxy::Proxy, cut: bool, lasts: Duration) {
    if cut {
        way.cut();
    } else {
        way.delay(Duration::from_millis(100));
    }
    sleep(lasts).await;
    way.heal();
}

/// Fills PostgreSQL's disk; a server that gave up is started again.
async fn fill(cluster: &Cluster, lasts: Duration) {
    let Some(disk) = &cluster.disk else {
        return println!("fault run: NOT SHOWN: a full disk; mounting is not permitted");
    };
    tokio::task::block_in_place(|| disk.fill());
    sleep(lasts).await;
    disk.free();
    let (postgres, url) = (cluster.postgres.as_ref().unwrap(), cluster.store());
    tokio::task::block_in_place(|| {
        if angelia_services::psql(url, "SELECT 1").is_err() {
            println!("fault run: PostgreSQL gave up on the full disk");
            postgres.start_again().unwrap();
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_lose_and_double_nothing_while_everything_breaks() {
    let fresh = RandomState::new().build_hasher().finish() % 1_000_000_000;
    let seed = number("FAULT_SEED", usize::try_from(fresh).unwrap()) as u64;
    let [seconds, messages] = [number("FAULT_SECONDS", 30), number("FAULT_MESSAGES", 0)];
    let [gateways, published] = [number("FAULT_GATEWAYS", 50), number("FAULT_PUBLISHED", 1)];
    println!("fault run: seed {seed} (again: FAULT_SEED={seed})");
    let began = Instant::now();
    let sizes = Sizes { gateways, published, disk: 1_024 + messages / 250 };
    let (mut cluster, scene) = Scene::begin("fault-run", "", &sizes).await;
    println!("fault run: {gateways} gateways are there after {} s", began.elapsed().as_secs());

    // Where the number counts, a gateway that is away for a while does not end what is said to it.
    let traffic = Traffic::new(if messages == 0 { 25 } else { 400 });
    let began = Instant::now();
    let urls: Vec<String> = (0..NODES).map(|node| cluster[node].url()).collect();
    let faults = async {
        let least = (Duration::from_secs(seconds as u64), messages);
        let faults = suffer(&mut cluster, &scene, seed, least).await;
        traffic.end();
        faults
    };
    let (faults, ()) = tokio::join!(faults, traffic.flow(&scene, &urls));
    println!("fault run: {faults} faults in {} s are over", began.elapsed().as_secs());
    scene.settle().await;
    let verdict = scene.verdict().await;
    println!("fault run: seed {seed}: {faults} faults, {verdict}");
    cluster.assert_never_panicked();
    assert!(verdict.faults.is_empty(), "seed {seed}:\n{}", verdict.faults.join("\n"));
}
