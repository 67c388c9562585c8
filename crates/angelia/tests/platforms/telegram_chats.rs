//! Every sort of chat: what the agent gets, and where its answer lands.

use super::telegram_stage::{POLL, SOON, Stage, answer, heard, key, sent, unlimited, whence};
use angelia_testkit::telegram::Options;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

#[tokio::test]
async fn every_sort_of_chat_is_heard_and_answered_in_its_place() {
    let stage = Stage::new("chats").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let group = telegram.group("Team", &[ann]).await;
    let forum = telegram.forum("Forum", &[ann]).await;
    let topic = telegram.topic(forum, ann, "Plans").await;
    let channel = telegram.channel("News", ann).await;
    let mut socket = stage.join().await;
    let stands = async |chat: i64, id: i64| -> Value {
        let messages = telegram.messages(chat).await;
        messages.into_iter().find(|message| message["message_id"] == id).unwrap()
    };

    let said = telegram.say(ann, ann, "hello").await;
    let event = heard(&mut socket).await;
    assert_eq!(whence(&event), ("hello", "dm", ann.to_string().as_str(), None));
    assert_eq!(key(&event), format!("agent:main:telegram:dm:{ann}"));
    assert_eq!(event["message_id"], said.message.to_string());
    assert_eq!(
        (&event["source"]["user_id"], &event["source"]["user_name"]),
        (&json!(ann.to_string()), &json!("Ann"))
    );
    let id = answer(&mut socket, &event, "hello yourself").await;
    let stood = stands(ann, id).await;
    assert_eq!((&stood["text"], &stood["reply_to"]), (&json!("hello yourself"), &json!(said.message)));

    // Chatter and other bots are passed over: what comes next is what was meant.
    telegram.say(group, ann, "chatter").await;
    telegram.say_with(&json!({ "chat": group, "bot_author": true, "text": stage.to_bot("beep") })).await;
    telegram.say(group, ann, &stage.to_bot("a mention")).await;
    let event = heard(&mut socket).await;
    assert_eq!(whence(&event), ("a mention", "group", group.to_string().as_str(), None));
    assert_eq!(key(&event), format!("agent:main:telegram:group:{group}:{ann}"));
    assert_eq!(event["source"]["chat_name"], "Team");
    let id = answer(&mut socket, &event, "mentioned").await;
    telegram.say_with(&json!({ "chat": group, "from": ann, "text": "a reply", "reply_to": id })).await;
    let event = heard(&mut socket).await;
    assert_eq!(whence(&event).0, "a reply");
    assert_eq!(event["reply_to_message_id"], id.to_string());
    assert_eq!(
        (&event["reply_to"]["text"], &event["reply_to"]["is_own"]),
        (&json!("mentioned"), &json!(true)),
        "{event}"
    );
    telegram.say(group, ann, "/x@other_bot no").await;
    telegram.say(group, ann, &format!("/x@{} yes", telegram.username())).await;
    let event = heard(&mut socket).await;
    assert_eq!((whence(&event).0, &event["message_type"]), ("/x yes", &json!("command")));

    telegram.say_in(forum, topic, ann, &stage.to_bot("in a topic")).await;
    let event = heard(&mut socket).await;
    let (topic_text, forum_text) = (topic.to_string(), forum.to_string());
    assert_eq!(whence(&event), ("in a topic", "forum", forum_text.as_str(), Some(topic_text.as_str())));
    assert_eq!(key(&event), format!("agent:main:telegram:forum:{forum}:{topic}"));
    assert_eq!(event["source"]["chat_topic"], "Plans");
    assert_eq!(event["reply_to"], Value::Null, "the line that opened a topic is not answered by all in it");
    let id = answer(&mut socket, &event, "topical").await;
    assert_eq!(stands(forum, id).await["thread"], topic);
    let typing = json!({ "op": "typing", "chat_id": forum_text, "metadata": { "thread_id": topic_text } });
    // Left out while a message of the chat is under way, so it is said again, as gateways do.
    let deadline = Instant::now() + SOON;
    while telegram.actions(forum).await.is_empty() {
        assert!(Instant::now() < deadline, "nobody sees that the agent writes");
        assert_eq!(socket.ask(typing.clone()).await["success"], true);
        sleep(POLL).await;
    }
    assert_eq!(telegram.actions(forum).await[0], json!({ "action": "typing", "thread": topic }));

    telegram.say(forum, ann, &stage.to_bot("in General")).await;
    let event = heard(&mut socket).await;
    assert_eq!(whence(&event), ("in General", "group", forum_text.as_str(), None));
    let id = answer(&mut socket, &event, "generally").await;
    assert_eq!(stands(forum, id).await["thread"], Value::Null);
    let general = json!({ "op": "send", "chat_id": forum_text, "content": "by number", "metadata": { "thread_id": "1" } });
    let id = sent(&socket.ask(general).await);
    assert_eq!(stands(forum, id).await["thread"], Value::Null, "General has no number");

    telegram.say(channel, ann, &stage.to_bot("news")).await;
    let event = heard(&mut socket).await;
    assert_eq!(whence(&event), ("news", "channel", channel.to_string().as_str(), None));
    assert_eq!(key(&event), format!("agent:main:telegram:channel:{channel}"));
    answer(&mut socket, &event, "no news").await;
    telegram.say(channel, ann, &stage.to_bot("more news")).await;
    assert_eq!(whence(&heard(&mut socket).await).0, "more news", "its own post does not come back");

    let info = socket.ask(json!({ "op": "get_chat_info", "chat_id": forum_text })).await;
    assert_eq!(
        (&info["chat_info"]["name"], &info["chat_info"]["type"]),
        (&json!("Forum"), &json!("group")),
        "{info}"
    );
    let info = socket.ask(json!({ "op": "get_chat_info", "chat_id": ann.to_string() })).await;
    assert_eq!(
        (&info["chat_info"]["name"], &info["chat_info"]["type"]),
        (&json!("Ann"), &json!("dm")),
        "{info}"
    );
    let named = telegram.chats_named().await;
    assert_eq!(named, [ann, group, forum, channel].iter().map(i64::to_string).collect());
    stage.close().await;
}

#[tokio::test]
async fn threads_of_replies_are_no_topics_and_chats_can_be_authors() {
    let stage = Stage::new("replies").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let group = telegram.supergroup("Team", &[ann]).await;
    let channel = telegram.channel("News", ann).await;
    let mut socket = stage.join().await;

    let first = telegram.say(group, ann, "a question to all").await;
    let reply =
        json!({ "chat": group, "from": ann, "text": stage.to_bot("and to you"), "reply_to": first.message });
    telegram.say_with(&reply).await;
    let event = heard(&mut socket).await;
    assert_eq!(whence(&event), ("and to you", "group", group.to_string().as_str(), None));
    assert_eq!(key(&event), format!("agent:main:telegram:group:{group}:{ann}"));
    assert_eq!(
        (&event["reply_to"]["text"], &event["reply_to"]["author"]),
        (&json!("a question to all"), &json!("Ann"))
    );
    answer(&mut socket, &event, "to me?").await;
    telegram.wait_for_text(group, "to me?", SOON).await;

    for (chat, text) in [(group, "unnamed"), (channel, "as the channel")] {
        telegram.say_with(&json!({ "chat": group, "sender_chat": chat, "text": stage.to_bot(text) })).await;
        let event = heard(&mut socket).await;
        assert_eq!(whence(&event), (text, "group", group.to_string().as_str(), None));
        assert_eq!(event["source"]["user_id"], chat.to_string(), "not the stand-in that Telegram shows");
    }
    stage.close().await;
}

#[tokio::test]
async fn what_people_send_besides_text_is_described() {
    let stage = Stage::new("media").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let mut socket = stage.join().await;
    for (what, kind, row) in [
        ("photo", "photo", true),
        ("voice", "voice", true),
        ("audio", "audio", true),
        ("video", "video", true),
        ("video_note", "video", true),
        ("animation", "video", true),
        ("sticker", "sticker", true),
        ("document", "document", true),
        ("location", "location", false),
        ("contact", "text", false),
        ("dice", "text", false),
    ] {
        telegram.say_with(&json!({ "chat": ann, "from": ann, what: true })).await;
        let event = heard(&mut socket).await;
        assert_eq!(event["message_type"], kind, "{what}: {event}");
        assert!(event["text"].as_str().is_some_and(|text| text.starts_with('[')), "{what}: {event}");
        assert_eq!(event["media_urls"].as_array().map_or(0, Vec::len), usize::from(row), "{what}: {event}");
        let rows = event["media"].as_array().map_or(0, Vec::len);
        assert_eq!(rows, usize::from(row), "{what}: {event}");
        if row {
            assert_eq!(
                (&event["media"][0]["kind"], &event["media"][0]["url"]),
                (&json!(what), &event["media_urls"][0])
            );
        }
    }
    let captioned = json!({ "chat": ann, "from": ann, "document": true, "caption": "the minutes" });
    telegram.say_with(&captioned).await;
    let event = heard(&mut socket).await;
    let said = whence(&event).0;
    assert!(said.starts_with("the minutes\n[document notes.pdf"), "{event}");
    assert_eq!(event["media"][0]["filename"], "notes.pdf", "{event}");
    stage.close().await;
}

#[tokio::test]
async fn a_topic_of_a_private_chat_is_a_conversation_of_its_own() {
    let options = Options { private_topics: true, ..unlimited() };
    let stage = Stage::with("private-topics", &options, "", "").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let topic = telegram.topic(ann, ann, "Taxes").await;
    let mut socket = stage.join().await;
    telegram.say_in(ann, topic, ann, "how much?").await;
    let event = heard(&mut socket).await;
    assert_eq!(
        whence(&event),
        ("how much?", "dm", ann.to_string().as_str(), Some(topic.to_string().as_str()))
    );
    assert_eq!(key(&event), format!("agent:main:telegram:dm:{ann}:{topic}"));
    answer(&mut socket, &event, "too much").await;
    assert_eq!(telegram.wait_for_text(ann, "too much", SOON).await["thread"], topic);
    stage.close().await;
}
