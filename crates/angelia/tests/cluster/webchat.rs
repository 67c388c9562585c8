//! A reader at one node sees what agents and people on other nodes write.

use super::stage::{AT_ONCE, BUSY, SECOND, SOON, Stage, timed};
use angelia_testkit::process::eventually;
use angelia_testkit::webchat::{Event, Person};
use serde_json::json;
use std::time::Duration;

fn ann_at(stage: &Stage, node: usize) -> Person {
    Person::enter(&stage.cluster[node].url(), "lab", "ann", &stage.key)
}

/// Waits until a reader has seen a line.
async fn seen(person: &Person, text: &str) {
    let there = || person.events().iter().any(|event| event.text == text).then_some(());
    eventually(&format!("the line {text:?}"), SOON, there).await;
}

#[tokio::test]
async fn lines_of_agents_and_people_reach_readers_on_other_nodes() {
    let stage = Stage::new("webchat", 3).await;
    let (here, there) = (ann_at(&stage, 0), ann_at(&stage, 2));
    let mut agent = stage.join(1).await;
    here.say("question").await;
    let text = timed("a question reaches the agent", AT_ONCE, agent.take_text()).await;
    assert_eq!(text, "question");
    timed("a person's line at another node", AT_ONCE + BUSY / 2, seen(&there, "question")).await;
    let answer = agent.ask(json!({ "op": "send", "chat_id": "web-lab", "content": "answer" })).await;
    assert_eq!(answer["success"], true, "{answer}");
    for (name, person) in [("the node of the question", &here), ("a third node", &there)] {
        timed(&format!("an answer at {name}"), AT_ONCE + BUSY / 2, seen(person, "answer")).await;
    }
    let message = answer["message_id"].as_str().unwrap();
    let edit = json!({ "op": "edit", "chat_id": "web-lab", "message_id": message, "content": "better" });
    let answer = agent.ask(edit).await;
    assert_eq!(answer["success"], true, "{answer}");
    timed("an edit at another node", AT_ONCE + BUSY / 2, seen(&there, "better")).await;
    let typing = agent.ask(json!({ "op": "typing", "chat_id": "web-lab" })).await;
    assert_eq!(typing["success"], true, "{typing}");
    let shown = || there.events().iter().any(|event| event.kind == "typing").then_some(());
    timed("typing at another node", AT_ONCE + BUSY / 2, eventually("typing", SOON, shown)).await;

    let draft =
        json!({ "op": "draft", "chat_id": "web-lab", "draft_id": 1, "content": "In sil", "metadata": {} });
    assert_eq!(agent.ask(draft).await["success"], true);
    let shown = || there.events().iter().any(|event| event.kind == "draft").then_some(());
    timed("a draft at another node", AT_ONCE + BUSY / 2, eventually("a draft", SOON, shown)).await;
    let mark =
        json!({ "op": "react", "chat_id": "web-lab", "message_id": message, "emoji": "👀", "metadata": {} });
    assert_eq!(agent.ask(mark).await["success"], true);
    let again = |event: &&Event| event.kind == "edit" && event.text == "better";
    let marked = || (there.events().iter().filter(again).count() == 2).then_some(());
    timed("a mark at another node", AT_ONCE + BUSY / 2, eventually("a mark", SOON, marked)).await;

    stage.without_redis().await;
    let answer = agent.ask(json!({ "op": "send", "chat_id": "web-lab", "content": "in silence" })).await;
    assert_eq!(answer["success"], true, "{answer}");
    timed("an answer at another node, without Redis", SECOND + BUSY, seen(&there, "in silence")).await;
    stage.cluster.assert_never_panicked();
}

#[tokio::test]
async fn a_reader_that_moves_to_another_node_goes_on_behind_its_last_line() {
    let stage = Stage::new("webchat-moves", 2).await;
    let here = ann_at(&stage, 0);
    for number in 0..5 {
        stage.post(number % 2, &format!("line {number}")).await;
    }
    seen(&here, "line 4").await;
    let events: Vec<_> = here.events().into_iter().filter(|event| event.kind == "message").collect();
    let texts: Vec<&str> = events.iter().map(|event| event.text.as_str()).collect();
    assert_eq!(texts, ["line 0", "line 1", "line 2", "line 3", "line 4"], "each once and in order");
    // The same place on another node: two lines were seen, three are owed.
    let url = format!("{}/chat/api/rooms/lab/events", stage.cluster[1].url());
    let mut stream = stage
        .http
        .get(url)
        .bearer_auth(&stage.key)
        .header("last-event-id", &events[1].id)
        .send()
        .await
        .unwrap();
    let mut text = String::new();
    while text.matches("\ndata:").count() < 3 {
        let chunk = tokio::time::timeout(Duration::from_secs(5), stream.chunk()).await;
        let Ok(Ok(Some(chunk))) = chunk else { panic!("only {text}") };
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
    for (number, owed) in [(1, false), (2, true), (3, true), (4, true)] {
        assert_eq!(text.contains(&format!("line {number}")), owed, "line {number} in {text}");
    }
}
