//! Gateways whose clock is wrong. Their tokens are made by that clock, so they
//! look expired, or as if they were good for hours. That is no revocation.

use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

use super::{BOOT, QUIET, SHUTDOWN, TENANT, TURN, connected, pinned};
use crate::connector::Connector;
use crate::hermes::{Hermes, Setup, Version};
use crate::model::Model;
use crate::webchat::Person;

/// Two hours: far more than a token lasts, and than is forgiven.
const OFF: i64 = 2 * 60 * 60;

/// What a gateway logs of a dial that is refused.
const REFUSED: &str = "HTTP 401";

/// Fixed pause: within it a running gateway notices that its clock was set, and tells nobody.
const CLOCK_IS_READ: Duration = Duration::from_secs(3);

/// Which way a clock is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Tokens are expired when they are made.
    Slow,
    /// Tokens are good for longer than they should.
    Fast,
}

struct Story {
    connector: Connector,
    model: Model,
    hermes: Hermes,
    ann: Person,
}

impl Story {
    async fn begin(version: Version, binary: &Path, folder: &Path, seconds: i64) -> Self {
        let connector = Connector::start(binary, &folder.join("connector")).await;
        let model = Model::start().await;
        let gateway = connector.gateway(TENANT, "gw-test").await;
        let ann = connector.person(TENANT, "lobby", "ann").await;
        let setup = Setup::new(version, folder.join("hermes"), &model.url(), pinned(&connector, &gateway));
        let hermes = Hermes::start(Setup { clock: Some(seconds), ..setup });
        let off = hermes.clock_offset().await;
        assert!((off - seconds).abs() <= 10, "the clock is {off} s off instead of {seconds} s");
        Self { connector, model, hermes, ann }
    }

    /// Nobody was told to go for good, and nobody understood it so.
    async fn check_not_disabled(&mut self) {
        let log = self.hermes.gateway_log();
        assert!(!log.contains("4401") && !log.contains("relay_disabled"), "{log}");
        assert_eq!(self.connector.counter("angelia_relay_upgrades_revoked_total").await, 0);
        assert!(self.hermes.process().is_running(), "{log}");
    }
}

/// A gateway starts with a clock two hours off. If that is fast it is let in;
/// if it is slow it is refused in a way that it retries. What people wrote
/// meanwhile is answered once the clock is right.
pub async fn wrong_clock(version: Version, binary: &Path, folder: &Path, clock: Clock) {
    let seconds = if clock == Clock::Fast { OFF } else { -OFF };
    let mut story = Story::begin(version, binary, folder, seconds).await;
    if clock == Clock::Fast {
        story.hermes = connected(story.hermes).await;
    } else {
        story.hermes.wait_logged(REFUSED, BOOT).await;
        sleep(QUIET).await;
        assert_eq!(story.connector.counter("angelia_relay_upgrades_total").await, 0);
    }
    story.check_not_disabled().await;
    story.hermes.terminate(SHUTDOWN).await;
    story.ann.say("a-question").await;
    story.hermes.set_clock(0);
    story.hermes.restart();
    story.hermes = connected(story.hermes).await;
    story.ann.wait_for_answer("echo: a-question", TURN).await;
    assert_eq!(story.model.arrivals("a-question"), 1);
}

/// A running gateway's clock jumps back by two hours, and the connector
/// restarts: every dial is refused until the clock is right again, and then the
/// gateway is back by itself.
pub async fn clock_jumps(version: Version, binary: &Path, folder: &Path) {
    let mut story = Story::begin(version, binary, folder, 0).await;
    story.hermes = connected(story.hermes).await;
    story.hermes.set_clock(-OFF);
    sleep(CLOCK_IS_READ).await;
    story.connector.process().terminate(SHUTDOWN).await;
    story.connector.restart().await;
    story.hermes.wait_logged_times(REFUSED, 2, TURN).await;
    story.ann.say("while-wrong").await;
    story.check_not_disabled().await;
    story.hermes.set_clock(0);
    story.ann.wait_for_answer("echo: while-wrong", TURN).await;
    story.check_not_disabled().await;
}
