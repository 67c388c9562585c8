//! The stand-in against a connector of a few lines, on a clock that jumps.

mod fake;

use std::time::Duration;

use super::*;
use fake::{ALL, Fake};

const SECOND: Duration = Duration::from_secs(1);
const HOME: &str = "send \u{1f4ec} No home channel is set for Relay.";

fn ann(text: &str, id: &str) -> serde_json::Value {
    fake::event("ann", text, id)
}

fn bob(text: &str, id: &str) -> serde_json::Value {
    fake::event("bob", text, id)
}

/// Whether `length` is `wanted`, give or take a tenth of a second.
fn about(length: Duration, wanted: f64) -> bool {
    (length.as_secs_f64() - wanted).abs() < 0.1
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_marked_where_it_begins_and_where_it_ends() {
    let fake = Fake::meet(Settings::default(), ALL).await;
    fake.push("b1", ann("hello", "m1")).await;
    fake.until("✅ m1").await;
    assert_eq!(fake.words(), ["ack b1", "👀 m1", HOME, "send! echo: hello -> m1", "-👀 m1", "✅ m1"]);
    let typed = fake.times("typing");
    assert_eq!(typed.len(), 4, "every 2 s of the 6: {typed:?}");
    assert!(typed.windows(2).all(|pair| about(pair[1] - pair[0], 2.0)), "{typed:?}");
    assert_eq!(
        fake.gateway.diary.turns()["agent:main:relay:dm:ann"],
        Turns { begun: 1, ended: 1, most_open: 1 }
    );
}

#[tokio::test(start_paused = true)]
async fn it_waits_for_the_result_of_every_mark() {
    let fake = Fake::meet_slow(Settings::default(), ALL, Some(("react", 3 * SECOND))).await;
    let begun = Instant::now();
    fake.push("b1", ann("hello", "m1")).await;
    fake.until("✅ m1").await;
    fake.until_free().await;
    assert!(about(begun.elapsed(), 15.0), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_text_in_mid_turn_makes_it_deaf_for_half_a_minute() {
    let fake = Fake::meet(Settings::default(), ALL).await;
    fake.push("b1", ann("one", "m1")).await;
    sleep(2 * SECOND).await;
    let pushed = fake.push("b2", ann("two", "m2")).await;
    sleep(SECOND).await;
    assert_eq!(fake.gateway.diary.stalls(), [Duration::ZERO], "it counts from its begin");
    fake.push("b3", bob("other", "m3")).await;
    fake.until("✅ m3").await;
    let deaf = fake.at("ack b2") - pushed;
    assert!(about(deaf, 30.0), "{deaf:?}");
    assert!(about(fake.at("ack b3") - pushed, 30.0), "another chat waits as long");
    assert!(fake.at("send ↪ Redirected") - pushed < SECOND, "the notice itself went out");
    let typed: Vec<_> = fake.times("typing").into_iter().filter(|at| *at > pushed + SECOND).take(7).collect();
    assert!(typed.windows(2).all(|pair| about(pair[1] - pair[0], 3.5)), "{typed:?}");
    assert_eq!(fake.given(), ["one", "two", "other"]);
    let turns = fake.gateway.diary.turns();
    assert_eq!(turns["agent:main:relay:dm:ann"].begun, 1, "it joined the running turn: {turns:?}");
    assert!(about(fake.gateway.diary.stalls()[0], 30.0));
}

#[tokio::test(start_paused = true)]
async fn a_command_in_mid_turn_is_answered_and_then_it_is_deaf() {
    let fake = Fake::meet(Settings::default(), ALL).await;
    fake.push("b1", ann("one", "m1")).await;
    sleep(2 * SECOND).await;
    let pushed = fake.push("b2", ann("/status", "m2")).await;
    fake.until("✅ m1").await;
    assert!(fake.at("send! about /status -> m2") - pushed < SECOND);
    assert!(about(fake.at("ack b2") - pushed, 30.0));
    assert_eq!(fake.given(), ["one"], "a command is no text for the model");
}

#[tokio::test(start_paused = true)]
async fn a_typed_stop_ends_the_turn_and_costs_more_than_any_other_command() {
    let fake = Fake::meet(Settings::default(), ALL).await;
    fake.push("b1", ann("one", "m1")).await;
    sleep(2 * SECOND).await;
    let pushed = fake.push("b2", ann("/stop", "m2")).await;
    fake.until("ack b2").await;
    assert!(fake.at("send! ⚡ Stopped") - pushed < SECOND);
    assert!(fake.at("-👀 m1") - pushed < SECOND / 2);
    assert!(about(fake.at("ack b2") - pushed, 35.0));
    assert!(!fake.words().contains(&"✅ m1".to_owned()), "a cancelled turn has no last mark");
}

#[tokio::test(start_paused = true)]
async fn behind_an_interrupt_the_next_text_meets_no_stall() {
    let fake = Fake::meet(Settings::default(), ALL).await;
    fake.push("b1", ann("one", "m1")).await;
    sleep(2 * SECOND).await;
    let stopped = fake.interrupt("agent:main:relay:dm:ann").await;
    fake.until("✅ m1").await;
    assert!(fake.at("-👀 m1") - stopped < SECOND / 2, "the turn is over at once");
    sleep(SECOND / 4).await;
    let pushed = fake.push("b2", ann("two", "m2")).await;
    fake.until("✅ m2").await;
    assert!(fake.at("ack b2") - pushed < SECOND / 10);
    assert_eq!(fake.gateway.diary.given()[1].whole, "one\n\ntwo", "the model is given both");
    assert_eq!(fake.gateway.diary.stalls(), Vec::<Duration>::new());
    assert!(!fake.words().iter().any(|word| word.contains("echo: one")), "nothing comes of the first");
}

#[tokio::test(start_paused = true)]
async fn one_kind_leaves_an_interrupted_turn_without_a_last_mark() {
    let fake = Fake::meet(Settings::default().leaves_interrupted_unmarked(), ALL).await;
    fake.push("b1", ann("one", "m1")).await;
    sleep(SECOND).await;
    fake.interrupt("agent:main:relay:dm:ann").await;
    fake.until("-👀 m1").await;
    fake.until_free().await;
    assert!(!fake.words().contains(&"✅ m1".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn behind_three_stalls_its_keepalive_fails() {
    let fake = Fake::meet(Settings::default().turn(600 * SECOND), ALL).await;
    let begun = Instant::now();
    for n in 0..30 {
        fake.push(&format!("b{n}"), ann(&format!("line {n}"), &format!("m{n}"))).await;
    }
    eventually("the end of the socket", 600 * SECOND, || fake.gateway.diary.ends().first().map(drop)).await;
    assert_eq!(fake.gateway.diary.ends(), [End::Keepalive]);
    assert!(about(begun.elapsed(), 90.0), "{:?}", begun.elapsed());
    assert!(fake.given().len() < 6, "little of it reached the model: {:?}", fake.given());
}

#[tokio::test(start_paused = true)]
async fn while_an_approval_is_open_it_does_not_type_and_serves_others() {
    let fake = Fake::meet(Settings::default(), ALL).await;
    fake.push("b1", ann(NEEDS_APPROVAL, "m1")).await;
    let prompt = fake.until("prompt ").await;
    let asked = Instant::now();
    sleep(20 * SECOND).await;
    fake.push("b2", bob("other", "m2")).await;
    fake.until("✅ m2").await;
    let typed = fake.times("typing ann").into_iter().filter(|at| *at > asked).count();
    assert_eq!(typed, 0, "silence is the normal state of an open prompt");
    let pressed =
        fake.push("b3", fake::press("ann", prompt.trim_start_matches("prompt "), "once", "m3")).await;
    fake.until("✅ m1").await;
    assert!(fake.at("ack b3") - pressed < SECOND / 10);
    assert!(fake.at("send ✅ Approved once") - pressed < SECOND / 10);
    assert_eq!(fake.gateway.diary.stalls(), Vec::<Duration>::new());
}

#[tokio::test(start_paused = true)]
async fn without_buttons_an_approval_is_asked_for_in_words() {
    let fake = Fake::meet(Settings::default(), &["send", "typing", "react"]).await;
    fake.push("b1", ann(NEEDS_APPROVAL, "m1")).await;
    fake.until("send ⚠️ **Dangerous command").await;
    let pushed = fake.push("b2", ann("/approve", "m2")).await;
    fake.until("✅ m1").await;
    assert!(about(fake.at("ack b2") - pushed, 30.0), "typed, it costs what every command costs");
}

#[tokio::test(start_paused = true)]
async fn the_text_behind_a_question_is_its_answer() {
    let fake = Fake::meet(Settings::default(), ALL).await;
    fake.push("b1", ann(ASKS_BACK, "m1")).await;
    fake.until("send ❓").await;
    sleep(3 * SECOND).await;
    let pushed = fake.push("b2", ann("green", "m2")).await;
    fake.until("✅ m1").await;
    assert!(fake.at("ack b2") - pushed < SECOND / 10);
    assert_eq!(fake.given(), [ASKS_BACK, "green"]);
    assert_eq!(fake.gateway.diary.stalls(), Vec::<Duration>::new());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_again_is_dropped_and_acknowledged() {
    let fake = Fake::meet(Settings::default(), ALL).await;
    fake.push("b1", ann("one", "m1")).await;
    fake.until("✅ m1").await;
    sleep(SECOND).await;
    fake.push("b2", ann("one", "m1")).await;
    fake.until("ack b2").await;
    assert_eq!((fake.given().len(), fake.gateway.diary.repetitions()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn it_marks_nothing_where_no_mark_is_offered_or_it_never_does() {
    for (settings, ops) in
        [(Settings::default(), &["send", "typing"][..]), (Settings::default().never_reacts(), ALL)]
    {
        let fake = Fake::meet(settings, ops).await;
        fake.push("b1", ann("hello", "m1")).await;
        fake.until("send! echo: hello").await;
        fake.until_free().await;
        assert_eq!(fake.words(), ["ack b1", HOME, "send! echo: hello -> m1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn members_of_a_group_have_a_conversation_each_unless_it_shares_them() {
    for (settings, stalls) in [(Settings::default(), 0), (Settings::default().shares_sessions(), 1)] {
        let fake = Fake::meet(settings, ALL).await;
        fake.push("b1", fake::in_group("ann", "one", "m1")).await;
        sleep(SECOND).await;
        fake.push("b2", fake::in_group("bob", "two", "m2")).await;
        fake.until("ack b2").await;
        assert_eq!(fake.gateway.diary.stalls().len(), stalls);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_goes_on_while_the_line_is_broken() {
    let mut fake = Fake::meet(Settings::default(), ALL).await;
    fake.push("b1", ann("one", "m1")).await;
    sleep(2 * SECOND).await;
    fake.break_line().await;
    fake.until("✅ m1").await;
    assert_eq!((fake.given().len(), fake.gateway.diary.lost_answers()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn it_goes_idle_and_leaves_once_that_is_confirmed() {
    let fake = Fake::meet(Settings::default(), ALL).await;
    assert!(fake.gateway.go_idle().await);
    eventually("the end of the socket", 10 * SECOND, || fake.gateway.diary.ends().first().map(drop)).await;
    assert_eq!(fake.gateway.diary.ends(), [End::Left]);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_has_just_started_marks_a_message_twice() {
    let fake = Fake::meet(Settings::default().starts_for(SECOND), ALL).await;
    fake.push("b1", ann("early", "m1")).await;
    fake.until("send! echo: early").await;
    fake.until_free().await;
    let marks: Vec<_> =
        fake.words().into_iter().filter(|word| word.ends_with(" m1") && !word.contains("send")).collect();
    assert_eq!(marks, ["👀 m1", "-👀 m1", "✅ m1", "👀 m1", "-👀 m1", "✅ m1"]);
    assert_eq!(fake.given(), ["early"], "the model is given it once");
}
