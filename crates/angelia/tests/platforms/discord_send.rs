//! What agents say on Discord, also when Discord does not want to hear it.

use super::discord_stage::{SOON, Stage};
use angelia_testkit::discord::Message;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// Numbered words up to so many code points, some of them outside of ASCII.
fn words(count: usize) -> String {
    let words: String = (0..).map(|number| format!("wört{number:05} ")).take(count.div_ceil(10)).collect();
    words.chars().take(count).collect::<String>().trim_end().to_owned()
}

/// A text without its white space, which cuts may take.
fn dense(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<String>().split_whitespace().collect()
}

/// What the bot shows in the channel, once that is `count` messages of which
/// the last ends like `text`. A gateway is answered with the first, the rest follows.
async fn until_shown(stage: &Stage, count: usize, text: &str) -> Vec<Message> {
    let end: String = text.chars().skip(text.chars().count().saturating_sub(8)).collect();
    let is_whole = |all: &[Message]| {
        let own: Vec<_> = all.iter().filter(|one| one.own).collect();
        own.len() == count && own.last().is_some_and(|last| last.content.ends_with(&end))
    };
    let all = stage.discord.until_messages(&stage.quay, SOON, is_whole).await;
    all.into_iter().filter(|one| one.own).collect()
}

#[tokio::test]
async fn a_long_text_is_several_messages_that_grow_and_shrink() {
    let stage = Stage::listening(json!({ "identify_seconds": 0 })).await;
    let Stage { discord, quay, ann, .. } = &stage;
    let mut agent = stage.agent().await;
    let trigger = discord.mention(quay, ann, "tell me").await;
    agent.takes("tell me").await;
    let text = words(4_500);
    let send = json!({ "op": "send", "chat_id": quay, "content": text, "reply_to": trigger });
    let result = agent.ask(send).await;
    assert_eq!(result["success"], true, "{result}");
    let first = result["message_id"].as_str().unwrap().to_owned();
    let answers = until_shown(&stage, 3, &text).await;
    assert_eq!(answers[0].id, first, "the first piece's id is the answer");
    assert!(answers.iter().all(|one| one.content.chars().count() <= 2000 && one.edits == 0));
    assert!(answers[0].content.chars().count() > 1900, "and they are filled");
    assert_eq!(dense(answers.iter().map(|one| one.content.clone())), dense([text].into_iter()));
    assert_eq!(answers[0].reference.as_deref(), Some(trigger.as_str()));
    assert!(answers[1].reference.is_none() && answers[2].reference.is_none(), "one reply is enough");
    for one in &answers {
        assert_eq!(one.allowed_mentions["parse"], json!([]), "{one:?}");
    }

    let edit =
        |content: String| json!({ "op": "edit", "chat_id": quay, "message_id": first, "content": content });
    let since = stage.last_call().await;
    let text = words(8_500);
    let result = agent.ask(edit(text.clone())).await;
    assert_eq!((&result["success"], &result["message_id"]), (&json!(true), &json!(first)), "{result}");
    let grown = until_shown(&stage, 5, &text).await;
    assert_eq!(dense(grown.iter().map(|one| one.content.clone())), dense([text].into_iter()));
    let kept: Vec<_> = answers.iter().map(|one| &one.id).collect();
    assert_eq!(grown.iter().take(3).map(|one| &one.id).collect::<Vec<_>>(), kept);
    let calls = discord.requests(since).await;
    let edited = calls.iter().filter(|call| call.method == "PATCH").count();
    assert!((1..=2).contains(&edited), "what shows the same already is left alone: {edited} edits");

    let result = agent.ask(edit("short after all".into())).await;
    assert_eq!(result["success"], true, "{result}");
    let shrunk = until_shown(&stage, 1, "short after all").await;
    assert_eq!((&shrunk[0].id, shrunk[0].content.as_str()), (&first, "short after all"));
    assert_eq!(discord.count("/rest/limited").await, 0, "Discord never had to refuse");
    assert_eq!(discord.count("/rest/unreadable").await, 0);
}

#[tokio::test]
async fn replies_survive_what_they_answer_and_mention_nobody() {
    let stage = Stage::listening(json!({ "identify_seconds": 0 })).await;
    let Stage { discord, quay, ann, .. } = &stage;
    let mut agent = stage.agent().await;
    let trigger = discord.mention(quay, ann, "are you there").await;
    agent.takes("are you there").await;
    assert_eq!(agent.ask(json!({ "op": "typing", "chat_id": quay })).await["success"], true);
    // It is answered at once, and shown a moment later.
    discord.until_state(SOON, |state| state["rest"]["typing"][quay] == 1).await;
    discord.delete(quay, &trigger).await;
    let content = format!("@everyone <@{ann}> yes");
    let send = json!({ "op": "send", "chat_id": quay, "content": content, "reply_to": trigger });
    assert_eq!(agent.ask(send).await["success"], true);
    let answer = discord.answers(quay).await.pop().unwrap();
    assert_eq!((&answer.content, &answer.reference), (&content, &None));
    assert_eq!(answer.allowed_mentions["parse"], json!([]));
    assert_eq!(answer.allowed_mentions["replied_user"], false);

    let info = agent.ask(json!({ "op": "get_chat_info", "chat_id": quay })).await;
    let told = if info["chat_info"].is_object() { &info["chat_info"] } else { &info };
    assert_eq!((&told["name"], &told["type"]), (&json!("quay"), &json!("group")), "{info}");

    // A channel that nobody wrote in yet, and one that is not the tenant's.
    let fresh = discord.channel(&stage.guild.id, "fresh").await;
    agent.sends(&fresh, "first").await;
    let elsewhere = discord.guild("Elsewhere").await;
    let foreign = discord.channel(&elsewhere.id, "lobby").await;
    let since = stage.last_call().await;
    for action in ["send", "typing", "get_chat_info"] {
        let ask = json!({ "op": action, "chat_id": foreign, "content": "let me in" });
        let declined = agent.ask(ask).await;
        assert_eq!(declined["success"], false, "{action}: {declined}");
    }
    assert!(discord.answers(&foreign).await.is_empty());
    let calls = discord.requests(since).await;
    assert!(calls.iter().all(|call| call.method == "GET"), "{calls:?}");
}

#[tokio::test]
async fn a_lost_answer_is_no_second_message() {
    let stage = Stage::listening(json!({ "identify_seconds": 0 })).await;
    let Stage { discord, quay, .. } = &stage;
    let mut agent = stage.agent().await;
    for how in ["drop", "status"] {
        discord
            .fault(
                json!({ "path": "/messages$", "method": "POST", "perform": true, "how": how, "status": 504 }),
            )
            .await;
        let said = format!("once, {how}");
        let id = agent.sends(quay, &said).await;
        let answers = discord.answers(quay).await;
        let same: Vec<_> = answers.iter().filter(|one| one.content == said).collect();
        assert_eq!(same.len(), 1, "{answers:#?}");
        assert_eq!((&same[0].id, same[0].nonce.is_some()), (&id, true));
    }
    assert_eq!(discord.count("/rest/nonces_repeated").await, 2, "both were given again under their nonce");
    // An edit that is made twice is one all the same.
    let id = discord.answers(quay).await[0].id.clone();
    discord.fault(json!({ "path": "/messages/", "method": "PATCH", "perform": true, "how": "drop" })).await;
    let edit = json!({ "op": "edit", "chat_id": quay, "message_id": id, "content": "edited" });
    assert_eq!(agent.ask(edit).await["success"], true);
    assert_eq!(discord.answers(quay).await[0].content, "edited");
    // The further pieces too.
    discord
        .fault(json!({ "path": "/messages$", "method": "POST", "skip": 1, "perform": true, "how": "drop" }))
        .await;
    agent.sends(quay, &words(3_000)).await;
    discord.until_state(SOON, |state| state["rest"]["nonces_repeated"] == 3).await;
    assert_eq!(discord.answers(quay).await.len(), 4);
}

#[tokio::test]
async fn limits_and_trouble_are_waited_out() {
    let stage = Stage::listening(json!({ "identify_seconds": 0 })).await;
    let Stage { discord, quay, guild, .. } = &stage;
    let mut agent = stage.agent().await;
    let pier = discord.channel(&guild.id, "pier").await;
    agent.sends(&pier, "warm").await;
    let limited = json!({ "message": "You are being rate limited.", "retry_after": 1.2, "global": false });
    let post = |mut fault: Value| {
        fault["path"] = "/messages$".into();
        fault["method"] = "POST".into();
        fault
    };
    // What Discord answers, how long that has to be waited for, and in how many calls it ends.
    let shared = json!({ "X-RateLimit-Scope": "shared" });
    for (fault, wait, calls) in [
        (json!({ "status": 429, "json": limited, "headers": shared }), 1.2, 2),
        (json!({ "status": 429, "html": "" }), 5.0, 2),
        (json!({ "status": 502, "html": "<h1>Bad gateway</h1>", "count": 2 }), 2.0, 3),
    ] {
        let since = stage.last_call().await;
        discord.fault(post(fault.clone())).await;
        let begun = Instant::now();
        agent.sends(quay, "patience").await;
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs_f64(wait), "{fault}: {took:?}");
        assert_eq!(stage.calls(since, "POST", "/messages").await, calls, "{fault}");
    }
    assert_eq!(discord.answers(quay).await.len(), 3, "none was doubled");
    assert_eq!(discord.count("/rest/limited").await, 0, "no limit of its own was met");

    // While the edge bars the address, nobody's message is tried: it would only bar it for longer.
    let since = stage.last_call().await;
    discord
        .fault(json!({ "path": "/messages$", "status": 429, "html": "", "headers": { "Retry-After": "3" } }))
        .await;
    for (request, chat) in [("a", quay), ("b", &pier), ("c", quay)] {
        let action = json!({ "op": "send", "chat_id": chat, "content": format!("all {request}") });
        agent.socket.send(&json!({ "type": "outbound", "requestId": request, "action": action })).await;
    }
    for _ in 0..3 {
        let answer = agent.socket.frame().await;
        assert_eq!(answer["result"]["success"], true, "{answer}");
    }
    let calls = stage.calls(since, "POST", "/messages").await;
    assert!((4..=5).contains(&calls), "{calls} calls for three messages");
}

#[tokio::test]
async fn a_refusal_is_told_with_the_next_step_and_not_repeated() {
    let stage = Stage::listening(json!({ "identify_seconds": 0 })).await;
    let Stage { discord, quay, .. } = &stage;
    let mut agent = stage.agent().await;
    let id = agent.sends(quay, "fine").await;
    for (status, code, words, next) in [
        (403, 50013, "Missing Permissions", "Send Messages"),
        (403, 50001, "Missing Access", "View Channel"),
        (404, 10003, "Unknown Channel", "deleted"),
    ] {
        let since = stage.last_call().await;
        let refusal = json!({ "message": words, "code": code });
        discord.fault(json!({ "path": "/messages", "status": status, "json": refusal, "count": 9 })).await;
        let result = agent.send(quay, "not here").await;
        let told = result["error"].as_str().unwrap_or_default();
        assert!(result["success"] == false && told.contains(words) && told.contains(next), "{result}");
        let edit = json!({ "op": "edit", "chat_id": quay, "message_id": id, "content": "nor here" });
        assert_eq!(agent.ask(edit).await["success"], false);
        assert_eq!(discord.requests(since).await.len(), 2, "each was tried once");
        discord.order("fault/clear", json!({})).await;
    }
    agent.sends(quay, "fine again").await;
    assert_eq!(discord.answers(quay).await.len(), 2);
}
