//! How a bot is, and what it can do.

use super::{ApiError, ErrorKind};
use angelia_core::clock::{self, Mono, UnixMillis};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
    /// Another node has it, and knows how it is.
    Elsewhere,
}

impl BotState {
    /// Whether there is nothing to do about it here.
    pub fn is_well(self) -> bool {
        matches!(self, Self::Up | Self::Elsewhere)
    }

    /// How bad it is; of what another node has this one knows nothing.
    fn gravity(self) -> u8 {
        match self {
            Self::Elsewhere => 0,
            Self::Up => 1,
            Self::Starting => 2,
            Self::Down => 3,
            Self::Stopped => 4,
        }
    }

    /// It, in a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Up => "up",
            Self::Down => "down",
            Self::Stopped => "stopped",
            Self::Elsewhere => "elsewhere",
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

impl Health {
    /// This and what another node knows of the same bot: the worse counts, as each of them may
    /// read a part of it.
    pub fn and(self, other: Self) -> Self {
        let is_worse = other.state.gravity() > self.state.gravity();
        let (mut joined, better) = if is_worse { (other, self) } else { (self, other) };
        joined.heard_at = joined.heard_at.max(better.heard_at);
        for (what, count) in better.counts {
            *joined.counts.entry(what).or_default() += count;
        }
        joined
    }
}

/// When silence means that a bot does not hear.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    /// How old the last sign of life may be.
    pub(crate) after: Duration,
    /// Whose it would be.
    pub(crate) provider: &'static str,
    /// What to do about it.
    pub(crate) next: &'static str,
}

/// Keeps a [`Health`] for those who ask.
#[derive(Debug)]
pub struct HealthRecord {
    kept: Mutex<Health>,
    heard: Mutex<Option<Mono>>,
    silence: Option<Silence>,
    /// Whether it cannot speak, however much it hears.
    mute: AtomicBool,
    /// Whether another node has the bot.
    elsewhere: AtomicBool,
}

impl Default for HealthRecord {
    fn default() -> Self {
        let kept = Health { since: clock::wall(), ..Health::default() };
        let (heard, [mute, elsewhere]) = (Mutex::default(), Default::default());
        Self { kept: Mutex::new(kept), heard, silence: None, mute, elsewhere }
    }
}

impl HealthRecord {
    /// One for which what was up long ago counts as down.
    pub(crate) fn with_silence(silence: Silence) -> Self {
        Self { silence: Some(silence), ..Self::default() }
    }

    /// How it is now.
    pub fn health(&self) -> Health {
        self.health_at(clock::mono())
    }

    fn health_at(&self, now: Mono) -> Health {
        let mut health = self.kept.lock().clone();
        if self.elsewhere.load(Ordering::Relaxed) {
            return Health { state: BotState::Elsewhere, why: None, ..health };
        }
        if health.state == BotState::Up
            && let (Some(Silence { after, provider, next }), Some(silent)) = (self.silence, self.silent(now))
            && silent >= after
        {
            health.state = BotState::Down;
            health.since = health.heard_at.unwrap_or(health.since);
            let silent = silent.as_secs();
            health.why = Some(format!("nothing was heard of {provider} for {silent} s: {next}"));
        }
        health
    }

    fn silent(&self, now: Mono) -> Option<Duration> {
        let heard = *self.heard.lock();
        heard.map(|heard| now.since(heard))
    }

    /// Another node has the bot, or this one has it again: then it begins anew.
    pub(crate) fn is_elsewhere(&self, elsewhere: bool) {
        if self.elsewhere.swap(elsewhere, Ordering::Relaxed) && !elsewhere {
            self.begin_anew();
        }
    }

    /// Nothing was heard yet since the bot came here.
    pub(crate) fn begin_anew(&self) {
        let mut health = self.kept.lock();
        (health.state, health.since, health.why) = (BotState::Starting, clock::wall(), None);
        drop(health);
        *self.heard.lock() = None;
        self.mute.store(false, Ordering::Relaxed);
    }

    /// Something was heard.
    pub fn heard(&self) {
        *self.heard.lock() = Some(clock::mono());
        let mut health = self.kept.lock();
        let now = clock::wall();
        health.heard_at = Some(now);
        if health.state != BotState::Up {
            (health.state, health.since, health.why) = (BotState::Up, now, None);
        }
    }

    /// Something was heard, though not everything that should be.
    pub fn heard_in_part(&self) {
        self.kept.lock().heard_at = Some(clock::wall());
    }

    /// Its provider did what it was asked to.
    pub(crate) fn spoke(&self) {
        self.mute.store(false, Ordering::Relaxed);
        self.heard();
    }

    /// Its provider told it something. A bot that hears and cannot answer is not well.
    pub(crate) fn was_told(&self) {
        if self.mute.load(Ordering::Relaxed) {
            self.heard_in_part();
        } else {
            self.heard();
        }
    }

    /// It cannot speak for this reason; answers whether that is news.
    pub(crate) fn fell_silent(&self, error: &ApiError) -> bool {
        self.mute.store(true, Ordering::Relaxed);
        let is_news = self.is_news(&error.why);
        match error.kind {
            ErrorKind::Setup => self.stopped(error.why.as_str()),
            _ => self.down(error.why.as_str()),
        }
        is_news
    }

    /// It does not hear for this reason.
    pub fn down(&self, why: impl Into<String>) {
        self.turn(BotState::Down, why.into());
    }

    /// It gave up for this reason.
    pub fn stopped(&self, why: impl Into<String>) {
        self.turn(BotState::Stopped, why.into());
    }

    /// It could not be asked for this reason. As long as something was heard not long ago,
    /// it still hears.
    pub(crate) fn down_if_silent(&self, why: &str) {
        let news_for = self.silence.map_or(Duration::ZERO, |silence| silence.after);
        if self.silent(clock::mono()).is_none_or(|silent| silent >= news_for) {
            self.down(why);
        }
    }

    /// Whether this is another reason than the one that is known.
    pub(crate) fn is_news(&self, why: &str) -> bool {
        self.kept.lock().why.as_deref() != Some(why)
    }

    /// Counts something.
    pub fn count(&self, what: &'static str) {
        *self.kept.lock().counts.entry(what.into()).or_default() += 1;
    }

    fn turn(&self, state: BotState, why: String) {
        let mut health = self.kept.lock();
        if health.state != state {
            (health.state, health.since) = (state, clock::wall());
        }
        health.why = Some(why);
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
        self.note(Verdict::Good, what.into(), None);
    }

    /// Notes something that works with less than it could.
    pub fn limited(&mut self, what: impl Into<String>, next: impl Into<String>) {
        self.note(Verdict::Limited, what.into(), Some(next.into()));
    }

    /// Notes something that does not work.
    pub fn bad(&mut self, what: impl Into<String>, next: impl Into<String>) {
        self.note(Verdict::Bad, what.into(), Some(next.into()));
    }

    fn note(&mut self, verdict: Verdict, what: String, next: Option<String>) {
        self.findings.push(Finding { verdict, what, next });
    }

    /// Whether the bot can work at all.
    pub fn is_usable(&self) -> bool {
        self.findings.iter().all(|finding| finding.verdict != Verdict::Bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> HealthRecord {
        HealthRecord::with_silence(Silence {
            after: Duration::from_secs(120),
            provider: "Acme",
            next: "look",
        })
    }

    #[test]
    fn what_was_heard_long_ago_is_no_news() {
        let health = record();
        let later = |seconds| clock::mono() + Duration::from_secs(seconds);
        assert_eq!(health.health_at(later(900)).state, BotState::Starting);
        health.heard();
        assert_eq!(health.health_at(later(119)).state, BotState::Up);
        let old = health.health_at(later(121));
        assert_eq!((old.state, old.since), (BotState::Down, health.health().heard_at.unwrap()));
        assert_eq!(old.why.as_deref(), Some("nothing was heard of Acme for 121 s: look"));
        health.stopped("a reason");
        assert_eq!(health.health_at(later(900)).state, BotState::Stopped, "that is worse");
        let patient = HealthRecord::default();
        patient.heard();
        assert_eq!(patient.health_at(later(900_000)).state, BotState::Up);
    }

    #[test]
    fn what_another_node_has_is_not_down_here() {
        let health = record();
        health.heard();
        health.stopped("a reason");
        health.is_elsewhere(true);
        let later = clock::mono() + Duration::from_secs(900);
        assert_eq!(health.health_at(later).state, BotState::Elsewhere);
        assert!(health.health_at(later).state.is_well() && health.health_at(later).why.is_none());
        health.is_elsewhere(false);
        assert_eq!(health.health_at(later).state, BotState::Starting, "it begins anew");
        health.heard();
        assert_eq!(health.health().state, BotState::Up);
    }

    #[test]
    fn of_what_several_nodes_know_the_worse_counts() {
        let [elsewhere, up, down] = [record(), record(), record()];
        elsewhere.count("refused_signatures");
        elsewhere.is_elsewhere(true);
        up.heard();
        up.count("refused_signatures");
        down.down("a reason");
        let both = elsewhere.health().and(up.health());
        assert_eq!((both.state, both.counts["refused_signatures"]), (BotState::Up, 2));
        assert_eq!(both.since, up.health().since);
        let all = both.and(down.health());
        assert_eq!((all.state, all.why.as_deref()), (BotState::Down, Some("a reason")));
        assert!(all.heard_at.is_some());
    }

    #[test]
    fn a_failed_look_matters_when_nothing_else_is_heard() {
        let health = record();
        health.down_if_silent("no network");
        assert_eq!(health.health().state, BotState::Down);
        assert!(!health.is_news("no network") && health.is_news("no route"));
        health.heard();
        health.down_if_silent("no network");
        assert_eq!(health.health().state, BotState::Up, "webhooks come");
    }

    #[test]
    fn a_bot_that_hears_and_cannot_answer_is_not_well() {
        let health = HealthRecord::default();
        let trouble = ApiError::unavailable("no network");
        assert!(health.fell_silent(&trouble) && !health.fell_silent(&trouble), "once");
        health.was_told();
        let now = health.health();
        assert!(now.state == BotState::Down && now.heard_at.is_some());
        health.spoke();
        health.was_told();
        assert_eq!(health.health().state, BotState::Up);
        health.fell_silent(&ApiError::setup("a wrong secret"));
        assert_eq!(health.health().state, BotState::Stopped);
    }
}
