//! How old is what was stored, if the wall clock leapt in between?
//!
//! The time of a wall clock is divided into stretches in which it ran evenly.
//! Each has a shift: the wall clock less the shift is the *waited time*, which
//! goes on by what really passed and by nothing else. A leap begins a stretch
//! with another shift. So rows need no second clock: their wall-clock stamp and
//! the stretches it may lie in say how long they have waited, at least and at
//! the most. What is dropped for its age is dropped by the least (docs/decisions/0024).

use super::UnixMillis;
use angelia_contract::limits;
use serde::{Deserialize, Serialize};
use std::time::Duration;

limits! {
    /// Between two looks, or behind the last time seen, a clock may be off by this: time services correct less, and nothing is kept for so short a time that it mattered. More is a leap.
    pub const MAX_STEP: Duration = Duration::from_secs(5 * 60), time "a correction of the clock that is no leap";
    /// For so long a server may have been off without anybody being asked whether the clock is right: it leaves a day of the 72 hours for which messages are recognised. More is a leap, and nothing is dropped for its age until an operator confirms it.
    pub const MAX_OFF: Duration = Duration::from_secs(2 * 24 * 3600), time "a server being off that is no leap of the clock";
    /// Stretches of even time that are told apart. Beyond it the one that ended longest ago is forgotten, and its rows count as if they had been written by the clock as it is now.
    const MAX_STRETCHES: usize = 8, count "leaps of the clock that are remembered";
}

/// For so long after a start a clock may still be set right: many a machine
/// learns the time from the network only after it has begun its work.
const SETTLING_MS: i64 = 10 * 60 * 1000;

/// Stamps may lie so far beyond the times at which the clock was looked at.
const SLACK_MS: i64 = 10 * 60 * 1000;

/// A stretch of even time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stretch {
    /// Wall clock less waited time, in milliseconds.
    shift: i64,
    /// The first time seen in it.
    from: i64,
    /// The highest time seen in it.
    until: i64,
}

impl Stretch {
    /// Whether a stamp may have been written in it.
    fn may_hold(&self, stamp: i64) -> bool {
        (self.from.saturating_sub(SLACK_MS)..=self.until.saturating_add(SLACK_MS)).contains(&stamp)
    }
}

/// What is remembered of the wall clock. Kept in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockState {
    stretches: Vec<Stretch>,
    /// Of `stretches`, the one that lasts.
    current: usize,
    /// The last one that somebody confirmed, or nobody had to.
    confirmed: usize,
    /// The last time seen.
    seen: i64,
    /// How much of the time for which the server was off may still come to light.
    #[serde(default)]
    spare: i64,
    /// How long it runs since its start.
    #[serde(default)]
    runs: i64,
}

/// An unconfirmed leap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leap {
    /// How far the clock is ahead of where it is expected, in milliseconds; behind if negative.
    pub ahead_ms: i64,
}

impl Leap {
    /// `7 days ahead`, `2 hours behind`: of the last time that was trusted.
    pub fn words(&self) -> String {
        let seconds = self.ahead_ms.unsigned_abs() / 1000;
        let (length, unit) = match seconds {
            0..7_200 => (60, "minute"),
            7_200..172_800 => (3_600, "hour"),
            _ => (86_400, "day"),
        };
        let number = (seconds + length / 2) / length;
        let s = if number == 1 { "" } else { "s" };
        format!("{number} {unit}{s} {}", if self.ahead_ms < 0 { "behind" } else { "ahead" })
    }
}

/// What a look at the clock found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockVerdict {
    /// Nothing new.
    Steady,
    /// It has leapt just now.
    Leapt(Leap),
    /// It had leapt, and is where it is expected again.
    Back,
}

/// How long ago something was stored. Where one number is not known it is a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// So long for certain.
    pub at_least: Duration,
    /// Perhaps so long.
    pub at_most: Duration,
}

/// Which stamps are old: all before `before`, but those within `except`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Old {
    /// Younger ones are not.
    pub before: i64,
    /// Nor are these, written by a clock that was behind the present one; both ends included.
    pub except: Vec<(i64, i64)>,
}

impl Old {
    /// Whether a stamp is.
    pub fn is(&self, stamp: i64) -> bool {
        stamp < self.before && !self.except.iter().any(|(from, until)| (*from..=*until).contains(&stamp))
    }
}

impl ClockState {
    /// The first look ever. `newest` is the newest stamp there is, of a store
    /// that remembers no clock yet.
    pub fn first(wall: UnixMillis, newest: Option<UnixMillis>) -> Self {
        let newest = newest.map_or(wall, |newest| newest.max(wall)).0;
        let all = Stretch { shift: 0, from: i64::MIN, until: newest };
        let mut state =
            Self { stretches: vec![all], current: 0, confirmed: 0, seen: newest, spare: 0, runs: 0 };
        state.start(wall);
        state
    }

    /// Reads what [`ClockState::to_json`] wrote; nothing if it is damaged.
    pub fn from_json(text: &[u8]) -> Option<Self> {
        let state: Self = serde_json::from_slice(text).ok()?;
        let count = state.stretches.len();
        (state.current < count && state.confirmed < count).then_some(state)
    }

    /// For the store.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// A look at the start, after a time that nobody measured.
    pub fn start(&mut self, wall: UnixMillis) -> ClockVerdict {
        let waited = self.waited();
        let off = |stretch: &Stretch| wall.0.saturating_sub(stretch.shift).saturating_sub(waited);
        let plausible = |off: i64| (-millis(MAX_STEP)..=millis(MAX_OFF)).contains(&off);
        // The shortest time off explains it best; of two equals the confirmed one.
        let explained = (0..self.stretches.len())
            .filter(|index| plausible(off(&self.stretches[*index])))
            .min_by_key(|index| (off(&self.stretches[*index]).abs(), *index != self.confirmed));
        let known = explained.map_or(0, |index| off(&self.stretches[index]).max(0));
        (self.spare, self.runs) = (millis(MAX_OFF).saturating_sub(known), 0);
        self.go_on(wall, waited, explained)
    }

    /// A look while `passed` went by since the last one.
    pub fn look(&mut self, wall: UnixMillis, passed: Duration) -> ClockVerdict {
        let waited = self.waited().saturating_add(millis(passed));
        self.runs = self.runs.saturating_add(millis(passed));
        if self.runs > SETTLING_MS && self.leap().is_none() {
            self.spare = 0;
        }
        let off = |index: usize| wall.0.saturating_sub(self.stretches[index].shift).saturating_sub(waited);
        let fits = |index: &usize| off(*index).unsigned_abs() <= millis(MAX_STEP).unsigned_abs();
        let explained = [self.confirmed, self.current].into_iter().chain(0..self.stretches.len()).find(fits);
        // The clock was set right after the start: now it shows for how long the server was off.
        let was_off = off(self.confirmed);
        let settled = explained.is_none() && (0..=self.spare).contains(&was_off);
        self.spare -= if settled { was_off } else { 0 };
        self.go_on(wall, waited, if settled { Some(self.confirmed) } else { explained })
    }

    /// How much of a difference `passed` leaves unexplained: of two clocks that
    /// tell what passed, the one that leaves less is right.
    pub fn unexplained(&self, wall: UnixMillis, passed: Duration) -> u64 {
        wall.0.saturating_sub(self.seen).saturating_sub(millis(passed)).unsigned_abs()
    }

    /// The operator says that the clock is right as it is; tells what was accepted.
    pub fn accept(&mut self) -> Option<Leap> {
        let leap = self.leap();
        self.confirmed = self.current;
        leap
    }

    /// The leap that nobody has confirmed yet.
    pub fn leap(&self) -> Option<Leap> {
        let shift = |index: usize| self.stretches[index].shift;
        let ahead_ms = shift(self.current).saturating_sub(shift(self.confirmed));
        (self.current != self.confirmed).then_some(Leap { ahead_ms })
    }

    /// The last time seen.
    pub fn seen(&self) -> UnixMillis {
        UnixMillis(self.seen)
    }

    /// How long ago a stamp was written.
    pub fn age(&self, stamp: UnixMillis, wall: UnixMillis) -> Age {
        let now = wall.0.saturating_sub(self.stretches[self.current].shift);
        let ages = self.stretches.iter().enumerate().filter_map(|(index, stretch)| {
            let mut stretch = *stretch;
            if index == self.current {
                stretch.until = stretch.until.max(wall.0);
            }
            let age = now.saturating_sub(stamp.0.saturating_sub(stretch.shift));
            stretch.may_hold(stamp.0).then(|| Duration::from_millis(u64::try_from(age).unwrap_or(0)))
        });
        // A stamp of nobody knows when is not too old to keep, nor young enough to rely on.
        let ages = ages.fold(None, |range: Option<Age>, age| match range {
            None => Some(Age { at_least: age, at_most: age }),
            Some(range) => Some(Age { at_least: range.at_least.min(age), at_most: range.at_most.max(age) }),
        });
        ages.unwrap_or(Age { at_least: Duration::ZERO, at_most: Duration::MAX })
    }

    /// Which stamps were written more than `span` ago, for certain.
    pub fn older_than(&self, span: Duration, wall: UnixMillis) -> Old {
        let before = wall.before(span).0;
        let limit = before.saturating_sub(self.stretches[self.current].shift);
        let except = self.stretches.iter().enumerate().filter(|(index, _)| *index != self.current);
        let except = except.filter_map(|(_, stretch)| {
            let from = stretch.from.saturating_sub(SLACK_MS).max(limit.saturating_add(stretch.shift));
            // What lies behind `before` is young anyway.
            let until = stretch.until.saturating_add(SLACK_MS).min(before.saturating_sub(1));
            (from <= until).then_some((from, until))
        });
        Old { before, except: except.collect() }
    }

    /// How long was waited at the last look, from an arbitrary beginning.
    fn waited(&self) -> i64 {
        self.seen.saturating_sub(self.stretches[self.current].shift)
    }

    /// Goes on in the stretch that explains what the clock shows, or in a new one.
    fn go_on(&mut self, wall: UnixMillis, waited: i64, explained: Option<usize>) -> ClockVerdict {
        let (before, had_leapt) = (self.current, self.leap().is_some());
        self.current = explained.unwrap_or_else(|| self.begin(wall.0, wall.0.saturating_sub(waited)));
        self.seen = wall.0;
        let stretch = &mut self.stretches[self.current];
        stretch.until = stretch.until.max(wall.0);
        stretch.from = stretch.from.min(wall.0);
        match self.leap() {
            Some(leap) if explained.is_none() || self.current != before => ClockVerdict::Leapt(leap),
            None if had_leapt => ClockVerdict::Back,
            _ => ClockVerdict::Steady,
        }
    }

    /// A new stretch, in the place of the one that ended first if there are too many.
    fn begin(&mut self, from: i64, shift: i64) -> usize {
        if self.stretches.len() >= MAX_STRETCHES {
            let needed = [self.current, self.confirmed];
            let ended = |index: &usize| {
                let Stretch { until, shift, .. } = self.stretches[*index];
                until.saturating_sub(shift)
            };
            let spare = (0..self.stretches.len()).filter(|index| !needed.contains(index)).min_by_key(ended);
            if let Some(spare) = spare {
                self.stretches.remove(spare);
                self.confirmed -= usize::from(spare < self.confirmed);
                self.current -= usize::from(spare < self.current);
            }
        }
        self.stretches.push(Stretch { shift, from, until: from });
        self.stretches.len() - 1
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
