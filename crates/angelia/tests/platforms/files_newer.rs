//! Files with a newer gateway, which fetches them on its reader and uploads its own.

use super::discord_stage::{SOON, Stage as Discord};
use super::readers::Chat;
use super::telegram_stage::Stage as Telegram;
use angelia_testkit::newer_gateway::{DRAWING, DRAWS, Fetched, NewerGateway, Settings};
use angelia_testkit::process::until;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::time::Duration;

const TURN: Duration = Duration::from_millis(500);
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";

fn as_it_was(fetched: &[Fetched], names: &[&str]) {
    assert_eq!(fetched.len(), names.len(), "{fetched:?}");
    for (file, name) in fetched.iter().zip(names) {
        assert_eq!((&*file.media_type, &*file.bytes), ("image/png", PNG));
        assert!(file.disposition.contains(name), "{file:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_telegram() {
    let stage = Telegram::new("files-newer").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let settings = Settings::default().fronts(&[("telegram", &telegram.bot_id().to_string())]).turn(TURN);
    let agent = NewerGateway::start(&stage.connector.url(), &stage.gateway, settings).await;
    // From its first mark on it is known to be a newer one: its hello does not tell.
    telegram.say(ann, ann, "hello").await;
    telegram.wait_for_text(ann, "echo: hello", SOON).await;
    agent.wait_until_free(SOON).await;
    let photo = json!({ "content": STANDARD.encode(PNG) });
    telegram.say_with(&json!({ "chat": ann, "from": ann, "photo": photo, "caption": "who is that?" })).await;
    agent.wait_for_text("who is that?", SOON).await;
    as_it_was(&agent.fetched(), &[""]);
    agent.wait_until_free(SOON).await;
    telegram.say(ann, ann, DRAWS).await;
    telegram.wait_for_text(ann, &format!("echo: {DRAWS}"), SOON).await;
    agent.wait_until_free(SOON).await;
    agent.assert_unharmed();
    assert_eq!(agent.asked_for("send_media"), (1, 0));
    let read = Chat::of_telegram(telegram, ann).await;
    let photo = telegram.messages(ann).await.into_iter().rfind(|it| it["raw"]["photo"].is_array()).unwrap();
    let [(kind, _, bytes)] = &read.files(&photo["message_id"].to_string())[..] else { panic!("{read:#?}") };
    assert_eq!((*kind, &**bytes), ("photo", DRAWING));
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_discord_from_its_first_message_on() {
    let stage = Discord::listening(json!({})).await;
    let (discord, ann) = (&stage.discord, &stage.ann);
    let dm = discord.dm(ann).await;
    let settings = Settings::default().fronts(&[("discord", discord.bot_id())]).turn(TURN);
    let agent = NewerGateway::start(&stage.connector.url(), &stage.acme, settings).await;
    let picture = |name: &str| json!({ "filename": name, "content_type": "image/png", "content": STANDARD.encode(PNG) });
    let said = json!({
        "channel": dm, "author": ann, "content": format!("look {DRAWS}"),
        "attachments": [picture("one.png"), picture("two.png")],
    });
    discord.make("say", said).await;
    agent.wait_for_text("look", SOON).await;
    as_it_was(&agent.fetched(), &["one.png", "two.png"]);
    let drawn = async || {
        Chat::of_discord(discord, &dm)
            .await
            .all_files()
            .iter()
            .any(|(_, name, bytes)| *name == Some("drawing.png") && bytes == DRAWING)
    };
    until("the drawing", SOON, drawn).await;
    agent.wait_until_free(SOON).await;
    agent.assert_unharmed();
}
