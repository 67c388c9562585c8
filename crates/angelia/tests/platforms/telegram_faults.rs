//! One Telegram bot on a bad day: nothing is lost, nothing is doubled.

use super::telegram_world::{QUIET, SOON, World, send, take, unlimited};
use angelia_core::own_words::{Language, OwnWords};
use angelia_testkit::socket::Next;
use angelia_testkit::telegram::Options;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// How often something is looked at while waiting for it.
const POLL: Duration = Duration::from_millis(50);

#[tokio::test]
async fn a_killed_server_goes_on_where_it_was() {
    let mut world = World::new("killed", &unlimited()).await;
    let ann = world.telegram.person("Ann").await;
    world.route(ann, &[]).await;
    let mut expected = Vec::new();
    for round in 0..4 {
        let text = format!("round {round} message {{n}}");
        world.telegram.say_many(ann, ann, &text, 60).await;
        expected.extend((0..60).map(|n| format!("round {round} message {n}")));
        tokio::time::sleep(Duration::from_millis(40 * round)).await;
        world.connector.kill().await;
        world.connector.restart().await;
    }
    let mut socket = world.join().await;
    for text in &expected {
        assert_eq!(take(&mut socket).await["text"], *text);
    }
    assert_eq!(socket.next(QUIET).await, Next::Silence, "each came once");
    let all = |state: &Value| state["confirmed"] == state["next_update"];
    world.telegram.wait_for_state("everything is confirmed", SOON, all).await;
}

#[tokio::test]
async fn what_cannot_be_read_is_put_aside() {
    let world = World::new("quarantine", &unlimited()).await;
    let ann = world.telegram.person("Ann").await;
    world.route(ann, &[]).await;
    let mut socket = world.join().await;
    let odd = json!({"message": {"message_id": "x", "chat": {"id": "planet"}, "text": "swordfish"}});
    let number = world.telegram.inject(&odd).await;
    world.telegram.say(ann, ann, "after it").await;
    assert_eq!(take(&mut socket).await["text"], "after it");
    let listed = world.connector.command(&["bot", "quarantine", "list"]).await;
    let text = listed.to_string();
    assert!(text.contains(&format!("update {number}")) && !text.contains("swordfish"), "{text}");
}

#[tokio::test]
async fn a_second_poller_is_told_of_and_waited_for() {
    let world = World::new("conflict", &unlimited()).await;
    let ann = world.telegram.person("Ann").await;
    world.route(ann, &[]).await;
    let mut socket = world.join().await;
    world.until_health("up", |bot| bot["state"] == "up").await;
    world.telegram.foreign_poller(true).await;
    world.telegram.say(ann, ann, "held").await;
    let down = |bot: &Value| bot["state"] == "down" && bot.to_string().contains("another program polls");
    world.until_health("told of the other", down).await;
    world.telegram.foreign_poller(false).await;
    assert_eq!(take(&mut socket).await["text"], "held");
    world.until_health("up again", |bot| bot["state"] == "up").await;

    // Somebody sets a webhook: it is taken away again, and what waited is read.
    let hook = format!("{}/bot{}/setWebhook", world.telegram.url(), world.telegram.token());
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let set = http.post(hook).json(&json!({ "url": "https://127.0.0.1:1/nowhere" })).send().await.unwrap();
    assert!(set.status().is_success());
    world.telegram.say(ann, ann, "kept").await;
    assert_eq!(take(&mut socket).await["text"], "kept");
}

#[tokio::test]
async fn outages_floods_and_nonsense_pass() {
    let world = World::new("outages", &unlimited()).await;
    let ann = world.telegram.person("Ann").await;
    world.route(ann, &[]).await;
    let mut socket = world.join().await;
    world.until_health("up", |bot| bot["state"] == "up").await;
    let flood = json!({"ok": false, "error_code": 429, "description": "Too Many Requests: retry after 1", "parameters": {"retry_after": 1}});
    for (status, body) in
        [(429, flood.clone()), (502, json!("<html>Bad Gateway</html>")), (200, json!("<html>?</html>"))]
    {
        world.telegram.answer_next("getUpdates", 1, status, &body).await;
        world.telegram.say(ann, ann, &format!("after {status}")).await;
        assert_eq!(take(&mut socket).await["text"], format!("after {status}"));
    }
    world.telegram.outage(Duration::from_secs(2)).await;
    world.telegram.say(ann, ann, "after the outage").await;
    assert_eq!(take(&mut socket).await["text"], "after the outage");

    // Sends: a pause is waited out, a lost answer is not repeated, but told of.
    world.telegram.answer_next("sendMessage", 1, 429, &flood).await;
    send(&mut socket, ann, "after a pause", json!({})).await;
    world.telegram.perform_and_drop_next("sendMessage", 1).await;
    let lost = socket
        .ask(json!({"op": "send", "chat_id": ann.to_string(), "content": "perhaps", "metadata": {}}))
        .await;
    assert_eq!(lost["success"], false, "{lost}");
    assert!(lost["error"].as_str().unwrap().contains("timed out"), "{lost}");
    let told = OwnWords::InDoubt.text(Language::English);
    world.telegram.wait_for_text(ann, told, SOON).await;
    let bad =
        json!({"ok": false, "error_code": 400, "description": "Bad Request: can't parse entities: nonsense"});
    world.telegram.answer_next("sendMessage", 1, 400, &bad).await;
    send(&mut socket, ann, "**as typed**", json!({})).await;
    assert_eq!(world.telegram.bot_texts(ann).await, ["after a pause", "perhaps", told, "**as typed**"]);

    // An edit whose answer is lost is repeated until it is known.
    let message = send(&mut socket, ann, "draft", json!({})).await;
    world.telegram.perform_and_drop_next("editMessageText", 1).await;
    let edit = json!({"op": "edit", "chat_id": ann.to_string(), "message_id": message, "content": "final", "metadata": {}});
    assert_eq!(socket.ask(edit).await["success"], true);
    world.telegram.wait_for_text(ann, "final", SOON).await;

    world.telegram.block(ann).await;
    let refused =
        socket.ask(json!({"op": "send", "chat_id": ann.to_string(), "content": "x", "metadata": {}})).await;
    assert!(refused["error"].as_str().unwrap().contains("blocked the bot"), "{refused}");
    world.telegram.assert_no_violations().await;
}

#[tokio::test]
async fn a_group_that_becomes_a_supergroup_keeps_its_agent() {
    let world = World::new("migration", &unlimited()).await;
    let (telegram, name) = (&world.telegram, world.telegram.username().to_owned());
    let ann = telegram.user("Ann").await;
    let (first, second) = (telegram.group("One", &[ann]).await, telegram.group("Two", &[ann]).await);
    for group in [first, second] {
        world.route(group, &[]).await;
    }
    let mut socket = world.join().await;
    telegram.say(first, ann, &format!("@{name} before")).await;
    assert_eq!(take(&mut socket).await["source"]["chat_id"], first.to_string());
    telegram.say(second, ann, &format!("@{name} before")).await;
    take(&mut socket).await;

    let moved = telegram.migrate(first).await;
    telegram.say(moved, ann, &format!("@{name} after")).await;
    let event = take(&mut socket).await;
    assert_eq!(event["source"]["chat_id"], moved.to_string(), "its route moved with it");
    send(&mut socket, moved, "here", json!({})).await;
    send(&mut socket, first, "to the old id", json!({})).await;
    assert_eq!(telegram.bot_texts(moved).await, ["here", "to the old id"]);
    let routes = world.connector.command(&["route", "list"]).await.to_string();
    assert!(
        routes.contains(&format!("telegram:{moved}")) && !routes.contains(&format!("telegram:{first}\"")),
        "{routes}"
    );

    // Told by a refused send, before the update is read.
    telegram.answer_next("getUpdates", 100, 502, &json!("no")).await;
    let moved = telegram.migrate(second).await;
    send(&mut socket, second, "found by sending", json!({})).await;
    assert_eq!(telegram.bot_texts(moved).await, ["found by sending"]);
    telegram.clear_faults().await;
    telegram.say(moved, ann, &format!("@{name} after")).await;
    assert_eq!(take(&mut socket).await["source"]["chat_id"], moved.to_string());
    telegram.assert_no_violations().await;
}

#[tokio::test]
async fn a_topic_that_is_gone_is_told_of_and_nothing_goes_elsewhere() {
    let world = World::new("topics", &unlimited()).await;
    let (telegram, name) = (&world.telegram, world.telegram.username().to_owned());
    let ann = telegram.user("Ann").await;
    let forum = telegram.forum("Forum", &[ann]).await;
    world.route(forum, &[]).await;
    let mut socket = world.join().await;
    telegram.say(forum, ann, &format!("@{name} hello")).await;
    take(&mut socket).await;
    for (thread, told) in [("999999", "topic is gone"), ("-5", "declined"), ("x", "declined")] {
        let metadata = json!({ "thread_id": thread });
        let action =
            json!({"op": "send", "chat_id": forum.to_string(), "content": "lost", "metadata": metadata});
        let result = socket.ask(action).await;
        assert!(result["error"].as_str().unwrap().contains(told), "{thread}: {result}");
    }
    assert!(telegram.bot_texts(forum).await.is_empty());
    telegram.kick(forum).await;
    let gone = |state: &Value| state["confirmed"] == state["next_update"];
    telegram.wait_for_state("the farewell is read", SOON, gone).await;
    let result =
        socket.ask(json!({"op": "send", "chat_id": forum.to_string(), "content": "x", "metadata": {}})).await;
    assert_eq!(result["success"], false, "{result}");
}

#[tokio::test]
async fn streams_of_edits_stay_below_the_limits() {
    const EDITS: usize = 40;
    let world = World::new("flood", &Options::default()).await;
    let telegram = &world.telegram;
    let ann = telegram.person("Ann").await;
    let mut chats = vec![ann];
    for n in 0..3 {
        chats.push(telegram.person(&format!("Person {n}")).await);
        chats.push(telegram.supergroup(&format!("Group {n}"), &[ann]).await);
    }
    let mut socket = world.join().await;
    let mut messages = Vec::new();
    for chat in &chats {
        world.route(*chat, &[]).await;
        messages.push((*chat, send(&mut socket, *chat, "0", json!({})).await));
    }
    let mut asked = 0;
    for n in 1..=EDITS {
        for (chat, message_id) in &messages {
            let content = format!("edit {n}{}", if n == EDITS { ", the last" } else { " ▉" });
            let action = json!({"op": "edit", "chat_id": chat.to_string(), "message_id": message_id, "content": content, "metadata": {}});
            asked += 1;
            socket
                .send(&json!({"type": "outbound", "requestId": format!("r{asked}"), "action": action}))
                .await;
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    for chat in chats {
        telegram.wait_for_text(chat, "the last", SOON).await;
    }
    let log = telegram.log().await;
    let refused = log.iter().filter(|call| call["status"] == 429).count();
    let edits = log
        .iter()
        .filter(|call| call["method"].as_str().unwrap().eq_ignore_ascii_case("editMessageText"))
        .count();
    println!("{asked} edits asked for, {edits} made, {refused} refused");
    assert_eq!(refused, 0, "no limit was tripped");
    assert!(edits < asked / 2, "edits that a newer one follows are left out");
}

#[tokio::test]
async fn a_token_that_is_revoked_stops_the_bot_with_a_word() {
    let world = World::new("revoked", &unlimited()).await;
    world.until_health("up", |bot| bot["state"] == "up").await;
    let other = format!("{}:AAAnotherTokenForTests_0123456789abcdef", world.telegram.bot_id());
    world.telegram.replace_token(&other).await;
    let stopped = |bot: &Value| bot["state"] == "stopped" && bot.to_string().contains("@BotFather");
    world.until_health("stopped", stopped).await;
}

#[tokio::test]
async fn a_webhook_gives_the_same_and_takes_nothing_from_strangers() {
    let mut world = World::with("webhook", &unlimited(), "ingest = \"webhook\"\n").await;
    let ann = world.telegram.person("Ann").await;
    world.route(ann, &[]).await;
    world.until_health("up", |bot| bot["state"] == "up").await;
    let url = format!("{}/webhooks/telegram/main", world.connector.url());
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let forged = json!({"update_id": 5, "message": {"message_id": 5, "chat": {"id": ann, "type": "private"}, "from": {"id": ann}, "text": "forged"}});
    for secret in ["", "0000", &"0".repeat(64)] {
        let post = http.post(&url).header("x-telegram-bot-api-secret-token", secret).json(&forged);
        assert_eq!(post.send().await.unwrap().status(), 401);
    }
    world.telegram.say_many(ann, ann, "posted {n}", 30).await;
    let mut socket = world.join().await;
    for n in 0..30 {
        assert_eq!(take(&mut socket).await["text"], format!("posted {n}"));
    }
    // All of it is acknowledged: none may come again.
    let deadline = Instant::now() + SOON;
    while waiting(&world).await > 0 {
        assert!(Instant::now() < deadline, "what was taken still waits");
        tokio::time::sleep(POLL).await;
    }
    world.connector.kill().await;
    world.telegram.say(ann, ann, "while it was away").await;
    world.connector.restart().await;
    let mut socket = world.join().await;
    assert_eq!(take(&mut socket).await["text"], "while it was away");
    assert_eq!(socket.next(QUIET).await, Next::Silence, "each came once");
}

/// Messages that wait for the agent.
async fn waiting(world: &World) -> u64 {
    let inboxes = world.connector.command(&["inbox", "list"]).await;
    inboxes["inboxes"].as_array().unwrap().iter().map(|inbox| inbox["waiting"].as_u64().unwrap()).sum()
}

/// Killed between what it read and what it committed, and right after the
/// commit: nothing is lost, and nothing comes twice.
#[tokio::test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
async fn a_server_killed_within_a_batch_goes_on_where_it_was() {
    let mut world = World::new("killed-within", &unlimited()).await;
    let ann = world.telegram.person("Ann").await;
    world.route(ann, &[]).await;
    world.until_health("up", |bot| bot["state"] == "up").await;
    let mut expected = Vec::new();
    for point in ["before_append@1", "intake_committed@1"] {
        world.connector.kill().await;
        let text = format!("{point} message {{n}}");
        world.telegram.say_many(ann, ann, &text, 60).await;
        expected.extend((0..60).map(|n| format!("{point} message {n}")));
        world.connector.respawn(&[("ANGELIA_FAIL", point)]);
        let ended = world.connector.died(SOON).await.expect("it ended by itself");
        assert!(!ended.success(), "{point}: {ended}");
        let pending = world.telegram.state().await["pending"].clone();
        assert_eq!(pending, 60, "{point}: nothing was confirmed");
        world.connector.restart().await;
        let all = |state: &Value| state["confirmed"] == state["next_update"];
        world.telegram.wait_for_state("everything is confirmed", SOON, all).await;
    }
    let mut socket = world.join().await;
    for text in &expected {
        assert_eq!(take(&mut socket).await["text"], *text);
    }
    assert_eq!(socket.next(QUIET).await, Next::Silence, "each came once");
}
