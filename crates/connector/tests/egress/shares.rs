//! One bot is shared: nobody starves, and nobody gets it banned.

use super::platform::{Scripted, refused};
use super::world::{World, error, send, until};
use angelia_core::egress::{Dedupe, MAX_REFUSED, Rate};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_tenant_that_floods_does_not_starve_another() {
    // Slow enough that an action is written down well within the time of one call.
    let rate = Rate { calls: 5, per: Duration::from_secs(1), burst: 2 };
    let platform = Scripted::with_rate(Dedupe::Yes, Some(rate));
    let world = World::new(platform.clone()).await;
    let mut loud = world.agent().await;
    let mut quiet = world.join(&world.gateway("other", "gw2").await).await;
    world.admin("routes", json!({ "place": "fake:den", "tenant": "other", "allow": ["any"] })).await;
    for n in 0..20 {
        loud.ask(&format!("l{n}"), send(&format!("x-{n}"), "loud")).await;
    }
    until(|| platform.calls().len() >= 4, || "the flood began".into()).await;
    for n in 0..3 {
        let before = platform.calls().len();
        let answer = quiet.asked(send("x-den", &format!("quiet {n}"))).await;
        assert_eq!(answer["success"], true);
        let texts = platform.texts();
        let position = texts.iter().position(|text| *text == format!("quiet {n}")).unwrap();
        assert!(position <= before + 1, "its turn came {} calls later", position - before);
    }
    let typing = json!({"op": "typing", "chat_id": "x-den"});
    assert_eq!(quiet.asked(typing).await["success"], true, "left out while others wait");
    for n in 0..20 {
        assert_eq!(loud.answer(&format!("l{n}")).await["success"], true, "in the end everything is sent");
    }
    assert_eq!(platform.calls().len(), 23);
}

#[tokio::test]
async fn the_rate_is_kept() {
    let rate = Rate { calls: 20, per: Duration::from_secs(1), burst: 2 };
    let platform = Scripted::with_rate(Dedupe::Yes, Some(rate));
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let start = tokio::time::Instant::now();
    for n in 0..22 {
        agent.ask(&format!("r{n}"), send(&format!("x-{n}"), "one")).await;
    }
    for n in 0..22 {
        assert_eq!(agent.answer(&format!("r{n}")).await["success"], true);
    }
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(995), "two at once and twenty in a second, not in {took:?}");
}

#[tokio::test]
async fn too_many_refusals_are_answered_without_a_call() {
    let platform = Scripted::new(Dedupe::Yes);
    *platform.always.lock().unwrap() = Some(refused());
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let mut other = world.join(&world.gateway("other", "gw2").await).await;
    world.admin("routes", json!({ "place": "fake:den", "tenant": "other", "allow": ["any"] })).await;
    // Several at once: those under way count as well.
    for round in 0..4 {
        for n in 0..40 {
            agent.ask(&format!("r{n}"), send(&format!("x-{n}"), "one")).await;
        }
        for n in 0..40 {
            let answer = agent.answer(&format!("r{n}")).await;
            assert_eq!(answer["success"], false, "{round}: {answer}");
        }
    }
    assert_eq!(platform.calls().len(), MAX_REFUSED);
    let answer = agent.asked(send("x-lab", "one more")).await;
    assert!(error(&answer).contains("refused too many"), "{answer}");
    let info = agent.asked(json!({"op": "get_chat_info", "chat_id": "x-lab"})).await;
    assert!(error(&info).contains("refused too much"), "{info}");
    assert_eq!(platform.calls().len(), MAX_REFUSED, "no call was made");
    assert_eq!(error(&other.asked(send("x-den", "hello")).await), "no such chat", "others are not touched");
    assert!(world.states().iter().all(|state| state == "failed"));
}
