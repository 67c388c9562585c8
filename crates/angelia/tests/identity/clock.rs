//! A server whose clock leaps: at its start, and while it runs.

use super::fixture::binary;
use angelia_testkit::clock;
use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::process::free_port;
use angelia_testkit::socket::Socket;
use angelia_testkit::webchat::Person;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

const DAY: i64 = 24 * 3600;
const STOP: Duration = Duration::from_secs(15);
const SOON: Duration = Duration::from_secs(20);
/// What the log says of a leap.
const WARNED: &str = "the clock is not where it is expected";

struct World {
    connector: Connector,
    folder: TempDir,
    gateway: Credentials,
    ann: Person,
}

impl World {
    /// A server whose clock is so many seconds off, and somebody who wrote to an agent that is away.
    async fn start(seconds: i64) -> Self {
        angelia_connector::ssrf_guard::install_tls_provider();
        let folder = tempfile::tempdir().unwrap();
        clock::set(folder.path(), seconds);
        let variables = variables(folder.path());
        let connector =
            Connector::start_as(binary(), folder.path(), free_port(), "", &borrowed(&variables)).await;
        let gateway = connector.gateway("acme", "gw").await;
        let ann = connector.person("acme", "lab", "ann").await;
        ann.say("kept").await;
        Self { connector, folder, gateway, ann }
    }

    /// Stops the server and starts it again with another clock.
    async fn restart(&mut self, seconds: i64) {
        self.connector.stop(STOP).await;
        clock::set(self.folder.path(), seconds);
        self.connector.restart_with(&borrowed(&variables(self.folder.path()))).await;
    }

    /// What `angelia status` says of the gateway: waiting, lost.
    async fn inbox(&self) -> (u64, u64) {
        let status = self.connector.command(&["status"]).await;
        let gateway =
            status["gateways"].as_array().unwrap().iter().find(|it| it["gateway_id"] == "gw").unwrap();
        (gateway["waiting"].as_u64().unwrap(), gateway["lost"].as_u64().unwrap())
    }

    async fn leap(&self) -> Option<String> {
        let status = self.connector.command(&["status"]).await;
        status["clock"]["leap"].as_str().map(str::to_owned)
    }

    async fn wait_for_leap(&self, leap: Option<&str>) {
        let deadline = Instant::now() + SOON;
        loop {
            let found = self.leap().await;
            if found.as_deref() == leap {
                return;
            }
            assert!(Instant::now() < deadline, "{found:?} instead of {leap:?}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn wait_for_log(&mut self, words: &str, times: usize) {
        let path = self.connector.process().log_path().to_owned();
        let said = || std::fs::read_to_string(&path).unwrap_or_default().matches(words).count() >= times;
        self.connector.process().wait_until(&format!("{words:?} in its log"), SOON, said).await;
    }

    async fn audit(&self) -> Vec<Value> {
        let log = self.connector.command(&["audit", "list", "--limit", "1000"]).await;
        log["audit"].as_array().unwrap().clone()
    }

    /// What waits stays so: a start drops what is past its time at once, so some looks are enough.
    async fn stays(&self, inbox: (u64, u64), audited: usize) {
        for _ in 0..10 {
            assert_eq!(self.inbox().await, inbox);
            assert!(self.audit().await.len() >= audited);
            sleep(Duration::from_millis(50)).await;
        }
    }
}

fn variables(folder: &Path) -> Vec<(&'static str, String)> {
    clock::environment(folder).to_vec()
}

fn borrowed<'a>(variables: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    variables.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

/// What was accepted while the clock was eight days behind has not waited eight
/// days when it is mended.
#[tokio::test]
async fn behind_for_a_start_and_mended_nothing_is_lost() {
    let mut world = World::start(-8 * DAY).await;
    assert_eq!((world.inbox().await, world.leap().await), ((1, 0), None), "nobody can know");
    world.restart(0).await;
    assert_eq!(world.leap().await.as_deref(), Some("8 days ahead"));
    world.stays((1, 0), 0).await;
    world.connector.command(&["clock", "accept"]).await;
    assert_eq!(world.leap().await, None);
    world.restart(0).await;
    assert_eq!(world.leap().await, None, "accepted is accepted");
    world.stays((1, 0), 0).await;
    let mut agent = Socket::join(&world.connector.url(), &world.gateway).await;
    assert_eq!(agent.take_text().await, "kept");
    world.ann.say("and goes on").await;
    assert_eq!(agent.take_text().await, "and goes on");
}

/// One start with a clock far ahead: nothing goes, everybody is told, and the
/// operator's word ends it.
#[tokio::test]
async fn far_ahead_for_a_start_nothing_is_pruned_until_the_operator_says_so() {
    let mut world = World::start(0).await;
    let audited = world.audit().await.len();
    assert!(audited >= 4, "{audited}");
    world.restart(402 * DAY).await;
    assert_eq!(world.leap().await.as_deref(), Some("402 days ahead"));
    world.stays((1, 0), audited).await;
    let shown = world.connector.command(&["clock", "show"]).await;
    assert_eq!(shown["leap"], "402 days ahead");
    assert_eq!(world.connector.counter("angelia_clock_leapt").await, 1);
    world.wait_for_log(WARNED, 1).await;
    let log = world.connector.log_text();
    assert_eq!(log.matches(WARNED).count(), 1, "{log}");
    assert!(log.contains("angelia clock accept"), "{log}");

    let accepted = world.connector.command(&["clock", "accept"]).await;
    assert_eq!(accepted["accepted"], "402 days ahead");
    assert_eq!(world.connector.counter("angelia_clock_leapt").await, 0);
    let line = world.connector.audited("clock.accept").await;
    assert_eq!((&line[0]["actor"], &line[0]["detail"]), (&"operator".into(), &"402 days ahead".into()));
    world.restart(402 * DAY).await;
    world.stays((1, 0), audited + 1).await;
    assert_eq!(world.connector.counter("angelia_inbox_overaged_total").await, 0);
}

/// While a server runs, its clock jumps, either way, and comes back.
#[tokio::test]
async fn a_jump_of_a_running_server_is_noticed_and_ends_with_it() {
    let mut world = World::start(0).await;
    assert_eq!(world.leap().await, None);
    for (seconds, leap) in [(3 * DAY, "3 days ahead"), (-100 * DAY, "100 days behind")] {
        clock::set(world.folder.path(), seconds);
        world.wait_for_leap(Some(leap)).await;
        world.wait_for_log(leap, 1).await;
        clock::set(world.folder.path(), 0);
        world.wait_for_leap(None).await;
    }
    // Whoever asks may know of it before the log does.
    world.wait_for_log("the clock is trusted again", 2).await;
    let log = world.connector.log_text();
    assert_eq!(log.matches(WARNED).count(), 2, "{log}");
    // Not mended before a restart, it is remembered; mended, it is over.
    clock::set(world.folder.path(), 20 * DAY);
    world.wait_for_leap(Some("20 days ahead")).await;
    world.restart(20 * DAY).await;
    assert_eq!(world.leap().await.as_deref(), Some("20 days ahead"));
    world.restart(0).await;
    assert_eq!(world.leap().await, None);
    world.stays((1, 0), 0).await;
}

/// A server that was killed looks through its database at the next start; one
/// that was stopped does not.
#[tokio::test]
async fn a_killed_server_looks_through_its_database() {
    let mut world = World::start(0).await;
    let looked = "looking through the database";
    assert!(!world.connector.log_text().contains(looked));
    world.connector.kill().await;
    world.connector.restart().await;
    world.connector.process().wait_for_log("the database is sound", SOON).await;
    assert_eq!(world.connector.counter("angelia_store_damaged").await, 0);
    world.connector.stop(STOP).await;
    world.connector.restart().await;
    assert_eq!(world.inbox().await, (1, 0));
    assert!(!world.connector.log_text().contains(looked));
}
