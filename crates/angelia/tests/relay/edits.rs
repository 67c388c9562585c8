//! Messages that are changed: before they are delivered, and after.

use super::world::World;
use angelia_testkit::socket::{Next, Socket};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

const QUIET: Duration = Duration::from_millis(300);

impl World {
    async fn edit_as(&self, key: &str, id: &str, text: &str) -> (u16, Value) {
        let url = format!("{}/chat/api/rooms/lab/messages/{id}", self.connector.url());
        let answer = self.http.put(url).bearer_auth(key).json(&json!({ "text": text })).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Changes something that the agent does not get as it is now; answers why.
    async fn edit_in_vain(&self, key: &str, id: &str, text: &str) -> String {
        let (status, answer) = self.edit_as(key, id, text).await;
        assert_eq!((status, &answer["replaced"]), (200, &json!(false)), "{answer}");
        assert!(answer["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{answer}");
        answer["reason"].as_str().unwrap_or_else(|| panic!("no reason in {answer}")).to_owned()
    }

    async fn edit(&self, id: &str, text: &str) -> bool {
        let (status, answer) = self.edit_as(&self.key, id, text).await;
        assert_eq!(status, 200, "{answer}");
        answer["replaced"].as_bool().unwrap()
    }
}

#[tokio::test]
async fn what_still_waits_is_delivered_as_it_is_now() {
    let world = World::new().await;
    let first = world.post("one").await;
    world.post("two").await;
    let stop = world.post("/stop").await;
    assert!(world.edit(&first, "@agent one, but better").await);
    assert!(world.edit(&first, "@agent one, but best").await);
    assert!(world.edit(&stop, "no, go on").await);
    let mut socket = world.join().await;
    assert_eq!(socket.take_text().await, "no, go on", "it keeps its place ahead");
    let frame = socket.frame().await;
    socket.ack(&frame).await;
    assert_eq!(
        (&frame["event"]["text"], &frame["event"]["message_id"]),
        (&json!("one, but best"), &json!(first))
    );
    assert_eq!(socket.take_text().await, "two");
    assert_eq!(socket.next(QUIET).await, Next::Silence, "each once");
    let lines = world.lines().await;
    let shown: Vec<_> =
        lines.iter().map(|line| (line["text"].as_str().unwrap(), line["edited"] == true)).collect();
    assert_eq!(shown, [("two", false), ("@agent one, but best", true), ("no, go on", true)]);
}

#[tokio::test]
async fn what_was_delivered_is_not_delivered_again() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let id = world.post("first").await;
    assert_eq!(socket.take_text().await, "first");
    world.until_waiting(0).await;
    assert_eq!(world.edit_in_vain(&world.key, &id, "second").await, "not_waiting");
    assert_eq!(socket.next(QUIET).await, Next::Silence);
    assert_eq!(world.waiting().await, 0);
    assert_eq!(world.lines().await[0]["text"], "second");
    let mut again = world.join().await;
    assert_eq!(again.next(QUIET).await, Next::Silence);
}

#[tokio::test]
async fn only_the_author_changes_a_line() {
    let world = World::new().await;
    let id = world.post("mine").await;
    let bob = world.invite("lab", "bob").await;
    let den = world.invite("den", "ann").await;
    let mut socket = world.join().await;
    assert_eq!(socket.take_text().await, "mine");
    let said = socket.ask(json!({"op": "send", "chat_id": "web-lab", "content": "ours"})).await;
    let agents = said["message_id"].as_str().unwrap();
    for (key, id, text, expected) in [
        (&bob, id.as_str(), "evil", 403),
        (&world.key, agents, "evil", 403),
        (&den, &id, "evil", 401),
        (&world.key, "nothing", "evil", 404),
        (&world.key, &id, "  ", 400),
        (&world.key, &id, &"x".repeat(9_000), 400),
        (&world.key, &id, "/link 0123", 400),
    ] {
        let (status, answer) = world.edit_as(key, id, text).await;
        assert_eq!(status, expected, "{answer}");
    }
    let texts: Vec<Value> = world.lines().await.iter().map(|line| line["text"].clone()).collect();
    assert_eq!(texts, ["mine", "ours"]);
}

#[tokio::test]
async fn an_edit_changes_what_waits_and_delivers_nothing_by_itself() {
    let world = World::new().await;
    world.route("default", "any", "lab").await;
    world.invite("lab", "bob").await;
    let meant = world.post("@agent hello").await;
    let chatter = world.post("chatter").await;
    assert_eq!(world.edit_in_vain(&world.key, &chatter, "@agent listen").await, "not_waiting");
    assert!(world.edit(&meant, "never mind").await, "it was meant for the agent when it was written");
    let mut socket = world.join().await;
    assert_eq!(socket.take_text().await, "never mind");
    assert_eq!(socket.next(QUIET).await, Next::Silence);
}

#[tokio::test]
async fn an_edit_does_not_go_round_admission() {
    let world = World::new().await;
    let acme = world.connector.gateway("acme", "gw-acme").await;
    world.route("default", "any", "lab").await;
    let bob = world.invite("lab", "bob").await;
    let posted = world.post_as(&bob, "lab", &json!({ "text": "@agent as it was" })).await;
    let id = posted["message_id"].as_str().unwrap();

    world.connector.command(&["route", "remove", "webchat:lab"]).await;
    world.route("acme", "ann", "lab").await;
    assert_eq!(world.edit_in_vain(&bob, id, "@agent evil").await, "author_not_allowed");
    assert_eq!(world.lines().await[0]["text"], "@agent evil", "the room is shown it all the same");
    world.connector.command(&["route", "remove", "webchat:lab"]).await;
    world.route("acme", "any", "lab").await;
    assert_eq!(world.edit_in_vain(&bob, id, "@agent for another").await, "moved");
    world.connector.command(&["route", "remove", "webchat:*"]).await;
    world.connector.command(&["route", "remove", "webchat:lab"]).await;
    assert_eq!(world.edit_in_vain(&bob, id, "@agent for nobody").await, "no_route");

    let mut acme = Socket::join(&world.connector.url(), &acme).await;
    assert_eq!(acme.next(QUIET).await, Next::Silence);
    let mut socket = world.join().await;
    assert_eq!(socket.take_text().await, "as it was");
}

#[tokio::test]
async fn edits_behind_a_full_window_reach_the_live_socket() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(world.post(&format!("m{n}")).await);
    }
    let mut frames = Vec::new();
    while let Next::Frame(frame) = socket.next(QUIET).await {
        frames.push(frame);
    }
    assert_eq!(frames.len(), 8, "the window is full");
    for n in [0, 7, 8, 13, 19] {
        world.edit(&ids[n], &format!("changed {n}")).await;
    }
    let mut texts: Vec<String> = Vec::new();
    for frame in &frames {
        texts.push(frame["event"]["text"].as_str().unwrap().into());
    }
    socket.ack(&frames[7]).await;
    for _ in 8..20 {
        texts.push(socket.take_text().await);
    }
    let expected: Vec<String> = (0..20)
        .map(|n| if [8, 13, 19].contains(&n) { format!("changed {n}") } else { format!("m{n}") })
        .collect();
    assert_eq!(texts, expected, "in flight as it was, the rest as it is");
    assert_eq!(socket.next(QUIET).await, Next::Silence);
    world.until_waiting(0).await;
}

/// Whatever the order of edits, reads and pushes: each message comes once, and
/// as a version of itself.
#[tokio::test]
async fn edits_race_with_a_drain() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for n in 0..150 {
        ids.push(world.post(&format!("{n} v0")).await);
    }
    let edits = async {
        for version in 1..=3 {
            for (n, id) in ids.iter().enumerate().rev().step_by(3) {
                world.edit(id, &format!("{n} v{version}")).await;
            }
        }
    };
    let drain = async {
        let mut socket = world.join().await;
        let mut seen: HashMap<String, String> = HashMap::new();
        while seen.len() < ids.len() {
            let frame = socket.frame().await;
            socket.ack(&frame).await;
            let text = |name: &str| frame["event"][name].as_str().unwrap().to_owned();
            assert_eq!(seen.insert(text("message_id"), text("text")), None, "{frame} came twice");
        }
        assert_eq!(socket.next(QUIET).await, Next::Silence);
        seen
    };
    let ((), seen) = tokio::join!(edits, drain);
    for (n, id) in ids.iter().enumerate() {
        assert!(seen[id].starts_with(&format!("{n} v")), "{n} became {}", seen[id]);
    }
    world.until_waiting(0).await;
}

#[tokio::test]
async fn an_edited_entry_that_comes_back_has_its_new_text() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let id = world.post("old").await;
    assert_eq!(socket.frame().await["event"]["text"], "old");
    assert!(world.edit(&id, "new").await, "nobody acknowledged it");
    socket.close().await;
    let mut again = Socket::join(&world.connector.url(), &world.gateway).await;
    assert_eq!(again.take_text().await, "new");
    world.until_waiting(0).await;
}
