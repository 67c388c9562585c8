//! The stand-in for Telegram is one that aiogram accepts.

use angelia_testkit::telegram::{Aiogram, FakeTelegram, Options};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// How long something may take on a busy machine.
const SOON: Duration = Duration::from_secs(30);

fn folder(story: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("telegram-client-{story}"));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

async fn stage(story: &str, options: &Options) -> (FakeTelegram, Aiogram) {
    let folder = folder(story);
    let telegram = FakeTelegram::start(&folder, options).await;
    let bot = Aiogram::start(&folder, &telegram).await;
    (telegram, bot)
}

fn unlimited() -> Options {
    Options { limits: Some(json!({ "enabled": false })), ..Options::default() }
}

/// A client for what aiogram never sends.
fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

#[tokio::test]
async fn aiogram_polls_and_sees_every_kind_of_chat() {
    let (telegram, bot) = stage("polls", &unlimited()).await;
    let me = bot.call("get_me", json!({})).await.unwrap();
    assert_eq!(me["id"], telegram.bot_id());
    assert_eq!(me["username"], telegram.username());
    assert_eq!(me["can_read_all_group_messages"], true);

    let ann = telegram.person("Ann").await;
    let group = telegram.group("Team", &[ann]).await;
    let forum = telegram.forum("Forum", &[ann]).await;
    let topic = telegram.topic(forum, ann, "Plans").await;
    let channel = telegram.channel("News", ann).await;
    bot.poll().await;

    telegram.say(ann, ann, "echo hello").await;
    let private = bot.wait_for("echo hello", SOON).await;
    assert_eq!(private["kind"], "message");
    assert_eq!(private["event"]["chat"]["type"], "private");
    let echo = telegram.wait_for_text(ann, "hello", SOON).await;
    assert_eq!(echo["reply_to"], private["event"]["message_id"], "aiogram's reply refers to the question");

    let command = format!("/new@{} please", telegram.username());
    telegram.say(group, ann, &command).await;
    let grouped = bot.wait_for(&command, SOON).await;
    assert_eq!(grouped["event"]["chat"]["type"], "group");
    let entity = &grouped["event"]["entities"][0];
    assert_eq!((&entity["type"], &entity["offset"]), (&json!("bot_command"), &json!(0)), "{grouped}");
    assert_eq!(entity["length"], command.len() - " please".len());

    telegram.say_in(forum, topic, ann, "echo planned").await;
    let planned = bot.wait_for("echo planned", SOON).await["event"].clone();
    assert_eq!(planned["message_thread_id"], topic);
    assert_eq!(planned["is_topic_message"], true);
    assert_eq!(planned["reply_to_message"]["forum_topic_created"]["name"], "Plans");
    let answer = telegram.wait_for_text(forum, "planned", SOON).await;
    assert_eq!(answer["thread"], topic, "aiogram's reply stays in the topic");

    telegram.say(forum, ann, "in general").await;
    let general = bot.wait_for("in general", SOON).await["event"].clone();
    assert_eq!(general["chat"]["is_forum"], true);
    assert!(general.get("message_thread_id").is_none(), "General has no thread: {general}");

    let post = telegram.say(channel, ann, "news").await;
    let news = bot.wait_for("news", SOON).await;
    assert_eq!((&news["kind"], &news["event"]["chat"]["type"]), (&json!("channel_post"), &json!("channel")));
    assert!(news["event"].get("from").is_none(), "{news}");
    telegram.edit(channel, post.message, "old news").await;
    assert_eq!(bot.wait_for("old news", SOON).await["kind"], "edited_channel_post");

    let all = |state: &Value| state["confirmed"] == state["next_update"];
    telegram.wait_for_state("everything confirmed", SOON, all).await;
    bot.stop().await;
    telegram.assert_no_violations().await;
}

#[tokio::test]
async fn aiogram_reads_what_else_people_send() {
    let (telegram, bot) = stage("media", &unlimited()).await;
    let ann = telegram.person("Ann").await;
    let group = telegram.supergroup("Team", &[ann]).await;
    let channel = telegram.channel("News", ann).await;
    bot.poll().await;
    for kind in ["photo", "voice", "document", "video", "audio", "sticker", "animation", "location"] {
        telegram.say_with(&json!({ "chat": ann, "from": ann, kind: true })).await;
    }
    let said = telegram.say(group, ann, "first").await;
    telegram
        .say_with(&json!({ "chat": group, "from": ann, "text": "second", "reply_to": said.message }))
        .await;
    telegram.say_with(&json!({ "chat": group, "sender_chat": group, "text": "unnamed" })).await;
    telegram.say_with(&json!({ "chat": group, "sender_chat": channel, "text": "as the channel" })).await;
    telegram.say_with(&json!({ "chat": group, "bot_author": true, "text": "beep" })).await;
    telegram
        .say_with(&json!({ "chat": ann, "from": ann, "text": "passed on", "forward": { "user": ann } }))
        .await;

    let second = bot.wait_for("second", SOON).await["event"].clone();
    assert_eq!(second["reply_to_message"]["text"], "first");
    assert_eq!(second["message_thread_id"], said.message, "a chain of replies is a thread");
    assert!(second.get("is_topic_message").is_none(), "but not a topic: {second}");
    let unnamed = bot.wait_for("unnamed", SOON).await["event"].clone();
    assert_eq!(unnamed["sender_chat"]["id"], group);
    assert_eq!(unnamed["from"]["username"], "GroupAnonymousBot");
    assert_eq!(bot.wait_for("as the channel", SOON).await["event"]["sender_chat"]["id"], channel);
    assert_eq!(bot.wait_for("beep", SOON).await["event"]["from"]["is_bot"], true);
    assert_eq!(bot.wait_for("passed on", SOON).await["event"]["forward_origin"]["type"], "user");

    let seen = bot.seen().await;
    let photo = seen.iter().find_map(|one| one["event"]["photo"].as_array()).expect("a photo");
    let file = json!({ "file_id": photo.last().unwrap()["file_id"] });
    let file = bot.call("get_file", file).await.unwrap();
    let url =
        format!("{}/file/bot{}/{}", telegram.url(), telegram.token(), file["file_path"].as_str().unwrap());
    let content = http().get(url).send().await.unwrap();
    assert_eq!(content.text().await.unwrap(), "the content of a file");
    telegram.assert_no_violations().await;
}

#[tokio::test]
async fn aiogram_sends_edits_and_is_refused_as_by_telegram() {
    let (telegram, bot) = stage("sends", &unlimited()).await;
    let ann = telegram.person("Ann").await;
    let bold =
        json!([{ "type": "bold", "offset": 3, "length": 5 }, { "type": "italic", "offset": 6, "length": 2 }]);
    let sent = json!({ "chat_id": ann, "text": "😀 hello", "entities": bold });
    let sent = bot.call("send_message", sent).await.unwrap();
    assert_eq!(sent["entities"], bold);
    let message = &sent["message_id"];
    let edit = json!({ "chat_id": ann, "message_id": message, "text": "changed" });
    bot.call("edit_message_text", edit.clone()).await.unwrap();
    let same = bot.call("edit_message_text", edit).await.unwrap_err();
    assert_eq!(same.class, "TelegramBadRequest");
    assert!(same.message.contains("message is not modified: specified new message content"), "{same:?}");
    let stands = telegram.messages(ann).await;
    assert_eq!((&stands[0]["text"], &stands[0]["edits"]), (&json!("changed"), &json!(1)));

    let forum = telegram.forum("Forum", &[ann]).await;
    let entity =
        |kind: &str, offset: i64, length: i64| json!([{ "type": kind, "offset": offset, "length": length }]);
    let cases = [
        ("a stranger's chat", json!({ "chat_id": 42, "text": "x" }), "chat not found"),
        ("nothing", json!({ "chat_id": ann, "text": " \n" }), "message text is empty"),
        ("too much", json!({ "chat_id": ann, "text": "😀".repeat(2049) }), "message is too long"),
        (
            "General by number",
            json!({ "chat_id": forum, "text": "x", "message_thread_id": 1 }),
            "message thread not found",
        ),
        (
            "no such topic",
            json!({ "chat_id": forum, "text": "x", "message_thread_id": 77 }),
            "message thread not found",
        ),
        (
            "a gone question",
            json!({ "chat_id": ann, "text": "x", "reply_parameters": { "message_id": 9_999 } }),
            "message to be replied not found",
        ),
        (
            "half a symbol",
            json!({ "chat_id": ann, "text": "😀", "entities": entity("bold", 0, 1) }),
            "in a middle of a UTF-16 symbol",
        ),
        (
            "past the end",
            json!({ "chat_id": ann, "text": "abc", "entities": entity("bold", 1, 3) }),
            "ends after the end of the text",
        ),
        (
            "of no length",
            json!({ "chat_id": ann, "text": "abc", "entities": entity("bold", 1, 0) }),
            "incorrect length 0",
        ),
        (
            "of no kind",
            json!({ "chat_id": ann, "text": "abc", "entities": entity("loud", 0, 1) }),
            "unsupported entity",
        ),
    ];
    for (what, arguments, description) in cases {
        let refused = bot.call("send_message", arguments).await.expect_err(what);
        assert_eq!(refused.class, "TelegramBadRequest", "{what}: {refused:?}");
        assert!(refused.message.contains(description), "{what}: {refused:?}");
    }
    let many: Vec<Value> =
        (0..150).map(|at| json!({ "type": "bold", "offset": at * 2, "length": 1 })).collect();
    let many = json!({ "chat_id": ann, "text": "b ".repeat(150), "entities": many });
    let kept = bot.call("send_message", many).await.unwrap();
    assert_eq!(kept["entities"].as_array().unwrap().len(), 100, "the rest is dropped without a word");
    assert_eq!(kept["text"].as_str().unwrap().len(), 299, "and so is the blank at the end");
    let url = format!("https://example.com/{}", "a".repeat(970));
    let long: Vec<Value> =
        (0..10).map(|at| json!({ "type": "text_link", "offset": at * 2, "length": 1, "url": url })).collect();
    let long = json!({ "chat_id": ann, "text": "b ".repeat(10), "entities": long });
    let long = bot.call("send_message", long).await.unwrap_err();
    assert!(long.message.contains("ENTITIES_TOO_LONG"), "{long:?}");
    let lenient = json!({ "message_id": 9_999, "allow_sending_without_reply": true });
    let lenient = json!({ "chat_id": ann, "text": "anyway", "reply_parameters": lenient });
    assert!(bot.call("send_message", lenient).await.unwrap().get("reply_to_message").is_none());
    bot.call("delete_message", json!({ "chat_id": ann, "message_id": message })).await.unwrap();
    let edit = json!({ "chat_id": ann, "message_id": message, "text": "late" });
    let late = bot.call("edit_message_text", edit).await.unwrap_err();
    assert!(late.message.contains("message to edit not found"), "{late:?}");
    telegram.block(ann).await;
    let blocked = bot.call("send_message", json!({ "chat_id": ann, "text": "x" })).await.unwrap_err();
    assert_eq!(blocked.class, "TelegramForbiddenError");
    assert!(blocked.message.contains("bot was blocked by the user"), "{blocked:?}");
    telegram.assert_no_violations().await;
}

#[tokio::test]
async fn aiogram_waits_out_limits_and_follows_a_migration() {
    let limits = json!({ "group_per_minute": 2, "chat_burst": 1 });
    let (telegram, bot) = stage("limits", &Options { limits: Some(limits), ..Options::default() }).await;
    let ann = telegram.person("Ann").await;
    let group = telegram.group("Team", &[ann]).await;
    let send = |chat: i64, text: &str| json!({ "chat_id": chat, "text": text });

    let sent = bot.call("send_message", send(ann, "one")).await.unwrap();
    let edit = |text: String| json!({ "chat_id": ann, "message_id": sent["message_id"], "text": text });
    // On a busy machine more than a second may pass between two calls, and then there is room.
    let (mut number, mut begun) = (0, Instant::now());
    let refused = loop {
        match bot.call("edit_message_text", edit(format!("number {number}"))).await {
            Err(refused) => break refused,
            Ok(_) => (number, begun) = (number + 1, Instant::now()),
        }
        assert!(number < 60, "one call a second, and nothing is refused");
    };
    assert_eq!((refused.class.as_str(), refused.retry_after), ("TelegramRetryAfter", Some(1)));
    tokio::time::sleep(Duration::from_secs(refused.retry_after.unwrap().unsigned_abs())).await;
    bot.call("edit_message_text", edit("after".into())).await.expect("after the wait there is room");
    assert!(begun.elapsed() >= Duration::from_secs(1));

    for text in ["a", "b"] {
        bot.call("send_message", send(group, text)).await.unwrap();
    }
    let full = bot.call("send_message", send(group, "c")).await.unwrap_err();
    assert!(full.retry_after.is_some_and(|seconds| (50..=60).contains(&seconds)), "{full:?}");
    assert_eq!(telegram.state().await["too_many"], 2);

    bot.poll().await;
    let supergroup = telegram.migrate(group).await;
    let moved = bot.call("send_message", send(group, "c")).await.unwrap_err();
    assert_eq!((moved.class.as_str(), moved.migrate_to_chat_id), ("TelegramMigrateToChat", Some(supergroup)));
    bot.call("send_message", send(supergroup, "c")).await.unwrap();
    let told = |state: &Value| state["confirmed"] == state["next_update"];
    telegram.wait_for_state("both lines fetched", SOON, told).await;
    let seen = bot.seen().await;
    let line = |key: &str| seen.iter().find(|one| one["event"].get(key).is_some()).unwrap()["event"].clone();
    let (old, new) = (line("migrate_to_chat_id"), line("migrate_from_chat_id"));
    assert_eq!((&old["chat"]["id"], &old["migrate_to_chat_id"]), (&json!(group), &json!(supergroup)));
    assert_eq!((&new["chat"]["id"], &new["migrate_from_chat_id"]), (&json!(supergroup), &json!(group)));
    let named = telegram.chats_named().await;
    assert_eq!(named, [ann, group, supergroup].iter().map(i64::to_string).collect());
    telegram.assert_no_violations().await;
}

#[tokio::test]
async fn one_poller_at_a_time_and_offsets_confirm_for_good() {
    let (telegram, bot) = stage("pollers", &unlimited()).await;
    let ann = telegram.person("Ann").await;
    let first = bot.call("get_updates", json!({ "timeout": 30 }));
    let second = async {
        telegram.wait_for_state("the first poll", SOON, |state| state["polling"] == true).await;
        bot.call("get_updates", json!({ "timeout": 1 })).await
    };
    let (first, second) = tokio::join!(first, second);
    let first = first.unwrap_err();
    assert_eq!(first.class, "TelegramConflictError");
    assert!(first.message.contains("terminated by other getUpdates request"), "{first:?}");
    assert_eq!(second.unwrap(), json!([]));

    telegram.foreign_poller(true).await;
    let held = bot.call("get_updates", json!({ "timeout": 1 })).await.unwrap_err();
    assert_eq!(held.class, "TelegramConflictError");
    telegram.foreign_poller(false).await;
    assert_eq!(telegram.state().await["conflicts"], 2);

    let said = telegram.say_many(ann, ann, "line {n}", 5).await;
    let updates = async |offset: i64| -> Vec<i64> {
        let got = bot.call("get_updates", json!({ "offset": offset })).await.unwrap();
        got.as_array().unwrap().iter().map(|update| update["update_id"].as_i64().unwrap()).collect()
    };
    let all: Vec<i64> = said.iter().map(|one| one.update.unwrap()).collect();
    assert_eq!(updates(0).await, all, "asking again repeats them");
    assert_eq!(updates(all[2]).await, all[2..], "an offset confirms what lies before");
    assert_eq!(updates(0).await, all[2..], "for good");
    assert_eq!(updates(all[4] + 5_000).await, all[2..], "an offset of another life is ignored");
    assert_eq!(updates(-1).await, all[4..], "from the end");
    assert_eq!(telegram.confirmed().await, Some(all[2]));
    telegram.advance_clock(Duration::from_secs(25 * 3_600)).await;
    assert!(updates(0).await.is_empty(), "nothing is kept for more than a day");

    bot.webhook("s", "s").await;
    let refused = bot.call("get_updates", json!({})).await.unwrap_err();
    assert!(refused.message.contains("can't use getUpdates method while webhook is active"), "{refused:?}");
    telegram.replace_token("7654321:another").await;
    assert_eq!(bot.call("get_me", json!({})).await.unwrap_err().class, "TelegramUnauthorizedError");
}

#[tokio::test]
async fn a_webhook_gets_everything_in_order_once_the_secret_is_right() {
    let (telegram, bot) = stage("webhook", &unlimited()).await;
    let ann = telegram.person("Ann").await;
    bot.webhook("right-secret", "wrong-secret").await;
    let said = telegram.say_many(ann, ann, "line {n}", 20).await;
    let refused = |state: &Value| state["webhook"]["last_error_message"].is_string();
    let state = telegram.wait_for_state("a refused update", SOON, refused).await;
    assert_eq!(state["webhook"]["last_error_message"], "Wrong response from the webhook: 401 Unauthorized");
    assert_eq!(state["pending"], 20, "a refused update is kept");
    assert!(bot.seen().await.is_empty());

    bot.webhook("right-secret", "right-secret").await;
    telegram.say(ann, ann, "echo done").await;
    telegram.wait_for_text(ann, "done", SOON).await;
    let seen = bot.seen().await;
    let messages: Vec<_> = seen.iter().map(|one| one["event"]["message_id"].as_i64().unwrap()).collect();
    let expected: Vec<_> = said.iter().map(|one| one.message).chain([said[19].message + 1]).collect();
    assert_eq!(messages, expected, "in order and once");
    telegram.wait_for_state("nothing pending", SOON, |state| state["pending"] == 0).await;
    bot.call("delete_webhook", json!({})).await.unwrap();
    let info = bot.call("get_webhook_info", json!({})).await.unwrap();
    assert_eq!((&info["url"], &info["pending_update_count"]), (&json!(""), &json!(0)));
    telegram.assert_no_violations().await;
}

#[tokio::test]
async fn faults_are_what_they_are_called() {
    let (telegram, bot) = stage("faults", &unlimited()).await;
    let ann = telegram.person("Ann").await;
    let send = async |text: &str| bot.call("send_message", json!({ "chat_id": ann, "text": text })).await;
    let html = json!("<html>429 Too Many Requests</html>");
    telegram.answer_next("sendMessage", 1, 429, &html).await;
    assert_eq!(send("html").await.unwrap_err().class, "ClientDecodeError");
    let body = json!({ "ok": false, "error_code": 502, "description": "Bad Gateway" });
    telegram.answer_next("*", 2, 502, &body).await;
    for _ in 0..2 {
        assert_eq!(send("gateway").await.unwrap_err().class, "TelegramServerError");
    }
    telegram.drop_next("sendMessage", 1).await;
    assert_eq!(send("lost").await.unwrap_err().class, "TelegramNetworkError");
    assert!(telegram.bot_texts(ann).await.is_empty(), "none of these was performed");
    telegram.perform_and_drop_next("sendMessage", 1).await;
    assert_eq!(send("there").await.unwrap_err().class, "TelegramNetworkError");
    assert_eq!(telegram.bot_texts(ann).await, ["there"], "performed, whatever the client thinks");
    telegram.hang_next("sendMessage", 1).await;
    let hung = tokio::time::timeout(Duration::from_millis(300), send("hung")).await;
    assert!(hung.is_err(), "no answer");

    telegram.outage(Duration::from_secs(1)).await;
    assert_eq!(send("away").await.unwrap_err().class, "TelegramNetworkError");
    let begun = Instant::now();
    while send("back").await.is_err() {
        assert!(begun.elapsed() < SOON, "it came back");
    }
    assert_eq!(telegram.bot_texts(ann).await, ["there", "back"]);
    let id = telegram.inject(&json!({ "message": "unreadable" })).await;
    let refused = bot.call("get_updates", json!({})).await.unwrap_err();
    assert_eq!(refused.class, "ClientDecodeError", "update {id}");
}

#[tokio::test]
async fn the_judge_condemns_what_aiogram_does_not_know() {
    let telegram = FakeTelegram::start(&folder("judge"), &unlimited()).await;
    let ann = telegram.person("Ann").await;
    let say = async |more: Value| {
        let ask = json!({ "chat": ann, "from": ann, "text": "x", "more": more });
        let sent = http().post(format!("{}/_fake/say", telegram.url())).json(&ask).send().await.unwrap();
        (sent.status().as_u16(), sent.text().await.unwrap())
    };
    assert_eq!(say(json!({})).await.0, 200);
    for wrong in [json!({ "date": "soon" }), json!({ "colour": "red" }), json!({ "chat": { "id": ann } })] {
        let (status, body) = say(wrong.clone()).await;
        assert_eq!(status, 500, "{wrong}: {body}");
        assert!(body.contains("violation"), "{wrong}: {body}");
    }
    let api = format!("{}/bot{}", telegram.url(), telegram.token());
    let misspelt = json!({ "chat_id": ann, "text": "x", "mesage_thread_id": 2 });
    let misspelt = http().post(format!("{api}/sendMessage")).json(&misspelt).send().await.unwrap();
    assert_eq!(misspelt.status().as_u16(), 500);
    let violations = telegram.state().await["violations"].clone();
    assert!(violations[0].as_str().unwrap().contains("mesage_thread_id"), "{violations}");

    let status = async |path: String| http().get(path).send().await.unwrap().status().as_u16();
    assert_eq!(
        status(format!("{api}/GETchat?chat_id={ann}")).await,
        200,
        "names in any case, arguments in the query"
    );
    assert_eq!(status(format!("{api}/getNothing")).await, 404);
    assert_eq!(status(format!("{}/bot1:x/getMe", telegram.url())).await, 401);
}

#[tokio::test]
async fn privacy_hides_what_is_not_for_the_bot() {
    let telegram = FakeTelegram::start(&folder("privacy"), &Options { privacy: true, ..unlimited() }).await;
    let ann = telegram.person("Ann").await;
    let group = telegram.group("Team", &[ann]).await;
    let seen = async |text: &str| telegram.say(group, ann, text).await.update.is_some();
    let me = telegram.username();
    assert!(!seen("chatter").await);
    assert!(seen(&format!("what do you say, @{me}?")).await);
    assert!(!seen("and you, @somebody_else?").await);
    assert!(seen("/new").await);
    assert!(seen(&format!("/new@{me}")).await);
    assert!(!seen("/new@other_bot").await);
    assert!(telegram.say(ann, ann, "in private").await.update.is_some());
    telegram.privacy(false).await;
    assert!(seen("chatter").await);
}
