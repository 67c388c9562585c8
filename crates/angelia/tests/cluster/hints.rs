//! What is appended on one node reaches a socket on another: at once with Redis, within a
//! second without, and again at once when it is back.

use super::stage::{AT_ONCE, BUSY, SECOND, SOON, Stage, setup, timed};
use angelia_testkit::socket::Socket;
use tokio::time::Instant;

/// How long it takes from a post at one node to the frame on another.
async fn hop(stage: &Stage, socket: &mut Socket, text: &str) -> std::time::Duration {
    let began = Instant::now();
    stage.post(0, text).await;
    assert_eq!(socket.take_text().await, text);
    began.elapsed()
}

/// Waits until hops are short again: three in a row are no luck with the poll.
async fn until_short(stage: &Stage, socket: &mut Socket) {
    let (began, mut short, mut number) = (Instant::now(), 0, 0);
    while short < 3 {
        number += 1;
        let took = hop(stage, socket, &format!("back {number}")).await;
        short = if took < AT_ONCE / 2 { short + 1 } else { 0 };
        assert!(began.elapsed() < SOON, "hops stay slow after Redis is back");
    }
    println!("cluster: hops are short again {} ms after Redis is back", began.elapsed().as_millis());
}

#[tokio::test]
async fn an_append_reaches_the_other_node_at_once_with_redis_and_within_a_second_without() {
    let stage = Stage::new("hints", 2).await;
    let mut socket = stage.join(1).await;
    for number in 0..5 {
        let text = format!("with {number}");
        timed("a hop with Redis", AT_ONCE, hop(&stage, &mut socket, &text)).await;
    }
    stage.without_redis().await;
    for number in 0..3 {
        let text = format!("without {number}");
        timed("a hop without Redis", SECOND + BUSY, hop(&stage, &mut socket, &text)).await;
    }
    stage.cluster.redis.start_again().unwrap();
    until_short(&stage, &mut socket).await;
    stage.until_waiting(1, 0).await;
    stage.cluster.assert_never_panicked();
}

#[tokio::test]
async fn nodes_without_a_redis_in_the_configuration_do_the_same_slower() {
    let stage = Stage::on(setup("deaf").deaf().start(2).await).await;
    let mut socket = stage.join(1).await;
    for number in 0..3 {
        let text = format!("line {number}");
        timed("a hop without a bus", SECOND + BUSY, hop(&stage, &mut socket, &text)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_cut_off_from_redis_alone_hears_within_a_second() {
    let mut stage = Stage::on(setup("cut-bus").proxied().start(2).await).await;
    let mut socket = stage.join(1).await;
    timed("a hop", AT_ONCE, hop(&stage, &mut socket, "before")).await;
    stage.cluster.node(1).to_bus.as_ref().unwrap().cut();
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    for number in 0..3 {
        let text = format!("cut {number}");
        timed("a hop to a node without Redis", SECOND + BUSY, hop(&stage, &mut socket, &text)).await;
    }
    stage.cluster.node(1).to_bus.as_ref().unwrap().heal();
    until_short(&stage, &mut socket).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_cut_off_from_redis_appends_is_pushed_by_the_others_within_a_second() {
    let mut stage = Stage::on(setup("cut-bus-there").proxied().start(2).await).await;
    let mut socket = stage.join(1).await;
    timed("a hop", AT_ONCE, hop(&stage, &mut socket, "before")).await;
    stage.cluster.node(0).to_bus.as_ref().unwrap().cut();
    // Fixed pause: the others learn of it with a sign of life.
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    for number in 0..3 {
        let text = format!("cut {number}");
        timed("a hop from a node without Redis", SECOND + BUSY, hop(&stage, &mut socket, &text)).await;
    }
    stage.cluster.node(0).to_bus.as_ref().unwrap().heal();
    until_short(&stage, &mut socket).await;
}
