//! What the node that holds a bot has in hand of what is accepted for it, here and elsewhere.
//!
//! The numbers of actions are given before their commits: a lower one may come to be seen after a
//! higher one. So what is new is not told by the last number, but by what was seen, from a number
//! below which nothing can come any more.

use crate::clock::Mono;
use crate::ports::ActionId;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// How long after its number was given an action may still be committed. A database ends
/// transactions that stand still after five seconds.
const SETTLED: Duration = Duration::from_secs(30);
/// How often is noted how far a look came.
const NOTED_EVERY: Duration = Duration::from_secs(1);

/// The actions in hand: as many as are accepted for one bot in half a minute.
#[derive(Debug, Default)]
pub struct InHand {
    /// Everything up to this is in hand, or has ended.
    floor: ActionId,
    /// What is in hand above it.
    ids: BTreeSet<ActionId>,
    /// When was looked, and the highest number known then.
    looks: VecDeque<(Mono, ActionId)>,
}

impl InHand {
    /// After which number to look for more.
    pub fn after(&self) -> ActionId {
        self.floor
    }

    /// Takes an action in hand; `false` if it is.
    pub fn take(&mut self, id: ActionId) -> bool {
        id > self.floor && self.ids.insert(id)
    }

    /// Takes an action out of hand: it is found again.
    pub fn leave(&mut self, id: ActionId) {
        self.ids.remove(&id);
        let before = ActionId(id.0 - 1);
        self.looks.iter_mut().for_each(|(_, highest)| *highest = before.min(*highest));
    }

    /// All there was at `began` was looked at by `now`, and is in hand.
    pub fn looked(&mut self, began: Mono, now: Mono) {
        let highest = self.ids.last().copied().unwrap_or(self.floor);
        // Of many looks at one time the first tells enough.
        if self.looks.back().is_none_or(|(at, _)| now.since(*at) >= NOTED_EVERY) {
            self.looks.push_back((now, highest));
        }
        while let Some((at, highest)) = self.looks.front().copied()
            && began.since(at) >= SETTLED
        {
            self.looks.pop_front();
            self.floor = self.floor.max(highest);
        }
        self.ids = self.ids.split_off(&ActionId(self.floor.0 + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    fn look(in_hand: &mut InHand, found: &[i64], seconds: u64) -> Vec<i64> {
        let seen = found.iter().copied().filter(|id| *id > in_hand.after().0).collect::<Vec<_>>();
        let new = seen.into_iter().filter(|id| in_hand.take(ActionId(*id))).collect();
        in_hand.looked(at(seconds), at(seconds));
        new
    }

    #[test]
    fn a_lower_number_that_comes_later_is_found() {
        let mut in_hand = InHand::default();
        assert_eq!(look(&mut in_hand, &[3, 5], 0), [3, 5]);
        assert_eq!(look(&mut in_hand, &[3, 4, 5], 5), [4], "its commit took longer");
        assert_eq!(look(&mut in_hand, &[1, 3, 4, 5, 6], 29), [1, 6]);
    }

    #[test]
    fn what_cannot_come_any_more_is_not_looked_for() {
        let mut in_hand = InHand::default();
        look(&mut in_hand, &[3, 5], 0);
        look(&mut in_hand, &[5, 9], 10);
        assert_eq!(in_hand.after(), ActionId(0));
        look(&mut in_hand, &[], 30);
        assert_eq!((in_hand.after(), in_hand.ids.len()), (ActionId(5), 1));
        assert_eq!(look(&mut in_hand, &[5, 7, 9], 31), [7]);
        look(&mut in_hand, &[], 62);
        assert_eq!((in_hand.after(), in_hand.ids.len(), in_hand.looks.len()), (ActionId(9), 0, 1));
    }

    #[test]
    fn what_was_left_is_found_again_however_late() {
        let mut in_hand = InHand::default();
        look(&mut in_hand, &[3, 5, 9], 0);
        in_hand.leave(ActionId(5));
        for seconds in [31, 62, 93] {
            assert_eq!(look(&mut in_hand, &[5], seconds), [5], "{seconds}");
            in_hand.leave(ActionId(5));
            assert!(in_hand.after() < ActionId(5));
        }
    }
}
