//! How far the registration of a bot's commands is, and when it goes on.

use super::{ADDED, FIRST_PAUSE, LONGEST_PAUSE, REGISTRATIONS};
use angelia_core::clock::Mono;
use angelia_core::commands::{Change, Plan, Shown};
use angelia_core::limit::{Backoff, SlidingWindow};
use std::time::Duration;

/// A list that stays the same for so long is registered: gateways that restart together are one
/// change.
const QUIET: Duration = Duration::from_secs(3);
/// And one that never does is registered all the same after so long: one gateway that changes its
/// commands all the time must not keep those of others waiting.
const LONGEST_QUIET: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// How far the commands of one bot are, while it is this node's.
pub(super) struct Progress {
    /// The line of the change feed up to which it was looked.
    pub(super) looked_at: i64,
    /// What is wanted and not registered.
    pub(super) pending: Option<Pending>,
    pub(super) not_before: Mono,
    pub(super) backoff: Backoff,
    pub(super) registrations: SlidingWindow,
    added: SlidingWindow,
    /// What was new in a list of which nobody knows whether the provider took it.
    unsure: Vec<String>,
    /// Whether it was told that it does not work, and that it waits for its share.
    pub(super) told: bool,
    pub(super) told_share: bool,
}

/// A list that is not registered.
pub(super) struct Pending {
    form: String,
    /// Since when it is this one.
    since: Mono,
    /// When something that is not registered was first wanted.
    first: Mono,
}

impl Progress {
    pub(super) fn new(now: Mono) -> Self {
        Self {
            looked_at: -1,
            pending: None,
            not_before: now,
            backoff: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
            registrations: SlidingWindow::new(REGISTRATIONS, HOUR),
            added: SlidingWindow::new(ADDED, DAY),
            unsure: Vec::new(),
            told: false,
            told_share: false,
        }
    }

    /// Whether this list is to be registered now; if not, it is looked again when it may be.
    pub(super) fn is_due(&mut self, form: &str, now: Mono) -> bool {
        let (since, first) = match &self.pending {
            Some(pending) if pending.form == form => (pending.since, pending.first),
            Some(pending) => (now, pending.first),
            None => (now, now),
        };
        self.pending = Some(Pending { form: form.to_owned(), since, first });
        let due = (since + QUIET).min(first + LONGEST_QUIET);
        if now < due {
            self.not_before = due;
        }
        now >= due
    }

    /// How many commands may be new today. What a call that failed left at the provider counts.
    pub(super) fn room(&mut self, shown: &[Shown], now: Mono) -> usize {
        let is_there = |name: &String| {
            shown.iter().filter_map(|it| it.command.as_ref()).any(|command| command.name == *name)
        };
        let done = std::mem::take(&mut self.unsure).iter().filter(|name| is_there(name)).count();
        self.take(done, now);
        ADDED.saturating_sub(self.added.count(now))
    }

    /// A plan is about to be told to the provider.
    pub(super) fn tries(&mut self, plan: &Plan) {
        let new = plan.commands.iter().filter(|it| it.change == Change::Added);
        self.unsure = new.map(|it| it.listed.command.name.clone()).collect();
    }

    /// The provider took it.
    pub(super) fn worked(&mut self, now: Mono) {
        let added = std::mem::take(&mut self.unsure).len();
        self.take(added, now);
    }

    fn take(&mut self, added: usize, now: Mono) {
        for _ in 0..added {
            // What is one too many is not counted twice: there is no room then anyway.
            let _ = self.added.take(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::commands::{Command, Listed, Planned};

    fn command(n: usize) -> Command {
        Command { name: format!("c{n}"), ..Command::default() }
    }

    fn adding(count: usize) -> Plan {
        let new = |n| Planned {
            listed: Listed { command: command(n), ..Listed::default() },
            change: Change::Added,
        };
        Plan { commands: (0..count).map(new).collect(), ..Plan::default() }
    }

    fn showing(count: usize) -> Vec<Shown> {
        (0..count).map(|n| Shown { command: Some(command(n)), raw: serde_json::Value::Null }).collect()
    }

    fn after(seconds: u64) -> Mono {
        Mono::default() + Duration::from_secs(seconds)
    }

    #[test]
    fn an_attempt_that_failed_takes_nothing_of_the_days_share() {
        let mut progress = Progress::new(after(0));
        for attempt in 0..5 {
            assert_eq!(progress.room(&[], after(attempt)), ADDED);
            progress.tries(&adding(80));
        }
        progress.worked(after(5));
        assert_eq!(progress.room(&[], after(6)), ADDED - 80);
        assert_eq!(progress.room(&[], after(6)), ADDED - 80, "each counts once");
        assert_eq!(progress.room(&[], after(5 + 24 * 3600)), ADDED, "for a day");
    }

    #[test]
    fn what_a_provider_took_without_an_answer_counts() {
        let mut progress = Progress::new(after(0));
        progress.tries(&adding(80));
        assert_eq!(progress.room(&showing(50), after(1)), ADDED - 50);
        assert_eq!(progress.room(&showing(50), after(2)), ADDED - 50);
    }

    #[test]
    fn a_list_is_registered_once_it_is_quiet() {
        let mut progress = Progress::new(after(0));
        assert!(!progress.is_due("one", after(0)));
        assert_eq!(progress.not_before, after(3), "nobody looks before");
        assert!(!progress.is_due("two", after(3)));
        assert_eq!(progress.not_before, after(6));
        assert!(progress.is_due("two", after(6)));
    }

    #[test]
    fn a_list_that_changes_all_the_time_is_registered_after_a_minute() {
        let mut progress = Progress::new(after(0));
        let due = (0..).find(|second| progress.is_due(&second.to_string(), after(*second)));
        assert_eq!(due, Some(60));
        progress.pending = None;
        assert!(!progress.is_due("next", after(61)), "the next change is quiet again");
    }
}
