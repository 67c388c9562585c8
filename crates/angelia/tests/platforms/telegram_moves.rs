//! A group becomes a supergroup: another id, the same chat, the same agent.

use super::telegram_stage::{SOON, Stage, heard, sent, whence};
use serde_json::{Value, json};

#[tokio::test]
async fn a_group_that_moves_stays_with_its_agent() {
    let stage = Stage::new("moves").await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let group = telegram.group("Team", &[ann]).await;
    stage.route("acme", group, &["--allow", "any"]).await;
    let mut socket = stage.join().await;
    telegram.say(group, ann, &stage.to_bot("before")).await;
    assert_eq!(whence(&heard(&mut socket).await).0, "before");

    // Telegram may tell the new end first, and that the bot left the old one.
    let migrate = json!({ "chat": group, "new_first": true, "member_updates": true });
    let supergroup = telegram.migrate_with(&migrate).await;
    telegram.say(supergroup, ann, &stage.to_bot("after")).await;
    let event = heard(&mut socket).await;
    assert_eq!(whence(&event), ("after", "group", supergroup.to_string().as_str(), None));
    assert!(stage.route_of(group).await.is_none());
    let route = stage.route_of(supergroup).await.unwrap();
    assert_eq!((&route["tenant"], &route["allow"]), (&json!("acme"), &json!(["any"])), "{route}");

    let late = sent(&socket.ask(say(group, "a late answer")).await);
    telegram.wait_for_text(supergroup, "a late answer", SOON).await;
    // What was sent by the old id can be changed by it, however long it grows.
    let grown = format!("late, and long {}\n\nand longer {}", "x".repeat(3000), "y".repeat(3000));
    assert_eq!(sent(&socket.ask(edit(group, late, &grown)).await), late);
    telegram.wait_for_text(supergroup, "and longer", SOON).await;
    assert_eq!(sent(&socket.ask(edit(group, late, "in the end")).await), late);
    assert_eq!(telegram.bot_texts(supergroup).await, ["in the end"]);
    // A number that was not given to anybody is a message of before the move.
    let stayed = socket.ask(edit(group, late + 1, "a piece of it")).await;
    assert!(stayed["error"].as_str().is_some_and(|why| why.contains("send a new one")), "{stayed}");
    let info = socket.ask(json!({ "op": "get_chat_info", "chat_id": supergroup.to_string() })).await;
    assert_eq!(info["chat_info"]["name"], "Team", "{info}");
    let log = telegram.log().await;
    let to_old =
        log.iter().filter(|call| call["method"] == "sendMessage" && call["chat_id"] == group).count();
    assert_eq!(to_old, 0, "the dead id is not even tried");
    stage.close().await;
}

/// The agent answers in the moment in which the group moves: only the refusal tells.
#[tokio::test]
async fn a_move_that_only_a_refusal_tells_of() {
    let mut stage = Stage::new("moves-refused").await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let group = telegram.group("Team", &[ann]).await;
    stage.route("acme", group, &["--allow", "any"]).await;
    let mut socket = stage.join().await;
    telegram.say(group, ann, &stage.to_bot("before")).await;
    heard(&mut socket).await;
    // From here on the connector hears nothing: another program takes the updates away.
    telegram.foreign_poller(true).await;
    stage.until_bot("down").await;
    let supergroup = telegram.migrate(group).await;
    let answer = sent(&socket.ask(say(group, "an answer")).await);
    telegram.wait_for_text(supergroup, "an answer", SOON).await;
    assert_eq!(sent(&socket.ask(edit(group, answer, "a better answer")).await), answer);
    assert_eq!(telegram.bot_texts(supergroup).await, ["a better answer"]);
    assert_eq!(stage.route_of(supergroup).await.unwrap()["tenant"], "acme");
    assert!(stage.route_of(group).await.is_none());

    // Durable, and the lines about it change nothing any more.
    stage.connector.kill().await;
    stage.connector.restart().await;
    let telegram = &stage.telegram;
    telegram.foreign_poller(false).await;
    let mut socket = stage.join().await;
    telegram.say(supergroup, ann, &stage.to_bot("after")).await;
    assert_eq!(whence(&heard(&mut socket).await).0, "after");
    // What was sent by the old id before is known to whoever has the bot now.
    assert_eq!(sent(&socket.ask(edit(group, answer, "the best answer")).await), answer);
    assert_eq!(telegram.bot_texts(supergroup).await, ["the best answer"]);
    let late = json!({ "op": "send", "chat_id": group.to_string(), "content": "a late answer" });
    sent(&socket.ask(late).await);
    telegram.wait_for_text(supergroup, "a late answer", SOON).await;
    assert_eq!(stage.route_of(supergroup).await.unwrap()["tenant"], "acme");
    stage.close().await;
}

#[tokio::test]
async fn a_new_id_that_belongs_to_somebody_stays_theirs() {
    let stage = Stage::new("moves-taken").await;
    let other = stage.connector.gateway("other", "gw-other").await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let group = telegram.group("Team", &[ann]).await;
    stage.route("acme", group, &["--allow", "any"]).await;
    // The next supergroup gets this id.
    let probe = telegram.supergroup("Probe", &[ann]).await;
    stage.route("other", probe - 1, &["--allow", "any"]).await;
    let (mut acme, mut socket) = (stage.join().await, stage.join_as(&other).await);
    telegram.say(group, ann, &stage.to_bot("before")).await;
    assert_eq!(whence(&heard(&mut acme).await).0, "before");
    let supergroup = telegram.migrate(group).await;
    assert_eq!(supergroup, probe - 1);
    telegram.say(supergroup, ann, &stage.to_bot("after")).await;
    assert_eq!(whence(&heard(&mut socket).await).0, "after");
    assert_eq!(stage.route_of(supergroup).await.unwrap()["tenant"], "other");
    let foreign = json!({ "op": "send", "chat_id": group.to_string(), "content": "into the other's chat" });
    assert_eq!(acme.ask(foreign).await["success"], false);
    assert_eq!(telegram.bot_texts(supergroup).await, Vec::<String>::new());
    stage.close().await;
}

/// The ids of a supergroup begin anew, so an id of before is another message there.
#[tokio::test]
async fn ids_of_before_a_move_are_used_for_nothing_after_it() {
    let stage = Stage::new("moves-ids").await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let group = telegram.group("Team", &[ann]).await;
    stage.route("acme", group, &["--allow", "any"]).await;
    let mut socket = stage.join().await;
    telegram.say(group, ann, &stage.to_bot("before")).await;
    heard(&mut socket).await;
    let long = format!("one {}\n\ntwo {}", "x".repeat(3000), "y".repeat(3000));
    let old = sent(&socket.ask(say(group, &long)).await);
    telegram.wait_for_text(group, "two y", SOON).await;

    let supergroup = telegram.migrate(group).await;
    telegram.say(supergroup, ann, &stage.to_bot("after")).await;
    heard(&mut socket).await;
    while sent(&socket.ask(say(supergroup, "said here")).await) < old + 1 {}
    let texts = telegram.bot_texts(supergroup).await;
    let by_old_id = socket.ask(edit(group, old, "changed")).await;
    assert!(by_old_id["error"].as_str().is_some_and(|why| why.contains("send a new one")), "{by_old_id}");
    assert_eq!(telegram.bot_texts(supergroup).await, texts, "a stranger's message would have changed");

    // The same number by the new id is the message here, and no piece of before goes with it.
    assert_eq!(sent(&socket.ask(edit(supergroup, old, "changed")).await), old);
    let changed = telegram.bot_texts(supergroup).await;
    assert_eq!(changed.len(), texts.len(), "nothing is deleted");
    assert_eq!(changed.iter().filter(|text| *text == "changed").count(), 1);

    let mut reply = say(group, "a late answer");
    reply["reply_to"] = json!(old.to_string());
    sent(&socket.ask(reply).await);
    let shown = telegram.wait_for_text(supergroup, "a late answer", SOON).await;
    assert_eq!(shown["reply_to"], Value::Null, "{shown}");
    stage.close().await;
}

/// The same where only the refusal of the very action tells of the move.
#[tokio::test]
async fn ids_of_before_are_not_used_where_the_action_itself_learns_of_the_move() {
    let stage = Stage::new("moves-ids-refused").await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let (first, second) = (telegram.group("One", &[ann]).await, telegram.group("Two", &[ann]).await);
    let mut socket = stage.join().await;
    let mut old = Vec::new();
    for group in [first, second] {
        stage.route("acme", group, &["--allow", "any"]).await;
        telegram.say(group, ann, &stage.to_bot("before")).await;
        heard(&mut socket).await;
        old.push(sent(&socket.ask(say(group, "an answer")).await));
    }
    telegram.foreign_poller(true).await;
    stage.until_bot("down").await;
    let moved = telegram.migrate(first).await;
    let refused = socket.ask(edit(first, old[0], "changed")).await;
    assert!(refused["error"].as_str().is_some_and(|why| why.contains("send a new one")), "{refused}");
    assert_eq!(stage.route_of(moved).await.unwrap()["tenant"], "acme");
    assert_eq!(telegram.bot_texts(moved).await, Vec::<String>::new());
    let log = telegram.log().await;
    let to_new = |call: &&Value| call["method"] == "editMessageText" && call["chat_id"] == moved;
    assert_eq!(log.iter().filter(to_new).count(), 0, "not even tried");

    let moved = telegram.migrate(second).await;
    let mut reply = say(second, "a late answer");
    reply["reply_to"] = json!(old[1].to_string());
    sent(&socket.ask(reply).await);
    let shown = telegram.wait_for_text(moved, "a late answer", SOON).await;
    assert_eq!(shown["reply_to"], Value::Null, "{shown}");
    telegram.foreign_poller(false).await;
    stage.close().await;
}

fn say(chat: i64, text: &str) -> Value {
    json!({ "op": "send", "chat_id": chat.to_string(), "content": text })
}

fn edit(chat: i64, message: i64, text: &str) -> Value {
    json!({ "op": "edit", "chat_id": chat.to_string(), "message_id": message.to_string(), "content": text })
}
