//! Discord itself is away, the bot is thrown out, its shards change, and the
//! connector dies with an answer on its lips.

use super::discord_stage::{Agent, SOON, Stage};
use angelia_testkit::discord::Message;
use serde_json::{Value, json};

#[tokio::test]
async fn while_discord_is_away_it_is_told_and_nothing_is_lost() {
    let mut stage = Stage::listening(json!({ "heartbeat_interval": 1000, "identify_seconds": 0 })).await;
    let mut agent = stage.agent().await;
    let Stage { discord, quay, ann, .. } = &stage;
    discord.mention(quay, ann, "before").await;
    agent.takes("before").await;
    discord.refuse_connections(600.0, true).await;
    discord.close_gateway(None).await;
    discord.mention(quay, ann, "nobody listens").await;
    let bot = stage.until_bot(|bot| bot["health"]["state"] == "down").await;
    assert!(bot["health"]["why"].is_string(), "{bot:#}");
    // What an agent says meanwhile waits for its time.
    let action = json!({ "op": "send", "chat_id": quay, "content": "said in between" });
    agent.socket.send(&json!({ "type": "outbound", "requestId": "r", "action": action })).await;
    discord.until_state(SOON, |state| state["gateway"]["connections_refused"].as_u64() > Some(1)).await;
    discord.order("fault/clear", json!({})).await;
    let mut frames = [agent.socket.frame().await, agent.socket.frame().await];
    frames.sort_by_key(|frame| frame["type"].to_string());
    assert_eq!(frames[0]["event"]["text"], "nobody listens", "{frames:#?}");
    assert_eq!(frames[1]["result"]["success"], true, "{frames:#?}");
    agent.socket.ack(&frames[0]).await;
    assert_eq!(discord.answers(quay).await.len(), 1);
    assert_eq!(discord.count("/gateway/identifies").await, 1);
    stage.until_waiting(0).await;
    drop(agent);

    // And at a start: the connector is there for everybody else.
    stage.stop().await;
    stage.discord.refuse_connections(600.0, true).await;
    stage.discord.mention(&stage.quay, &stage.ann, "at the start").await;
    stage.connector.restart().await;
    let bot = stage.until_bot(|bot| bot["health"]["state"] == "down").await;
    assert!(bot["health"]["why"].as_str().unwrap().contains("Discord"), "{bot:#}");
    stage.discord.order("fault/clear", json!({})).await;
    let mut agent = stage.agent().await;
    agent.takes("at the start").await;
    stage.until_bot(|bot| bot["health"]["state"] == "up").await;
    assert_eq!(stage.discord.count("/gateway/identifies").await, 1);
}

#[tokio::test]
async fn a_connector_killed_while_it_sends_does_not_say_it_twice() {
    let mut stage = Stage::listening(json!({ "identify_seconds": 0 })).await;
    let long = "word ".repeat(700);
    // The answer to the first message, and to the second of two, never gets through.
    for (number, (text, skip, whole)) in [("short", 0, 1), (long.trim(), 1, 2)].into_iter().enumerate() {
        let mut agent = stage.agent().await;
        let Stage { discord, quay, .. } = &stage;
        let before = discord.answers(quay).await.len();
        let fault = json!({ "path": "/messages$", "method": "POST", "skip": skip, "perform": true,
            "how": "hang", "seconds": 60 });
        discord.fault(fault).await;
        let action = json!({ "op": "send", "chat_id": quay, "content": text });
        agent.socket.send(&json!({ "type": "outbound", "requestId": "r", "action": action })).await;
        let own = |all: &[Message]| all.iter().filter(|one| one.own).count();
        discord.until_messages(quay, SOON, |all| own(all) == before + whole).await;
        let repeated = discord.count("/rest/nonces_repeated").await;
        drop(agent);
        stage.connector.kill().await;
        stage.connector.restart().await;
        let discord = &stage.discord;
        let again = |state: &Value| state["rest"]["nonces_repeated"] == repeated + whole as u64;
        discord.until_state(SOON, again).await;
        assert_eq!(discord.answers(&stage.quay).await.len(), before + whole, "round {number}");
    }
    // The pieces are known: an edit takes the second one back.
    let first = stage.discord.answers(&stage.quay).await[1].id.clone();
    let mut agent = stage.agent().await;
    let edit = json!({ "op": "edit", "chat_id": stage.quay, "message_id": first, "content": "less" });
    assert_eq!(agent.ask(edit).await["success"], true);
    let is_less = |all: &[Message]| {
        let own: Vec<_> = all.iter().filter(|one| one.own).map(|one| one.content.as_str()).collect();
        own == ["short", "less"]
    };
    stage.discord.until_messages(&stage.quay, SOON, is_less).await;
}

#[tokio::test]
async fn a_bot_that_was_thrown_out_does_not_knock() {
    let stage = Stage::listening(json!({ "identify_seconds": 0 })).await;
    let Stage { discord, guild, quay, ann, .. } = &stage;
    let mut agent = stage.agent().await;
    discord.mention(quay, ann, "hello").await;
    agent.takes("hello").await;
    discord.order("rename", json!({ "channel": quay, "name": "pier", "topic": "" })).await;
    discord.mention(quay, ann, "renamed").await;
    let event = agent.takes("renamed").await;
    assert_eq!(event["source"]["chat_name"], "Harbour / #pier", "{event:#}");
    assert_eq!(event["source"]["chat_topic"], Value::Null, "{event:#}");
    discord.order("kick", json!({ "guild": guild.id })).await;
    let dm = discord.dm(ann).await;
    discord.say(&dm, ann, "you were thrown out").await;
    agent.takes("you were thrown out").await;
    let since = stage.last_call().await;
    for _ in 0..5 {
        let result = agent.send(quay, "let me in").await;
        assert_eq!(result["success"], false, "{result}");
    }
    let calls = discord.requests(since).await;
    assert!(calls.len() <= 1, "refused calls bar the whole bot: {calls:#?}");
    agent.sends(&dm, "so it seems").await;
}

#[tokio::test]
async fn every_shard_has_a_session_of_its_own() {
    let mut stage = Stage::listening(json!({ "heartbeat_interval": 1000, "identify_seconds": 0 })).await;
    let mut chats = vec![stage.discord.dm(&stage.ann).await];
    for number in 0..3 {
        let guild = stage.discord.make("guild", json!({ "name": "g", "shard": [number, 3] })).await;
        stage.route("acme", &["--allow", "any", "--free"], &format!("discord:{guild}")).await;
        chats.push(stage.discord.channel(&guild, "quay").await);
    }
    // One session becomes three, which all have to read back, and those are resumed. Nodes of a
    // cluster would go on with one if Discord wanted two.
    for (round, shards) in [("one", 1), ("three", 3), ("again three", 3)] {
        let all = |state: &Value| {
            let sessions = state["gateway"]["sessions"].as_array().into_iter().flatten();
            sessions.filter(|session| session["connected"] == true).count() == shards
        };
        stage.discord.until_state(SOON, all).await;
        let mut agent = stage.agent().await;
        say_in(&stage, &chats, &format!("{round}, live")).await;
        hear_from(&mut agent, &chats, &format!("{round}, live")).await;
        stage.until_waiting(0).await;
        drop(agent);
        stage.stop().await;
        stage.discord.set(json!({ "shards": 3 })).await;
        say_in(&stage, &chats, &format!("{round}, down")).await;
        stage.connector.restart().await;
        hear_from(&mut stage.agent().await, &chats, &format!("{round}, down")).await;
    }
    assert_eq!(stage.discord.count("/gateway/identifies").await, 4, "one, and then three");
    let bot = stage.bot().await;
    assert_eq!(bot["missed"], json!([]), "{bot:#}");
}

async fn say_in(stage: &Stage, chats: &[String], text: &str) {
    for chat in chats {
        stage.discord.say(chat, &stage.ann, text).await;
    }
}

/// The text from each of the chats, in whatever order.
async fn hear_from(agent: &mut Agent, chats: &[String], text: &str) {
    let mut heard = Vec::new();
    for _ in chats {
        heard.push(agent.takes(text).await["source"]["chat_id"].as_str().unwrap().to_owned());
    }
    heard.sort();
    let mut expected = chats.to_vec();
    expected.sort();
    assert_eq!(heard, expected, "{text}");
}
