//! Updates that Telegram posts.

use super::telegram_stage::{SOON, Stage, answer, heard, unlimited, whence};
use angelia_engines::inspect::Inspect;
use angelia_testkit::socket::Next;
use serde_json::{Value, json};
use std::time::Duration;

const HOOK: &str = "ingest = \"webhook\"";
const SECRET: &str = "x-telegram-bot-api-secret-token";

#[tokio::test]
async fn posted_updates_are_taken_once_and_in_order() {
    let stage = Stage::with("webhook", &unlimited(), HOOK, "").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let mut socket = stage.join().await;
    let url = format!("{}/webhooks/telegram/telegram", stage.connector.url());
    let set = |state: &Value| state["webhook"]["url"] == url.as_str();
    telegram.wait_for_state("the webhook", SOON, set).await;
    telegram.say(ann, ann, "hello").await;
    let event = heard(&mut socket).await;
    assert_eq!(whence(&event), ("hello", "dm", ann.to_string().as_str(), None));
    answer(&mut socket, &event, "hello yourself").await;
    telegram.wait_for_text(ann, "hello yourself", SOON).await;
    assert_eq!(stage.bot().await["health"]["state"], "up");

    // Strangers: nothing of theirs is read.
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let chat = json!({ "id": ann, "type": "private" });
    let forged = json!({ "update_id": 5, "message": { "message_id": 1, "chat": chat, "from": { "id": ann }, "text": "forged" } });
    for secret in [None, Some("wrong")] {
        let mut post = http.post(&url).json(&forged);
        if let Some(secret) = secret {
            post = post.header(SECRET, secret);
        }
        assert_eq!(post.send().await.unwrap().status(), 401, "{secret:?}");
    }
    let nonsense = http.post(&url).header(SECRET, "wrong").body("not json").send().await.unwrap();
    assert_eq!(nonsense.status(), 401);
    assert_eq!(stage.bot().await["quarantined"], 0, "not even set aside");

    telegram.say_many(ann, ann, "m{n}", 100).await;
    for number in 0..100 {
        assert_eq!(whence(&heard(&mut socket).await).0, format!("m{number}"));
    }

    // The store does not commit: Telegram hears 503, and posts it again later.
    let stopped = Inspect::of(&stage.folder.join("data")).stop_commits();
    telegram.say_many(ann, ann, "late{n}", 3).await;
    let refused = |state: &Value| {
        state["webhook"]["last_error_message"].as_str().is_some_and(|why| why.contains("503"))
    };
    telegram.wait_for_state("a refusal", SOON, refused).await;
    assert_eq!(stage.telegram.state().await["pending"], 3, "none of them is taken");
    drop(stopped);
    for number in 0..3 {
        assert_eq!(whence(&heard(&mut socket).await).0, format!("late{number}"));
    }
    let all = |state: &Value| state["pending"] == 0;
    telegram.wait_for_state("all are taken", SOON, all).await;
    assert_eq!(socket.next(Duration::from_millis(200)).await, Next::Silence, "each once");
    stage.close().await;
}

#[tokio::test]
async fn an_oversized_update_is_not_read_and_a_repeated_one_counts_once() {
    let stage = Stage::with("webhook-large", &unlimited(), HOOK, "").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let mut socket = stage.join().await;
    let url = format!("{}/webhooks/telegram/telegram", stage.connector.url());
    let set = |state: &Value| state["webhook"]["url"] == url.as_str();
    telegram.wait_for_state("the webhook", SOON, set).await;
    let secret = telegram.state().await["webhook_secret"].as_str().unwrap().to_owned();

    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let chat = json!({ "id": ann, "type": "private", "first_name": "Ann" });
    let update = |number: i64, text: &str| {
        let message = json!({ "message_id": number, "date": 1, "chat": chat, "from": { "id": ann, "is_bot": false, "first_name": "Ann" }, "text": text });
        json!({ "update_id": number, "message": message })
    };
    let post = async |update: &Value| {
        http.post(&url).header(SECRET, &secret).json(update).send().await.unwrap().status().as_u16()
    };
    assert_eq!(post(&update(900_001, &"x".repeat(1024 * 1024))).await, 413);
    assert_eq!(post(&update(900_002, "once")).await, 200);
    assert_eq!(post(&update(900_002, "once")).await, 200);
    assert_eq!(
        post(&json!({ "update_id": 900_003, "message": 5 })).await,
        200,
        "it would be posted for ever"
    );
    assert_eq!(post(&update(900_004, "two")).await, 200);
    assert_eq!(post(&update(900_002, "once")).await, 200, "late, and again");
    assert_eq!(post(&update(900_005, "three")).await, 200);
    for text in ["once", "two", "three"] {
        assert_eq!(whence(&heard(&mut socket).await).0, text);
    }
    assert_eq!(socket.next(Duration::from_millis(200)).await, Next::Silence);
    assert_eq!(stage.bot().await["quarantined"], 1);
    stage.close().await;
}
