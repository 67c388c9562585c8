//! One Telegram bot: what people say reaches the agent, and its answers the
//! right place.

use super::telegram_world::{QUIET, SOON, World, send, take, unlimited};
use angelia_testkit::socket::Next;
use angelia_testkit::telegram::Options;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

fn id(chat: i64) -> Value {
    json!(chat.to_string())
}

#[tokio::test]
async fn marks_are_shown_in_words_that_telegram_has() {
    let world = World::new("marks", &unlimited()).await;
    let telegram = &world.telegram;
    let ann = telegram.person("Ann").await;
    world.route(ann, &[]).await;
    let mut socket = world.join().await;
    let said = telegram.say(ann, ann, "hello").await;
    take(&mut socket).await;
    let mut mark = async |emoji: &str, remove: bool, shown: Value| {
        let (chat, message) = (id(ann), id(said.message));
        let react =
            json!({"op": "react", "chat_id": chat, "message_id": message, "emoji": emoji, "remove": remove});
        let deadline = Instant::now() + SOON;
        loop {
            // An ornament is left out while calls are short, so it is asked for until it is there.
            assert_eq!(socket.ask(react.clone()).await["success"], true);
            sleep(Duration::from_millis(100)).await;
            if telegram.messages(ann).await[0]["reactions"] == shown {
                break;
            }
            assert!(Instant::now() < deadline, "{emoji} is not shown");
        }
    };
    mark("👀", false, json!(["👀"])).await;
    mark("👀", true, json!([])).await;
    mark("✅", false, json!(["👍"])).await;
    mark("⏳", false, json!(["👍"])).await;
    mark("❌", false, json!(["👎"])).await;
    let log = telegram.log().await;
    let made: Vec<_> = log.iter().filter(|call| call["method"] == "setMessageReaction").collect();
    let is_done = |call: &&Value| call["status"] == 200;
    assert!(made.len() >= 4 && made.iter().all(is_done), "only what Telegram knows is sent: {made:?}");
}

#[tokio::test]
async fn what_is_said_anywhere_arrives_and_is_answered_there() {
    let world = World::new("places", &unlimited()).await;
    let (telegram, name) = (&world.telegram, world.telegram.username().to_owned());
    let ann = telegram.person("Ann").await;
    let group = telegram.supergroup("Team", &[ann]).await;
    let forum = telegram.forum("Forum", &[ann]).await;
    let topic = telegram.topic(forum, ann, "Plans").await;
    let channel = telegram.channel("News", ann).await;
    for chat in [ann, group, forum] {
        world.route(chat, &[]).await;
    }
    world.route(channel, &["--free"]).await;
    let mut socket = world.join().await;

    let said = telegram.say(ann, ann, "hello").await;
    let event = take(&mut socket).await;
    let source = &event["source"];
    assert_eq!(
        (&source["chat_type"], &source["chat_id"], &source["user_id"]),
        (&json!("dm"), &id(ann), &id(ann))
    );
    assert_eq!(event["message_id"], id(said.message));
    let answered = send(&mut socket, ann, "**hi**, Ann", json!({ "reply_to": event["message_id"] })).await;
    let shown = telegram.wait_for_text(ann, "hi, Ann", SOON).await;
    assert_eq!((&shown["message_id"].to_string(), &shown["reply_to"]), (&answered, &json!(said.message)));
    assert_eq!(shown["entities"][0]["type"], "bold");

    telegram.say(group, ann, "among ourselves").await;
    telegram.say(group, ann, &format!("@{name} /new@{name} please")).await;
    let event = take(&mut socket).await;
    assert_eq!((&event["text"], &event["message_type"]), (&json!("/new please"), &json!("command")));
    assert_eq!(
        (&event["source"]["chat_type"], &event["source"]["chat_name"]),
        (&json!("group"), &json!("Team"))
    );
    let own = send(&mut socket, group, "done", json!({})).await;
    telegram
        .say_with(
            &json!({"chat": group, "from": ann, "text": "thanks", "reply_to": own.parse::<i64>().unwrap()}),
        )
        .await;
    let event = take(&mut socket).await;
    assert_eq!(
        (&event["text"], &event["reply_to"]["text"], &event["reply_to"]["is_own"]),
        (&json!("thanks"), &json!("done"), &json!(true))
    );

    telegram.say_in(forum, topic, ann, &format!("@{name} planned?")).await;
    let event = take(&mut socket).await;
    let source = &event["source"];
    assert_eq!(
        (&source["chat_type"], &source["thread_id"], &source["chat_topic"]),
        (&json!("forum"), &id(topic), &json!("Plans"))
    );
    assert_eq!(event["reply_to_message_id"], Value::Null, "the topic's first message is not answered");
    send(&mut socket, forum, "planned", json!({"metadata": {"thread_id": topic.to_string()}})).await;
    assert_eq!(telegram.wait_for_text(forum, "planned", SOON).await["thread"], topic);

    telegram.say(forum, ann, &format!("@{name} in general")).await;
    let event = take(&mut socket).await;
    assert_eq!(
        (&event["source"]["chat_type"], &event["source"]["thread_id"]),
        (&json!("group"), &Value::Null)
    );
    send(&mut socket, forum, "general it is", json!({"metadata": {"thread_id": "1"}})).await;
    assert_eq!(telegram.wait_for_text(forum, "general it is", SOON).await["thread"], Value::Null);

    // Something nobody here knows how to read, in private: not met with silence.
    let private = json!({"id": ann, "type": "private", "first_name": "Ann"});
    let novelty = json!({"message_id": 900_001, "date": 1, "chat": private, "from": {"id": ann, "is_bot": false, "first_name": "Ann"}, "novelty": {}});
    let mut pinned = novelty.clone();
    pinned["message_id"] = json!(900_002);
    pinned["pinned_message"] = json!({});
    telegram.inject(&json!({ "message": pinned })).await;
    telegram.inject(&json!({ "message": novelty })).await;
    let event = take(&mut socket).await;
    assert_eq!((&event["text"], &event["message_id"]), (&json!("[unsupported message]"), &json!("900001")));

    telegram.say(channel, ann, "news").await;
    let event = take(&mut socket).await;
    assert_eq!(
        (&event["source"]["chat_type"], &event["source"]["user_id"]),
        (&json!("channel"), &Value::Null)
    );
    send(&mut socket, channel, "read it", json!({})).await;
    assert_eq!(socket.next(QUIET).await, Next::Silence, "no echo, and nothing that was not for the bot");
    telegram.assert_no_violations().await;
}

#[tokio::test]
async fn long_texts_grow_and_shrink_and_nothing_is_sent_twice() {
    let world = World::new("pieces", &unlimited()).await;
    let telegram = &world.telegram;
    let ann = telegram.person("Ann").await;
    world.route(ann, &[]).await;
    let mut socket = world.join().await;
    telegram.say(ann, ann, "write").await;
    take(&mut socket).await;

    let page = |n: usize| format!("page {n} {}", "word ".repeat(700));
    let message = send(&mut socket, ann, &page(1), json!({})).await;
    let mut edit = async |text: &str| {
        let action =
            json!({"op": "edit", "chat_id": id(ann), "message_id": message, "content": text, "metadata": {}});
        let result = socket.ask(action).await;
        assert_eq!((&result["success"], &result["message_id"]), (&json!(true), &json!(message)), "{result}");
    };
    let long = [page(1), page(2), page(3)].join("\n\n");
    edit(&long).await;
    let texts = telegram.bot_texts(ann).await;
    assert_eq!(texts.len(), 3, "it goes on in further messages");
    assert!(texts[0].starts_with("page 1") && texts[2].contains("page 3"));

    let calls = async || {
        telegram
            .log()
            .await
            .iter()
            .filter(|call| call["method"] == "editmessagetext" || call["method"] == "editMessageText")
            .count()
    };
    let before = calls().await;
    edit(&long).await;
    assert_eq!(calls().await, before, "what is shown already is not sent again");
    edit(&format!("{long} and more")).await;
    assert_eq!(calls().await, before + 1, "only what changed");

    edit("short").await;
    assert_eq!(telegram.bot_texts(ann).await, ["short"], "what is too much goes");
    assert_eq!(telegram.messages(ann).await.iter().filter(|one| one["by_bot"] == true).count(), 1);

    let sent = send(&mut socket, ann, &[page(4), page(5)].join("\n\n"), json!({})).await;
    telegram.wait_for_text(ann, "page 5", SOON).await;
    let action = json!({"op": "edit", "chat_id": id(ann), "message_id": sent, "content": "also short", "metadata": {}});
    assert_eq!(socket.ask(action).await["success"], true);
    assert_eq!(telegram.bot_texts(ann).await, ["short", "also short"]);
    telegram.assert_no_violations().await;
}

#[tokio::test]
async fn start_greets_and_a_code_links_the_chat() {
    let mut world = World::new("link", &unlimited()).await;
    let ann = world.telegram.person("Ann").await;
    let bob = world.telegram.user("Bob").await;
    let group = world.telegram.supergroup("Team", &[ann, bob]).await;
    world.telegram.say(ann, ann, "/start").await;
    world.telegram.wait_for_text(ann, "/link CODE", SOON).await;
    let mut codes = Vec::new();
    for _ in 0..2 {
        let made = world.connector.command(&["route", "code", "--tenant", "acme"]).await;
        codes.push(made["code"].as_str().unwrap().to_owned());
    }
    let mut socket = world.join().await;

    world.telegram.say(ann, ann, &format!("/start {}", codes[0])).await;
    world.telegram.wait_for_text(ann, "Linked", SOON).await;
    world.telegram.say(ann, ann, "now?").await;
    assert_eq!(take(&mut socket).await["text"], "now?", "and no code before it");

    world.telegram.say(group, bob, &format!("/link {}", codes[1])).await;
    world.telegram.wait_for_text(group, "administ", SOON).await;
    let routes = world.connector.command(&["route", "list"]).await.to_string();
    assert!(!routes.contains(&format!("telegram:{group}\"")), "a member is not enough: {routes}");
    let name = world.telegram.username().to_owned();
    world.telegram.say(group, ann, &format!("/link@{name} {}", codes[1])).await;
    // A group hears of it within a minute: it was just told something.
    let deadline = Instant::now() + SOON;
    loop {
        let routes = world.connector.command(&["route", "list"]).await.to_string();
        if routes.contains(&format!("telegram:{group}\"")) {
            break;
        }
        assert!(Instant::now() < deadline, "the administrator's code was tried: {routes}");
    }
    assert_eq!(socket.next(QUIET).await, Next::Silence);
    let log = world.log();
    assert!(!codes.iter().any(|code| log.contains(code)), "no code in the log");
    assert!(!log.contains(world.telegram.token()), "no token in the log");
}

#[tokio::test]
async fn what_still_waits_says_what_its_author_says_now() {
    let world = World::new("edits", &unlimited()).await;
    let ann = world.telegram.person("Ann").await;
    world.route(ann, &[]).await;
    let said = world.telegram.say(ann, ann, "frist").await;
    world.telegram.say(ann, ann, "second").await;
    world.telegram.edit(ann, said.message, "first").await;
    let all = |state: &Value| state["confirmed"] == state["next_update"];
    world.telegram.wait_for_state("everything is read", SOON, all).await;
    let mut socket = world.join().await;
    assert_eq!(take(&mut socket).await["text"], "first");
    assert_eq!(take(&mut socket).await["text"], "second");
    world.telegram.edit(ann, said.message, "too late").await;
    assert_eq!(socket.next(QUIET).await, Next::Silence, "what was delivered is not delivered again");
}

#[tokio::test]
async fn a_bot_tells_what_it_can_do_and_shows_chats() {
    let world = World::new("check", &Options { privacy: true, ..unlimited() }).await;
    let telegram = &world.telegram;
    let ann = telegram.person("Ann").await;
    world.route(ann, &[]).await;
    world.until_health("up", |bot| bot["state"] == "up").await;
    let reading = async || {
        let state = telegram.state().await;
        (state["polls"].clone(), state["conflicts"].clone())
    };
    // The first question is answered at once, the second is held.
    telegram.wait_for_state("a held question", SOON, |state| state["polls"].as_u64() >= Some(2)).await;
    let before = reading().await;
    let checked = world.connector.command(&["bot", "check"]).await.to_string();
    assert!(checked.contains("privacy mode is on") && checked.contains("/setprivacy"), "{checked}");
    assert!(!checked.contains(telegram.token()), "{checked}");
    assert_eq!(reading().await, before, "it reads no updates, so it cuts nobody off");

    let mut socket = world.join().await;
    let asked = json!({"op": "get_chat_info", "chat_id": id(ann)});
    let info = socket.ask(asked).await;
    assert_eq!(info["chat_info"], json!({"name": "Ann", "type": "dm"}), "looked up: {info}");
    let typing = json!({"op": "typing", "chat_id": id(ann), "metadata": {}});
    // It is answered at once, and shown a moment later; while a bot that changed hands rests, not at all.
    let again = async {
        loop {
            assert_eq!(socket.ask(typing.clone()).await["success"], true);
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    };
    tokio::select! {
        shown = telegram.first_actions(ann, SOON) => assert_eq!(shown[0]["action"], "typing"),
        () = again => {}
    }
    let nobody = socket.ask(json!({"op": "send", "chat_id": "999", "content": "x", "metadata": {}})).await;
    assert_eq!(nobody["code"], "egress_declined", "{nobody}");
    telegram.assert_no_violations().await;
}
