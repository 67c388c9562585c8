//! Which refusals are written down.
//!
//! Whoever is refused decides how often, and each line stays for more than a
//! year. So the same refusal is one line and a number, and everybody has a
//! budget of their own: a flood of one sort hides no other.

use super::{Actor, AuditEntry, SWALLOWED};
use crate::clock::Mono;
use crate::limit::SlidingWindow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

/// For so long a repeated refusal is counted and not written again, and for so
/// long suppressed ones are counted before a line tells of them.
const FOLD_FOR: Duration = Duration::from_secs(600);
/// Repeats that are counted at a time. Beyond it the oldest is told early.
const MAX_FOLDS: usize = 4_096;
/// Tenants with a budget of their own at a time: beyond it the one that was
/// refused longest ago is forgotten. Only an operator makes tenants.
const MAX_TENANTS: usize = 1_024;
/// Lines a minute and a day for what everybody can reach: an operator can still
/// read them, and a year of the worst days is less than a gigabyte.
const OPEN_TO_ALL: Budget = Budget { a_minute: 60, a_day: 2_000 };
/// Lines a minute and a day for one tenant, whose gateways are known: fewer, as
/// there are many tenants.
const OF_A_TENANT: Budget = Budget { a_minute: 30, a_day: 500 };

struct Budget {
    a_minute: usize,
    a_day: usize,
}

/// From whose budget a line is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    /// Whoever knocks at the admin API.
    Admin,
    /// People of a platform: it has proven who they are, but not to which tenant they belong.
    People,
    /// Whoever has proven nothing.
    Strangers,
    /// Whoever has proven this tenant.
    Tenant(String),
}

impl Whose {
    fn of(entry: &AuditEntry) -> Self {
        if entry.action.starts_with("admin.") {
            Self::Admin
        } else if !entry.tenant.is_empty() {
            Self::Tenant(entry.tenant.clone())
        } else if entry.actor == Actor::stranger() {
            Self::Strangers
        } else {
            Self::People
        }
    }

    fn tenant(&self) -> &str {
        if let Self::Tenant(name) = self { name } else { "" }
    }

    fn words(&self) -> &'static str {
        match self {
            Self::Admin => "the admin API",
            Self::People => "people of platforms",
            Self::Strangers => "strangers",
            Self::Tenant(_) => "this tenant",
        }
    }
}

/// What was written of one budget, and what there was no room for.
#[derive(Debug)]
struct RefusalQuota {
    minute: SlidingWindow,
    day: SlidingWindow,
    last: Mono,
    /// Since when, and how many of which action.
    suppressed: Option<(Mono, BTreeMap<&'static str, u64>)>,
}

impl RefusalQuota {
    fn new(whose: &Whose) -> Self {
        let budget = if matches!(whose, Whose::Tenant(_)) { OF_A_TENANT } else { OPEN_TO_ALL };
        Self {
            minute: SlidingWindow::new(budget.a_minute, Duration::from_secs(60)),
            day: SlidingWindow::new(budget.a_day, Duration::from_secs(24 * 3600)),
            last: Mono::default(),
            suppressed: None,
        }
    }

    fn pays(&mut self, now: Mono, action: &'static str) -> bool {
        self.last = now;
        if self.minute.check(now).is_ok() && self.day.take(now).is_ok() {
            return self.minute.take(now).is_ok();
        }
        let (_, counts) = self.suppressed.get_or_insert_with(|| (now, BTreeMap::new()));
        *counts.entry(action).or_default() += 1;
        false
    }

    /// The line about what was suppressed, if it is time for it.
    fn summary(&mut self, whose: &Whose, now: Mono, anyway: bool) -> Option<AuditEntry> {
        let ended = |since: Mono| anyway || now.since(since) >= FOLD_FOR;
        let (since, counts) = self.suppressed.take_if(|(since, _)| ended(*since))?;
        let all: u64 = counts.values().sum();
        let which: Vec<String> = counts.iter().map(|(action, count)| format!("{action} {count}")).collect();
        let outcome = format!("{all} refusals were not written in {}", minutes(now.since(since)));
        let entry = AuditEntry::done(&Actor::server(), SWALLOWED, whose.tenant(), whose.words());
        Some(AuditEntry { outcome, ..entry }.with(which.join(", ")))
    }
}

type Key = (String, &'static str, String, String, String);

fn key(entry: &AuditEntry) -> Key {
    let AuditEntry { actor, action, tenant, target, outcome, .. } = entry;
    (actor.as_str().to_owned(), action, tenant.clone(), target.clone(), outcome.clone())
}

/// A refusal that was written, and how often it came again.
#[derive(Debug)]
struct Fold {
    entry: AuditEntry,
    since: Mono,
    more: u64,
}

impl Fold {
    /// The line about the repeats, if there were any.
    fn tell(self, now: Mono) -> Option<AuditEntry> {
        let outcome =
            format!("{} ({} more in {})", self.entry.outcome, self.more, minutes(now.since(self.since)));
        (self.more > 0).then_some(AuditEntry { outcome, ..self.entry })
    }
}

/// What was refused lately. Its answers are the lines to write now.
#[derive(Debug, Default)]
pub struct FoldedRefusals {
    folds: HashMap<Key, Fold>,
    /// The keys of `folds`, the oldest first.
    order: VecDeque<Key>,
    quotas: BTreeMap<Whose, RefusalQuota>,
}

impl FoldedRefusals {
    /// Notes a refusal.
    pub fn note(&mut self, now: Mono, entry: AuditEntry) -> Vec<AuditEntry> {
        let mut lines = self.due(now);
        let key = key(&entry);
        if let Some(fold) = self.folds.get_mut(&key) {
            fold.more += 1;
            return lines;
        }
        let whose = Whose::of(&entry);
        lines.extend(self.make_room_for(&whose, now));
        let quota = self.quotas.entry(whose).or_insert_with_key(RefusalQuota::new);
        if quota.pays(now, entry.action) {
            if self.folds.len() >= MAX_FOLDS {
                lines.extend(self.end_oldest(now));
            }
            self.order.push_back(key.clone());
            self.folds.insert(key, Fold { entry: entry.clone(), since: now, more: 0 });
            lines.push(entry);
        }
        lines
    }

    /// What was counted and whose time is over.
    pub fn due(&mut self, now: Mono) -> Vec<AuditEntry> {
        let mut lines = Vec::new();
        while self.oldest().is_some_and(|fold| now.since(fold.since) >= FOLD_FOR) {
            lines.extend(self.end_oldest(now));
        }
        lines.extend(self.quotas.iter_mut().filter_map(|(whose, quota)| quota.summary(whose, now, false)));
        lines
    }

    /// Everything that was counted: the server stops.
    pub fn close(&mut self, now: Mono) -> Vec<AuditEntry> {
        let mut lines = Vec::new();
        while !self.order.is_empty() {
            lines.extend(self.end_oldest(now));
        }
        lines.extend(self.quotas.iter_mut().filter_map(|(whose, quota)| quota.summary(whose, now, true)));
        lines
    }

    fn oldest(&self) -> Option<&Fold> {
        self.folds.get(self.order.front()?)
    }

    fn end_oldest(&mut self, now: Mono) -> Option<AuditEntry> {
        let key = self.order.pop_front()?;
        self.folds.remove(&key)?.tell(now)
    }

    /// Forgets the tenant that was refused longest ago if there are too many.
    fn make_room_for(&mut self, whose: &Whose, now: Mono) -> Option<AuditEntry> {
        let is_tenant = |whose: &Whose| matches!(whose, Whose::Tenant(_));
        if !is_tenant(whose) || self.quotas.contains_key(whose) {
            return None;
        }
        let tenants = self.quotas.iter().filter(|(whose, _)| is_tenant(whose));
        if tenants.clone().count() < MAX_TENANTS {
            return None;
        }
        let oldest = tenants.min_by_key(|(_, quota)| quota.last)?.0.clone();
        self.quotas.remove(&oldest)?.summary(&oldest, now, true)
    }
}

fn minutes(span: Duration) -> String {
    match span.as_secs().div_ceil(60) {
        0 | 1 => "a minute".into(),
        more => format!("{more} minutes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    fn dial(target: &str) -> AuditEntry {
        AuditEntry::refused(&Actor::stranger(), "gateway.dial", "", target, "wrong secret")
    }

    fn of_tenant(tenant: &str, target: &str) -> AuditEntry {
        AuditEntry::refused(&Actor::gateway(tenant, "gw"), "gateway.provision", tenant, target, "not yours")
    }

    fn outcomes(lines: &[AuditEntry]) -> Vec<&str> {
        lines.iter().map(|line| line.outcome.as_str()).collect()
    }

    #[test]
    fn the_same_refusal_is_one_line_and_a_number() {
        let mut log = FoldedRefusals::default();
        assert_eq!(outcomes(&log.note(at(0), dial("gw"))), ["refused: wrong secret"]);
        for second in 1..=37 {
            assert!(log.note(at(second), dial("gw")).is_empty());
        }
        assert_eq!(log.note(at(38), dial("other")).len(), 1, "another target is another refusal");
        assert!(log.due(at(599)).is_empty());
        assert_eq!(outcomes(&log.due(at(600))), ["refused: wrong secret (37 more in 10 minutes)"]);
        assert!(log.due(at(638)).is_empty(), "what did not come again is told once");
        assert_eq!(log.note(at(700), dial("gw")).len(), 1, "and anew");
        assert!(log.note(at(701), dial("gw")).is_empty());
        let late = log.note(at(1_400), dial("gw"));
        assert_eq!(
            outcomes(&late),
            ["refused: wrong secret (1 more in 12 minutes)", "refused: wrong secret"]
        );
    }

    #[test]
    fn a_flood_of_one_sort_hides_no_other() {
        let mut log = FoldedRefusals::default();
        let written: usize = (0..10_000).map(|n| log.note(at(1), dial(&n.to_string())).len()).sum();
        assert_eq!(written, 60);
        let admin =
            AuditEntry::refused(&Actor::stranger(), "admin.enter", "", "/admin/status", "wrong token");
        let person =
            AuditEntry::refused(&Actor::person("discord", "1"), "route.link", "", "discord:1", "taken");
        for other in [admin, person, of_tenant("acme", "gw"), of_tenant("evil", "gw")] {
            assert_eq!(log.note(at(1), other.clone()).len(), 1, "{other:?}");
        }
        let written: usize = (0..100).map(|n| log.note(at(2), of_tenant("evil", &n.to_string())).len()).sum();
        assert_eq!(written, 29, "one was written before");
        assert_eq!(log.note(at(2), of_tenant("acme", "gw-2")).len(), 1, "a tenant spends its own");
    }

    #[test]
    fn what_was_swallowed_is_told() {
        let mut log = FoldedRefusals::default();
        for n in 0..100 {
            log.note(at(10), dial(&n.to_string()));
            log.note(at(10), of_tenant("acme", &n.to_string()));
        }
        assert!(log.due(at(609)).is_empty());
        let told = log.due(at(610));
        assert_eq!(
            outcomes(&told),
            ["40 refusals were not written in 10 minutes", "70 refusals were not written in 10 minutes"]
        );
        assert_eq!((told[0].action, told[0].detail.as_str()), ("audit.swallowed", "gateway.dial 40"));
        assert_eq!((told[0].tenant.as_str(), told[1].tenant.as_str()), ("", "acme"));
        assert!(log.due(at(2_000)).is_empty(), "once");
    }

    #[test]
    fn nothing_counted_is_lost_at_the_end() {
        let mut log = FoldedRefusals::default();
        for n in 0..70 {
            log.note(at(0), dial(&n.to_string()));
        }
        log.note(at(100), dial("0"));
        let told = log.close(at(120));
        assert_eq!(
            outcomes(&told),
            ["refused: wrong secret (1 more in 2 minutes)", "10 refusals were not written in 2 minutes"]
        );
        assert!(log.close(at(121)).is_empty());
    }

    #[test]
    fn a_day_has_its_end_too() {
        let mut log = FoldedRefusals::default();
        let mut written = 0;
        for second in 0..24 * 3600 {
            let lines = log.note(at(second), dial(&second.to_string()));
            written += lines.iter().filter(|line| line.action == "gateway.dial").count();
        }
        assert_eq!(written, 2_000);
        assert_eq!(log.note(at(24 * 3600), dial("tomorrow")).len(), 1);
    }

    #[test]
    fn memory_has_an_end() {
        let mut log = FoldedRefusals::default();
        for tenant in 0..2 * MAX_TENANTS as u64 {
            for target in ["a", "b", "c", "d", "e"] {
                log.note(at(tenant / 8), of_tenant(&tenant.to_string(), target));
            }
        }
        assert_eq!(log.quotas.len(), MAX_TENANTS);
        assert!(!log.quotas.contains_key(&Whose::Tenant("0".into())), "the first went");
        assert_eq!((log.folds.len(), log.order.len()), (MAX_FOLDS, MAX_FOLDS));
        log.due(at(10_000));
        assert_eq!((log.folds.len(), log.order.len()), (0, 0));
    }

    #[test]
    fn a_forgotten_tenant_leaves_its_number() {
        let mut log = FoldedRefusals::default();
        for n in 0..31 {
            log.note(at(0), of_tenant("first", &n.to_string()));
        }
        let lines: Vec<AuditEntry> =
            (1..=MAX_TENANTS as u64).flat_map(|n| log.note(at(1), of_tenant(&n.to_string(), "gw"))).collect();
        let told: Vec<&AuditEntry> = lines.iter().filter(|line| line.action == "audit.swallowed").collect();
        assert_eq!((told.len(), told[0].tenant.as_str()), (1, "first"));
    }

    proptest! {
        /// Lines and numbers together are all refusals there were, whatever came when.
        #[test]
        fn every_refusal_is_written_or_counted(steps in prop::collection::vec((0u64..200, 0u8..80), 1..600)) {
            let (mut log, mut now) = (FoldedRefusals::default(), 0);
            let mut told = Vec::new();
            for (pause, target) in &steps {
                now += pause / 40;
                told.extend(log.note(at(now), dial(&target.to_string())));
            }
            told.extend(log.close(at(now)));
            let number = |line: &AuditEntry| -> u64 {
                let words = line.outcome.as_str();
                let counted = words.split_once('(').map_or(words, |(_, counted)| counted);
                counted.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(1)
            };
            prop_assert_eq!(told.iter().map(number).sum::<u64>(), steps.len() as u64);
        }
    }
}
