//! How a bot is, as long as that is news.

use crate::health::{self, BotState, Health};
use angelia_core::clock::{self, Mono};
use parking_lot::Mutex;
use std::time::Duration;

/// How old the last sign of life may be. A question for updates is answered
/// within a minute, however quiet it is, and a webhook is looked at as often.
const NEWS_FOR: Duration = Duration::from_secs(120);

/// Keeps how a bot is, and when it last heard.
#[derive(Default)]
pub(super) struct HealthRecord {
    kept: health::HealthRecord,
    heard: Mutex<Option<Mono>>,
}

impl HealthRecord {
    /// How it was when something last happened.
    pub(super) fn health(&self) -> Health {
        self.kept.health()
    }

    /// How it is now: what was up long ago counts as down.
    pub(super) fn aged(&self) -> Health {
        let heard = *self.heard.lock();
        aged(self.kept.health(), heard, clock::mono())
    }

    /// Something was heard.
    pub(super) fn heard(&self) {
        *self.heard.lock() = Some(clock::mono());
        self.kept.heard();
    }

    /// It does not hear for this reason.
    pub(super) fn down(&self, why: impl Into<String>) {
        self.kept.down(why);
    }

    /// It gave up for this reason.
    pub(super) fn stopped(&self, why: impl Into<String>) {
        self.kept.stopped(why);
    }

    /// Counts something.
    pub(super) fn count(&self, what: &'static str) {
        self.kept.count(what);
    }
}

fn aged(mut health: Health, heard: Option<Mono>, now: Mono) -> Health {
    let silence = heard.map_or(Duration::ZERO, |heard| now.since(heard));
    if health.state == BotState::Up && silence >= NEWS_FOR {
        health.state = BotState::Down;
        health.since = health.heard_at.unwrap_or(health.since);
        health.why = Some(format!(
            "nothing was heard of Telegram for {} s: see whether this server has enough processor time, and \
             restart it if it stays so",
            silence.as_secs()
        ));
    }
    health
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    #[test]
    fn what_was_heard_long_ago_is_no_news() {
        let health = HealthRecord::default();
        assert_eq!(aged(health.health(), None, at(900)).state, BotState::Starting);
        health.heard();
        assert_eq!(health.aged().state, BotState::Up);
        assert_eq!(aged(health.health(), Some(at(0)), at(119)).state, BotState::Up);
        let old = aged(health.health(), Some(at(0)), at(120));
        assert_eq!((old.state, old.since), (BotState::Down, health.health().heard_at.unwrap()));
        assert!(old.why.unwrap().contains("120 s"));
        health.stopped("a reason");
        assert_eq!(aged(health.health(), Some(at(0)), at(900)).state, BotState::Stopped, "that is worse");
    }
}
