//! Interactions that come in while the master key changes, again and again.

use super::discord_stage::{SOON, Stage};
use super::interactions_stage::{AS_EVENTS, at_ease};
use angelia_testkit::discord::Interaction;
use serde_json::{Value, json};
use std::cell::Cell;

/// How many are asked at least, in both ways by turns, and how often the key changes meanwhile.
const ASKED: usize = 24;
const CHANGES: usize = 3;

#[tokio::test]
async fn everybody_is_answered_in_their_place_whatever_key_it_was_sealed_with() {
    let stage = Stage::posted_to(at_ease(), "", AS_EVENTS, &[]).await;
    stage.until_session().await;
    let mut peer = stage.swift().await;
    let (over, changes) = (Cell::new(false), Cell::new(0));
    let rotating = async {
        while !over.get() {
            stage.connector.command(&["key", "rotate"]).await;
            changes.set(changes.get() + 1);
        }
    };
    let asking = async {
        let mut asked: Vec<Interaction> = Vec::new();
        while asked.len() < ASKED || changes.get() < CHANGES {
            let number = asked.len();
            let via = ["http", "gateway"][number % 2];
            let ask = json!({ "via": via, "channel": stage.quay, "user": stage.ann, "name": "ask",
                              "options": { "question": format!("question {number}") } });
            asked.push(stage.discord.interact("slash", ask).await);
        }
        over.set(true);
        asked
    };
    let ((), asked) = tokio::join!(rotating, asking);
    for one in &asked {
        let deferred = stage.discord.until_interaction(&one.id, SOON, |one| one.answer.is_object()).await;
        assert_eq!(deferred.answer, json!({ "type": 5 }), "nobody is told to try again");
        peer.event().await;
    }
    for (number, one) in asked.iter().enumerate() {
        let answer = format!("answer {number}");
        peer.says(&stage.quay, &answer, Some(&one.id), true).await;
        stage.until_says(&one.id, &answer).await;
    }
    let checked = stage.connector.command(&["key", "check"]).await;
    assert_eq!((&checked["unreadable"], &checked["retiring_key_id"]), (&json!(0), &Value::Null), "{checked}");
    let count = |row: &Value| (row["kind"] == "capability").then(|| row["count"].as_u64().unwrap());
    let capabilities = checked["sealed"].as_array().unwrap().iter().find_map(count);
    assert_eq!(capabilities, Some(asked.len() as u64), "{checked}");
}
