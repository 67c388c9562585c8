//! What an agent may do, and the one answer it gets.

use super::world::World;
use angelia_testkit::socket::Socket;
use serde_json::json;
use std::collections::HashMap;

#[tokio::test]
async fn send_edit_typing_and_chat_info() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let sent = socket
        .ask(json!({"op": "send", "chat_id": "web-lab", "content": "hi", "reply_to": null, "metadata": {"notify": true}}))
        .await;
    assert_eq!(sent["success"], true, "{sent}");
    let id = sent["message_id"].as_str().unwrap().to_owned();
    let edited =
        socket.ask(json!({"op": "edit", "chat_id": "web-lab", "message_id": id, "content": "hi!"})).await;
    assert_eq!(edited["success"], true, "{edited}");
    assert_eq!(socket.ask(json!({"op": "typing", "chat_id": "web-lab"})).await["success"], true);
    let info = socket.ask(json!({"op": "get_chat_info", "chat_id": "web-lab"})).await;
    assert_eq!(info["chat_info"], json!({"name": "lab", "type": "group"}));
    let lines = world.lines().await;
    assert_eq!(lines.len(), 1);
    assert_eq!((&lines[0]["text"], &lines[0]["edited"]), (&json!("hi!"), &json!(true)));
    let person_line = world.post("mine").await;
    assert_eq!(socket.take_text().await, "mine");
    let foreign = socket
        .ask(json!({"op": "edit", "chat_id": "web-lab", "message_id": person_line, "content": "x"}))
        .await;
    assert_eq!(foreign["success"], false, "an agent edits only its own lines");
    let story = world.connector.command(&["explain", &id]).await;
    assert_eq!(story["actions"][0]["state"], "sent", "{story}");
}

#[tokio::test]
async fn the_id_of_a_line_does_not_tell_how_much_others_do() {
    let mut world = World::new().await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let mut socket = world.join().await;
        for _ in 0..2 {
            let sent = socket.ask(json!({"op": "send", "chat_id": "web-lab", "content": "hi"})).await;
            ids.push(sent["message_id"].as_str().unwrap().to_owned());
        }
        world.restart_with("").await;
    }
    let shown: Vec<_> = world.lines().await.iter().map(|line| line["message_id"].clone()).collect();
    assert_eq!(shown, ids, "each is a line, also after a restart");
    let digits = |id: &String| id.trim_start_matches("wa").len();
    assert!(ids.iter().all(|id| digits(id) == 27), "none counts: {ids:?}");
}

#[tokio::test]
async fn what_the_web_chat_refuses_slows_nobody_down() {
    let world = World::new().await;
    let mut socket = world.join().await;
    for _ in 0..120 {
        let edit = json!({"op": "edit", "chat_id": "web-lab", "message_id": "wa999", "content": "x"});
        assert_eq!(socket.ask(edit).await["success"], false);
    }
    let sent = socket.ask(json!({"op": "send", "chat_id": "web-lab", "content": "hi"})).await;
    assert_eq!(sent["success"], true, "{sent}");
}

#[tokio::test]
async fn long_texts_are_split_and_the_first_id_is_returned() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let text = "word ".repeat(4_000);
    let sent = socket.ask(json!({"op": "send", "chat_id": "web-lab", "content": text})).await;
    let lines = world.lines().await;
    assert_eq!(lines.len(), 3);
    assert_eq!(sent["message_id"], lines[0]["message_id"]);
    let joined: String = lines.iter().map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(joined, text);
}

#[tokio::test]
async fn what_is_not_allowed_is_declined_alike() {
    let world = World::new().await;
    let stranger = world.connector.gateway("other", "gw2").await;
    let mut stranger = Socket::join(&world.connector.url(), &stranger).await;
    let mut declined = Vec::new();
    for chat in ["web-lab", "web-nowhere", "12345", "discord", ""] {
        for op in ["send", "edit", "typing", "get_chat_info"] {
            let action = json!({"op": op, "chat_id": chat, "content": "x", "message_id": "wa1",
                                "metadata": {"scope_id": "lab", "thread_id": "web-lab"}});
            declined.push(stranger.ask(action).await);
        }
    }
    declined.dedup();
    assert_eq!(declined.len(), 1, "{declined:?}");
    assert_eq!(declined[0]["code"], "egress_declined");
    for action in [
        json!({"op": "follow_up", "session_key": "k", "kind": "discord.interaction_token", "content": "x"}),
        json!({"op": "fly"}),
        json!({}),
        json!(5),
        json!({"op": "send"}),
    ] {
        assert_eq!(stranger.ask(action).await["success"], false);
    }
    assert_eq!(world.lines().await.len(), 0);
}

#[tokio::test]
async fn actions_of_one_chat_stay_in_order_and_each_is_answered_once() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let mut batch = String::new();
    for n in 0..200 {
        let action = json!({"op": "send", "chat_id": "web-lab", "content": format!("n{n}")});
        batch +=
            &format!("{}\n", json!({"type": "outbound", "requestId": format!("r{n}"), "action": action}));
    }
    socket.send_text(batch).await;
    let mut answers: HashMap<String, u32> = HashMap::new();
    for _ in 0..200 {
        let answer = socket.frame().await;
        assert_eq!(answer["result"]["success"], true, "{answer}");
        *answers.entry(answer["requestId"].as_str().unwrap().into()).or_default() += 1;
    }
    assert!(answers.len() == 200 && answers.values().all(|count| *count == 1));
    let texts: Vec<String> =
        world.lines().await.iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect();
    let expected: Vec<String> = (0..200).map(|n| format!("n{n}")).collect();
    assert_eq!(texts, expected);
    assert!(socket.message_sizes.iter().all(|size| *size <= 64 * 1024), "{:?}", socket.message_sizes);
}

#[tokio::test]
async fn five_thousand_requests_in_one_message_are_each_answered_once() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let batch: String = (0..5_000)
        .map(|n| {
            let action = json!({"op": "get_chat_info", "chat_id": "web-lab"});
            json!({"type": "outbound", "requestId": format!("r{n}"), "action": action}).to_string() + "\n"
        })
        .collect();
    socket.send_text(batch).await;
    let mut answered = std::collections::HashSet::new();
    for _ in 0..5_000 {
        let answer = socket.frame().await;
        assert!(answered.insert(answer["requestId"].as_str().unwrap().to_owned()), "{answer} came twice");
    }
    let long = json!({"op": "send", "chat_id": "web-lab", "content": "x".repeat(300_000)});
    assert_eq!(socket.ask(long).await["success"], false);
    let edits = socket.ask(json!({"op": "send", "chat_id": "web-lab", "content": "short"})).await;
    for (length, lines) in [(20_000, 3), (10_000, 2), (10, 1)] {
        let content = "word ".repeat(length / 5);
        let edit = json!({"op": "edit", "chat_id": "web-lab", "message_id": edits["message_id"], "content": content});
        assert_eq!(socket.ask(edit).await["success"], true);
        assert_eq!(world.lines().await.len(), lines, "an edit that outgrows a line goes on in the next");
    }
}

/// Fifty of these are more than one agent may have waiting.
#[tokio::test]
async fn what_an_action_held_is_free_once_it_is_answered() {
    let world = World::new().await;
    let mut socket = world.join().await;
    let large = "x".repeat(250_000);
    for round in 0..60 {
        let answer = socket.ask(json!({ "op": "typing", "chat_id": "web-lab", "content": large })).await;
        assert!(!answer.to_string().contains("too much"), "round {round}: {answer}");
    }
}
