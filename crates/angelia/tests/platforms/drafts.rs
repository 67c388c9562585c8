//! `draft`: a text that grows before its reader, and the message that takes its place.

use super::readers::{Chat, until_reads};
use super::telegram_stage::{Stage, heard};
use angelia_testkit::socket::Socket;
use serde_json::{Value, json};

async fn draft(socket: &mut Socket, chat: &str, text: &str, is_final: bool) -> Value {
    let draft = json!({
        "op": "draft", "chat_id": chat, "draft_id": 7, "content": text, "final": is_final, "metadata": {},
    });
    socket.ask(draft).await
}

#[tokio::test]
async fn on_telegram_a_draft_grows_in_private_and_the_message_takes_its_place() {
    let stage = Stage::new("drafts").await;
    stage.route_all().await;
    let ann = stage.telegram.person("Ann").await;
    let chat = ann.to_string();
    let mut agent = stage.join().await;
    stage.telegram.say(ann, ann, "tell me").await;
    heard(&mut agent).await;
    let whole = "Once upon a **time** there was a message";
    for end in [4, 9, 21, whole.len()] {
        assert_eq!(draft(&mut agent, &chat, &whole[..end], false).await["success"], true);
    }
    let is_newest =
        |chat: &Chat| chat.drafts().last() == Some(&"Once upon a <b>time</b> there was a message");
    until_reads(async || Chat::of_telegram(&stage.telegram, ann).await, is_newest).await;
    let ids: Vec<Value> = stage.telegram.drafts(ann).await.iter().map(|it| it["draft_id"].clone()).collect();
    assert!(ids.iter().all(|id| *id == ids[0] && *id != 0), "one that grows: {ids:?}");

    let sealed = draft(&mut agent, &chat, whole, true).await;
    assert!(sealed["error"].as_str().is_some_and(|why| why.contains("send the text")), "{sealed}");
    assert!(stage.telegram.bot_texts(ann).await.is_empty(), "no draft is a message");
    let sent = agent.ask(json!({ "op": "send", "chat_id": chat, "content": whole })).await;
    assert_eq!(sent["success"], true);
    let shown = Chat::of_telegram(&stage.telegram, ann).await;
    assert_eq!(shown.own_texts(), ["Once upon a time there was a message"]);
    stage.telegram.assert_no_violations().await;
}

#[tokio::test]
async fn where_telegram_has_no_drafts_the_gateway_hears_so_and_edits() {
    let stage = Stage::new("no-drafts").await;
    stage.route_all().await;
    let ann = stage.telegram.person("Ann").await;
    let group = stage.telegram.group("Quay", &[ann]).await;
    let mut agent = stage.join().await;
    stage.telegram.say(group, ann, &stage.to_bot("tell me")).await;
    heard(&mut agent).await;
    let refused = draft(&mut agent, &group.to_string(), "Once", false).await;
    assert!(refused["error"].as_str().is_some_and(|why| why.contains("edit it")), "{refused}");

    // What the provider refuses is not asked of it again and again.
    let chat = ann.to_string();
    stage.telegram.say(ann, ann, "tell me here").await;
    heard(&mut agent).await;
    let body = json!({ "ok": false, "error_code": 400, "description": "Bad Request: DRAFTS_UNAVAILABLE" });
    stage.telegram.answer_next("sendMessageDraft", 9, 400, &body).await;
    assert_eq!(draft(&mut agent, &chat, "Once", false).await["success"], false);
    assert_eq!(draft(&mut agent, &chat, "Once upon", false).await["success"], false);
    let asked = stage.telegram.log().await.into_iter().filter(|call| call["method"] == "sendMessageDraft");
    assert_eq!(asked.count(), 1, "asked once");
    stage.telegram.assert_no_violations().await;
}
