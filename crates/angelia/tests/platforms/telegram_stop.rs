//! A server that is told to stop: agents finish, nothing is lost, and the wait has an end.

use super::telegram_stage::{SOON, Stage, heard, sent, too_many, unlimited};
use angelia_testkit::process::until;
use angelia_testkit::socket::{Next, Refused, Socket};
use angelia_testkit::webchat::http_client;
use serde_json::{Value, json};

/// A server with an agent, and the private chat in which somebody has spoken to it.
async fn spoken_to(story: &str, drain: &str) -> (Stage, Socket, i64) {
    // It stands among the settings of the server.
    let lines = format!("drain = {drain:?}");
    let stage = Stage::with(&format!("stop-{story}"), &unlimited(), "", &lines).await;
    stage.route_all().await;
    let mut socket = stage.join().await;
    let ann = stage.telegram.person("Ann").await;
    stage.telegram.say(ann, ann, "hello").await;
    heard(&mut socket).await;
    (stage, socket, ann)
}

/// The same, told to stop while the agent's answer waits: Telegram wants none for so many seconds.
async fn stopped_in_mid_answer(story: &str, drain: &str, seconds: u64) -> (Stage, Socket, i64) {
    let (mut stage, mut socket, ann) = spoken_to(story, drain).await;
    stage.telegram.answer_next("sendMessage", 1, 429, &too_many(seconds)).await;
    let action = json!({ "op": "send", "chat_id": ann.to_string(), "content": "the answer" });
    socket.send(&json!({ "type": "outbound", "requestId": "1", "action": action })).await;
    stage.telegram.wait_for_state("the refusal", SOON, |state: &Value| state["too_many"] == 1).await;
    stage.connector.process().ask_to_stop();
    let (http, url) = (http_client(), format!("{}/readyz", stage.connector.url()));
    let says = async || http.get(&url).send().await.unwrap().text().await.unwrap();
    until("a server that says it stops", SOON, async || says().await == "stopping\n").await;
    (stage, socket, ann)
}

async fn ended_well(stage: &mut Stage) {
    let status = stage.connector.process().wait(SOON).await.expect("it ends");
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn a_stop_waits_for_the_answer_and_keeps_what_people_write_meanwhile() {
    let (mut stage, mut socket, ann) = stopped_in_mid_answer("waits", "1h", 4).await;
    let late = Socket::dial(&stage.connector.url(), &stage.gateway).await;
    assert!(matches!(late, Err(Refused { status: 503, .. })), "nobody is let in any more");
    let said = stage.telegram.say(ann, ann, "and another thing").await;
    let read = async || stage.telegram.confirmed().await >= said.update;
    until("Telegram knows that it was taken", SOON, read).await;
    let result = socket.frame().await;
    assert_eq!(result["type"], "outbound_result", "and nothing new is pushed: {result}");
    sent(&result["result"]);
    assert_eq!(socket.next(SOON).await, Next::Closed(1001, "restarting".into()));
    ended_well(&mut stage).await;
    assert_eq!(stage.telegram.bot_texts(ann).await, ["the answer"]);
    stage.connector.restart().await;
    let mut socket = stage.join().await;
    assert_eq!(heard(&mut socket).await["text"], "and another thing");
}

#[tokio::test]
async fn a_stop_with_nobody_at_work_waits_for_nobody() {
    let (mut stage, mut socket, _) = spoken_to("idle", "1h").await;
    stage.connector.process().ask_to_stop();
    assert_eq!(socket.next(SOON).await, Next::Closed(1001, "restarting".into()));
    ended_well(&mut stage).await;
}

#[tokio::test]
async fn a_stop_waits_no_longer_than_it_was_told() {
    let (mut stage, mut socket, _) = stopped_in_mid_answer("deadline", "2s", 60).await;
    let result = socket.frame().await;
    assert!(result["result"]["error"].as_str().unwrap().contains("timed out"), "{result}");
    assert_eq!(socket.next(SOON).await, Next::Closed(1001, "restarting".into()));
    ended_well(&mut stage).await;
}

#[tokio::test]
async fn a_second_signal_ends_the_wait() {
    let (mut stage, mut socket, _) = stopped_in_mid_answer("twice", "1h", 60).await;
    stage.connector.process().interrupt();
    assert!(socket.frame().await["result"]["error"].as_str().unwrap().contains("timed out"));
    ended_well(&mut stage).await;
    assert!(stage.connector.process().log_text().contains("told so a second time"));
}
