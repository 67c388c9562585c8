//! One live socket per instance, whichever node each is on.

use super::stage::{AT_ONCE, BUSY, SECOND, SOON, Stage, TAKEN_OVER, end_of, timed};
use angelia_testkit::socket::{Next, Socket};
use std::time::Duration;

#[tokio::test]
async fn a_socket_on_another_node_takes_over_and_late_acknowledgements_count() {
    let stage = Stage::new("takeover", 2).await;
    let mut old = stage.join(0).await;
    for text in ["one", "two", "three"] {
        stage.post(1, text).await;
    }
    let mut frames = Vec::new();
    for text in ["one", "two", "three"] {
        frames.push(old.frame().await);
        assert_eq!(frames.last().unwrap()["event"]["text"], text);
    }
    old.ack(&frames[0]).await;
    stage.until_waiting(0, 2).await;

    let mut new = Socket::dial(&stage.cluster[1].url(), &stage.gateway).await.unwrap();
    new.hello("webchat", "webchat").await;
    // It is on its way when the new one comes, and counts.
    old.ack(&frames[1]).await;
    let code = timed("the older socket ends", AT_ONCE, end_of(&mut old)).await;
    assert_eq!(code, 1001);
    drop(old);
    assert_eq!(new.frame().await["type"], "descriptor");
    let again = new.frame().await;
    assert_eq!(again["event"]["text"], "three", "only what was not acknowledged comes again");
    assert_eq!(again["bufferId"], frames[2]["bufferId"]);
    new.ack(&again).await;
    stage.until_waiting(1, 0).await;
    stage.post(0, "four").await;
    assert_eq!(new.take_text().await, "four");
    assert_eq!(new.next(Duration::from_millis(300)).await, Next::Silence, "each once");
    stage.cluster.assert_never_panicked();
}

#[tokio::test]
async fn the_newest_wins_without_redis_too() {
    let stage = Stage::new("takeover-deaf", 2).await;
    let mut old = stage.join(0).await;
    stage.post(0, "one").await;
    let one = old.frame().await;
    stage.without_redis().await;
    let mut new = Socket::dial(&stage.cluster[1].url(), &stage.gateway).await.unwrap();
    new.hello("webchat", "webchat").await;
    old.ack(&one).await;
    let code = timed("the older socket ends, without Redis", SECOND + BUSY, end_of(&mut old)).await;
    assert_eq!(code, 1001);
    assert_eq!(new.frame().await["type"], "descriptor");
    stage.post(0, "two").await;
    assert_eq!(new.take_text().await, "two", "and what was acknowledged does not come again");
    stage.until_waiting(1, 0).await;
}

#[tokio::test]
async fn the_socket_of_a_killed_node_comes_back_on_another() {
    let mut stage = Stage::new("takeover-killed", 2).await;
    let mut old = stage.join(0).await;
    stage.post(1, "one").await;
    stage.post(1, "two").await;
    let one = old.frame().await;
    old.ack(&one).await;
    stage.until_waiting(1, 1).await;
    stage.cluster.kill(0).await;
    let back = async {
        let mut new = stage.join(1).await;
        assert_eq!(new.take_text().await, "two");
        new
    };
    let mut new = timed("a socket of a killed node is served elsewhere", TAKEN_OVER + BUSY, back).await;
    stage.post(1, "three").await;
    assert_eq!(new.take_text().await, "three");
    stage.until_waiting(1, 0).await;
}

#[tokio::test]
async fn two_processes_with_one_id_on_two_nodes_are_seen() {
    let stage = Stage::new("flapping", 2).await;
    let mut live = stage.join(0).await;
    let mut refused = 101;
    // Each node sees every second takeover, and three are one too many.
    for round in 1..=7 {
        let url = stage.cluster[round % 2].url();
        match Socket::dial(&url, &stage.gateway).await {
            Ok(mut next) => {
                next.hello("webchat", "webchat").await;
                // One that was let in before the others were known of is sent away again.
                let stays = tokio::select! {
                    code = end_of(&mut live) => code == 1001,
                    _ = end_of(&mut next) => false,
                };
                if !stays {
                    refused = 503;
                    break;
                }
                // Its answer to the close shows that its process is well.
                let _ = live.next(SECOND).await;
                live = next;
            }
            Err(turned_away) => {
                refused = turned_away.status;
                break;
            }
        }
    }
    assert_eq!(refused, 503, "both are let in for ever");
    stage.post(0, "to the one that stays").await;
    let Next::Frame(frame) = live.next(SOON).await else { panic!("nothing came") };
    assert_eq!(frame["event"]["text"], "to the one that stays");
}
