//! Slash commands, answered where the person saw "thinking…".

use std::path::Path;
use std::time::Duration;

use super::TURN;
use super::bots::{HEARS, Post, discord_bot};
use crate::discord::{FakeDiscord, Interaction, Message};
use crate::hermes::Version;
use serde_json::{Value, json};

/// How long Discord waits until it calls a command failed.
const DISCORD_WAITS: Duration = Duration::from_secs(3);

/// Discord's number of an answer that is still to come.
const DEFERRED: u64 = 5;

/// A guild's channel in which somebody uses commands.
struct Scene {
    fake: FakeDiscord,
    ann: String,
    guild: String,
    channel: String,
}

impl Scene {
    async fn set(folder: &Path) -> Self {
        let fake = FakeDiscord::start(folder, &json!({})).await;
        let ann = fake.user("ann").await;
        let guild = fake.guild("ops").await.id;
        let channel = fake.channel(&guild, "general").await;
        Self { fake, ann, guild, channel }
    }

    async fn post(&self, version: Version, binary: &Path, folder: &Path, lines: &str) -> Post {
        let bot = format!("{}{lines}", discord_bot(&self.fake, folder));
        let post = Post::set(version, binary, folder, &bot, &[format!("discord:{}", self.guild)]).await;
        let identified =
            |state: &Value| state["gateway"]["identifies"].as_u64().is_some_and(|count| count >= 1);
        self.fake.until_state(HEARS, identified).await;
        post
    }

    async fn slash(&self, name: &str, options: Value) -> Interaction {
        self.fake.slash(&self.channel, &self.ann, name, options).await
    }

    /// Waits until the answer has taken the place of "thinking…": in one edit.
    async fn answered(&self, asked: &Interaction) -> Interaction {
        let seen = self.fake.until_interaction(&asked.id, TURN, |seen| seen.state == "answered").await;
        assert_eq!((seen.edits, seen.followups.len()), (1, 0), "one answer, in its place: {seen:#?}");
        assert!(!seen.ephemeral, "everybody sees it: {seen:#?}");
        seen
    }

    /// The bot's messages are these answers, and besides them `others`.
    async fn assert_said(&self, answers: &[Interaction], others: &[&str]) {
        let said = self.fake.answers(&self.channel).await;
        let (own, rest): (Vec<_>, Vec<_>) = said.iter().partition(|it| it.interaction.is_some());
        let own: Vec<_> = own.into_iter().map(|it| Some(it.id.clone())).collect();
        let expected: Vec<_> = answers.iter().map(|answer| answer.message.clone()).collect();
        assert_eq!(own, expected, "{said:#?}");
        assert_eq!(rest.len(), others.len(), "{said:#?}");
        for (message, words) in rest.iter().zip(others) {
            assert!(message.content.contains(words), "{words:?} in {message:#?}");
        }
    }
}

/// Commands that Discord posts, given to the gateway as events: a command of its own,
/// and a question for the model. Each is answered in its place.
pub async fn slash_commands(version: Version, binary: &Path, folder: &Path) {
    let scene = Scene::set(folder).await;
    let key = format!("name = \"main\"\npublic_key = {:?}\n", scene.fake.public_key());
    let post = scene.post(version, binary, folder, &key).await;
    let hook = format!("{}/webhooks/discord/main", post.connector.url());
    scene.fake.set_interactions_url(Some(&hook)).await;

    let status = scene.slash("status", json!({})).await;
    assert_eq!((status.answer["type"].as_u64(), status.status), (Some(DEFERRED), Some(200)), "{status:#?}");
    assert!(status.took.is_some_and(|took| took < DISCORD_WAITS), "{status:#?}");
    let status = scene.answered(&status).await;
    assert!(status.content.as_deref().is_some_and(|text| text.contains("Session ID")), "{status:#?}");

    post.model.hang_on("what is up");
    let asked = scene.slash("ask", json!({ "question": "what is up" })).await;
    post.model.wait_for_text("what is up", TURN).await;
    assert_eq!(scene.fake.interaction(&asked.id).await.state, "deferred", "while the agent thinks");
    post.model.release();
    let asked = scene.answered(&asked).await;
    assert_eq!(asked.content.as_deref(), Some("echo: what is up"));

    post.connector.until_quiet().await;
    scene.assert_said(&[status, asked], &[]).await;
    assert_eq!(post.model.texts(), ["what is up"], "the gateway's own command is not for the model");
    post.assert_sessions(&[format!("agent:main:discord:group:{}:{}", scene.channel, scene.ann)]);
}

/// Commands that come over the bot's own connection, forwarded as the contract
/// says. Published gateways read the bare name, and first of all they send a
/// notice, which answers nobody.
pub async fn slash_commands_forwarded(version: Version, binary: &Path, folder: &Path) {
    let scene = Scene::set(folder).await;
    let post = scene.post(version, binary, folder, "interactions = \"passthrough\"\n").await;

    post.model.hang_on("ask");
    let asked = scene.slash("ask", json!({ "question": "what is up" })).await;
    post.model.wait_for_text("ask", TURN).await;
    // The notice came before the turn.
    let noticed = |said: &[Message]| said.iter().any(|it| it.content.contains("home channel"));
    scene.fake.until_messages(&scene.channel, TURN, noticed).await;
    assert_eq!(scene.fake.interaction(&asked.id).await.state, "deferred", "a notice is no answer");
    post.model.release();
    let asked = scene.answered(&asked).await;
    assert_eq!(asked.content.as_deref(), Some("echo: ask"));

    let status = scene.slash("status", json!({})).await;
    let status = scene.answered(&status).await;
    assert_eq!(status.content.as_deref(), Some("echo: status"));

    post.connector.until_quiet().await;
    scene.assert_said(&[asked, status], &["No home channel"]).await;
    assert_eq!(post.model.texts(), ["ask", "status"], "once each");
    post.assert_sessions(&[format!("agent:main:relay:channel:{}:{}", scene.channel, scene.ann)]);
}
