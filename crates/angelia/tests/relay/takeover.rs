//! One live socket per instance.

use super::world::World;
use angelia_testkit::socket::{Next, Socket};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn the_newest_socket_wins_and_late_acks_count() {
    let world = World::new().await;
    let mut old = world.join().await;
    world.post("one").await;
    world.post("two").await;
    let (one, two) = (old.frame().await, old.frame().await);
    assert_eq!((&one["event"]["text"], &two["event"]["text"]), (&"one".into(), &"two".into()));

    let mut new = Socket::dial(&world.connector.url(), &world.gateway).await.unwrap();
    new.hello("webchat", "webchat").await;
    assert_eq!(new.frame().await["type"], "descriptor");
    // The old socket is told; what it acknowledges until it is gone still counts.
    old.ack(&one).await;
    let Next::Closed(code, _) = old.next(Duration::from_secs(2)).await else {
        panic!("the old socket stays")
    };
    assert_eq!(code, 1001);
    drop(old);
    let again = new.frame().await;
    assert_eq!(again["event"]["text"], "two", "only what was not acknowledged comes again");
    assert_eq!(again["bufferId"], two["bufferId"]);
    new.ack(&again).await;
    world.until_waiting(0).await;
}

#[tokio::test]
async fn an_ack_on_the_new_socket_settles_what_the_old_one_pushed() {
    let world = World::new().await;
    let mut old = world.join().await;
    world.post("one").await;
    let one = old.frame().await;
    let mut new = world.join().await;
    new.ack(&one).await;
    let _ = old.next(Duration::from_secs(2)).await;
    drop(old);
    world.until_waiting(0).await;
    world.post("two").await;
    assert_eq!(new.take_text().await, "two");
}

#[tokio::test]
async fn acknowledgements_of_numbers_that_were_never_pushed_settle_nothing() {
    let world = World::new().await;
    for n in 1..=3 {
        world.post(&format!("m{n}")).await;
    }
    let mut socket = world.join().await;
    let first = socket.frame().await;
    let number: u64 = first["bufferId"].as_str().unwrap()[1..].parse().unwrap();
    // Before anything of it is appended, and by whoever was not given it.
    for made_up in number + 3..number + 10 {
        socket.send(&json!({ "type": "inbound_ack", "bufferId": format!("b{made_up}") })).await;
    }
    socket.ack(&first).await;
    for n in 2..=3 {
        assert_eq!(socket.take_text().await, format!("m{n}"));
    }
    drop(socket);
    for n in 4..=6 {
        world.post(&format!("m{n}")).await;
    }
    // On a socket that was given nothing yet, too.
    let mut next = Socket::dial(&world.connector.url(), &world.gateway).await.unwrap();
    next.hello("webchat", "webchat").await;
    for made_up in number..number + 10 {
        next.send(&json!({ "type": "inbound_ack", "bufferId": format!("b{made_up}") })).await;
    }
    assert_eq!(next.frame().await["type"], "descriptor");
    for n in 4..=6 {
        assert_eq!(next.take_text().await, format!("m{n}"), "it was not given before");
    }
    world.until_waiting(0).await;
}

#[tokio::test]
async fn a_made_up_acknowledgement_is_of_nothing_that_is_in_flight() {
    let world = World::new().await;
    world.post("one").await;
    let mut socket = world.join().await;
    let one = socket.frame().await;
    let number: u64 = one["bufferId"].as_str().unwrap()[1..].parse().unwrap();
    for made_up in [0, number + 1, number + 99, u64::MAX] {
        socket.send(&json!({ "type": "inbound_ack", "bufferId": format!("b{made_up}") })).await;
    }
    // Who is answered was heard until there.
    socket.ask(json!({ "op": "typing", "chat_id": "nowhere" })).await;
    drop(socket);
    let mut next = world.join().await;
    assert_eq!(next.take_text().await, "one", "it comes again");
    world.until_waiting(0).await;
}

#[tokio::test]
async fn two_processes_with_one_id_are_turned_away_for_a_while() {
    let world = World::new().await;
    let mut live = world.join().await;
    for _ in 0..3 {
        let next = world.join().await;
        assert!(matches!(live.next(Duration::from_secs(3)).await, Next::Closed(1001, _)));
        let _ = live.next(Duration::from_secs(1)).await;
        live = next;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let refused = Socket::dial(&world.connector.url(), &world.gateway).await.err().expect("turned away");
    assert_eq!(refused.status, 503);
    let retry: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((30..=60).contains(&retry), "{retry}");
    assert!(world.connector.log_text().contains("two processes"), "the operator is told");
    world.post("to the one that stays").await;
    assert_eq!(live.take_text().await, "to the one that stays");
}

#[tokio::test]
async fn an_entry_on_which_three_sockets_end_becomes_a_dead_letter() {
    let world = World::new().await;
    world.post("poison").await;
    world.post("fine").await;
    for _ in 0..3 {
        let mut socket = world.join().await;
        assert_eq!(socket.frame().await["event"]["text"], "poison");
        drop(socket);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let mut socket = world.join().await;
    assert_eq!(socket.take_text().await, "fine", "the poison is out of the way");
    let dead = world.connector.command(&["inbox", "list", "--dead"]).await;
    assert_eq!(dead["entries"].as_array().unwrap().len(), 1, "{dead}");
    let redriven = world.connector.command(&["inbox", "redrive"]).await;
    assert_eq!(redriven["redriven"], 1);
    assert_eq!(socket.take_text().await, "poison");
    world.until_waiting(0).await;
}
