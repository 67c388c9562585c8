//! Chats that are not at hand: the store is asked, then the provider, within limits.

use super::platform::{Knows, Scripted};
use super::world::{World, error, send};
use angelia_core::clock;
use angelia_core::egress::{Dedupe, MAX_ASKED};
use serde_json::json;
use std::time::Duration;

fn knows(platform: &Scripted, room: &str, who: Knows) {
    platform.elsewhere.lock().unwrap().insert(room.into(), who);
}

fn looked_up(platform: &Scripted) -> Vec<String> {
    platform.looked_up.lock().unwrap().clone()
}

#[tokio::test]
async fn the_store_is_asked_before_the_provider() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    knows(&platform, "lab", Knows::Store);
    knows(&platform, "den", Knows::Provider);
    assert_eq!(agent.asked(send("x-lab", "one")).await["success"], true);
    assert_eq!(looked_up(&platform), Vec::<String>::new());
    assert_eq!(agent.asked(send("x-den", "two")).await["success"], true);
    assert_eq!(looked_up(&platform), ["x-den"]);
    assert_eq!(platform.texts(), ["one", "two"]);
}

#[tokio::test]
async fn what_follows_for_the_same_chat_keeps_its_order() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    knows(&platform, "den", Knows::Provider);
    let texts: Vec<String> = (0..30).map(|n| format!("text {n}")).collect();
    for text in &texts {
        agent.ask(text, send("x-den", text)).await;
    }
    for text in &texts {
        assert_eq!(agent.answer(text).await["success"], true, "{text}");
    }
    assert_eq!(platform.texts(), texts);
    assert_eq!(looked_up(&platform), ["x-den"], "asked once");
}

#[tokio::test]
async fn whoever_names_chats_at_random_is_asked_for_little() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    for n in 0..30 {
        knows(&platform, &format!("{n}"), Knows::Nobody);
    }
    for n in 0..30 {
        let answer = agent.asked(send(&format!("x-{n}"), "psst")).await;
        assert_eq!(answer["code"], "egress_declined", "{answer}");
    }
    assert_eq!(looked_up(&platform).len(), MAX_ASKED);
    assert_eq!(platform.calls().len(), 0);
    assert!(world.ledger().is_empty(), "nothing of it was accepted");
}

#[tokio::test]
async fn a_chat_that_nobody_knows_is_asked_for_once() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    knows(&platform, "gone", Knows::Nobody);
    for _ in 0..5 {
        let answer = agent.asked(send("x-gone", "psst")).await;
        assert!(error(&answer).contains("egress declined"), "{answer}");
    }
    assert_eq!(looked_up(&platform), ["x-gone"]);
}

#[tokio::test]
async fn nothing_is_asked_for_a_tenant_without_a_route() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::new(platform.clone()).await;
    let mut stranger = world.join(&world.gateway("other", "gw2").await).await;
    knows(&platform, "den", Knows::Provider);
    let answer = stranger.asked(send("x-den", "psst")).await;
    assert_eq!(answer["code"], "egress_declined", "{answer}");
    let info = stranger.asked(json!({"op": "get_chat_info", "chat_id": "x-den"})).await;
    assert_eq!(info["code"], "egress_declined", "{info}");
    assert_eq!(looked_up(&platform), Vec::<String>::new());
}

#[tokio::test]
async fn asking_about_a_chat_does_not_tell_whether_it_is_anothers_or_nobodys() {
    let platform = Scripted::new(Dedupe::Yes);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let theirs = json!({ "place": "fake:theirs", "tenant": "other", "allow": ["any"] });
    world.admin("routes", theirs).await;
    for (room, who) in [("nobodys", Knows::Nobody), ("providers", Knows::Provider), ("stored", Knows::Store)]
    {
        knows(&platform, room, who);
    }
    let mut answers = Vec::new();
    for chat in ["x-theirs", "x-nobodys", "x-providers"] {
        let began = clock::mono();
        let answer = agent.asked(json!({"op": "get_chat_info", "chat_id": chat})).await;
        assert!(clock::mono().since(began) >= Duration::from_millis(25), "{chat}: not before the others");
        assert_eq!(answer["code"], "egress_declined", "{chat}: {answer}");
        answers.push(answer);
    }
    assert!(answers.windows(2).all(|two| two[0] == two[1]), "{answers:?}");
    assert_eq!(*platform.recalled.lock().unwrap(), ["x-theirs", "x-nobodys", "x-providers"], "the same work");
    assert_eq!((looked_up(&platform), platform.calls().len()), (Vec::new(), 0), "and no call");
    let own = agent.asked(json!({"op": "get_chat_info", "chat_id": "x-stored"})).await;
    assert_eq!(own["success"], true, "its own is found in the store: {own}");
}
