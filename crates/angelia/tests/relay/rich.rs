//! Marks, drafts, words of the agent and threads in a room, through the real binary.

use super::world::World;
use angelia_testkit::process::eventually;
use angelia_testkit::socket::Socket;
use angelia_testkit::webchat::Person;
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(10);

fn ann(world: &World) -> Person {
    Person::enter(&world.connector.url(), "lab", "ann", &world.key)
}

async fn told(person: &Person, kind: &str, text: &str) {
    let there = || person.events().iter().any(|event| event.kind == kind && event.text == text).then_some(());
    eventually(&format!("{kind} {text:?}"), SOON, there).await;
}

impl World {
    /// Waits until the line has these marks.
    async fn until_marked(&self, id: &str, marks: Value) {
        let marked = async {
            loop {
                let lines = self.lines().await;
                let line = lines.iter().find(|line| line["message_id"] == id).unwrap();
                if line.get("marks").unwrap_or(&json!([])) == &marks {
                    assert_eq!(line["edited"], false, "a mark is no edit");
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(SOON, marked).await.unwrap_or_else(|_| panic!("never marked {marks}"));
    }
}

async fn done(socket: &mut Socket, action: Value) -> Value {
    let answer = socket.ask(action.clone()).await;
    assert_eq!(answer["success"], true, "{action}: {answer}");
    answer
}

#[tokio::test]
async fn marks_are_kept_over_a_restart_and_told_as_changes() {
    let mut world = World::new().await;
    let mut socket = world.join().await;
    let person = ann(&world);
    let id = world.post("work on this").await;
    assert_eq!(socket.take_text().await, "work on this");
    let react = |emoji: &str, remove: bool| json!({"op": "react", "chat_id": "web-lab", "message_id": id, "emoji": emoji, "remove": remove, "metadata": {}});
    done(&mut socket, react("👀", false)).await;
    world.until_marked(&id, json!(["👀"])).await;
    done(&mut socket, react("not a sign", false)).await;
    done(&mut socket, react("👀", true)).await;
    done(&mut socket, react("✅", false)).await;
    world.until_marked(&id, json!(["✅"])).await;
    let own = done(&mut socket, json!({"op": "send", "chat_id": "web-lab", "content": "done"})).await;
    told(&person, "message", "done").await;
    let mark = json!({"op": "react", "chat_id": "web-lab", "message_id": own["message_id"], "emoji": "🎉", "metadata": {}});
    done(&mut socket, mark).await;
    told(&person, "edit", "done").await;
    let news = person.events().into_iter().filter(|event| event.kind == "message").count();
    assert_eq!(news, 2, "what is marked is no new message");
    drop((socket, person));
    world.restart_with("").await;
    world.until_marked(&id, json!(["✅"])).await;
}

#[tokio::test]
async fn a_draft_grows_until_its_line_takes_its_place() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let person = ann(&world);
    let draft = |text: &str, last: bool| json!({"op": "draft", "chat_id": "web-lab", "draft_id": 7, "content": text, "final": last, "metadata": {}});
    // What nobody reads is kept for nobody.
    let reads = || person.events().iter().any(|event| event.kind == "agent").then_some(());
    eventually("that she reads", SOON, reads).await;
    done(&mut socket, draft("Hel", false)).await;
    told(&person, "draft", "Hel").await;
    done(&mut socket, draft("Hello, w", false)).await;
    told(&person, "draft", "Hello, w").await;
    let late = ann(&world);
    told(&late, "draft", "Hello, w").await;
    let sealed = socket.ask(draft("Hello, world", true)).await;
    assert_eq!(sealed["success"], false, "{sealed}");
    done(&mut socket, json!({"op": "send", "chat_id": "web-lab", "content": "Hello, world"})).await;
    for person in [&person, &late] {
        told(person, "message", "Hello, world").await;
        told(person, "draft", "").await;
    }
    assert_eq!(world.lines().await.len(), 1, "nothing else is kept");
    let typing = json!({"op": "typing", "chat_id": "web-lab", "content": "Reading files", "metadata": {}});
    done(&mut socket, typing).await;
    let shown = || person.events().iter().any(|event| event.kind == "typing").then_some(());
    eventually("typing", SOON, shown).await;
}

#[tokio::test]
async fn a_thread_is_one_conversation_and_is_renamed_with_its_guard() {
    let world = World::new().await;
    let bob = world.invite("lab", "bob").await;
    let mut socket = world.join().await;
    let asked = world.post("@agent fix the build").await;
    assert_eq!(socket.take_text().await, "fix the build");
    let open = |name: &str, on: Option<&str>| json!({"op": "thread_create", "chat_id": "web-lab", "thread_name": name, "message_id": on, "metadata": {}});
    let opened = done(&mut socket, open("Build", Some(&asked))).await;
    assert_eq!(opened["thread_id"], json!(asked), "{opened}");
    let other = done(&mut socket, open("Tests", None)).await;
    let other = other["thread_id"].as_str().unwrap().to_owned();
    let inside =
        json!({"op": "send", "chat_id": "web-lab", "content": "on it", "metadata": {"thread_id": asked}});
    done(&mut socket, inside).await;
    let nowhere =
        json!({"op": "send", "chat_id": "web-lab", "content": "?", "metadata": {"thread_id": "wa0"}});
    assert_eq!(socket.ask(nowhere).await["success"], false, "there is no such thread");

    // Nobody has to be named in a thread, and all speak in the same conversation.
    for key in [&world.key, &bob] {
        world.post_as(key, "lab", &json!({"text": "how is it?", "thread": asked})).await;
        let frame = socket.frame().await;
        socket.ack(&frame).await;
        let source = &frame["event"]["source"];
        assert_eq!((&source["chat_type"], &source["chat_id"]), (&json!("thread"), &json!("web-lab")));
        assert_eq!((&source["thread_id"], &source["parent_chat_id"]), (&json!(asked), &json!("web-lab")));
    }
    let url = format!("{}/chat/api/rooms/lab/messages", world.connector.url());
    let lost = json!({"text": "anybody?", "thread": "wa0"});
    let lost = world.http.post(url).bearer_auth(&world.key).json(&lost).send().await.unwrap();
    assert_eq!(lost.status().as_u16(), 404);

    let rename = |name: &str, only_if: Option<&str>| {
        json!({"op": "thread_rename", "chat_id": "web-lab", "message_id": other, "thread_name": name,
               "only_if_current_name": only_if, "metadata": {}})
    };
    assert_eq!(socket.ask(rename("Later", Some("Other"))).await["success"], false);
    done(&mut socket, rename("Later", Some("Tests"))).await;
    let lines = world.lines().await;
    let named: Vec<_> = lines.iter().filter_map(|line| line["thread_name"].as_str()).collect();
    assert_eq!(named.len(), 2, "{lines:?}");
    assert!(named.contains(&"Build") && named.contains(&"Later"), "{named:?}");
    let inside = lines.iter().filter(|line| line["thread"] == json!(asked)).count();
    assert_eq!(inside, 3);
}
