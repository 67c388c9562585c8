//! One conversation that uses everything at once: a newer gateway says what it is at, notes something
//! and takes it back, opens a thread and renames it, asks for leave with buttons, lets its answer grow
//! and marks the message.

use super::discord_stage::{SOON, Stage as Discord};
use super::interactions_stage::at_ease;
use super::readers::{Chat, press_on_discord, press_on_telegram, until_reads};
use super::telegram_stage::Stage as Telegram;
use angelia_testkit::newer_gateway::{NEEDS_APPROVAL, NewerGateway, Settings, USES_EVERYTHING};
use serde_json::json;
use std::time::Duration;

const TURN: Duration = Duration::from_millis(500);

fn request() -> String {
    format!("tidy the harbour {NEEDS_APPROVAL} {USES_EVERYTHING}")
}

#[tokio::test(flavor = "multi_thread")]
async fn on_telegram_in_private() {
    let stage = Telegram::new("rich").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let bot = telegram.bot_id().to_string();
    let settings = Settings::default().fronts(&[("telegram", &bot)]).turn(TURN).streams();
    let agent = NewerGateway::start(&stage.connector.url(), &stage.gateway, settings).await;
    let said = telegram.say(ann, ann, &request()).await;
    let question = telegram.wait_for_text(ann, "Command Approval Required", SOON).await;
    let question = question["message_id"].as_i64().unwrap();
    press_on_telegram(telegram, ann, ann, (question, "Allow Once")).await;
    let answer = format!("echo: {}", request());
    telegram.wait_for_text(ann, &answer, SOON).await;
    agent.wait_until_free(SOON).await;
    agent.assert_unharmed();

    let said = said.message.to_string();
    let is_marked = |chat: &Chat| chat.message(&said)["marks"] == json!(["👍"]);
    let shown = until_reads(async || Chat::of_telegram(telegram, ann).await, is_marked).await;
    let drafts = shown.drafts();
    assert!(!drafts.is_empty() && answer.starts_with(drafts[0]), "{drafts:?}");
    assert!(shown.containing(&answer)["own"] == true, "once: {shown:#?}");
    let question = shown.containing("→ Allow Once (Ann)");
    assert_eq!(question["buttons"], json!([]), "{question}");
    let texts = shown.own_texts();
    assert!(!texts.iter().any(|text| text.contains("looking around")), "taken back: {texts:?}");
    for op in ["send", "draft", "typing", "react", "prompt", "delete"] {
        let (asked, in_vain) = agent.asked_for(op);
        assert!(asked > 0 && in_vain == 0, "{op}: {asked}, {in_vain} in vain");
    }
    telegram.assert_no_violations().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_discord_in_company() {
    let stage = Discord::listening(at_ease()).await;
    let (discord, quay) = (&stage.discord, &stage.quay);
    let settings = Settings::default().fronts(&[("discord", discord.bot_id())]).turn(TURN).streams();
    let agent = NewerGateway::start(&stage.connector.url(), &stage.acme, settings).await;
    let said = discord.mention(quay, &stage.ann, &request()).await;
    let asks = |messages: &[angelia_testkit::discord::Message]| {
        messages.iter().any(|one| one.content.contains("Command Approval Required"))
    };
    let shown = discord.until_messages(quay, SOON, asks).await;
    let question = shown.iter().find(|one| one.content.contains("Command Approval Required")).unwrap();
    press_on_discord(discord, "gateway", quay, &stage.ann, (&question.id, "Allow Once")).await;
    let answer = format!("echo: {}", request());
    discord.until_messages(quay, SOON, |messages| messages.iter().any(|one| one.content == answer)).await;
    agent.wait_until_free(SOON).await;
    agent.assert_unharmed();

    let is_marked = |chat: &Chat| chat.message(&said)["marks"] == json!(["✅"]);
    let shown = until_reads(async || Chat::of_discord(discord, quay).await, is_marked).await;
    assert_eq!(shown.containing(&answer)["edited"], true, "it grew: {shown:#?}");
    let question = shown.containing("→ Allow Once (Ann)");
    assert_eq!(question["buttons"], json!([]), "{question}");
    let texts = shown.own_texts();
    assert!(!texts.iter().any(|text| text.contains("looking around")), "taken back: {texts:?}");
    assert_eq!(shown.threads().len(), 1, "{shown:#?}");
    for op in ["send", "edit", "typing", "react", "prompt", "delete", "thread_create", "thread_rename"] {
        let (asked, in_vain) = agent.asked_for(op);
        assert!(asked > 0 && in_vain == 0, "{op}: {asked}, {in_vain} in vain");
    }
}
