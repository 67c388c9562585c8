//! Telegram at its worst, and an operator who wants to know.

use super::telegram_stage::{SOON, Stage, heard, too_many, whence};
use angelia_engines::inspect::Inspect;
use angelia_testkit::socket::Next;
use serde_json::{Value, json};
use std::time::Duration;

/// Longer than a question for updates is held, and the patience after it.
const HELD: Duration = Duration::from_secs(90);

fn says(health: &Value, part: &str) {
    assert!(health["why"].as_str().is_some_and(|why| why.contains(part)), "{part:?} in {health}");
}

#[tokio::test]
async fn another_poller_is_named_and_outlasted() {
    let stage = Stage::new("foreigner").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let mut socket = stage.join().await;
    stage.until_bot("up").await;
    telegram.foreign_poller(true).await;
    says(&stage.until_bot("down").await, "another program polls this bot");
    telegram.say(ann, ann, "hello").await;
    telegram.wait_for_state("some conflicts", SOON, |state| state["conflicts"].as_u64() >= Some(4)).await;
    let log = telegram.log().await;
    let times: Vec<f64> =
        log.iter().filter(|call| call["status"] == 409).map(|call| call["at"].as_f64().unwrap()).collect();
    // The first may end a question of long before.
    for (gap, least) in times.windows(2).skip(1).zip([1.0, 2.0]) {
        assert!(gap[1] - gap[0] >= least, "calls back off: {times:?}");
    }
    assert_eq!(socket.next(Duration::ZERO).await, Next::Silence);
    telegram.foreign_poller(false).await;
    assert_eq!(whence(&heard(&mut socket).await).0, "hello");
    assert_eq!(stage.until_bot("up").await["why"], Value::Null);
    stage.close().await;
}

#[tokio::test]
async fn a_webhook_of_before_goes_and_what_waited_stays() {
    let mut stage = Stage::new("webhook-before").await;
    stage.route_all().await;
    let ann = stage.telegram.person("Ann").await;
    let set = format!("{}/bot{}/setWebhook", stage.telegram.url(), stage.telegram.token());
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let nowhere = json!({ "url": "http://127.0.0.1:9/" });
    stage.until_bot("up").await;
    stage.connector.stop(SOON).await;
    let calls = stage.telegram.log().await.len();
    assert!(http.post(&set).json(&nowhere).send().await.unwrap().status().is_success());
    stage.telegram.say(ann, ann, "before").await;
    // A bad start: Telegram does not even say who the bot is.
    stage.telegram.answer_next("getMe", 1, 502, &json!("<html>Bad Gateway</html>")).await;
    stage.telegram.drop_next("deleteWebhook", 1).await;
    stage.connector.restart().await;
    let mut socket = stage.join().await;
    assert_eq!(whence(&heard(&mut socket).await).0, "before");
    let log = stage.telegram.log().await;
    let methods: Vec<&str> = log[calls..].iter().filter_map(|call| call["method"].as_str()).collect();
    let at = |method: &str| methods.iter().position(|one| *one == method);
    assert!(at("deleteWebhook") < at("getUpdates"), "{methods:?}");

    // Somebody sets one while the bot polls: it is taken away again, and nothing is lost.
    http.post(&set).json(&nowhere).send().await.unwrap();
    stage.telegram.say(ann, ann, "meanwhile").await;
    assert_eq!(whence(&heard(&mut socket).await).0, "meanwhile");
    assert_eq!(stage.telegram.state().await["webhook"]["url"], "");
    stage.close().await;
}

#[tokio::test]
async fn what_is_not_committed_is_not_confirmed() {
    let stage = Stage::new("uncommitted").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let mut socket = stage.join().await;
    telegram.say(ann, ann, "one").await;
    assert_eq!(whence(&heard(&mut socket).await).0, "one");
    stage.until_heard().await;
    let stopped = Inspect::of(&stage.folder.join("data")).stop_commits();
    telegram.say_many(ann, ann, "late{n}", 3).await;
    says(&stage.until_bot("down").await, "could not be committed");
    assert_eq!(telegram.state().await["pending"], 3);
    drop(stopped);
    for number in 0..3 {
        assert_eq!(whence(&heard(&mut socket).await).0, format!("late{number}"));
    }
    stage.until_bot("up").await;
    stage.close().await;
}

#[tokio::test]
async fn whatever_telegram_answers_the_next_message_comes() {
    let stage = Stage::new("answers").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let mut socket = stage.join().await;
    stage.until_asking().await;
    let html = json!("<html><h1>502 Bad Gateway</h1></html>");
    telegram.answer_next("getUpdates", 1, 429, &too_many(1)).await;
    telegram.answer_next("getUpdates", 1, 429, &json!("<html>slow down</html>")).await;
    telegram.answer_next("getUpdates", 1, 502, &html).await;
    telegram.answer_next("getUpdates", 1, 200, &json!({ "ok": true, "result": "nonsense" })).await;
    telegram.drop_next("getUpdates", 1).await;
    // The question that is open now ends with this, the next ones meet the faults.
    telegram.say(ann, ann, "one").await;
    assert_eq!(whence(&heard(&mut socket).await).0, "one");
    stage.until_bot("down").await;
    telegram.say(ann, ann, "two").await;
    assert_eq!(whence(&heard(&mut socket).await).0, "two");
    assert_eq!(telegram.state().await["faults"], 0);
    stage.until_bot("up").await;

    telegram.outage(Duration::from_secs(5)).await;
    telegram.say(ann, ann, "three").await;
    says(&stage.until_bot("down").await, "Telegram");
    assert_eq!(whence(&heard(&mut socket).await).0, "three");
    stage.until_bot("up").await;

    // Whoever stands in between knows nothing of tokens.
    telegram.answer_next("getUpdates", 1, 401, &json!("<html>Who are you?</html>")).await;
    telegram.answer_next("getUpdates", 1, 404, &json!("<html>Not here</html>")).await;
    telegram.say(ann, ann, "and on").await;
    assert_eq!(whence(&heard(&mut socket).await).0, "and on");
    telegram.wait_for_state("the faults are met", SOON, |state| state["faults"] == 0).await;
    stage.until_bot("up").await;
    assert_eq!(socket.next(Duration::from_millis(200)).await, Next::Silence, "each came once");
    let log = stage.connector.whole_log();
    assert!(!log.contains("bot stopped"), "only Telegram's own word stops it");
    // What failed may have been too much at once: less is asked for, then as much as before.
    let calls = telegram.log().await;
    let limits: Vec<u64> = calls.iter().filter_map(|call| call["limit"].as_u64()).collect();
    assert!(limits.contains(&50) && limits.contains(&25), "{limits:?}");
    assert_eq!((limits.first(), limits.last()), (Some(&100), Some(&100)), "{limits:?}");
    stage.close().await;
}

#[tokio::test]
async fn a_question_that_is_never_answered_is_asked_again() {
    let stage = Stage::new("hangs").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let mut socket = stage.join().await;
    stage.until_asking().await;
    telegram.hang_next("getUpdates", 1).await;
    telegram.say(ann, ann, "one").await;
    assert_eq!(whence(&heard(&mut socket).await).0, "one");
    telegram.wait_for_state("the fault is met", SOON, |state| state["faults"] == 0).await;
    telegram.say(ann, ann, "two").await;
    match socket.next(HELD).await {
        Next::Frame(frame) => assert_eq!(frame["event"]["text"], "two"),
        other => panic!("awaited a message, got {other:?}"),
    }
    stage.close().await;
}

#[tokio::test]
async fn what_cannot_be_read_is_set_aside_and_a_void_token_stops_the_bot() {
    let stage = Stage::new("unreadable").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let mut socket = stage.join().await;
    let chat = json!({ "id": "not a number", "type": "private" });
    let odd = json!({ "message": { "message_id": 1, "chat": chat, "text": "what ann wrote" } });
    let update = telegram.inject(&odd).await;
    telegram.say(ann, ann, "next").await;
    assert_eq!(whence(&heard(&mut socket).await).0, "next");
    let bot = stage.bot().await;
    assert_eq!(
        (&bot["quarantined"], &bot["health"]["counts"]["quarantined"]),
        (&json!(1), &json!(1)),
        "{bot}"
    );
    let listed = stage.connector.command(&["bot", "quarantine", "list"]).await;
    let row = &listed["quarantine"][0];
    assert_eq!(row["what"], format!("update {update}"), "{listed}");
    assert!(!listed.to_string().contains("ann wrote"), "{listed}");
    let number = row["id"].to_string();
    let shown = stage.run(&["bot", "quarantine", "show", &number]).await;
    assert!(String::from_utf8_lossy(&shown.stdout).contains("what ann wrote"), "{shown:?}");

    stage.until_asking().await;
    let token = telegram.token().to_owned();
    telegram.replace_token("4242424242:another-another-another-another-anot").await;
    // The open question ends with this; the next one is refused.
    telegram.say(ann, ann, "last").await;
    let health = stage.until_bot("stopped").await;
    says(&health, "@BotFather");
    let asked = async || -> usize {
        telegram.log().await.iter().filter(|call| call["method"] == "getUpdates").count()
    };
    let before = asked().await;
    assert_eq!(whence(&heard(&mut socket).await).0, "last", "what was read before is delivered");
    let known = |state: &Value| state["counts"]["getme"]["401"].as_u64() >= Some(2);
    telegram.wait_for_state("it asks who it is", SOON, known).await;
    assert_eq!(asked().await, before, "and for nothing else");
    // @BotFather has it back.
    telegram.say(ann, ann, "welcome back").await;
    telegram.replace_token(&token).await;
    assert_eq!(whence(&heard(&mut socket).await).0, "welcome back");
    stage.until_bot("up").await;
    stage.close().await;
}
