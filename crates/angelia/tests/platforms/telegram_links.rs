//! What the connector answers itself: `/start`, and codes that give chats away.

use super::telegram_stage::{POLL, SOON, Stage, heard, too_many, unlimited, whence};
use angelia_engines::inspect::Inspect;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Shorter than an answer that hangs is waited for.
const HELD_UP: Duration = Duration::from_secs(15);

impl Stage {
    async fn code(&self, more: &[&str]) -> String {
        let made = self.connector.command(&[&["route", "code", "--tenant", "other"], more].concat()).await;
        made["code"].as_str().unwrap_or_else(|| panic!("no code in {made}")).to_owned()
    }

    async fn until_routed(&self, chat: i64) -> Value {
        let deadline = Instant::now() + SOON;
        loop {
            if let Some(route) = self.route_of(chat).await {
                return route;
            }
            assert!(Instant::now() < deadline, "{chat} has no route");
            sleep(POLL).await;
        }
    }

    /// Waits until the connector has tried so often to commit what it read.
    async fn until_tried(&self, times: usize) {
        let deadline = Instant::now() + SOON;
        let tries = || {
            let log = self.connector.whole_log();
            log.matches("updates wait to be committed").count()
        };
        while tries() < times {
            assert!(Instant::now() < deadline, "{} tries in {SOON:?}", tries());
            sleep(POLL).await;
        }
    }
}

#[tokio::test]
async fn start_is_greeted_and_codes_give_chats_away() {
    let greeting = "greeting = \"Welcome, traveller.\"";
    let stage = Stage::with("links", &unlimited(), greeting, "").await;
    stage.route_all().await;
    let other = stage.connector.gateway("other", "gw-other").await;
    let telegram = &stage.telegram;
    let (ann, bob) = (telegram.person("Ann").await, telegram.person("Bob").await);
    let group = telegram.group("Team", &[ann, bob]).await;
    let (mut acme, mut socket) = (stage.join().await, stage.join_as(&other).await);

    telegram.say(ann, ann, "/start").await;
    telegram.wait_for_text(ann, "Welcome, traveller.", SOON).await;
    telegram.say(ann, ann, "hello").await;
    assert_eq!(whence(&heard(&mut acme).await).0, "hello", "/start was not for the agent");

    let code = stage.code(&[]).await;
    telegram.say(bob, bob, &format!("/start {code}")).await;
    telegram.wait_for_text(bob, "Linked", SOON).await;
    let route = stage.route_of(bob).await.unwrap();
    assert_eq!((&route["tenant"], &route["allow"]), (&json!("other"), &json!([bob.to_string()])));
    telegram.say(bob, bob, "for the other").await;
    assert_eq!(whence(&heard(&mut socket).await).0, "for the other");

    let code = stage.code(&["--allow", "any"]).await;
    telegram.say(group, bob, &format!("/link@other_bot {code}")).await;
    telegram.say(group, bob, &format!("/link {code}")).await;
    telegram.wait_for_text(group, "administrator", SOON).await;
    assert!(stage.route_of(group).await.is_none(), "a member is not enough");
    telegram.say(group, ann, &format!("/link@{} {code}", telegram.username())).await;
    // Bob has used up what can be said there for now, and that is not Ann's fault.
    assert_eq!(stage.until_routed(group).await["tenant"], "other");
    telegram.say(group, bob, &stage.to_bot("hello")).await;
    assert_eq!(whence(&heard(&mut socket).await), ("hello", "group", group.to_string().as_str(), None));

    // However much was said already, whoever used a code hears what came of it.
    telegram.say_many(ann, ann, "/start", 5).await;
    let spare = stage.code(&[]).await;
    telegram.say(ann, ann, &format!("/link {spare}")).await;
    telegram.wait_for_text(ann, "Linked", SOON).await;
    telegram.say(ann, ann, "and I").await;
    assert_eq!(whence(&heard(&mut socket).await).0, "and I");
    assert_eq!(stage.waiting().await, 0);
    let log = stage.connector.whole_log();
    assert!(!log.contains(&code) && !log.contains(&spare), "a code in the log");
    stage.close().await;
}

/// Commands are free for whoever sends them, and the bot's words are not.
#[tokio::test]
async fn commands_without_end_are_answered_a_few_times_and_hold_nothing_up() {
    const COMMANDS: usize = 40;
    let stage = Stage::new("links-flood").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let (ann, bob) = (telegram.person("Ann").await, telegram.person("Bob").await);
    let group = telegram.group("Team", &[ann, bob]).await;
    let mut socket = stage.join().await;
    stage.until_bot("up").await;
    // Nobody waits for these answers, however long they take.
    telegram.hang_next("sendMessage", 2).await;
    telegram.say_many(ann, ann, "/start nonsense{n}", COMMANDS).await;
    telegram.say_many(group, bob, "/link nonsense{n}", COMMANDS).await;
    let asked_at = Instant::now();
    telegram.say(ann, ann, "hello").await;
    assert_eq!(whence(&heard(&mut socket).await).0, "hello");
    assert!(asked_at.elapsed() < HELD_UP, "the answers were waited for: {:?}", asked_at.elapsed());
    let calls = async |method: &str, chat: i64| {
        let log = telegram.log().await;
        log.iter().filter(|call| call["method"] == method && call["chat_id"] == chat).count()
    };
    for (chat, most) in [(ann, 5), (group, 1)] {
        let answers = calls("sendMessage", chat).await;
        assert!(answers <= most, "{answers} answers to {COMMANDS} commands in a row");
    }
    assert_eq!(calls("getChatMember", group).await, 1, "asked once, and remembered");

    // Without a code nobody has to be asked who may use it.
    let other = telegram.group("Other", &[ann, bob]).await;
    telegram.say(other, bob, "/link").await;
    telegram.wait_for_text(other, "/link", SOON).await;
    assert_eq!(calls("getChatMember", other).await, 0);

    // Telegram wants a pause: the connector's words keep it.
    let eve = telegram.person("Eve").await;
    telegram.answer_next("sendMessage", 1, 429, &too_many(600)).await;
    telegram.say(eve, eve, "/start").await;
    telegram.wait_for_state("the pause is met", SOON, |state| state["faults"] == 0).await;
    stage.until_heard().await;
    telegram.say(eve, eve, "/start").await;
    telegram.say(eve, eve, "hello").await;
    assert_eq!(whence(&heard(&mut socket).await).0, "hello");
    assert_eq!(calls("sendMessage", eve).await, 1, "it was asked to wait");
    stage.close().await;
}

#[tokio::test]
async fn a_code_outlasts_a_store_that_cannot_commit() {
    let stage = Stage::new("links-uncommitted").await;
    stage.connector.gateway("other", "gw-other").await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let group = telegram.group("Team", &[ann]).await;
    let code = stage.code(&["--allow", "any"]).await;
    stage.until_asking().await;
    let stopped = Inspect::of(&stage.folder.join("data")).stop_commits();
    telegram.say(group, ann, &format!("/link {code}")).await;
    stage.until_tried(4).await;
    assert_eq!(telegram.bot_texts(group).await, Vec::<String>::new());
    drop(stopped);
    telegram.wait_for_text(group, "Linked", SOON).await;
    assert_eq!(stage.route_of(group).await.unwrap()["tenant"], "other");
    stage.close().await;
}

#[tokio::test]
async fn what_still_waits_is_delivered_as_it_was_changed() {
    let stage = Stage::new("changed").await;
    stage.route_all().await;
    let telegram = &stage.telegram;
    let ann = telegram.person("Ann").await;
    let one = telegram.say(ann, ann, "one").await;
    telegram.say(ann, ann, "two").await;
    telegram.edit(ann, one.message, "one, but better").await;
    stage.until_heard().await;
    let mut socket = stage.join().await;
    let event = heard(&mut socket).await;
    assert_eq!(whence(&event).0, "one, but better");
    assert_eq!(event["message_id"], one.message.to_string());
    assert_eq!(whence(&heard(&mut socket).await).0, "two");
    telegram.edit(ann, one.message, "too late").await;
    telegram.say(ann, ann, "three").await;
    assert_eq!(whence(&heard(&mut socket).await).0, "three", "what was delivered stays as it was");
    stage.close().await;
}
