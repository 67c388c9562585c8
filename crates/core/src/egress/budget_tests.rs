use super::*;
use proptest::prelude::*;
use std::time::Duration;

const RATE: Rate = Rate { calls: 20, per: Duration::from_secs(1), burst: 4 };

fn at(millis: u64) -> Mono {
    Mono(Duration::from_millis(millis))
}

/// Makes every call that is granted until `until`, looking every 5 ms.
fn run(budget: &mut Budget, owner: &HashMap<Ticket, &str>, from: u64, until: u64) -> Vec<Ticket> {
    let mut granted = Vec::new();
    for now in (from..until).step_by(5) {
        while let Some(ticket) = budget.grant(at(now)) {
            budget.made(owner[&ticket], at(now));
            granted.push(ticket);
        }
    }
    granted
}

#[test]
fn a_tenant_that_floods_stands_back() {
    let (mut budget, mut owner) = (Budget::new(RATE, at(0)), HashMap::new());
    let flood: Vec<Ticket> = (0..200).map(|_| budget.join("loud")).collect();
    owner.extend(flood.iter().map(|ticket| (*ticket, "loud")));
    let first = run(&mut budget, &owner, 0, 500);
    assert_eq!(first, flood[..first.len()], "alone it gets everything, in its order");
    assert_eq!(first.len(), 13, "the burst and half a second of twenty");
    let quiet = budget.join("quiet");
    owner.insert(quiet, "quiet");
    assert_eq!(run(&mut budget, &owner, 500, 550), [quiet], "the next call is the other's");
    assert_eq!(run(&mut budget, &owner, 550, 1_050).len(), 10, "nothing is wasted");
}

#[test]
fn if_all_took_their_share_they_take_turns() {
    let (mut budget, mut owner) = (Budget::new(RATE, at(0)), HashMap::new());
    for name in ["a", "b", "c"] {
        owner.extend((0..100).map(|_| (budget.join(name), name)));
    }
    let granted = run(&mut budget, &owner, 0, 2_000);
    for name in ["a", "b", "c"] {
        let share = granted.iter().filter(|ticket| owner[ticket] == name).count();
        assert!((14..=15).contains(&share), "{name} got {share} of {}", granted.len());
    }
}

#[test]
fn what_was_not_used_is_given_back() {
    let mut budget = Budget::new(RATE, at(0));
    for _ in 0..3 {
        assert!(budget.spare("a", at(0)));
    }
    let first = budget.join("a");
    assert_eq!(budget.grant(at(0)), Some(first));
    assert!(!budget.spare("a", at(0)), "the bucket is empty");
    budget.give_back("a");
    assert!(budget.spare("b", at(0)), "one came back");
    let second = budget.join("a");
    assert_eq!((budget.grant(at(0)), budget.next_at()), (None, Some(at(50))));
    assert!(!budget.spare("b", at(50)), "somebody waits");
    assert_eq!((budget.grant(at(50)), budget.next_at()), (Some(second), None));
    assert!(!budget.leave("a", second), "it is not in line any more");
}

#[derive(Clone, Debug)]
enum Step {
    Join(usize),
    Leave(usize),
    Make(usize),
    GiveBack(usize),
    Spare(usize),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0usize..5).prop_map(Step::Join),
        1 => (0usize..64).prop_map(Step::Leave),
        3 => (0usize..8).prop_map(Step::Make),
        1 => (0usize..8).prop_map(Step::GiveBack),
        1 => (0usize..5).prop_map(Step::Spare),
        4 => (0u64..400).prop_map(Step::Pass),
    ]
}

/// Watches a budget from outside, with nothing but lists.
#[derive(Default)]
struct Watcher {
    waiting: Vec<(usize, Ticket)>,
    granted: Vec<usize>,
    made: Vec<(u64, usize)>,
}

impl Watcher {
    /// Whether a tenant took less than its share of the last second.
    fn is_modest(&self, tenant: usize, now: u64, rate: Rate) -> bool {
        let made = self.made.iter().filter(|(at, by)| *by == tenant && at + 1_000 > now).count();
        let granted = self.granted.iter().filter(|by| **by == tenant).count();
        made + granted < (rate.calls as usize / 4).max(1)
    }

    /// Checks one grant against the rules and notes it.
    fn grant(&mut self, ticket: Ticket, now: u64, rate: Rate) {
        let position = self.waiting.iter().position(|(_, waits)| *waits == ticket).expect("it waited");
        let (tenant, _) = self.waiting[position];
        let first = self.waiting.iter().find(|(by, _)| *by == tenant).unwrap();
        assert_eq!(first.1, ticket, "a tenant's calls stay in order");
        assert!(
            self.is_modest(tenant, now, rate)
                || !self.waiting.iter().any(|(other, _)| self.is_modest(*other, now, rate)),
            "a modest tenant was passed over"
        );
        self.waiting.remove(position);
        self.granted.push(tenant);
    }

    /// No stretch of time holds more calls than the bucket allows.
    fn check_rate(&self, rate: Rate) {
        let Some((to, _)) = self.made.last() else { return };
        for (first, (from, _)) in self.made.iter().enumerate() {
            let calls = (self.made.len() - first) as u64;
            let allowed = u64::from(rate.burst) + (to - from) * u64::from(rate.calls) / 1_000;
            assert!(calls <= allowed, "{calls} calls in {} ms", to - from);
        }
    }
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Takes one step with both, and looks that they agree.
fn take(step: &Step, budget: &mut Budget, watcher: &mut Watcher, now: &mut u64) {
    match *step {
        Step::Join(tenant) => watcher.waiting.push((tenant, budget.join(NAMES[tenant]))),
        Step::Leave(index) if index < watcher.waiting.len() => {
            let (tenant, ticket) = watcher.waiting.remove(index);
            assert!(budget.leave(NAMES[tenant], ticket));
        }
        Step::Make(index) if index < watcher.granted.len() => {
            let tenant = watcher.granted.remove(index);
            budget.made(NAMES[tenant], at(*now));
            watcher.made.push((*now, tenant));
        }
        Step::GiveBack(index) if index < watcher.granted.len() => {
            budget.give_back(NAMES[watcher.granted.remove(index)]);
        }
        Step::Spare(tenant) => {
            if budget.spare(NAMES[tenant], at(*now)) {
                assert!(watcher.waiting.is_empty());
                watcher.made.push((*now, tenant));
            }
        }
        Step::Pass(millis) => *now += millis,
        Step::Leave(_) | Step::Make(_) | Step::GiveBack(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn the_rate_is_kept_nothing_is_wasted_and_the_modest_go_first(
        calls in prop_oneof![Just(1u32), Just(4), Just(20), Just(50)],
        burst in 1u32..8,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let rate = Rate { calls, per: Duration::from_secs(1), burst };
        let mut budget = Budget::new(rate, at(0));
        let (mut watcher, mut now) = (Watcher::default(), 0);
        for step in steps {
            take(&step, &mut budget, &mut watcher, &mut now);
            while let Some(ticket) = budget.grant(at(now)) {
                watcher.grant(ticket, now, rate);
            }
            let next = budget.next_at();
            prop_assert_eq!(next.is_some(), !watcher.waiting.is_empty());
            if let Some(next) = next {
                prop_assert!(next > at(now), "nobody waits while a call may be made");
                prop_assert!(
                    !watcher.granted.is_empty() || next <= at(now) + rate.per,
                    "and nobody waits in vain"
                );
            }
            watcher.check_rate(rate);
        }
    }
}
