//! A log that is appended to and settled, whose hints are lost, doubled and
//! reordered, and whose pages may be old when they come.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
enum Step {
    Append { ahead: bool, hint: Hint },
    Redrive(u8, Hint),
    Kill(u8),
    BeginPage,
    BeginAhead,
    EndPage,
    EndAhead,
    FailPage,
    Deliver(u8),
    Poll,
    Take,
}

#[derive(Clone, Copy, Debug)]
enum Hint {
    Now,
    Later,
    Bare,
    Lost,
}

fn step() -> impl Strategy<Value = Step> {
    let hint = || prop_oneof![3 => Just(Hint::Now), 1 => Just(Hint::Later), 1 => Just(Hint::Bare), 1 => Just(Hint::Lost)];
    prop_oneof![
        6 => (prop::bool::weighted(0.2), hint()).prop_map(|(ahead, hint)| Step::Append { ahead, hint }),
        1 => (any::<u8>(), hint()).prop_map(|(n, hint)| Step::Redrive(n, hint)),
        1 => any::<u8>().prop_map(Step::Kill),
        2 => Just(Step::BeginPage),
        2 => Just(Step::BeginAhead),
        3 => Just(Step::EndPage),
        3 => Just(Step::EndAhead),
        1 => Just(Step::FailPage),
        2 => any::<u8>().prop_map(Step::Deliver),
        1 => Just(Step::Poll),
        4 => Just(Step::Take),
    ]
}

#[derive(Default)]
struct World {
    /// What waits, and whether it goes ahead.
    log: BTreeMap<i64, bool>,
    dead: BTreeSet<i64>,
    mark: Mark,
    backlog: Backlog,
    delayed: Vec<(Mark, i64, bool, bool)>,
    page: Option<Stretch>,
    ahead: Option<Stretch>,
    /// What was given out, in order, of those that do not go ahead.
    given: Vec<i64>,
    given_ahead: BTreeSet<i64>,
}

impl World {
    fn stretch(&self, after: i64, ahead: bool) -> Stretch {
        let matching = self.log.iter().filter(|(seq, it)| **it == ahead && **seq > after);
        let all: Vec<Entry> = matching.map(|(seq, _)| entry(*seq)).collect();
        let more = all.len() > 3;
        Stretch { page: Page { items: all.into_iter().take(3).collect(), more }, mark: self.mark }
    }

    fn hint(&mut self, hint: Hint, seq: i64, ahead: bool, redriven: bool) {
        let mark = self.mark;
        let mut tell = |gift| {
            if redriven {
                self.backlog.redriven(mark, gift)
            } else {
                self.backlog.appended(mark, gift, ahead)
            }
        };
        match hint {
            Hint::Now => tell(Some(entry(seq))),
            Hint::Bare => tell(None),
            Hint::Later => self.delayed.push((mark, seq, ahead, redriven)),
            Hint::Lost => {}
        }
    }

    fn happen(&mut self, step: &Step) {
        match *step {
            Step::Append { ahead, hint } => {
                self.mark.tail.0 += 1;
                self.log.insert(self.mark.tail.0, ahead);
                self.hint(hint, self.mark.tail.0, ahead, false);
            }
            Step::Kill(n) => {
                let undone: Vec<i64> = self.log.keys().copied().filter(|seq| !self.is_given(*seq)).collect();
                if let Some(seq) = undone.get(usize::from(n)).copied() {
                    self.log.remove(&seq);
                    self.dead.insert(seq);
                    self.backlog.remove(Seq(seq));
                }
            }
            Step::Redrive(n, hint) => {
                if let Some(seq) = self.dead.iter().nth(usize::from(n)).copied() {
                    self.dead.remove(&seq);
                    self.log.insert(seq, true);
                    self.mark.redrives += 1;
                    self.hint(hint, seq, true, true);
                }
            }
            Step::BeginPage if self.page.is_none() => {
                if let Some(after) = self.backlog.wants_page() {
                    self.page = Some(self.stretch(after.0, false));
                }
            }
            Step::BeginAhead if self.ahead.is_none() && self.backlog.wants_ahead() => {
                self.ahead = Some(self.stretch(0, true));
            }
            Step::EndPage => {
                if let Some(page) = self.page.take() {
                    self.backlog.loaded(Some(page));
                }
            }
            Step::FailPage if self.page.take().is_some() => self.backlog.loaded(None),
            Step::EndAhead => {
                if let Some(page) = self.ahead.take() {
                    let given = self.given_ahead.clone();
                    self.backlog.loaded_ahead(Some(page), |entry| given.contains(&entry.seq.0));
                }
            }
            Step::Deliver(n) if !self.delayed.is_empty() => {
                let (mark, seq, ahead, redriven) = self.delayed.remove(usize::from(n) % self.delayed.len());
                if redriven {
                    self.backlog.redriven(mark, Some(entry(seq)))
                } else {
                    self.backlog.appended(mark, Some(entry(seq)), ahead)
                }
            }
            Step::Poll => self.backlog.told(self.mark),
            Step::Take => self.take(),
            _ => {}
        }
    }

    fn is_given(&self, seq: i64) -> bool {
        self.given_ahead.contains(&seq) || self.given.contains(&seq)
    }

    /// What a socket does: what goes ahead first; nothing while it is not known what does.
    fn take(&mut self) {
        if !self.backlog.knows_ahead() {
            return;
        }
        if let Some(entry) = self.backlog.pop_ahead() {
            if self.log.contains_key(&entry.seq.0) && self.given_ahead.insert(entry.seq.0) {
                self.log.remove(&entry.seq.0);
                self.backlog.look_ahead_again();
            }
        } else if let Some(entry) = self.backlog.take_at(0) {
            assert!(self.given.last().is_none_or(|last| *last < entry.seq.0), "order: {:?}", self.given);
            // A dead letter that a page still showed is given once more than needed.
            self.given.push(entry.seq.0);
            self.log.remove(&entry.seq.0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn whatever_hints_get_lost_everything_is_given_in_order(steps in prop::collection::vec(step(), 0..120)) {
        let mut world = World::default();
        world.backlog.claimed(Mark::default(), 0);
        for step in &steps {
            world.happen(step);
        }
        // Hints stop; asking finds the rest.
        world.backlog.told(world.mark);
        for _ in 0..300 {
            for step in [Step::EndPage, Step::EndAhead, Step::BeginPage, Step::BeginAhead, Step::Take] {
                world.happen(&step);
            }
        }
        prop_assert_eq!(world.log, BTreeMap::new());
    }
}
