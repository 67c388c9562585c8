//! People on Discord and Telegram, and a published gateway that answers them.

use std::path::Path;
use std::time::Duration;

use super::{SHUTDOWN, TENANT, TURN, connected, pinned};
use crate::connector::Connector;
use crate::discord::{FakeDiscord, Message};
use crate::hermes::{Hermes, Setup, Version};
use crate::model::Model;
use crate::process::free_port;
use crate::telegram::{self, FakeTelegram};
use serde_json::json;

/// How long a bot may take until it hears.
pub(super) const HEARS: Duration = Duration::from_secs(30);

/// A connector in front of a platform, a model, and a gateway that is connected.
pub(super) struct Post {
    pub(super) connector: Connector,
    pub(super) model: Model,
    pub(super) hermes: Hermes,
}

impl Post {
    pub(super) async fn set(
        version: Version,
        binary: &Path,
        folder: &Path,
        bot: &str,
        places: &[String],
    ) -> Self {
        Self::set_on(version, binary, folder, free_port(), bot, places).await
    }

    /// The same, on a port that others know already.
    pub(super) async fn set_on(
        version: Version,
        binary: &Path,
        folder: &Path,
        port: u16,
        bot: &str,
        places: &[String],
    ) -> Self {
        let connector = Connector::start_on(binary, &folder.join("connector"), port, bot).await;
        let model = Model::start().await;
        let gateway = connector.gateway(TENANT, "gw-test").await;
        for place in places {
            connector.command(&["route", "add", "--tenant", TENANT, "--allow", "any", place]).await;
        }
        let relay = pinned(&connector, &gateway);
        let setup = Setup::new(version, folder.join("hermes"), &model.url(), relay);
        let hermes = connected(Hermes::start(setup)).await;
        Self { connector, model, hermes }
    }

    /// Stops the connector the friendly way and starts it again.
    async fn restart(&mut self) {
        self.connector.process().terminate(SHUTDOWN).await;
        self.connector.restart().await;
    }

    /// The gateway's own conversations are these and no others.
    pub(super) fn assert_sessions(&self, expected: &[String]) {
        let text = self.hermes.home_file("sessions/sessions.json");
        let sessions: serde_json::Value = serde_json::from_str(&text).expect("the gateway's sessions");
        let keys = sessions.as_object().expect("sessions by their keys").keys();
        let mut keys: Vec<_> = keys.filter(|key| key.starts_with("agent:")).cloned().collect();
        let mut expected = expected.to_vec();
        keys.sort();
        expected.sort();
        assert_eq!(keys, expected);
    }

    pub(super) fn assert_asked_once(&self, texts: &[&str]) {
        for text in texts {
            assert_eq!(self.model.arrivals(text), 1, "{text} in {:?}", self.model.texts());
        }
    }
}

/// Writes a bot's token where the configuration finds it.
fn token_file(folder: &Path, token: &str) -> String {
    secret_file(folder, "token", token)
}

/// Writes a secret where the configuration finds it.
pub(super) fn secret_file(folder: &Path, name: &str, secret: &str) -> String {
    std::fs::create_dir_all(folder).expect("create the test's folder");
    let file = folder.join(name);
    std::fs::write(&file, secret).expect("write the secret");
    file.display().to_string()
}

/// The lines that configure the stand-in's bot.
pub(super) fn discord_bot(fake: &FakeDiscord, folder: &Path) -> String {
    format!(
        "[[bots]]\nplatform = \"discord\"\nid = {:?}\ntoken = {{ file = {:?} }}\napi_url = {:?}\ngateway_url = {:?}\n",
        fake.bot_id(),
        token_file(folder, fake.token()),
        fake.url(),
        fake.gateway_url()
    )
}

/// Whether a message is the agent's echo of a text. Where several people share a
/// conversation the gateway puts their name before what they said.
fn answers(message: &Message, text: &str) -> bool {
    message.own && message.content.starts_with("echo: ") && message.content.ends_with(text)
}

/// A guild's channel, a thread of it and a private chat: each is answered in its
/// place and is a conversation of its own, also right after a restart that only
/// resumes.
pub async fn discord(version: Version, binary: &Path, folder: &Path) {
    let fake = FakeDiscord::start(folder, &json!({})).await;
    let ann = fake.user("ann").await;
    let guild = fake.guild("ops").await.id;
    let channel = fake.channel(&guild, "general").await;
    let thread = fake.thread(&channel, "a matter", &ann, None).await;
    let dm = fake.dm(&ann).await;
    let places = [format!("discord:{guild}"), format!("discord:dm:{ann}")];
    let mut post = Post::set(version, binary, folder, &discord_bot(&fake, folder), &places).await;
    fake.until_state(HEARS, |state| state["gateway"]["identifies"].as_u64().is_some_and(|count| count >= 1))
        .await;

    let asked = fake.mention(&channel, &ann, "in-the-channel").await;
    fake.mention(&thread, &ann, "in-the-thread").await;
    fake.say(&dm, &ann, "in-private").await;
    for (place, text) in [(&channel, "in-the-channel"), (&thread, "in-the-thread"), (&dm, "in-private")] {
        let said = fake.until_messages(place, TURN, |said| said.iter().any(|it| answers(it, text))).await;
        let own: Vec<_> = said.iter().filter(|message| message.own).collect();
        assert_eq!(own.len(), 1, "one answer in its place: {own:?}");
        if place == &channel {
            assert_eq!(own[0].reference.as_deref(), Some(asked.as_str()), "it answers the question");
        }
    }

    post.restart().await;
    fake.until_state(HEARS, |state| state["gateway"]["resumes"].as_u64().is_some_and(|count| count >= 1))
        .await;
    assert_eq!(fake.count("/gateway/identifies").await, 1, "the session is the same");
    // It was addressed in this thread before.
    fake.say(&thread, &ann, "after-the-restart").await;
    let answered = |said: &[Message]| said.iter().any(|it| answers(it, "after-the-restart"));
    fake.until_messages(&thread, TURN, answered).await;
    post.connector.until_quiet().await;
    post.assert_asked_once(&["in-the-channel", "in-the-thread", "in-private", "after-the-restart"]);
    post.assert_sessions(&[
        format!("agent:main:discord:group:{channel}:{ann}"),
        format!("agent:main:discord:thread:{thread}:{thread}"),
        format!("agent:main:discord:dm:{dm}"),
    ]);
}

/// A private chat, a group and a topic: each is answered in its place and is a
/// conversation of its own, also after a restart.
pub async fn telegram(version: Version, binary: &Path, folder: &Path) {
    let fake = FakeTelegram::start(folder, &telegram::Options::default()).await;
    let ann = fake.person("Ann").await;
    let group = fake.group("team", &[ann]).await;
    let forum = fake.forum("club", &[ann]).await;
    let topic = fake.topic(forum, ann, "plans").await;
    let bot = format!(
        "[[bots]]\nplatform = \"telegram\"\nid = \"{}\"\ntoken = {{ file = {:?} }}\napi_url = {:?}\n",
        fake.bot_id(),
        token_file(folder, fake.token()),
        fake.url()
    );
    let places = [ann, group, forum].map(|chat| format!("telegram:{chat}"));
    let mut post = Post::set(version, binary, folder, &bot, &places).await;

    let name = fake.username();
    fake.say(ann, ann, "in-private").await;
    fake.say(group, ann, &format!("@{name} in-the-group")).await;
    fake.say_in(forum, topic, ann, &format!("@{name} in-the-topic")).await;
    fake.wait_for_text(ann, "echo: in-private", TURN).await;
    fake.wait_for_text(group, "echo: in-the-group", TURN).await;
    let answer = fake.wait_for_text(forum, "echo: [Ann] in-the-topic", TURN).await;
    assert_eq!(answer["thread"], topic, "it is in the topic: {answer}");

    post.restart().await;
    fake.say_in(forum, topic, ann, &format!("@{name} after-the-restart")).await;
    let answer = fake.wait_for_text(forum, "echo: [Ann] after-the-restart", TURN).await;
    assert_eq!(answer["thread"], topic, "it is in the topic: {answer}");
    post.connector.until_quiet().await;
    post.assert_asked_once(&["in-private", "in-the-group", "in-the-topic", "after-the-restart"]);
    assert_eq!(fake.bot_texts(ann).await, ["echo: in-private"]);
    assert_eq!(fake.bot_texts(group).await, ["echo: in-the-group"]);
    assert_eq!(fake.bot_texts(forum).await, ["echo: [Ann] in-the-topic", "echo: [Ann] after-the-restart"]);
    post.assert_sessions(&[
        format!("agent:main:telegram:dm:{ann}"),
        format!("agent:main:telegram:group:{group}:{ann}"),
        format!("agent:main:telegram:forum:{forum}:{topic}"),
    ]);
    fake.assert_no_violations().await;
}
