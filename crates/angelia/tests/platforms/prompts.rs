//! Questions with buttons: an agent asks, people press, and whoever asked is told. On two nodes the
//! question is asked on one and shown and pressed on the other.

use super::discord_stage::Stage as Discord;
use super::interactions_stage::at_ease;
use super::readers::{Chat, press_on_discord, press_on_telegram, until_reads};
use super::sms_stage::Stage as Sms;
use super::telegram_stage::Stage as Telegram;
use super::wecom_stage::Stage as Wecom;
use angelia_core::own_words::{Language, OwnWords};
use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::discord::Interaction;
use angelia_testkit::process::until;
use angelia_testkit::socket::{Next, Socket};
use angelia_testkit::twilio::NUMBER;
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
const QUIET: Duration = Duration::from_millis(300);
const PROMPT: &str = "a1b2c3.deadbeef";

fn told(words: OwnWords) -> &'static str {
    words.text(Language::English)
}

/// The next event for an agent; acknowledged. What is said of its requests is passed over.
async fn heard(socket: &mut Socket) -> Value {
    loop {
        match socket.next(SOON).await {
            Next::Frame(frame) if frame["type"] == "inbound" => {
                socket.ack(&frame).await;
                return frame["event"].clone();
            }
            Next::Frame(_) => {}
            other => panic!("awaited an event, got {other:?}"),
        }
    }
}

/// A gateway that says by its hello that it marks its turns.
async fn dial(connector: &Connector, credentials: &Credentials, platform: &str, bot: &str) -> Socket {
    let mut socket = Socket::dial(&connector.url(), credentials).await.expect("let in");
    let hello = json!({ "type": "hello", "platform": platform, "botId": bot, "command_manifest": [] });
    socket.send(&hello).await;
    let descriptor = socket.frame().await["descriptor"].clone();
    assert!(descriptor["supported_ops"].as_array().unwrap().contains(&json!("prompt")), "{descriptor}");
    socket
}

/// Takes an event up, as gateways do that mark their turns.
async fn begin(socket: &mut Socket) -> Value {
    let event = heard(socket).await;
    mark(socket, &event, "👀").await;
    event
}

async fn mark(socket: &mut Socket, event: &Value, emoji: &str) {
    let (chat, message) = (&event["source"]["chat_id"], &event["message_id"]);
    let react =
        json!({ "op": "react", "chat_id": chat, "message_id": message, "emoji": emoji, "metadata": {} });
    assert_eq!(socket.ask(react).await["success"], true);
}

/// Asks with buttons in a chat; answers the message's id.
async fn ask(socket: &mut Socket, chat: &str, kind: &str) -> String {
    let result = try_to_ask(socket, chat, kind, "May I **run** it?").await;
    result["message_id"].as_str().unwrap_or_else(|| panic!("not asked: {result}")).to_owned()
}

async fn try_to_ask(socket: &mut Socket, chat: &str, kind: &str, question: &str) -> Value {
    let options = json!([
        { "id": "once", "label": "Allow Once", "style": "primary" },
        { "id": "deny", "label": "Deny", "style": "danger" },
    ]);
    let ask = json!({
        "op": "prompt", "chat_id": chat, "prompt_kind": kind, "prompt_id": PROMPT, "content": question,
        // Gateways say who spoke last in the chat, which need not be whoever asked for it.
        "options": options, "reply_to": null, "metadata": { "user_id": "4711" },
    });
    socket.ask(ask).await
}

/// What an agent is told of a press: by whom, and what.
async fn pressed(socket: &mut Socket) -> (Value, String) {
    let event = heard(socket).await;
    let response = &event["prompt_response"];
    assert_eq!(response["prompt_id"], PROMPT, "{event:#}");
    assert_eq!(event["text"], format!("/{}", response["option_id"].as_str().unwrap()), "{event:#}");
    (event["source"]["user_id"].clone(), response["option_id"].as_str().unwrap().to_owned())
}

async fn is_quiet(socket: &mut Socket) {
    let next = socket.next(QUIET).await;
    assert!(matches!(next, Next::Silence), "{next:?}");
}

/// Ends the turn of an event, so that the next one begins anew.
async fn finish(socket: &mut Socket, event: &Value) {
    let send = json!({
        "op": "send", "chat_id": event["source"]["chat_id"], "content": "Done.",
        "reply_to": event["message_id"], "metadata": { "notify": true },
    });
    assert_eq!(socket.ask(send).await["success"], true);
    mark(socket, event, "✅").await;
}

impl Discord {
    /// Somebody presses a button that discord.py finds, and is told something.
    async fn presses(&self, via: &str, who: &str, message: &str, label: &str) -> Interaction {
        let pressed = press_on_discord(&self.discord, via, &self.quay, who, (message, label)).await;
        self.discord.until_interaction(&pressed.id, SOON, |one| one.answer.is_object()).await
    }

    /// A bot that gets presses both ways.
    async fn asked_both_ways() -> Self {
        let key = |discord: &angelia_testkit::discord::FakeDiscord| {
            format!("name = \"main\"\npublic_key = \"{}\"\n", discord.public_key())
        };
        let stage = Self::built(at_ease(), "", key, &[]).await;
        stage.discord.set_interactions_url(Some(&stage.endpoint())).await;
        stage.until_session().await;
        stage
    }

    async fn marking_agent(&self) -> Socket {
        dial(&self.connector, &self.acme, "discord", self.discord.bot_id()).await
    }
}

#[tokio::test]
async fn on_discord_whoever_asked_approves_and_the_message_shows_it() {
    let stage = Discord::asked_both_ways().await;
    let bob = stage.discord.user("bob").await;
    let mut agent = stage.marking_agent().await;
    for via in ["http", "gateway"] {
        stage.discord.mention(&stage.quay, &stage.ann, "clean up").await;
        let event = begin(&mut agent).await;
        let message = ask(&mut agent, &stage.quay, "approval").await;
        let chat = Chat::of_discord(&stage.discord, &stage.quay).await;
        assert_eq!(chat.message(&message)["text"], "May I **run** it?");
        assert_eq!(chat.labels(&message), ["Allow Once", "Deny"], "{chat:#?}");
        let bobs = stage.presses(via, &bob, &message, "Deny").await;
        assert_eq!(
            (bobs.answer["type"].as_u64(), &bobs.answer["data"]["flags"]),
            (Some(4), &json!(64)),
            "{via}"
        );
        assert_eq!(bobs.answer["data"]["content"], told(OwnWords::PromptNotYours));
        is_quiet(&mut agent).await;
        let anns = stage.presses(via, &stage.ann, &message, "Allow Once").await;
        assert_eq!(anns.answer["type"], 7, "{via}: {}", anns.answer);
        assert_eq!(pressed(&mut agent).await, (json!(stage.ann), "once".into()));
        let chat = Chat::of_discord(&stage.discord, &stage.quay).await;
        assert_eq!(chat.message(&message)["text"], "May I **run** it?\n\n→ Allow Once (Ann)", "{via}");
        assert!(chat.labels(&message).is_empty(), "and no buttons: {chat:#?}");
        let again = json!({ "channel": stage.quay, "user": stage.ann, "message": message, "label": "Deny" });
        let client = angelia_testkit::webchat::http_client();
        let refused = client.post(format!("{}/_fake/press", stage.discord.url())).json(&again).send().await;
        assert!(refused.unwrap().status().is_client_error(), "there is nothing left to press");
        finish(&mut agent, &event).await;
    }
    // What is asked of everybody is answered by anybody who may speak there.
    stage.discord.mention(&stage.quay, &stage.ann, "paint it").await;
    begin(&mut agent).await;
    let message = ask(&mut agent, &stage.quay, "clarify").await;
    stage.presses("gateway", &bob, &message, "Deny").await;
    assert_eq!(pressed(&mut agent).await, (json!(bob), "deny".into()));
}

#[tokio::test]
async fn on_discord_a_press_is_understood_after_a_restart_and_by_one_instance_only() {
    let mut stage = Discord::asked_both_ways().await;
    let other = stage.connector.gateway("acme", "gw-other").await;
    let mut agent = stage.marking_agent().await;
    stage.discord.mention(&stage.quay, &stage.ann, "clean up").await;
    begin(&mut agent).await;
    let message = ask(&mut agent, &stage.quay, "approval").await;
    stage.connector.stop(SOON).await;
    stage.connector.restart().await;
    stage.until_session().await;
    let mut agent = stage.marking_agent().await;
    let mut sibling = stage.agent_of(&other).await.socket;
    stage.presses("gateway", &stage.ann, &message, "Deny").await;
    assert_eq!(pressed(&mut agent).await, (json!(stage.ann), "deny".into()));
    is_quiet(&mut sibling).await;
    let long = try_to_ask(&mut agent, &stage.quay, "approval", &"x".repeat(2_001)).await;
    assert!(long["success"] == false && long["error"].as_str().unwrap().contains("too long"), "{long}");
    // Whoever is not let in is not let press; they are told, and nobody else.
    let message = ask(&mut agent, &stage.quay, "clarify").await;
    stage.connector.command(&["route", "remove", &format!("discord:{}", stage.guild.id)]).await;
    let nobody = stage.presses("gateway", &stage.ann, &message, "Deny").await;
    assert_eq!(nobody.answer["data"]["content"], told(OwnWords::NobodyAnswersHere));
    let bolt = stage.connector.gateway("bolt", "gw-bolt").await;
    let mut stranger = stage.agent_of(&bolt).await.socket;
    stage.route("bolt", &["--allow", "any"], &format!("discord:{}", stage.guild.id)).await;
    let late = stage.presses("gateway", &stage.ann, &message, "Deny").await;
    assert_eq!(late.answer["data"]["content"], told(OwnWords::PromptOver), "the place is another's by now");
    is_quiet(&mut agent).await;
    is_quiet(&mut stranger).await;
}

#[tokio::test]
async fn on_telegram_whoever_asked_approves_and_the_message_shows_it() {
    let mut stage = Telegram::new("prompts").await;
    stage.route_all().await;
    let [ann, bob] = [stage.telegram.person("Ann").await, stage.telegram.person_speaking("Bob", "de").await];
    let lab = stage.telegram.supergroup("lab", &[ann, bob]).await;
    let chat = lab.to_string();
    let bot = stage.telegram.bot_id().to_string();
    let mut agent = dial(&stage.connector, &stage.gateway, "telegram", &bot).await;
    stage.telegram.say(lab, ann, &stage.to_bot("clean up")).await;
    let event = begin(&mut agent).await;
    let message: i64 = ask(&mut agent, &chat, "approval").await.parse().unwrap();
    let id = message.to_string();
    let shown = Chat::of_telegram(&stage.telegram, lab).await;
    assert_eq!(shown.message(&id)["html"], "May I <b>run</b> it?");
    assert_eq!(shown.labels(&id), ["Allow Once", "Deny"]);
    let data = shown.data(&id, "Deny").to_owned();

    let answered = async |id: &str| {
        until("the press to be answered", SOON, async || stage.telegram.press_answer(id).await.is_some())
            .await;
        stage.telegram.press_answer(id).await.unwrap()
    };
    let bobs = press_on_telegram(&stage.telegram, lab, bob, (message, "Deny")).await;
    let words = OwnWords::PromptNotYours.text(Language::German);
    assert_eq!(answered(&bobs).await, json!({ "text": words, "show_alert": true }), "in his language");
    // Somebody whose client sends what it likes: of another chat, of no question, nonsense.
    let elsewhere = stage.telegram.say(bob, bob, "hello").await;
    heard(&mut agent).await;
    let asked: i64 = ask(&mut agent, &bob.to_string(), "approval").await.parse().unwrap();
    assert!(elsewhere.message < asked);
    for forged in [data.as_str(), "angelia:999999:0", "angelia:1", "hp1:x:y", "…"] {
        let press = stage.telegram.press_data(bob, asked, bob, forged).await;
        assert_eq!(answered(&press).await["text"], OwnWords::PromptOver.text(Language::German), "{forged}");
    }
    is_quiet(&mut agent).await;

    let anns = press_on_telegram(&stage.telegram, lab, ann, (message, "Allow Once")).await;
    assert_eq!(answered(&anns).await, json!({ "text": null, "show_alert": false }));
    assert_eq!(pressed(&mut agent).await, (json!(ann.to_string()), "once".into()));
    let is_shown = |chat: &Chat| chat.message(&id)["text"] == "May I run it?\n\n→ Allow Once (Ann)";
    let shown = until_reads(async || Chat::of_telegram(&stage.telegram, lab).await, is_shown).await;
    assert!(shown.labels(&id).is_empty(), "and no buttons: {shown:#?}");
    let late = stage.telegram.press_data(lab, message, ann, &data).await;
    assert_eq!(answered(&late).await["text"], told(OwnWords::PromptOver));
    is_quiet(&mut agent).await;
    finish(&mut agent, &event).await;

    // Across a restart.
    stage.connector.stop(SOON).await;
    stage.connector.restart().await;
    let mut agent = stage.join().await;
    press_on_telegram(&stage.telegram, bob, bob, (asked, "Deny")).await;
    assert_eq!(pressed(&mut agent).await, (json!(bob.to_string()), "deny".into()));
    let long = try_to_ask(&mut agent, &chat, "approval", &"x".repeat(4_097)).await;
    assert!(long["success"] == false && long["error"].as_str().unwrap().contains("too long"), "{long}");
    stage.telegram.assert_no_violations().await;
}

#[tokio::test]
async fn on_telegram_a_route_may_let_anybody_approve() {
    let stage = Telegram::new("prompts-any").await;
    let [ann, bob] = [stage.telegram.person("Ann").await, stage.telegram.person("Bob").await];
    let lab = stage.telegram.supergroup("lab", &[ann, bob]).await;
    stage.route("acme", lab, &["--allow", "any", "--approve", "any"]).await;
    let route = stage.route_of(lab).await.unwrap();
    assert_eq!(route["approve"], "any", "{route}");
    let mut agent = stage.join().await;
    stage.telegram.say(lab, ann, &stage.to_bot("clean up")).await;
    heard(&mut agent).await;
    let message: i64 = ask(&mut agent, &lab.to_string(), "approval").await.parse().unwrap();
    press_on_telegram(&stage.telegram, lab, bob, (message, "Deny")).await;
    assert_eq!(pressed(&mut agent).await, (json!(bob.to_string()), "deny".into()));
}

const QUESTION: &str = "May I **run** it?\n\n1. Allow Once\n2. Deny";

#[tokio::test]
async fn by_sms_a_number_is_the_press() {
    const ANN: &str = "+15550199";
    let stage = Sms::new("prompts").await;
    stage.route(&format!("sms:{NUMBER}")).await;
    let mut agent = stage.join().await;
    stage.twilio.text(ANN, "clean up").await;
    heard(&mut agent).await;
    ask(&mut agent, ANN, "approval").await;
    stage.twilio.wait_for_text(ANN, QUESTION, SOON).await;
    stage.twilio.text(ANN, "2").await;
    assert_eq!(pressed(&mut agent).await, (json!(ANN), "deny".into()));
    stage.twilio.text(ANN, "2").await;
    let plain = heard(&mut agent).await;
    assert!(plain["text"] == "2" && plain["prompt_response"].is_null(), "it is answered: {plain}");
    ask(&mut agent, ANN, "clarify").await;
    stage.twilio.text(ANN, "what for?").await;
    assert_eq!(heard(&mut agent).await["text"], "what for?", "words go as words");
    stage.twilio.text(ANN, "allow once").await;
    assert_eq!(pressed(&mut agent).await, (json!(ANN), "once".into()));
    stage.close();
}

#[tokio::test]
async fn on_wecom_a_number_is_the_press() {
    let stage = Wecom::new("prompts").await;
    stage.route("acme", "wecom:main", &["--allow", "any"]).await;
    let mut agent = stage.join(&stage.gateway).await;
    stage.wecom.say("Ann", "clean up").await;
    heard(&mut agent).await;
    stage.wecom.say("bob", "hello").await;
    heard(&mut agent).await;
    ask(&mut agent, "Ann", "approval").await;
    stage.wecom.wait_for_text("Ann", QUESTION, SOON).await;
    // Bob was asked nothing.
    stage.wecom.say("bob", "1").await;
    let plain = heard(&mut agent).await;
    assert!(plain["text"] == "1" && plain["prompt_response"].is_null(), "{plain}");
    stage.wecom.say("Ann", "1.").await;
    assert_eq!(pressed(&mut agent).await, (json!("Ann"), "once".into()));
    stage.close().await;
}
