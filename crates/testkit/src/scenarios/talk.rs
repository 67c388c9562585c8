//! People and one agent: rooms, groups, private chats.

use std::path::Path;

use tokio::time::{Instant, sleep};

use super::{READING, Stage, TENANT, TURN, note};
use crate::hermes::Version;

/// A person writes, the agent's answer appears in the room, and once only.
pub async fn round_trip(version: Version, binary: &Path, folder: &Path) {
    let stage = Stage::set(version, binary, folder).await;
    let ann = stage.person("lobby").await;
    for text in ["first-question", "second-question"] {
        let begun = Instant::now();
        ann.say(text).await;
        ann.wait_for_answer(&format!("echo: {text}"), TURN).await;
        note(version, text, begun);
        sleep(READING).await;
        assert_eq!(stage.model.arrivals(text), 1, "{:?}", stage.model.texts());
    }
    stage.connector.until_quiet().await;
    assert_eq!(ann.answers(), ["echo: first-question", "echo: second-question"]);
}

/// Two rooms of one gateway: answers stay in their room, contexts apart.
pub async fn two_rooms(version: Version, binary: &Path, folder: &Path) {
    let stage = Stage::set(version, binary, folder).await;
    let (red, blue) = (stage.person("red").await, stage.person("blue").await);
    for round in 1..=2 {
        red.say(&format!("red-{round}")).await;
        blue.say(&format!("blue-{round}")).await;
        red.wait_for_answer(&format!("echo: red-{round}"), TURN).await;
        blue.wait_for_answer(&format!("echo: blue-{round}"), TURN).await;
        sleep(READING).await;
    }
    stage.connector.until_quiet().await;
    assert_eq!(red.answers(), ["echo: red-1", "echo: red-2"]);
    assert_eq!(blue.answers(), ["echo: blue-1", "echo: blue-2"]);
    for turn in stage.model.turns() {
        let context = turn.body["messages"].to_string();
        let mixed = context.contains("red-") && context.contains("blue-");
        assert!(!mixed, "one turn knows both rooms: {:?}", turn.user_messages);
    }
}

/// A private chat and a room that two people share, with one agent: each has a
/// conversation of its own, and what people tell each other stays theirs.
pub async fn dm_and_group(version: Version, binary: &Path, folder: &Path) {
    let stage = Stage::set(version, binary, folder).await;
    let apart = ["route", "add", "--tenant", TENANT, "--allow", "any", "--context", "off", "webchat:team"];
    stage.connector.command(&apart).await;
    let private = stage.connector.private(TENANT, "ann").await;
    let ann = stage.connector.person(TENANT, "team", "ann").await;
    let bob = stage.connector.person(TENANT, "team", "bob").await;

    assert_eq!(ann.try_say("not-for-agents").await, Err("not_addressed".into()));
    private.say("private-question").await;
    ann.say("@agent ann-question").await;
    bob.say("@agent bob-question").await;
    private.wait_for_answer("echo: private-question", TURN).await;
    for text in ["echo: ann-question", "echo: bob-question"] {
        ann.wait_for_answer(text, TURN).await;
        bob.wait_for_answer(text, TURN).await;
    }
    stage.connector.until_quiet().await;
    assert_eq!(private.echoes(), ["echo: private-question"]);
    for person in [ann, bob] {
        let mut echoes = person.echoes();
        echoes.sort();
        assert_eq!(echoes, ["echo: ann-question", "echo: bob-question"]);
    }
    // Each turn knows one text only: the three conversations are apart.
    let mut known: Vec<_> = stage.model.turns().into_iter().map(|turn| turn.user_messages).collect();
    known.sort();
    assert_eq!(known, [["ann-question"], ["bob-question"], ["private-question"]]);
    let sessions = stage.hermes.home_file("sessions/sessions.json");
    for key in ["dm:web-dm:ann", "group:web-team:ann", "group:web-team:bob"] {
        assert!(sessions.contains(&format!("\"agent:main:relay:{key}\"")), "no {key} in {sessions}");
    }
}
