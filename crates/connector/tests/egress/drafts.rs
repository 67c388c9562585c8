//! Texts that grow: the newest of a chat is shown, answered when it was, and nothing of it is written
//! down or shown behind the message that takes its place.

use super::platform::Scripted;
use super::world::{World, error, send};
use angelia_contract::action::ActionResult;
use angelia_core::egress::Dedupe;
use serde_json::{Value, json};

fn draft(text: &str, is_final: bool) -> Value {
    json!({"op": "draft", "chat_id": "x-lab", "draft_id": 3, "content": text, "final": is_final})
}

#[tokio::test]
async fn the_newest_is_shown_and_the_message_takes_its_place() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let shown = platform.hold_mark();
    agent.ask("d1", draft("o", false)).await;
    world.until_texts(&["(o…)"]).await;
    assert!(agent.waits_for("d1").await, "it is answered when it was shown");
    for (id, text) in [("d2", "on"), ("d3", "onc")] {
        agent.ask(id, draft(text, false)).await;
    }
    assert_eq!(agent.answer("d2").await["success"], true, "another says the same and more");
    shown.send(ActionResult::ok()).unwrap();
    for id in ["d1", "d3"] {
        assert_eq!(agent.answer(id).await["success"], true);
    }
    assert_eq!(platform.texts(), ["(o…)", "(onc…)"]);

    // One that still waits when the text is sent is not shown behind it.
    agent.ask("d4", draft("once", false)).await;
    assert_eq!(agent.asked(send("x-lab", "once upon a time")).await["success"], true);
    assert_eq!(agent.answer("d4").await["success"], true);
    assert_eq!(agent.asked(draft("next", false)).await["success"], true);
    assert_eq!(platform.texts(), ["(o…)", "(onc…)", "once upon a time", "(next…)"]);
    assert_eq!(world.ledger().len(), 1, "drafts are not written down");
}

#[tokio::test]
async fn a_refusal_is_told_at_once_and_lasts_and_no_draft_is_sealed() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let sealed = agent.asked(draft("all of it", true)).await;
    assert!(error(&sealed).contains("send the text"), "{sealed}");
    assert!(platform.texts().is_empty());
    platform.hold_mark().send(ActionResult::failed("no drafts here")).unwrap();
    for text in ["o", "on"] {
        let refused = agent.asked(draft(text, false)).await;
        assert!(error(&refused).contains("edit it"), "{refused}");
    }
    assert_eq!(platform.texts(), ["(o…)"], "its provider is asked once");
    let mut stranger = world.join(&world.gateway("other", "gw2").await).await;
    let declined = stranger.asked(draft("mine?", false)).await;
    assert_eq!(declined["code"], "egress_declined");
}
