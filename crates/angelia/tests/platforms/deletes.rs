//! `delete`: agents take back what they sent, and nothing else.

use super::discord_stage::Stage as Discord;
use super::interactions_stage::at_ease;
use super::readers::Chat;
use super::telegram_stage::{Stage as Telegram, heard};
use angelia_testkit::socket::Socket;
use serde_json::{Value, json};

async fn send(socket: &mut Socket, chat: &str, text: &str) -> String {
    let sent = socket.ask(json!({ "op": "send", "chat_id": chat, "content": text })).await;
    sent["message_id"].as_str().unwrap_or_else(|| panic!("not sent: {sent}")).to_owned()
}

async fn delete(socket: &mut Socket, chat: &str, message: &str) -> Value {
    socket.ask(json!({ "op": "delete", "chat_id": chat, "message_id": message, "metadata": {} })).await
}

fn is_refused(result: &Value) -> bool {
    result["success"] == false && result["error"].as_str().unwrap().contains("no such message of yours")
}

#[tokio::test]
async fn on_discord_an_agent_takes_back_its_own_messages() {
    let stage = Discord::listening(at_ease()).await;
    let other = stage.connector.gateway("acme", "gw-other").await;
    let (mut agent, mut sibling) = (stage.agent().await.socket, stage.agent_of(&other).await.socket);
    let (discord, quay) = (&stage.discord, &stage.quay);
    let anns = discord.mention(quay, &stage.ann, "hello").await;
    assert_eq!(agent.take_text().await, "hello");
    let kept = send(&mut agent, quay, "this stays").await;
    let long = send(&mut agent, quay, &"word ".repeat(700)).await;
    assert!(is_refused(&delete(&mut sibling, quay, &long).await), "another of the tenant's");
    assert!(is_refused(&delete(&mut agent, quay, &anns).await), "a person's");
    assert!(is_refused(&delete(&mut agent, quay, "77").await), "nobody's");
    let shown = Chat::of_discord(discord, quay).await;
    assert_eq!(shown.own_texts().len(), 3, "{shown:#?}");
    assert_eq!(delete(&mut agent, quay, &long).await["success"], true);
    let shown = Chat::of_discord(discord, quay).await;
    assert_eq!(shown.own_texts(), ["this stays"], "with its further piece");
    assert_eq!(shown.message(&anns)["own"], false, "hers is there");
    assert_eq!(delete(&mut agent, quay, &long).await["success"], true, "it is gone, as was wanted");
    discord.delete(quay, &kept).await;
    assert_eq!(delete(&mut agent, quay, &kept).await["success"], true, "somebody was first");
}

#[tokio::test]
async fn on_telegram_an_agent_takes_back_its_own_messages() {
    let stage = Telegram::new("deletes").await;
    stage.route_all().await;
    let ann = stage.telegram.person("Ann").await;
    let chat = ann.to_string();
    let mut agent = stage.join().await;
    let said = stage.telegram.say(ann, ann, "hello").await;
    heard(&mut agent).await;
    let kept = send(&mut agent, &chat, "this stays").await;
    let long = send(&mut agent, &chat, &"word ".repeat(1_500)).await;
    assert!(is_refused(&delete(&mut agent, &chat, &said.message.to_string()).await), "a person's");
    assert!(is_refused(&delete(&mut agent, &chat, "x").await), "nobody's");
    assert_eq!(delete(&mut agent, &chat, &long).await["success"], true);
    let shown = Chat::of_telegram(&stage.telegram, ann).await;
    assert_eq!(shown.own_texts(), ["this stays"], "with its further piece");
    assert_eq!(delete(&mut agent, &chat, &long).await["success"], true, "it is gone, as was wanted");
    assert_eq!(delete(&mut agent, &chat, &kept).await["success"], true);
    stage.telegram.assert_no_violations().await;
}
