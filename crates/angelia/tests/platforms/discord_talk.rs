//! What people say on Discord, and who gets it.

use super::discord_stage::Stage;
use angelia_contract::session_key::session_key_from_value;
use angelia_contract::{KeyOptions, Rules};
use angelia_testkit::socket::fetch_file;
use serde_json::{Value, json};

/// The conversation a published gateway files an event under.
pub(crate) fn key(event: &Value) -> String {
    session_key_from_value(&event["source"], &KeyOptions::default(), Rules::Published).unwrap()
}

#[tokio::test]
async fn guild_thread_and_person_reach_the_agent_as_what_they_are() {
    let stage = Stage::listening(json!({ "identify_seconds": 0 })).await;
    let Stage { discord, guild, quay, ann, .. } = &stage;
    let mut agent = stage.agent().await;

    let said = discord.mention(quay, ann, "hello").await;
    let event = agent.takes("hello").await;
    let source = &event["source"];
    assert_eq!((&event["message_id"], &event["message_type"]), (&json!(said), &json!("text")));
    for (field, expected) in [
        ("platform", "discord"),
        ("chat_id", quay.as_str()),
        ("chat_type", "group"),
        ("chat_name", "Harbour / #quay"),
        ("chat_topic", "ships"),
        ("user_id", ann.as_str()),
        ("user_name", "Ann"),
        ("user_handle", "ann"),
        ("user_display_name", "Ann"),
        ("scope_id", guild.id.as_str()),
        ("guild_id", guild.id.as_str()),
        ("message_id", said.as_str()),
    ] {
        assert_eq!(source[field], expected, "{field} of {source:#}");
    }
    assert_eq!(source["thread_id"], Value::Null);
    assert!(source.get("is_bot").is_none(), "the contract keeps it off the wire: {source}");
    assert_eq!(key(&event), format!("agent:main:discord:group:{quay}:{ann}"));
    // What the bot says itself comes back from Discord, and to nobody.
    let answer = agent.sends(quay, "hello Ann").await;

    let reply =
        json!({ "channel": quay, "author": ann, "content": "thanks", "reply_to": answer, "ping": false });
    discord.make("say", reply).await;
    let event = agent.takes("thanks").await;
    assert_eq!(event["reply_to_message_id"], json!(answer));
    assert_eq!(
        (&event["reply_to"]["text"], &event["reply_to"]["is_own"]),
        (&json!("hello Ann"), &json!(true)),
        "{event:#}"
    );

    let by_role =
        json!({ "channel": quay, "author": ann, "content": "all of you", "mention_role": guild.role });
    discord.make("say", by_role).await;
    agent.takes("all of you").await;

    discord.mention(quay, ann, "/new").await;
    assert_eq!(agent.takes("/new").await["message_type"], "command");

    let dm = discord.dm(ann).await;
    discord.say(&dm, ann, "between us").await;
    let event = agent.takes("between us").await;
    let source = &event["source"];
    assert_eq!((&source["chat_type"], &source["chat_id"]), (&json!("dm"), &json!(dm)), "{source:#}");
    assert_eq!((&source["scope_id"], &source["chat_name"]), (&Value::Null, &json!("Ann")), "{source:#}");
    assert_eq!(key(&event), format!("agent:main:discord:dm:{dm}"));
    agent.sends(&dm, "yes").await;
    assert_eq!(discord.answers(&dm).await[0].content, "yes");
    assert_eq!(discord.count("/rest/not_built").await, 0);
}

#[tokio::test]
async fn a_thread_goes_on_with_whom_it_was_begun() {
    let stage = Stage::listening(json!({ "identify_seconds": 0 })).await;
    let Stage { discord, guild, quay, ann, .. } = &stage;
    let beta = stage.connector.gateway("beta", "gw-beta").await;
    let (mut agent, mut other) = (stage.agent().await, stage.agent_of(&beta).await);
    let begun = discord.mention(quay, ann, "let us talk").await;
    agent.takes("let us talk").await;
    let thread = discord.thread(quay, "ropes", ann, Some(&begun)).await;
    assert_eq!(thread, begun, "a thread from a message has its id");

    let chatter = discord.say(&thread, ann, "not yet to the bot").await;
    assert_eq!(stage.drop_of(&chatter).await["reason"], "not_addressed");
    discord.mention(&thread, ann, "in here").await;
    let event = agent.takes("in here").await;
    let source = &event["source"];
    assert_eq!(
        (&source["chat_type"], &source["chat_id"], &source["thread_id"], &source["parent_chat_id"]),
        (&json!("thread"), &json!(thread), &json!(thread), &json!(quay)),
        "{source:#}"
    );
    assert_eq!(source["chat_name"], "Harbour / #quay / ropes");
    assert_eq!(
        (&source["scope_id"], &source["guild_id"]),
        (&json!(guild.id), &json!(guild.id)),
        "{source:#}"
    );
    assert_eq!(key(&event), format!("agent:main:discord:thread:{thread}:{thread}"));
    discord.say(&thread, ann, "and on").await;
    agent.takes("and on").await;
    // As gateways answer in a thread: the chat is the thread, and the metadata says it again.
    let send = json!({ "op": "send", "chat_id": thread, "content": "so be it",
        "metadata": { "thread_id": thread } });
    assert_eq!(agent.ask(send).await["success"], true);
    assert_eq!(discord.answers(&thread).await[0].content, "so be it");

    // The channel is somebody else's now: what was meant for the one is not meant for the other.
    stage.route("beta", &["--allow", "any"], &format!("discord:{}/{quay}", guild.id)).await;
    let chatter = discord.say(&thread, ann, "still there?").await;
    assert_eq!(stage.drop_of(&chatter).await["reason"], "not_addressed");
    let declined = agent.send(&thread, "still here").await;
    assert_eq!(declined["success"], false, "{declined}");
    assert_eq!(discord.answers(&thread).await.len(), 1);
    discord.mention(&thread, ann, "you then").await;
    other.takes("you then").await;
    discord.say(&thread, ann, "and you again").await;
    other.takes("and you again").await;
}

#[tokio::test]
async fn who_is_not_meant_gets_nothing_and_it_is_told_why() {
    let stage = Stage::listening(json!({ "identify_seconds": 0 })).await;
    let Stage { discord, guild, quay, ann, .. } = &stage;
    let mut agent = stage.agent().await;
    let robot = discord.other_bot("robot").await;
    let stranger = discord.user("eve").await;
    let inner = discord.channel(&guild.id, "inner").await;
    stage.route("acme", &["--allow", ann], &format!("discord:{}/{inner}", guild.id)).await;
    let elsewhere = discord.guild("Elsewhere").await;
    let foreign = discord.channel(&elsewhere.id, "lobby").await;
    let dm = discord.dm(&stranger).await;
    let hook = json!({ "channel": quay, "author": ann, "content": "build 61 failed-61",
        "mention_bot": true, "webhook": "4242" });
    for (message, reason) in [
        (discord.say(quay, ann, "chatter-61").await, "not_addressed"),
        (discord.say(quay, ann, "/new-61").await, "not_addressed"),
        (discord.mention(quay, &robot, "beep-61").await, "bot_not_allowed"),
        (discord.make("say", hook).await, "bot_not_allowed"),
        (discord.mention(&inner, &stranger, "me too-61").await, "author_not_allowed"),
        (discord.mention(&foreign, ann, "anybody-61").await, "no_route"),
        (discord.say(&dm, &stranger, "psst-61").await, "no_route"),
    ] {
        let told = stage.drop_of(&message).await;
        assert_eq!(told["reason"], reason, "{told}");
        assert!(!told.to_string().contains("-61"), "without the text: {told}");
    }
    discord.mention(&inner, ann, "in here").await;
    assert_eq!(agent.takes("in here").await["source"]["chat_id"], json!(inner));
    stage.connector.command(&["route", "remove", &format!("discord:{}/{inner}", guild.id)]).await;
    stage.route("acme", &["--allow", "any", "--free"], &format!("discord:{}/{inner}", guild.id)).await;
    discord.say(&inner, &stranger, "to the room").await;
    agent.takes("to the room").await;
    assert!(!stage.log().contains("-61"), "no text in the log");
}

#[tokio::test]
async fn files_come_along_and_an_edit_changes_what_still_waits() {
    let stage = Stage::listening(json!({ "identify_seconds": 0 })).await;
    let Stage { discord, quay, ann, .. } = &stage;
    let dm = discord.dm(ann).await;
    let files = json!({ "channel": dm, "author": ann, "content": "", "attachments": [
        { "filename": "map.png", "size": 10, "content_type": "image/png" },
        { "filename": "log.txt", "text": "dear diary", "content_type": "text/plain" },
    ] });
    discord.make("say", files).await;
    let wrong = discord.mention(quay, ann, "teh harbour").await;
    discord.mention(quay, ann, "next").await;
    stage.until_waiting(3).await;
    discord.edit(quay, &wrong, &format!("<@{}> the harbour", discord.bot_id())).await;
    // A message that comes after the edit: once it waits too, the edit was taken in.
    discord.mention(quay, ann, "last").await;
    stage.until_waiting(4).await;

    let mut agent = stage.agent().await;
    let mut events = Vec::new();
    for _ in 0..4 {
        events.push(agent.take().await);
    }
    // Chats have their own order, and files take a moment.
    let at = events.iter().position(|event| event["text"] == "[photo map.png] [document log.txt]").unwrap();
    let event = events.remove(at);
    assert_eq!(event["message_type"], "photo", "{event:#}");
    let media = &event["media"];
    assert_eq!(
        (&media[0]["kind"], &media[0]["mime"], &media[0]["size"], &media[0]["filename"]),
        (&json!("photo"), &json!("application/octet-stream"), &json!(10), &json!("map.png")),
        "{event:#}"
    );
    assert_eq!((&media[1]["kind"], &media[1]["filename"]), (&json!("document"), &json!("log.txt")));
    assert_eq!(event["media_urls"].as_array().unwrap().len(), 2);
    assert_eq!(event["media_urls"][1], media[1]["url"]);
    let file = fetch_file(media[1]["url"].as_str().unwrap(), &stage.acme).await.text().await.unwrap();
    assert_eq!(file, "dear diary", "the reference leads to the file");

    let texts: Vec<_> = events.iter().map(|event| event["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["the harbour", "next", "last"]);
    assert_eq!(events[0]["message_id"], json!(wrong));
    // What was delivered is not delivered again for being edited.
    discord.edit(quay, &wrong, &format!("<@{}> THE harbour", discord.bot_id())).await;
    discord.mention(quay, ann, "after the edit").await;
    agent.takes("after the edit").await;
}
