//! The server dies between what was asked and what was answered.

use super::discord_stage::{SOON, Stage};
use super::interactions_stage::{AS_EVENTS, Peer, at_ease, send};
use angelia_core::clock;
use angelia_engines::inspect::Inspect;
use angelia_testkit::discord::Interaction;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How a process ends itself.
const SIGABRT: i32 = 6;

/// Fixed pause: so long an answer is awaited that must not come, and that nothing would tell of.
const A_WHILE: Duration = Duration::from_millis(500);

impl Stage {
    /// Starts so that it ends itself when it passes this point for the first time.
    async fn let_die_at(&mut self, point: &str) {
        self.connector.kill().await;
        self.connector.restart_with(&[("ANGELIA_FAIL", &format!("{point}@1"))]).await;
    }

    /// Waits until it has ended itself, and starts it again.
    async fn died(&mut self) {
        let status = self.connector.died(SOON).await.expect("the point was passed");
        assert_eq!(status.signal(), Some(SIGABRT), "{status}");
        self.connector.restart().await;
    }

    async fn slash(&self, via: &str, text: &str) -> Interaction {
        let ask = json!({ "via": via, "channel": self.quay, "user": self.ann, "name": "tell",
            "options": { "what": text } });
        self.discord.interact("slash", ask).await
    }

    /// What the bot said in the channel that has this text.
    async fn saying(&self, text: &str) -> usize {
        let answers = self.discord.answers(&self.quay).await;
        answers.iter().filter(|message| message.content == text).count()
    }

    /// Waits until something is said in the channel, and looks that it stays once.
    async fn until_said_once(&self, text: &str) {
        let deadline = Instant::now() + SOON;
        while self.saying(text).await == 0 {
            assert!(Instant::now() < deadline, "{text:?} was never said");
            sleep(Duration::from_millis(50)).await;
        }
        sleep(A_WHILE).await;
        assert_eq!(self.saying(text).await, 1, "{text:?}");
    }
}

async fn answer(stage: &Stage, peer: &mut Peer, asked: &Interaction, text: &str) {
    peer.says(&stage.quay, text, Some(&asked.id), true).await;
}

/// What was committed and never acknowledged: the person was told that nobody
/// responds, and still gets the one answer, as a message.
#[tokio::test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
async fn a_death_on_the_way_in_loses_nothing_that_was_kept() {
    let mut stage = Stage::posted_to(at_ease(), "", AS_EVENTS, &[]).await;
    stage.let_die_at("before_append").await;
    let lost = stage.slash("http", "lost").await;
    assert_eq!((lost.state.as_str(), lost.status), ("failed", None));
    stage.died().await;
    stage.let_die_at("before_commit").await;
    let lost = stage.slash("http", "lost").await;
    assert_eq!((lost.state.as_str(), lost.status), ("failed", None));
    stage.died().await;

    stage.let_die_at("after_commit").await;
    let kept = stage.slash("http", "kept").await;
    assert_eq!((kept.state.as_str(), kept.status), ("failed", None));
    stage.died().await;
    let mut peer = stage.swift().await;
    peer.takes(&kept, "/tell kept").await;
    peer.hears_nothing().await;
    answer(&stage, &mut peer, &kept, "as a message").await;
    stage.until_said_once("as a message").await;
    peer.close().await;

    // Over the gateway what was not committed comes again with the resumed session.
    stage.discord.set(json!({ "interaction_deadline": 60 })).await;
    for (point, deferred) in [("before_commit", true), ("after_commit", false)] {
        stage.let_die_at(point).await;
        stage.until_session().await;
        let asked = stage.slash("gateway", point).await;
        stage.died().await;
        let mut peer = stage.swift().await;
        peer.takes(&asked, &format!("/tell {point}")).await;
        answer(&stage, &mut peer, &asked, &format!("after {point}")).await;
        if deferred {
            stage.until_says(&asked.id, &format!("after {point}")).await;
        }
        stage.until_said_once(&format!("after {point}")).await;
        peer.hears_nothing().await;
        peer.close().await;
    }
}

/// What was claimed, or was being said: after the restart it is said once, in its place.
#[tokio::test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
async fn a_death_on_the_way_out_leaves_one_answer_in_its_place() {
    let mut stage = Stage::posted_to(at_ease(), "", AS_EVENTS, &[]).await;
    for point in ["action_accepted", "action_sending"] {
        stage.let_die_at(point).await;
        let asked = stage.slash("http", point).await;
        assert_eq!(asked.state, "deferred");
        let mut peer = stage.swift().await;
        peer.takes(&asked, &format!("/tell {point}")).await;
        peer.tell(send(&stage.quay, point, Some(&asked.id), true)).await;
        stage.died().await;
        let answered = stage.until_says(&asked.id, point).await;
        assert_eq!((answered.edits, answered.followups.len()), (1, 0));
        stage.until_said_once(point).await;
    }

    // Discord has it, and nobody wrote that down.
    for (how, custom_id) in [("edited", None), ("posted", Some("pick-me"))] {
        let asked = match custom_id {
            None => stage.slash("http", how).await,
            Some(custom_id) => {
                let shown = stage.button(&stage.quay, "May I?", custom_id).await;
                stage.discord.press(&stage.quay, &stage.ann, &shown, custom_id).await
            }
        };
        let mut peer = stage.swift().await;
        assert_eq!(peer.event().await["message_id"], json!(asked.id));
        stage.hang_after("/webhooks/.*").await;
        peer.tell(send(&stage.quay, how, Some(&asked.id), true)).await;
        stage.until_said_once(how).await;
        stage.connector.kill().await;
        stage.discord.order("fault/clear", json!({})).await;
        stage.connector.restart().await;
        let settled = |state: &str| state == "sent" || state == "ambiguous";
        let told = stage.until_reply(&asked.id, settled).await;
        assert_eq!(told["state"], if custom_id.is_none() { "sent" } else { "ambiguous" }, "{told:#}");
        stage.until_said_once(how).await;
        let seen = stage.discord.interaction(&asked.id).await;
        assert_eq!(seen.followups.len(), usize::from(custom_id.is_some()), "{seen:#?}");
    }
}

impl Stage {
    /// Calls like this are done and never answered.
    async fn hang_after(&self, path: &str) {
        let fault = json!({ "path": path, "how": "hang", "perform": true, "seconds": 60, "count": 10 });
        self.discord.fault(fault).await;
    }

    /// Waits for what `explain` tells of the answer to an interaction.
    async fn until_reply(&self, id: &str, settled: impl Fn(&str) -> bool) -> Value {
        let deadline = Instant::now() + SOON;
        loop {
            let reply = self.explained(id).await["replies"][0].clone();
            if reply["state"].as_str().is_some_and(&settled) {
                return reply;
            }
            assert!(Instant::now() < deadline, "not settled: {reply:#}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Has all that is in the vault end so soon, as if most of its time had gone by.
    fn hasten(&self, left: Duration) {
        Inspect::of(&self.folder().join("data")).set_every_expiry(clock::wall().after(left));
    }
}

/// Nobody answered before the end: the person is told so, even by a server that was
/// not there meanwhile; what comes later is a message.
#[tokio::test]
async fn whoever_waits_in_vain_is_told_across_a_restart() {
    const TEXT: &str = "The oracle sleeps";
    let lines = format!("[notices]\nunanswered_text = \"{TEXT}\"\n");
    let mut stage = Stage::posted_to(at_ease(), &lines, AS_EVENTS, &[]).await;
    let asked = stage.slash("http", "me").await;
    let shown = stage.button(&stage.quay, "May I?", "pick-me").await;
    let pressed = stage.discord.press(&stage.quay, &stage.ann, &shown, "pick-me").await;
    stage.stop().await;
    stage.hasten(Duration::from_secs(25));
    stage.connector.restart().await;
    let told = stage.until_says(&asked.id, TEXT).await;
    assert_eq!((told.edits, told.followups.len()), (1, 0));
    let told = stage.discord.until_interaction(&pressed.id, SOON, |one| !one.followups.is_empty()).await;
    assert!(told.followups[0].ephemeral, "{told:#?}");
    assert_eq!(told.followups[0].content.as_deref(), Some(TEXT));

    let mut peer = stage.swift().await;
    peer.takes(&asked, "/tell me").await;
    peer.takes(&pressed, "pick-me").await;
    answer(&stage, &mut peer, &asked, "here I am").await;
    stage.until_said_once("here I am").await;
    let told = stage.discord.interaction(&asked.id).await;
    assert_eq!((told.content.as_deref(), told.edits, told.followups.len()), (Some(TEXT), 1, 0));
    let key = format!("agent:main:discord:group:{}:{}", stage.quay, stage.ann);
    let late =
        json!({ "op": "follow_up", "session_key": key, "kind": "discord.interaction_token", "content": "x" });
    let refused = peer.ask(late).await;
    assert_eq!(
        (&refused["success"], &refused["error"]),
        (&json!(false), &json!("there is no capability for this session"))
    );

    // One whose time went by altogether.
    let asked = stage.slash("http", "again").await;
    stage.stop().await;
    stage.hasten(Duration::ZERO);
    stage.connector.restart().await;
    let mut peer = stage.swift().await;
    peer.takes(&asked, "/tell again").await;
    answer(&stage, &mut peer, &asked, "much later").await;
    stage.until_said_once("much later").await;
    assert_eq!(stage.discord.interaction(&asked.id).await.state, "deferred");
}
