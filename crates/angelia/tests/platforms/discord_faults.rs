//! Connections that break in every way Discord's do, and events nobody can read.

use super::discord_stage::{SOON, Stage};
use super::discord_talk::key;
use angelia_engines::inspect::Inspect;
use serde_json::{Value, json};

/// Heartbeats every second, so that what depends on them does not take a minute.
fn lively() -> Value {
    json!({ "heartbeat_interval": 1000, "identify_seconds": 0 })
}

#[tokio::test]
async fn a_connection_that_breaks_is_resumed() {
    let stage = Stage::listening(lively()).await;
    let Stage { discord, quay, ann, .. } = &stage;
    let mut agent = stage.agent().await;
    let ways = [
        ("cut", "gateway/close", json!({})),
        ("closed with a code", "gateway/close", json!({ "code": 4000 })),
        ("op 7", "gateway/reconnect", json!({})),
        ("op 9, resumable", "gateway/invalidate", json!({ "resumable": true })),
        ("no acknowledgements", "gateway/zombie", json!({})),
        ("dead and open", "gateway/zombie", json!({ "mute": true })),
    ];
    for (done, (way, order, ask)) in ways.into_iter().enumerate() {
        discord.mention(quay, ann, &format!("before: {way}")).await;
        agent.takes(&format!("before: {way}")).await;
        discord.order(order, ask).await;
        for number in 0..5 {
            discord.mention(quay, ann, &format!("{number}: {way}")).await;
        }
        for number in 0..5 {
            agent.takes(&format!("{number}: {way}")).await;
        }
        discord.until_state(SOON, |state| state["gateway"]["resumes"] == done + 1).await;
    }
    let bot = stage.until_bot(|bot| bot["health"]["state"] == "up").await;
    assert_eq!(bot["health"]["counts"]["resumes"], 6, "{bot:#}");
    assert_eq!(discord.count("/gateway/identifies").await, 1);
    assert_eq!(discord.count("/gateway/resume_failures").await, 0);
    assert_eq!(discord.count("/gateway/connections").await, 7, "one connection for each, no more");
    assert_eq!(bot["missed"], json!([]), "{bot:#}");
}

#[tokio::test]
async fn a_session_that_is_gone_is_read_back_from_the_channels() {
    let stage = Stage::listening(lively()).await;
    let Stage { discord, quay, ann, .. } = &stage;
    let mut agent = stage.agent().await;
    let dm = discord.dm(ann).await;
    let thread = discord.thread(quay, "ropes", ann, None).await;
    discord.mention(&thread, ann, "in the thread").await;
    discord.mention(quay, ann, "in the channel").await;
    discord.say(&dm, ann, "in private").await;
    for text in ["in the thread", "in the channel", "in private"] {
        agent.takes(text).await;
    }
    // Told that it is over; refused three times; told so by a close that ends the session.
    for (done, round) in ["told", "refused", "closed"].into_iter().enumerate() {
        match round {
            "told" => discord.invalidate(false).await,
            "refused" => {
                discord.refuse_resumes(3, Some(4000)).await;
                discord.close_gateway(None).await;
            }
            _ => discord.close_gateway(Some(4009)).await,
        }
        for (chat, place) in [(&thread, "thread"), (quay, "quay"), (&dm, "dm")] {
            // The thread needs no mention, the person neither.
            match place {
                "quay" => discord.mention(chat, ann, &format!("{round} {place}")).await,
                _ => discord.say(chat, ann, &format!("{round} {place}")).await,
            };
        }
        let mut texts = Vec::new();
        for _ in 0..3 {
            let event = agent.take().await;
            texts.push(event["text"].as_str().unwrap().to_owned());
            if texts.last().unwrap().ends_with("thread") {
                assert_eq!(key(&event), format!("agent:main:discord:thread:{thread}:{thread}"));
            }
        }
        texts.sort();
        assert_eq!(texts, ["dm", "quay", "thread"].map(|place| format!("{round} {place}")));
        discord.until_state(SOON, |state| state["gateway"]["identifies"] == done + 2).await;
        // What was read back does not come again with the session.
        discord.mention(quay, ann, &format!("after {round}")).await;
        agent.takes(&format!("after {round}")).await;
    }
    assert_eq!(discord.count("/gateway/resume_failures").await, 3);
    assert_eq!(discord.count("/gateway/identifies_refused").await, 0);
    let bot = stage.bot().await;
    assert_eq!(bot["missed"], json!([]), "{bot:#}");
}

#[tokio::test]
async fn what_is_too_much_to_read_back_is_a_gap_that_is_told() {
    let mut stage = Stage::listening(lively()).await;
    let place = format!("discord:{}/{}", stage.guild.id, stage.quay);
    stage.route("acme", &["--allow", "any", "--free"], &place).await;
    let mut agent = stage.agent().await;
    let last = stage.discord.say(&stage.quay, &stage.ann, "before").await;
    agent.takes("before").await;
    let den = stage.discord.channel(&stage.guild.id, "den").await;
    stage.discord.mention(&den, &stage.ann, "in the den").await;
    agent.takes("in the den").await;
    stage.until_waiting(0).await;
    drop(agent);
    stage.stop().await;
    let Stage { discord, quay, ann, .. } = &stage;
    discord.expire_sessions().await;
    discord.order("hide", json!({ "channel": den, "hidden": true })).await;
    discord.say_many(quay, ann, "missed {n}", 130).await;
    stage.connector.restart().await;
    let mut agent = stage.agent().await;
    for number in 0..100 {
        agent.takes(&format!("missed {number}")).await;
    }
    let bot = stage.until_bot(|bot| bot["missed"][1].is_object()).await;
    let gap = |chat: &str| bot["missed"].as_array().unwrap().iter().find(|gap| gap["chat_id"] == chat);
    let busy = gap(&stage.quay).unwrap();
    assert_eq!(busy["after"], json!(last), "{bot:#}");
    assert!(busy["why"].as_str().unwrap().contains("more than 100"), "{busy}");
    assert!(gap(&den).unwrap()["why"].as_str().unwrap().contains("View Channel"), "{bot:#}");
    assert_eq!(bot["health"]["counts"]["gaps"], 2, "{bot:#}");
    stage.discord.say(&stage.quay, &stage.ann, "now").await;
    agent.takes("now").await;
}

#[tokio::test]
async fn a_final_refusal_stops_the_bot_with_the_next_step() {
    let stage = Stage::new(json!({ "identify_seconds": 0, "privileged": [] })).await;
    let stopped = |bot: &Value| bot["health"]["state"] == "stopped";
    let bot = stage.until_bot(stopped).await;
    let why = bot["health"]["why"].as_str().unwrap();
    assert!(why.contains("4014") && why.contains("Message Content Intent"), "{why}");
    let (_, listed, _) = stage.angelia(&["bot", "list"]).await;
    assert!(listed.contains("stopped") && listed.contains("Message Content Intent"), "{listed}");
    assert_eq!(stage.discord.count("/gateway/connections").await, 1, "and it does not try on");
    assert!(!stage.log().contains(stage.discord.token()), "no token in the log");
}

#[tokio::test]
async fn a_token_that_was_reset_stops_the_bot_with_the_next_step() {
    let mut stage = Stage::listening(json!({ "identify_seconds": 0 })).await;
    let stopped = |bot: &Value| bot["health"]["state"] == "stopped";
    stage.discord.close_gateway(Some(4004)).await;
    let bot = stage.until_bot(stopped).await;
    assert!(bot["health"]["why"].as_str().unwrap().contains("Reset Token"), "{bot:#}");
    assert_eq!(stage.discord.count("/gateway/connections").await, 1);

    // The same at a start: one call is enough to know it.
    let token = stage.discord.token().to_owned();
    stage.discord.set(json!({ "token": "another" })).await;
    stage.stop().await;
    let since = stage.last_call().await;
    stage.connector.restart().await;
    let bot = stage.until_bot(stopped).await;
    assert!(bot["health"]["why"].as_str().unwrap().contains("Reset Token"), "{bot:#}");
    assert_eq!(stage.last_call().await, since + 1, "refused calls count against the address");
    // And while it runs: an agent's message is what finds out.
    stage.stop().await;
    stage.discord.set(json!({ "token": token })).await;
    stage.connector.restart().await;
    stage.until_session().await;
    let mut agent = stage.agent().await;
    agent.sends(&stage.quay, "still good").await;
    stage.discord.set(json!({ "token": "another" })).await;
    let since = stage.last_call().await;
    let action = json!({ "op": "send", "chat_id": stage.quay, "content": "not any more" });
    agent.socket.send(&json!({ "type": "outbound", "requestId": "r", "action": action })).await;
    let bot = stage.until_bot(stopped).await;
    assert!(bot["health"]["why"].as_str().unwrap().contains("Reset Token"), "{bot:#}");
    assert_eq!(stage.last_call().await, since + 1);
}

#[tokio::test]
async fn a_restarted_connector_resumes_and_knows_its_chats() {
    let mut stage = Stage::listening(lively()).await;
    let mut agent = stage.agent().await;
    let thread = stage.discord.thread(&stage.quay, "ropes", &stage.ann, None).await;
    stage.discord.mention(&thread, &stage.ann, "begin").await;
    agent.takes("begin").await;
    stage.until_reported().await;
    drop(agent);

    stage.stop().await;
    let Stage { discord, ann, .. } = &stage;
    let state = discord.state().await;
    assert_eq!(state["gateway"]["client_closes"], json!([4000]), "{state:#}");
    discord.say(&thread, ann, "while it is down").await;
    let since = stage.last_call().await;
    stage.connector.restart().await;
    stage.until_session().await;
    stage.discord.say(&thread, &stage.ann, "right after").await;
    let mut agent = stage.agent().await;
    for text in ["while it is down", "right after"] {
        let event = agent.takes(text).await;
        let source = &event["source"];
        assert_eq!(
            (&source["chat_type"], &source["thread_id"], &source["parent_chat_id"]),
            (&json!("thread"), &json!(thread), &json!(stage.quay)),
            "{source:#}"
        );
        assert_eq!(source["chat_name"], "Harbour / #quay / ropes");
        assert_eq!(key(&event), format!("agent:main:discord:thread:{thread}:{thread}"));
    }
    let Stage { discord, guild, quay, ann, .. } = &stage;
    assert_eq!(discord.count("/gateway/identifies").await, 1);
    assert_eq!(discord.count("/gateway/resumes").await, 1);
    let calls: Vec<_> = discord.requests(since).await.into_iter().map(|call| call.path).collect();
    assert_eq!(calls, ["/users/@me", "/gateway/bot"], "everything else was known");
    // The managed role is known too.
    let by_role = json!({ "channel": quay, "author": ann, "content": "all", "mention_role": guild.role });
    discord.make("say", by_role).await;
    agent.takes("all").await;
}

#[tokio::test]
async fn a_chat_that_nobody_told_of_is_asked_for() {
    let mut stage = Stage::listening(lively()).await;
    stage.until_reported().await;
    stage.stop().await;
    let Stage { discord, guild, quay, ann, .. } = &stage;
    // What tells of them cannot be understood, so what they are is not known.
    for event in ["CHANNEL_CREATE", "THREAD_CREATE"] {
        discord.mangle(json!({ "event": event, "set": { "type": 99 } })).await;
    }
    let fresh = json!({ "guild": guild.id, "name": "fresh", "topic": "new" });
    let fresh = discord.make("channel", fresh).await;
    let thread = discord.thread(quay, "ropes", ann, None).await;
    discord.mention(&fresh, ann, "in the channel").await;
    discord.mention(&thread, ann, "in the thread").await;
    stage.connector.restart().await;
    let mut agent = stage.agent().await;
    let event = agent.takes("in the channel").await;
    let source = &event["source"];
    assert_eq!((&source["chat_type"], &source["chat_id"]), (&json!("group"), &json!(fresh)), "{source:#}");
    assert_eq!((&source["chat_name"], &source["chat_topic"]), (&json!("Harbour / #fresh"), &json!("new")));
    let event = agent.takes("in the thread").await;
    assert_eq!(key(&event), format!("agent:main:discord:thread:{thread}:{thread}"));
    assert_eq!(event["source"]["parent_chat_id"], json!(stage.quay));
    for chat in [&fresh, &thread] {
        assert_eq!(stage.calls(0, "GET", &format!("/channels/{chat}")).await, 1);
    }
    assert_eq!(stage.discord.count("/gateway/identifies").await, 1);
}

#[tokio::test]
async fn a_channel_that_cannot_be_asked_for_yet_holds_up_and_loses_nothing() {
    let mut stage = Stage::listening(lively()).await;
    stage.until_reported().await;
    stage.stop().await;
    let Stage { discord, guild, quay, ann, .. } = &stage;
    discord.mangle(json!({ "event": "CHANNEL_CREATE", "set": { "type": 99 } })).await;
    let fresh = discord.channel(&guild.id, "fresh").await;
    discord.fault(json!({ "path": "/channels/", "method": "GET", "status": 503, "count": 99 })).await;
    discord.mention(&fresh, ann, "first").await;
    discord.mention(quay, ann, "second").await;
    stage.connector.restart().await;
    let held_up = |bot: &Value| {
        let why = bot["health"]["why"].as_str().unwrap_or_default();
        bot["health"]["state"] == "down" && why.contains("cannot be placed yet") && why.contains("503")
    };
    stage.until_bot(held_up).await;
    stage.discord.order("fault/clear", json!({})).await;
    let mut agent = stage.agent().await;
    assert_eq!(agent.takes("first").await["source"]["chat_type"], "group");
    agent.takes("second").await;
    stage.until_bot(|bot| bot["health"]["state"] == "up").await;
    assert_eq!(stage.discord.count("/gateway/identifies").await, 1);
}

#[tokio::test]
async fn what_nobody_can_read_is_put_aside_and_the_rest_goes_on() {
    let stage = Stage::listening(lively()).await;
    let Stage { discord, quay, ann, .. } = &stage;
    let mut agent = stage.agent().await;
    discord.mangle(json!({ "event": "MESSAGE_CREATE", "drop": ["author.id"] })).await;
    discord.mention(quay, ann, "spoiled-words").await;
    discord.mention(quay, ann, "whole").await;
    agent.takes("whole").await;
    let listed = stage.connector.command(&["bot", "quarantine", "list"]).await;
    let rows = listed["quarantine"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{listed:#}");
    assert!(rows[0]["what"].as_str().unwrap().starts_with("MESSAGE_CREATE"), "{listed:#}");
    assert!(!listed.to_string().contains("spoiled"), "{listed:#}");
    let id = rows[0]["id"].to_string();
    let shown = stage.connector.command(&["bot", "quarantine", "show", &id]).await;
    assert!(shown["raw"].as_str().unwrap().contains("spoiled-words"), "{shown:#}");
    assert_eq!(stage.bot().await["quarantined"], 1);
    let disk = Inspect::of(&stage.folder().join("data"));
    let log = stage.log();
    assert!(disk.holds(b"MESSAGE_CREATE"), "what it was is there");
    assert!(!disk.holds(b"spoiled-words") && !log.contains("spoiled-words"), "readable");

    // A guild with fields missing, a channel that makes no sense: people are heard there.
    let lacking = json!(["nsfw_level", "verification_level", "features", "owner_id", "joined_at"]);
    discord.mangle(json!({ "event": "GUILD_CREATE", "drop": lacking, "set": { "name": "Lax" } })).await;
    let lax = discord.guild("Lax").await;
    let lobby = discord.channel(&lax.id, "lobby").await;
    stage.route("acme", &["--allow", "any"], &format!("discord:{}", lax.id)).await;
    discord.mention(&lobby, ann, "anybody?").await;
    assert_eq!(agent.takes("anybody?").await["source"]["chat_name"], "Lax / #lobby");
    let by_role = json!({ "channel": lobby, "author": ann, "content": "all", "mention_role": lax.role });
    discord.make("say", by_role).await;
    agent.takes("all").await;
    assert_eq!(discord.count("/gateway/identifies").await, 1);
    assert_eq!(discord.count("/gateway/connections").await, 1);
}
