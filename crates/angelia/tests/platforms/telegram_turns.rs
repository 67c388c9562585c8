//! People on Telegram write while an agent works, and nobody waits for anybody else.
//!
//! The agent is a stand-in for newer gateways: whatever is pushed into a
//! running turn makes it deaf for half a minute.

use super::telegram_stage::{SOON, Stage, unlimited};
use angelia_testkit::newer_gateway::{NewerGateway, Settings};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the model takes.
const TURN: Duration = Duration::from_secs(5);
/// What the rest of the way may take on a busy machine; a stall is ten times as long.
const ON_THE_WAY: Duration = Duration::from_secs(3);

async fn agent(stage: &Stage, settings: Settings) -> NewerGateway {
    let bot = stage.telegram.bot_id().to_string();
    let settings = settings.fronts(&[("telegram", &bot)]).turn(TURN);
    NewerGateway::start(&stage.connector.url(), &stage.gateway, settings).await
}

/// Somebody writes, and is served as if nobody else had an agent here.
async fn served_as_if_alone(stage: &Stage, agent: &NewerGateway, chat: i64, text: &str) {
    let said = Instant::now();
    stage.telegram.say(chat, chat, text).await;
    let given = agent.wait_for_text(text, SOON).await;
    assert!(given - said < ON_THE_WAY, "{text:?} waited {:?}", given - said);
    stage.telegram.wait_for_text(chat, &format!("echo: {text}"), SOON).await;
    assert!(said.elapsed() < TURN + ON_THE_WAY, "{text:?} took {:?}", said.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_lines_in_one_chat_do_not_delay_another() {
    let stage = Stage::new("turns-two-lines").await;
    stage.route_all().await;
    let (ann, bob) = (stage.telegram.person("Ann").await, stage.telegram.person("Bob").await);
    let agent = agent(&stage, Settings::default()).await;
    stage.telegram.say(ann, ann, "ann-one").await;
    // Fixed pause: somebody types the next line.
    sleep(Duration::from_secs(2)).await;
    stage.telegram.say(ann, ann, "ann-two").await;
    // Fixed pause: somebody else writes a second later.
    sleep(Duration::from_secs(1)).await;
    served_as_if_alone(&stage, &agent, bob, "bob-one").await;
    stage.telegram.wait_for_text(ann, "ann-two", SOON).await;
    assert_eq!(agent.lines(&ann.to_string()), ["ann-one", "ann-two"]);
    agent.assert_unharmed();
}

/// As many as one inbox holds, all behind one turn.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_lines_that_are_held_stand_in_nobodys_way() {
    let stage = Stage::with("turns-held", &unlimited(), "", "[inbox]\nmax_entries = 20_000").await;
    stage.route_all().await;
    let (ann, bob) = (stage.telegram.person("Ann").await, stage.telegram.person("Bob").await);
    let agent = agent(&stage, Settings::default()).await;
    stage.telegram.say(ann, ann, "ann-first").await;
    agent.wait_for_text("ann-first", SOON).await;
    let said = stage.telegram.say_many(ann, ann, "ann-{n}.", 10_000).await;
    let last = said.last().and_then(|said| said.update).unwrap();
    let confirmed = |state: &serde_json::Value| state["confirmed"].as_i64() > Some(last);
    stage.telegram.wait_for_state("all of them taken", 4 * SOON, confirmed).await;
    served_as_if_alone(&stage, &agent, bob, "bob-one").await;
    agent.assert_unharmed();
}
