//! Turns on Discord: people see their marks, and what they take back while it waits is not said.

use super::discord_stage::{SOON, Stage};
use angelia_testkit::newer_gateway::{NewerGateway, Settings};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the model takes: long enough to write and delete a line meanwhile.
const TURN: Duration = Duration::from_secs(5);

/// Waits until a message has these marks of the bot.
async fn until_marked(stage: &Stage, channel: &str, message: &str, marks: &[&str]) {
    let deadline = Instant::now() + SOON;
    loop {
        let messages = stage.discord.messages(channel).await;
        let found = messages.into_iter().find(|one| one.id == message).map(|one| one.reactions);
        if found.as_deref().is_some_and(|found| found == marks) {
            return;
        }
        assert!(Instant::now() < deadline, "{found:?} instead of {marks:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_shows_its_marks_and_a_line_that_is_deleted_meanwhile_is_not_said() {
    let stage = Stage::listening(json!({ "identify_seconds": 0 })).await;
    let discord = &stage.discord;
    let bob = discord.user("bob").await;
    let dm = discord.dm(&bob).await;
    stage.route("acme", &["--while-busy", "collect"], &format!("discord:dm:{bob}")).await;
    let settings = Settings::default().fronts(&[("discord", discord.bot_id())]).turn(TURN);
    let agent = NewerGateway::start(&stage.connector.url(), &stage.acme, settings).await;
    let first = discord.say(&dm, &bob, "first").await;
    until_marked(&stage, &dm, &first, &["👀"]).await;
    let slip = discord.say(&dm, &bob, "my password is swordfish").await;
    discord.say(&dm, &bob, "second").await;
    discord.delete(&dm, &slip).await;
    agent.wait_for_text("second", SOON).await;
    until_marked(&stage, &dm, &first, &["✅"]).await;
    assert_eq!(agent.lines(&dm), ["first", "second"]);
    agent.assert_unharmed();
    let told = stage.connector.command(&["explain", &slip]).await;
    assert!(told.to_string().contains("withdrawn: it was deleted where it was written"), "{told}");
}
