//! A `send` that answers somebody who waits takes the place of what they see
//! meanwhile: each once, and nobody else's.

use super::ledger::Crashing;
use super::platform::{Scripted, later, open, refused, sent, unknown};
use super::vault::{Asks, asks, notify, reply, token};
use super::world::{QUICK, World, edit, error, send, until};
use angelia_connector::EgressTimings;
use angelia_core::egress::{Dedupe, Rate};
use angelia_core::store::JournalStore;
use angelia_core::vault::{Deferral, Way};
use angelia_engines::inspect::Inspect;
use angelia_platforms::Earlier;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What each call answered with, oldest first.
fn answers(platform: &Scripted) -> Vec<Option<(Way, String)>> {
    platform.calls().into_iter().map(|call| call.answer).collect()
}

fn original(id: &str) -> Option<(Way, String)> {
    Some((Way::Original, token(id)))
}

fn further(id: &str) -> Option<(Way, String)> {
    Some((Way::Further, token(id)))
}

async fn stage() -> (Arc<Scripted>, World, super::world::Agent) {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let agent = world.agent().await;
    (platform, world, agent)
}

#[tokio::test]
async fn a_reply_takes_the_place_and_what_follows_goes_behind() {
    let (platform, world, mut agent) = stage().await;
    world.take(&asks("i1", "ann")).await;
    world.take(&asks("i2", "bob")).await;
    for action in [
        reply("x-lab", "for bob", "i2"),
        reply("x-lab", "more for bob", "i2"),
        reply("x-lab", "of another message", "m7"),
        reply("x-den", "elsewhere", "i1"),
        send("x-lab", "a remark"),
        edit("x-lab", "m7", "an edit"),
    ] {
        assert_eq!(agent.asked(action).await["success"], true);
    }
    assert_eq!(answers(&platform), [original("i2"), further("i2"), None, None, None, None]);
    assert!(platform.calls()[0].state == "sending", "noted, although it may be repeated");
    world.until_stages(&["open", "answered"]).await;
    world.until_states(&["sent"; 6]).await;
    let story = world.store.explain("i2").await.unwrap().remove(0);
    assert_eq!(story.replies.len(), 2, "{story:?}");
}

#[tokio::test]
async fn what_is_meant_for_people_answers_who_waits_longest() {
    let (platform, world, mut agent) = stage().await;
    for (id, user) in [("i1", "1"), ("i2", "2"), ("i3", "1")] {
        world.take(&asks(id, user)).await;
    }
    let to = |text: &str, user: Value| {
        let mut action = notify("x-lab", text);
        action["metadata"]["user_id"] = user;
        action
    };
    for action in [
        send("x-lab", "No home channel is set"),
        to("for 2", json!(2)),
        to("for nobody", json!("3")),
        notify("x-lab", "oldest"),
        to("for 1", json!("1")),
        notify("x-lab", "nobody waits"),
    ] {
        assert_eq!(agent.asked(action).await["success"], true);
    }
    let expected = [None, original("i2"), None, original("i1"), original("i3"), None];
    assert_eq!(answers(&platform), expected);
    world.until_stages(&["answered"; 3]).await;
    let story = world.store.explain("i1").await.unwrap().remove(0);
    assert_eq!(story.replies.len(), 1, "it is shown though it named no message: {story:?}");
}

#[tokio::test]
async fn each_is_answered_once_however_many_answer() {
    let (platform, world, mut agent) = stage().await;
    for n in 0..8 {
        world.take(&asks(&format!("i{n}"), "ann")).await;
    }
    for n in 0..20 {
        agent.ask(&format!("r{n}"), notify("x-lab", &format!("t{n}"))).await;
    }
    for n in 0..20 {
        assert_eq!(agent.answer(&format!("r{n}")).await["success"], true);
    }
    let expected: Vec<_> = (0..20).map(|n| (n < 8).then(|| original(&format!("i{n}"))).flatten()).collect();
    assert_eq!(answers(&platform), expected, "in order, each once");
}

#[tokio::test]
async fn a_press_is_answered_by_a_message_behind_it() {
    let (platform, world, mut agent) = stage().await;
    world.take(&Asks { deferral: Deferral::Update, ..asks("i1", "ann") }).await;
    assert_eq!(agent.asked(notify("x-lab", "pressed")).await["success"], true);
    assert_eq!(agent.asked(notify("x-lab", "again")).await["success"], true);
    assert_eq!(answers(&platform), [further("i1"), None], "nobody waits any more");
}

#[tokio::test]
async fn a_thread_is_named_by_itself_or_below_its_channel() {
    let (platform, world, mut agent) = stage().await;
    for id in ["i1", "i2"] {
        world.take(&Asks { chat: "x-lab/t", ..asks(id, "ann") }).await;
    }
    assert_eq!(agent.asked(notify("x-lab", "in the channel")).await["success"], true);
    let mut below = notify("x-lab", "below");
    below["metadata"]["thread_id"] = "x-lab/t".into();
    assert_eq!(agent.asked(below).await["success"], true);
    assert_eq!(agent.asked(notify("x-lab/t", "by itself")).await["success"], true);
    assert_eq!(answers(&platform), [None, original("i1"), original("i2")]);
    for id in ["i1", "i2"] {
        let story = world.store.explain(id).await.unwrap().remove(0);
        assert_eq!(story.replies.len(), 1, "{story:?}");
    }
}

#[tokio::test]
async fn what_failed_leaves_somebody_waiting() {
    let (platform, world, mut agent) = stage().await;
    world.take(&asks("i1", "ann")).await;
    platform.give([refused()]);
    assert_eq!(error(&agent.asked(reply("x-lab", "one", "i1")).await), "no such chat");
    world.until_stages(&["open"]).await;
    // The second goes behind the first, which fails: it is the answer then.
    let held = platform.hold();
    agent.ask("two", reply("x-lab", "two", "i1")).await;
    agent.ask("three", reply("x-lab", "three", "i1")).await;
    world.until_states(&["failed", "sending", "accepted"]).await;
    held.send(refused()).unwrap();
    error(&agent.answer("two").await);
    assert_eq!(agent.answer("three").await["success"], true);
    assert_eq!(answers(&platform), [original("i1"), original("i1"), further("i1")]);
    world.until_stages(&["answered"]).await;
}

#[tokio::test]
async fn an_answer_after_its_time_is_a_message() {
    let (platform, world, mut agent) = stage().await;
    for id in ["i1", "i2", "i3"] {
        world.take(&asks(id, "ann")).await;
    }
    world.ends_in("i1", -1);
    assert_eq!(agent.asked(reply("x-lab", "too late", "i1")).await["success"], true);
    // Its time passes while it waits to be tried again: nothing was written, so it may go as a message.
    platform.give([later(Duration::from_secs(1))]);
    agent.ask("two", reply("x-lab", "late", "i2")).await;
    world.until_texts(&["too late", "late"]).await;
    world.ends_in("i2", 900);
    assert_eq!(agent.answer("two").await["success"], true);
    assert_eq!(answers(&platform), [None, original("i2"), None]);
    // Nobody knows whether it is there: a message could be a second one.
    platform.give([unknown()]);
    agent.ask("three", reply("x-lab", "perhaps", "i3")).await;
    world.until_texts(&["too late", "late", "late", "perhaps"]).await;
    world.ends_in("i3", 0);
    let answer = agent.answer("three").await;
    if answer["success"] == false {
        assert!(error(&answer).contains("timed out"), "{answer}");
        assert_eq!(answers(&platform)[3..], [original("i3")]);
    } else {
        assert_eq!(answers(&platform)[3..], [original("i3"), original("i3")], "it was quicker");
    }
}

/// Actions are given up after a second; what takes a place is not.
const BRIEF: EgressTimings = EgressTimings { queued_for: Duration::from_secs(1), ..QUICK };

#[tokio::test]
async fn what_takes_a_place_is_tried_until_the_place_is_gone() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::with(platform.clone(), BRIEF).await;
    let mut agent = world.agent().await;
    for id in ["i1", "i2", "i3", "i4"] {
        world.take(&asks(id, "ann")).await;
    }
    // Nobody knows whether it is there, for longer than anything else is tried.
    *platform.always.lock().unwrap() = Some(unknown());
    let begun = Instant::now();
    agent.ask("one", reply("x-lab", "one", "i1")).await;
    until(|| begun.elapsed() > Duration::from_millis(1_300), String::new).await;
    *platform.always.lock().unwrap() = None;
    assert_eq!(agent.answer("one").await["success"], true);
    let calls = platform.calls();
    assert!(calls.iter().all(|call| call.answer == original("i1")) && calls.len() > 3, "{calls:?}");
    assert_eq!((calls[0].earlier, calls[1].earlier), (Earlier::Nothing, Earlier::Perhaps));
    // Nothing was written until its end: then it is a message.
    *platform.always.lock().unwrap() = Some(later(Duration::from_millis(50)));
    let begun = Instant::now();
    agent.ask("two", reply("x-lab", "two", "i2")).await;
    until(|| begun.elapsed() > Duration::from_millis(1_300), String::new).await;
    world.ends_in("i2", 0);
    until(|| answers(&platform).last() == Some(&None), || format!("{:?}", platform.calls())).await;
    assert!(platform.calls().last().unwrap().earlier == Earlier::Nothing);
    *platform.always.lock().unwrap() = None;
    assert_eq!(agent.answer("two").await["success"], true);
    // The provider says so itself, of something that may be there.
    platform.give([unknown(), open()]);
    let answer = agent.asked(reply("x-lab", "three", "i3")).await;
    assert!(error(&answer).contains("timed out"), "{answer}");
    world.until_states(&["sent", "sent", "ambiguous", "sent"]).await;
    let texts = platform.texts();
    assert_eq!(texts.iter().filter(|text| *text == "three").count(), 2);
    // Its beginning is there.
    let rest = platform.hold_after("m-first");
    assert_eq!(agent.asked(reply("x-lab", "four", "i4")).await["success"], true);
    rest.send(open()).unwrap();
    world.until_states(&["sent", "sent", "ambiguous", "sent", "ambiguous", "sent"]).await;
    assert!(world.ledger()[4].error.as_deref().unwrap().starts_with("only a part was sent"));
    assert_eq!(
        platform.texts().iter().filter(|text| *text == "four").count(),
        1,
        "the whole is not given again"
    );
}

#[test]
fn a_long_time_down_ends_no_answer_that_still_has_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Scripted::new(Dedupe::No);
    let before = Crashing::start(folder.path(), platform.clone(), QUICK);
    let (_, mut agent) = before.first_gateway();
    let held = platform.hold();
    before.client.block_on(async {
        before.world.take(&asks("i1", "ann")).await;
        agent.ask("one", reply("x-lab", "one", "i1")).await;
        before.world.until_texts(&["one"]).await;
        before.world.until_states(&["sending"]).await;
    });
    before.crash(agent);
    drop(held);
    Inspect::of(folder.path()).age_actions(Duration::from_secs(7_200));
    let again = Crashing::start(folder.path(), platform.clone(), QUICK);
    again.client.block_on(async {
        again.world.until_states(&["sent"]).await;
        again.world.until_stages(&["answered"]).await;
    });
    assert_eq!(answers(&platform), [original("i1"), original("i1")]);
    let told = platform.calls()[1].earlier;
    assert!(matches!(told, Earlier::CutOff(ago) if ago >= Duration::from_secs(7_200)), "{told:?}");
}

#[tokio::test]
async fn a_chat_does_not_wait_for_an_answer_that_takes_long() {
    let (platform, world, mut agent) = stage().await;
    world.take(&asks("i1", "ann")).await;
    world.take(&asks("i2", "bob")).await;
    let held = platform.hold();
    agent.ask("one", reply("x-lab", "one", "i1")).await;
    world.until_texts(&["one"]).await;
    assert_eq!(agent.asked(send("x-lab", "plain")).await["success"], true);
    assert_eq!(agent.asked(reply("x-lab", "two", "i2")).await["success"], true);
    // Behind an answer that is not there yet it would take the place of that.
    assert_eq!(agent.asked(reply("x-lab", "more", "i1")).await["success"], true);
    assert_eq!(answers(&platform), [original("i1"), None, original("i2"), None]);
    held.send(sent("m-one")).unwrap();
    assert_eq!(agent.answer("one").await["success"], true);
    world.until_stages(&["answered", "answered"]).await;
    assert_eq!(agent.asked(reply("x-lab", "now behind", "i1")).await["success"], true);
    assert!(answers(&platform).last().unwrap().is_some(), "the place is taken");
}

#[tokio::test]
async fn what_its_place_refuses_was_not_taken_before_either() {
    let (platform, world, mut agent) = stage().await;
    world.take(&asks("i1", "ann")).await;
    platform.give([unknown(), refused()]);
    let answer = agent.asked(reply("x-lab", "one", "i1")).await;
    assert!(answer["success"] == false && !error(&answer).contains("timed out"), "{answer}");
    world.until_states(&["failed"]).await;
    world.until_stages(&["open"]).await;
}

#[tokio::test]
async fn answers_wait_for_no_chat() {
    let platform = Scripted::new(Dedupe::No);
    *platform.chat_rate.lock().unwrap() = Some(Rate { calls: 1, per: Duration::from_secs(60), burst: 1 });
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    for n in 0..15 {
        world.take(&asks(&format!("i{n}"), "ann")).await;
    }
    // At the pace of their chat these would take a quarter of an hour.
    for n in 0..15 {
        assert_eq!(agent.asked(reply("x-lab", "quick", &format!("i{n}"))).await["success"], true);
    }
    // They took nothing of the chat's share, which is used up by one message.
    assert_eq!(agent.asked(send("x-lab", "one")).await["success"], true);
    agent.ask("two", send("x-lab", "two")).await;
    assert!(agent.waits_for("two").await);
    assert_eq!(platform.texts().len(), 16);
}

#[tokio::test]
async fn what_turns_out_to_be_a_message_waits_for_its_chat() {
    let platform = Scripted::new(Dedupe::No);
    *platform.chat_rate.lock().unwrap() = Some(Rate { calls: 1, per: Duration::from_secs(60), burst: 1 });
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    world.take(&asks("i1", "ann")).await;
    assert_eq!(agent.asked(send("x-lab", "one")).await["success"], true);
    platform.give([later(Duration::from_millis(200))]);
    agent.ask("two", reply("x-lab", "two", "i1")).await;
    world.until_texts(&["one", "two"]).await;
    world.ends_in("i1", 0);
    assert!(agent.waits_for("two").await);
    assert_eq!(platform.texts().len(), 2, "its chat may not be written to yet");
}

#[tokio::test]
async fn a_credential_that_does_not_open_is_not_used() {
    let (platform, world, mut agent) = stage().await;
    world.take(&asks("i1", "ann")).await;
    world.disk.claim_capabilities_for("bob");
    assert_eq!(agent.asked(reply("x-lab", "one", "i1")).await["success"], true);
    assert_eq!(answers(&platform), [None]);
}

#[tokio::test]
async fn a_place_that_moved_takes_its_answers_with_it() {
    let (platform, world, mut agent) = stage().await;
    let other = world.gateway("other", "gw2").await;
    world.take(&asks("i1", "ann")).await;
    world.admin("routes", json!({ "place": "fake:lab", "tenant": "other", "allow": ["any"] })).await;
    assert_eq!(agent.asked(reply("x-lab", "mine", "i1")).await["code"], "egress_declined");
    let mut other = world.join(&other).await;
    assert_eq!(other.asked(reply("x-lab", "theirs", "i1")).await["success"], true);
    assert_eq!(other.asked(notify("x-lab", "theirs too")).await["success"], true);
    assert_eq!(answers(&platform), [None, None], "another tenant's answer is a message");
    assert_eq!(world.stages(), ["open"]);
}

#[test]
fn a_crash_between_claim_and_call_chooses_nothing_else() {
    for dies_before_its_end in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let platform = Scripted::new(Dedupe::No);
        let before = Crashing::start(folder.path(), platform.clone(), QUICK);
        let (_, mut agent) = before.first_gateway();
        let held = platform.hold();
        before.client.block_on(async {
            before.world.take(&asks("i1", "ann")).await;
            before.world.take(&asks("i2", "ann")).await;
            agent.ask("one", notify("x-lab", "one")).await;
            agent.ask("two", notify("x-lab", "two")).await;
            before.world.until_states(&["sending", "accepted"]).await;
            before.world.until_texts(&["one"]).await;
            assert_eq!(before.world.stages(), ["claimed", "claimed"]);
            if dies_before_its_end {
                before.world.ends_in("i1", 0);
                before.world.ends_in("i2", 0);
            }
        });
        before.crash(agent);
        drop(held);
        let again = Crashing::start(folder.path(), platform.clone(), QUICK);
        let (states, expected) = if dies_before_its_end {
            // The first may be there; the second is certainly not, and goes as a message.
            // Of the first its chat is told so.
            (&["ambiguous", "sent", "sent"] as &[&str], vec![original("i1"), None, None])
        } else {
            (&["sent", "sent"] as &[&str], vec![original("i1"), original("i1"), original("i2")])
        };
        again.client.block_on(again.world.until_states(states));
        assert_eq!(answers(&platform), expected);
    }
}
