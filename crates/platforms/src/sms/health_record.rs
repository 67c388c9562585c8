//! How a number is, as long as that is news.

use crate::health::{self, BotState, Health};
use angelia_core::clock::{self, Mono};
use parking_lot::Mutex;
use std::time::Duration;

/// How old the last sign of life may be: two looks at what was received, and
/// a little.
const NEWS_FOR: Duration = Duration::from_secs(11 * 60);

/// Keeps how a number is, and when Twilio was last heard.
#[derive(Default)]
pub(super) struct HealthRecord {
    kept: health::HealthRecord,
    heard: Mutex<Option<Mono>>,
}

impl HealthRecord {
    /// How it is now: what was up long ago counts as down.
    pub(super) fn aged(&self) -> Health {
        aged(self.kept.health(), self.silence(clock::mono()))
    }

    /// Twilio was heard: it posted something that it signed, or told what was received.
    pub(super) fn heard(&self) {
        *self.heard.lock() = Some(clock::mono());
        self.kept.heard();
    }

    /// Twilio could not be asked. As long as it posts, or told not long ago, the
    /// number is still heard.
    pub(super) fn unheard(&self, why: &str) {
        self.kept.count("lists_failed");
        if self.silence(clock::mono()).is_none_or(|silence| silence >= NEWS_FOR) {
            self.kept.down(why);
        }
    }

    /// It does not work for this reason.
    pub(super) fn down(&self, why: impl Into<String>) {
        self.kept.down(why);
    }

    /// Counts something.
    pub(super) fn count(&self, what: &'static str) {
        self.kept.count(what);
    }

    fn silence(&self, now: Mono) -> Option<Duration> {
        let heard = *self.heard.lock();
        heard.map(|heard| now.since(heard))
    }
}

fn aged(mut health: Health, silence: Option<Duration>) -> Health {
    let silence = silence.unwrap_or_default();
    if health.state == BotState::Up && silence >= NEWS_FOR {
        health.state = BotState::Down;
        health.since = health.heard_at.unwrap_or(health.since);
        health.why = Some(format!(
            "nothing was heard of Twilio for {} s: see whether it can be reached from here",
            silence.as_secs()
        ));
    }
    health
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_look_matters_when_nothing_else_is_heard() {
        let health = HealthRecord::default();
        health.unheard("no network");
        assert_eq!(health.aged().state, BotState::Down);
        health.heard();
        health.unheard("no network");
        assert_eq!(health.aged().state, BotState::Up, "webhooks come");
        assert_eq!(aged(health.kept.health(), Some(NEWS_FOR)).state, BotState::Down);
        assert_eq!(health.aged().counts["lists_failed"], 2);
    }
}
