//! Two thousand people at once while the store is slow, and some while it stands still.

use crate::discord_stage::{SOON, Stage};
use crate::interactions_stage::{AS_EVENTS, at_ease};
use crate::stage::{alone, report};
use angelia_testkit::discord::Volley;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How much longer every commit takes.
const SLOW_MS: &str = "200";

const PEOPLE: usize = 2_000;
const WITHIN: Duration = Duration::from_secs(2);

/// How long acknowledgements may take: 99 of 100, and every one.
const P99: Duration = Duration::from_secs(1);
const MAX: Duration = Duration::from_millis(2_500);

/// How many people ask while the store stands still, and for how long it does.
const UNLUCKY: usize = 50;
const HELD: Duration = Duration::from_secs(5);
/// When each of them has to know.
const TOLD_WITHIN: Duration = Duration::from_secs(3);

const TEST: &str = "interactions_crowd";

impl Stage {
    async fn volley(&mut self, count: usize, within: Duration, text: &str) -> Volley {
        let mut users = Vec::new();
        for number in 0..50 {
            users.push(self.discord.user(&format!("{text}{number}")).await);
        }
        let ask = json!({ "count": count, "within_ms": within.as_millis() as u64, "channels": [self.quay],
            "users": users, "name": "tell", "options": { "what": format!("{text}{{n}}") } });
        let before = self.spent();
        let volley = self.discord.volley(ask).await;
        let Volley { fired, lag, p50, p99, max, .. } = &volley;
        report(
            TEST,
            &format!(
                "{count} in {fired:.1?} (sent {lag:.0?} late at most): p50 {p50:.0?}, p99 {p99:.0?}, max {max:.0?}; \
                 {:?}; the server worked for {:.1?}",
                volley.states,
                self.spent() - before
            ),
        );
        volley
    }

    /// Processor time the server has taken so far.
    fn spent(&mut self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.connector.process().id())).unwrap();
        let after_name = stat.rsplit_once(')').unwrap().1;
        let ticks = after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u32>().unwrap());
        ticks.sum::<u32>() * Duration::from_millis(10)
    }

    /// Takes everything that waits: how often each interaction came.
    async fn drained(&self) -> BTreeMap<String, usize> {
        let began = Instant::now();
        let mut peer = self.swift().await;
        let mut came = BTreeMap::new();
        while let Some(event) = peer.event_if_any().await {
            *came.entry(event["message_id"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        report(TEST, &format!("{} drained in {:.1?}", came.len(), began.elapsed()));
        self.until_waiting(0).await;
        peer.close().await;
        came
    }
}

#[test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
fn a_crowd_is_acknowledged_in_time_and_nobody_is_lost() {
    alone(crowd());
}

async fn crowd() {
    let folder = tempfile::tempdir().unwrap();
    let hold = folder.path().join("hold");
    let mut stage = Stage::posted_to(at_ease(), "", AS_EVENTS, &[]).await;
    stage.stop().await;
    let variables = [("ANGELIA_SLOW", SLOW_MS), ("ANGELIA_HOLD", hold.to_str().unwrap())];
    stage.connector.restart_with(&variables).await;

    let volley = stage.volley(PEOPLE, WITHIN, "q").await;
    assert_eq!(volley.state("deferred"), PEOPLE as u64, "{:?}", volley.errors);
    assert!(volley.p99 < P99 && volley.max < MAX, "p99 {:?}, max {:?}", volley.p99, volley.max);
    let asked: BTreeSet<&String> = volley.ids.iter().collect();
    assert_eq!(asked.len(), PEOPLE);

    let (refused, perhaps) = held(&mut stage, &hold).await;
    // What waits is taken without the delay: that is another story.
    stage.stop().await;
    stage.connector.restart().await;
    let came = stage.drained().await;
    let lost = asked.iter().filter(|id| !came.contains_key(**id)).count();
    let twice = came.values().filter(|count| **count > 1).count();
    let late = refused.iter().filter(|id| came.contains_key(*id)).count();
    report(TEST, &format!("{lost} lost, {twice} twice; of {UNLUCKY} that were turned away {late} arrived"));
    assert_eq!((lost, twice), (0, 0));
    assert_eq!(late as u64, perhaps, "those and only those who were told that it may have arrived");
}

/// The store stands still: everybody is told at once, and is left waiting for nothing.
/// Who that was, and how many were told that it may have arrived.
async fn held(stage: &mut Stage, hold: &Path) -> (Vec<String>, u64) {
    std::fs::write(hold, "").unwrap();
    let end = Instant::now() + HELD;
    let volley = stage.volley(UNLUCKY, Duration::from_millis(500), "held").await;
    assert_eq!(volley.state("answered"), UNLUCKY as u64, "{:?}", volley.errors);
    assert_eq!(volley.types, BTreeMap::from([("4".to_owned(), UNLUCKY as u64)]));
    assert!(volley.max < TOLD_WITHIN, "{:?}", volley.max);
    sleep(end - Instant::now()).await;
    std::fs::remove_file(hold).unwrap();
    let again = stage.discord.slash(&stage.quay, &stage.ann, "tell", json!({})).await;
    stage.discord.until_interaction(&again.id, SOON, |one| one.state == "deferred").await;
    let perhaps = volley.texts.iter().filter(|(text, _)| text.contains("may have arrived"));
    (volley.ids, perhaps.map(|(_, count)| count).sum())
}
