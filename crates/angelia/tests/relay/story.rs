//! What happened to a message, as the people of its room are told.

use super::world::World;
use serde_json::{Value, json};

impl World {
    async fn story(&self, id: &str) -> (u16, Value) {
        self.chat(&self.key, &format!("rooms/lab/messages/{id}/story"), None).await
    }
}

#[tokio::test]
async fn the_story_is_the_journal_without_the_names_of_others() {
    let world = World::new().await;
    let question = world.post("hello").await;
    let (_, waiting) = world.story(&question).await;
    assert!(waiting["stored_at"].is_i64() && waiting["pushed_at"].is_null(), "{waiting}");

    let mut socket = world.join().await;
    socket.take_text().await;
    let say = json!({ "op": "send", "chat_id": "web-lab", "content": "hi", "reply_to": question });
    let answer = socket.ask(say).await["message_id"].as_str().unwrap().to_owned();
    for text in ["hi th", "hi there"] {
        socket
            .ask(json!({ "op": "edit", "chat_id": "web-lab", "message_id": answer, "content": text }))
            .await;
    }
    world.until_waiting(0).await;

    let (status, told) = world.story(&question).await;
    assert_eq!(status, 200);
    let explained = world.connector.command(&["explain", &question]).await["messages"][0].clone();
    let reply = &explained["replies"][0];
    assert!(reply["edits"] == 2 && reply["last_edit_at"].is_i64(), "{explained}");
    let own = world.connector.command(&["explain", &answer]).await["actions"].clone();
    let edits: Vec<&Value> = own.as_array().unwrap().iter().map(|action| &action["edits"]).collect();
    assert_eq!(edits, [2, 0, 0], "{own}");
    for (own, its) in [
        ("received_at", "received_at"),
        ("stored_at", "appended_at"),
        ("pushed_at", "pushed_at"),
        ("settled_at", "settled_at"),
        ("outcome", "outcome"),
        ("pushes", "pushes"),
    ] {
        assert_eq!(told[own], explained[its], "{own}");
    }
    let written = &told["answers"][0];
    assert_eq!((&written["message_id"], &written["edits"]), (&json!(answer), &json!(2)), "{told}");
    assert!(written["last_edit_at"].as_i64() >= written["written_at"].as_i64(), "{told}");
    assert_eq!(written["accepted_at"], explained["replies"][0]["accepted_at"]);
    assert_eq!(world.story(&answer).await.1, told, "an answer is told of with its question");
    for name in ["default", "\"gw\"", "instance"] {
        assert!(!told.to_string().contains(name), "{name} in {told}");
    }
}

#[tokio::test]
async fn an_answer_to_nobody_tells_of_itself_and_a_drop_of_its_reason() {
    let mut world = World::new().await;
    let mut socket = world.join().await;
    let said = socket.ask(json!({ "op": "send", "chat_id": "web-lab", "content": "good morning" })).await;
    let (status, told) = world.story(said["message_id"].as_str().unwrap()).await;
    assert_eq!((status, &told["received_at"]), (200, &Value::Null), "{told}");
    assert_eq!(told["answers"].as_array().unwrap().len(), 1, "{told}");

    world.connector.command(&["route", "add", "--tenant", "default", "--allow", "zoe", "webchat:lab"]).await;
    let id = world.post("me too").await;
    let (_, told) = world.story(&id).await;
    assert_eq!(told["dropped"]["reason"], "author_not_allowed", "{told}");
    assert!(told["dropped"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{told}");
    world.restart_with("").await;
    let line = world.lines().await.into_iter().find(|line| line["message_id"] == id.as_str()).unwrap();
    assert_eq!(line["undelivered"], "author_not_allowed", "the room remembers: {line}");
    assert!(line["hint"].is_string(), "{line}");
    assert_eq!(world.story(&id).await.1["dropped"]["reason"], "author_not_allowed");
}

#[tokio::test]
async fn a_story_is_for_the_people_of_its_room() {
    let world = World::new().await;
    let id = world.post("a secret").await;
    let made = world.connector.command(&["webchat", "invite", "--room", "den", "--user", "eve"]).await;
    let eve = made["key"].as_str().unwrap();
    assert_eq!(world.chat(eve, &format!("rooms/lab/messages/{id}/story"), None).await.0, 401);
    assert_eq!(world.chat(eve, &format!("rooms/den/messages/{id}/story"), None).await.0, 404);
    assert_eq!(world.chat(&world.key, "rooms/lab/messages/b1/story", None).await.0, 404, "no entry numbers");
}
