//! How a bot is, and what it can do.

use angelia_core::clock::{self, UnixMillis};
use parking_lot::{Mutex, MutexGuard};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Whether a bot hears its platform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BotState {
    /// It has not heard anything yet.
    #[default]
    Starting,
    /// It hears: something came, or a heartbeat was acknowledged, not long ago.
    Up,
    /// It does not hear, and tries on.
    Down,
    /// It gave up: an operator has to do something first.
    Stopped,
}

impl BotState {
    /// It, in a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Up => "up",
            Self::Down => "down",
            Self::Stopped => "stopped",
        }
    }
}

/// How a bot is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Health {
    /// Whether it hears.
    pub state: BotState,
    /// Since when.
    pub since: UnixMillis,
    /// When something was last heard: an event, or an acknowledged heartbeat.
    pub heard_at: Option<UnixMillis>,
    /// What is wrong, and what to do about it.
    pub why: Option<String>,
    /// What was counted since the start, such as `resumes`.
    pub counts: BTreeMap<Cow<'static, str>, u64>,
}

/// Keeps a [`Health`] for those who ask.
#[derive(Debug)]
pub struct HealthRecord(Mutex<Health>);

impl Default for HealthRecord {
    fn default() -> Self {
        let (heard_at, why, counts) = Default::default();
        Self(Mutex::new(Health { state: BotState::Starting, since: clock::wall(), heard_at, why, counts }))
    }
}

impl HealthRecord {
    /// How it is now.
    pub fn health(&self) -> Health {
        self.lock().clone()
    }

    /// Something was heard.
    pub fn heard(&self) {
        let mut health = self.lock();
        let now = clock::wall();
        health.heard_at = Some(now);
        if health.state != BotState::Up {
            (health.state, health.since, health.why) = (BotState::Up, now, None);
        }
    }

    /// Something was heard, though not everything that should be.
    pub fn heard_in_part(&self) {
        self.lock().heard_at = Some(clock::wall());
    }

    /// It does not hear for this reason.
    pub fn down(&self, why: impl Into<String>) {
        self.turn(BotState::Down, why.into());
    }

    /// It gave up for this reason.
    pub fn stopped(&self, why: impl Into<String>) {
        self.turn(BotState::Stopped, why.into());
    }

    /// Counts something.
    pub fn count(&self, what: &'static str) {
        *self.lock().counts.entry(what.into()).or_default() += 1;
    }

    fn turn(&self, state: BotState, why: String) {
        let mut health = self.lock();
        if health.state != state {
            (health.state, health.since) = (state, clock::wall());
        }
        health.why = Some(why);
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        self.0.lock()
    }
}

/// What a check of a bot found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checkup {
    /// Who the provider says the credential belongs to.
    pub identity: Option<String>,
    /// What was found, in the order it was looked at.
    pub findings: Vec<Finding>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How good it is.
    pub verdict: Verdict,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub next: Option<String>,
}

/// How good a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// It works, with less than it could.
    Limited,
    /// It does not work.
    Bad,
}

impl Checkup {
    /// Notes something that is as it should be.
    pub fn good(&mut self, what: impl Into<String>) {
        self.findings.push(Finding { verdict: Verdict::Good, what: what.into(), next: None });
    }

    /// Notes something that works with less than it could.
    pub fn limited(&mut self, what: impl Into<String>, next: impl Into<String>) {
        let (what, next) = (what.into(), Some(next.into()));
        self.findings.push(Finding { verdict: Verdict::Limited, what, next });
    }

    /// Notes something that does not work.
    pub fn bad(&mut self, what: impl Into<String>, next: impl Into<String>) {
        let (what, next) = (what.into(), Some(next.into()));
        self.findings.push(Finding { verdict: Verdict::Bad, what, next });
    }

    /// Whether the bot can work at all.
    pub fn is_usable(&self) -> bool {
        self.findings.iter().all(|finding| finding.verdict != Verdict::Bad)
    }
}
