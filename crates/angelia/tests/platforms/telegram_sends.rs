//! What agents send: styles, length, refusals, pauses, answers that got lost.

use super::telegram_stage::{SOON, Stage, answer, heard, sent, too_many, whence};
use angelia_core::own_words::{Language, OwnWords};
use angelia_testkit::socket::Socket;
use serde_json::{Value, json};

/// A private chat in which the agent was spoken to.
async fn chat(stage: &Stage, socket: &mut Socket, name: &str) -> (i64, Value) {
    let person = stage.telegram.person(name).await;
    stage.telegram.say(person, person, "hello").await;
    (person, heard(socket).await)
}

fn send(chat: i64, text: &str) -> Value {
    json!({ "op": "send", "chat_id": chat.to_string(), "content": text })
}

/// The calls of a method that name a chat.
async fn calls(stage: &Stage, method: &str, chat: i64) -> Vec<Value> {
    let log = stage.telegram.log().await;
    log.into_iter().filter(|call| call["method"] == method && call["chat_id"] == chat).collect()
}

#[tokio::test]
async fn markdown_arrives_as_text_with_entities() {
    let stage = Stage::new("markdown").await;
    stage.route_all().await;
    let mut socket = stage.join().await;
    let (ann, event) = chat(&stage, &mut socket, "Ann").await;
    let text = "😀 **bold**, `code` and [a link](https://example.com/x) 1.5 - a_b*c!";
    let id = answer(&mut socket, &event, text).await;
    let message = stage.telegram.wait_for_text(ann, "bold", SOON).await;
    assert_eq!(message["message_id"], id);
    assert_eq!(message["text"], "😀 bold, code and a link 1.5 - a_b*c!", "nothing is escaped");
    let marks: Vec<(&str, u64, u64)> = message["sent_entities"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (one["type"].as_str().unwrap(), one["offset"].as_u64().unwrap(), one["length"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(marks, [("bold", 3, 4), ("code", 9, 4), ("text_link", 18, 6)]);

    // Telegram takes none of it: what was typed goes out, as it was typed.
    let refused =
        json!({ "ok": false, "error_code": 400, "description": "Bad Request: ENTITY_BOUNDS_INVALID" });
    stage.telegram.answer_next("sendMessage", 1, 400, &refused).await;
    sent(&socket.ask(send(ann, "*plain* and **raw**")).await);
    let message = stage.telegram.wait_for_text(ann, "raw", SOON).await;
    assert_eq!((&message["text"], &message["sent_entities"]), (&json!("*plain* and **raw**"), &json!([])));
    assert_eq!(stage.bot().await["health"]["counts"]["sent_plain"], 1);

    let asked = stage.telegram.say(ann, ann, "a question").await;
    let event = heard(&mut socket).await;
    stage.telegram.delete(ann, asked.message).await;
    answer(&mut socket, &event, "answered all the same").await;
    let message = stage.telegram.wait_for_text(ann, "all the same", SOON).await;
    assert_eq!(message["reply_to"], Value::Null);
    stage.close().await;
}

#[tokio::test]
async fn a_pause_is_kept_and_what_failed_is_tried_again() {
    let stage = Stage::new("pauses").await;
    stage.route_all().await;
    let mut socket = stage.join().await;
    let (ann, _) = chat(&stage, &mut socket, "Ann").await;
    let (bob, _) = chat(&stage, &mut socket, "Bob").await;

    stage.telegram.answer_next("sendMessage", 1, 429, &too_many(3)).await;
    for (id, chat, text) in [("1", ann, "first"), ("2", ann, "second")] {
        socket.send(&json!({ "type": "outbound", "requestId": id, "action": send(chat, text) })).await;
    }
    let refused = |state: &Value| state["too_many"] == 1;
    stage.telegram.wait_for_state("the refusal", SOON, refused).await;
    socket.send(&json!({ "type": "outbound", "requestId": "3", "action": send(bob, "meanwhile") })).await;
    let mut order = Vec::new();
    for _ in 0..3 {
        let result = socket.frame().await;
        sent(&result["result"]);
        order.push(result["requestId"].as_str().unwrap().to_owned());
    }
    assert_eq!(order, ["3", "1", "2"], "another chat does not wait");
    let made = calls(&stage, "sendMessage", ann).await;
    assert_eq!(made.len(), 3, "{made:?}");
    let pause = made[1]["at"].as_f64().unwrap() - made[0]["at"].as_f64().unwrap();
    assert!(pause >= 3.0, "the next call to the chat came after {pause} s");
    assert_eq!(stage.telegram.bot_texts(ann).await, ["first", "second"]);

    // An edit says the same however often it is made, so it is repeated.
    let id = sent(&socket.ask(send(bob, "draft")).await);
    stage.telegram.answer_next("editMessageText", 1, 502, &json!("<html>Bad Gateway</html>")).await;
    let edit =
        json!({ "op": "edit", "chat_id": bob.to_string(), "message_id": id.to_string(), "content": "final" });
    sent(&socket.ask(edit).await);
    stage.telegram.wait_for_text(bob, "final", SOON).await;
    assert_eq!(calls(&stage, "editMessageText", bob).await.len(), 2);
    stage.close().await;
}

#[tokio::test]
async fn a_lost_answer_is_not_repeated_and_refusals_say_why() {
    let stage = Stage::new("lost-answer").await;
    stage.route_all().await;
    let mut socket = stage.join().await;
    let (ann, _) = chat(&stage, &mut socket, "Ann").await;

    stage.telegram.perform_and_drop_next("sendMessage", 1).await;
    let result = socket.ask(send(ann, "perhaps")).await;
    assert_eq!(result["success"], false, "{result}");
    assert!(result["error"].as_str().is_some_and(|why| why.contains("timed out")), "{result}");
    let told = OwnWords::InDoubt.text(Language::English);
    stage.telegram.wait_for_text(ann, told, SOON).await;
    // A server that fails may have done its work before.
    stage.telegram.answer_next("sendMessage", 1, 502, &json!("<html>Bad Gateway</html>")).await;
    assert_eq!(socket.ask(send(ann, "perhaps not")).await["success"], false);
    sent(&socket.ask(send(ann, "certainly")).await);
    assert_eq!(stage.telegram.bot_texts(ann).await, ["perhaps", told, told, "certainly"]);
    assert_eq!(calls(&stage, "sendMessage", ann).await.len(), 5, "each was tried once");
    let ambiguous = stage.connector.command(&["status"]).await["ambiguous"].clone();
    assert_eq!(ambiguous.as_array().map(Vec::len), Some(2), "{ambiguous}");
    assert!(ambiguous.to_string().contains(&ann.to_string()), "{ambiguous}");
    assert!(!ambiguous.to_string().contains("hunter2"), "{ambiguous}");

    stage.telegram.block(ann).await;
    let result = socket.ask(send(ann, "are you there?")).await;
    assert!(result["error"].as_str().is_some_and(|why| why.contains("blocked")), "{result}");
    let group = stage.telegram.group("Team", &[ann]).await;
    stage.telegram.say(group, ann, &stage.to_bot("in company")).await;
    let event = heard(&mut socket).await;
    assert_eq!(whence(&event).0, "in company");
    // Thrown out, and the connector does not know yet.
    let gone = json!({ "ok": false, "error_code": 403, "description": "Forbidden: bot was kicked from the group chat" });
    stage.telegram.answer_next("sendMessage", 1, 403, &gone).await;
    let result = socket.ask(send(group, "am I still here?")).await;
    assert!(result["error"].as_str().is_some_and(|why| why.contains("removed from the chat")), "{result}");
    stage.telegram.kick(group).await;
    stage.until_heard().await;
    let result = socket.ask(send(group, "and now?")).await;
    assert_eq!(result["success"], false, "{result}");
    let attempts = calls(&stage, "sendMessage", group).await.len();
    assert_eq!(attempts, 1, "a chat that was left is not written to");
    // Taken back, it is there again.
    stage.telegram.welcome(group).await;
    stage.until_heard().await;
    sent(&socket.ask(send(group, "hello again")).await);
    stage.close().await;
}
