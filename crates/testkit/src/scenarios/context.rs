//! What people say to each other before they ask the agent, and what they reply to.

use std::path::Path;

use serde_json::json;
use tokio::time::sleep;

use super::bots::{HEARS, Post, discord_bot};
use super::{READING, TENANT, TURN};
use crate::discord::{FakeDiscord, Message};
use crate::hermes::Version;

/// What the model must never be given.
const CANARY: &str = "canary-";

/// The lines before a mention and the text of a reply reach the model; what was said in other
/// places, in another tenant's or by people who may not speak does not.
pub async fn context(version: Version, binary: &Path, folder: &Path) {
    let fake = FakeDiscord::start(folder, &json!({})).await;
    let (ann, bob, eve) = (fake.user("ann").await, fake.user("bob").await, fake.user("eve").await);
    let guild = fake.guild("ops").await.id;
    let (hall, elsewhere) = (fake.channel(&guild, "hall").await, fake.channel(&guild, "elsewhere").await);
    let others = fake.guild("rivals").await.id;
    let theirs = fake.channel(&others, "theirs").await;
    let dm = fake.dm(&ann).await;
    let post = Post::set(version, binary, folder, &discord_bot(&fake, folder), &[]).await;
    let route = async |tenant: &str, allow: &str, place: String| {
        post.connector.command(&["route", "add", "--tenant", tenant, "--allow", allow, &place]).await;
    };
    post.connector.gateway("rival", "gw-rival").await;
    route(TENANT, &format!("{ann},{bob}"), format!("discord:{guild}")).await;
    route(TENANT, &ann, format!("discord:dm:{ann}")).await;
    route("rival", "any", format!("discord:{others}")).await;
    fake.until_state(HEARS, |state| state["gateway"]["identifies"].as_u64().is_some_and(|count| count >= 1))
        .await;

    fake.say(&elsewhere, &bob, "canary-elsewhere").await;
    fake.say(&theirs, &bob, "canary-rival").await;
    let boat = fake.say(&hall, &bob, "boat-leaves-at-nine").await;
    let whisper = fake.say(&hall, &eve, "canary-eve").await;
    fake.say(&hall, &ann, "bring-coats").await;
    fake.mention(&hall, &ann, "when-does-it-leave").await;
    let answered = async |place: &str, text: &str| {
        let is_it = |one: &Message| one.own && one.content.contains(text);
        let said = fake.until_messages(place, TURN, |said| said.iter().any(is_it)).await;
        sleep(READING).await;
        said.into_iter().find(is_it).map(|one| one.id).unwrap_or_default()
    };
    answered(&hall, "when-does-it-leave").await;
    let asked = |text: &str| {
        let texts = post.model.texts();
        texts.into_iter().find(|new| new.contains(text)).unwrap_or_else(|| panic!("no {text} at the model"))
    };
    let first = asked("when-does-it-leave");
    assert!(first.contains("bob: boat-leaves-at-nine\nann: bring-coats\n"), "{first}");

    let reply = async |place: &str, to: &str, text: &str| {
        let said = json!({
            "channel": place, "author": ann, "content": text, "mention_bot": place == hall, "reply_to": to,
        });
        fake.order("say", said).await;
        answered(place, text).await
    };
    reply(&hall, &boat, "is-that-true").await;
    let second = asked("is-that-true");
    assert!(second.contains("(in reply to) bob: boat-leaves-at-nine"), "{second}");
    assert!(!second.contains("bring-coats"), "a line goes once: {second}");
    reply(&hall, &whisper, "and-that").await;

    fake.say(&dm, &ann, "in-private").await;
    let own = answered(&dm, "in-private").await;
    reply(&dm, &own, "what-was-that").await;
    let private = asked("what-was-that");
    assert!(private.contains("(in reply to) you: echo: in-private"), "{private}");

    post.connector.until_quiet().await;
    for turn in post.model.turns() {
        assert!(!turn.body.to_string().contains(CANARY), "{:?}", turn.user_messages);
    }
    assert!(!post.connector.whole_log().contains(CANARY), "in the log");
}
