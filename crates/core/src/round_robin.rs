//! A queue that serves its owners in turn: whoever puts in much waits behind
//! its own, and nobody else does.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Things that wait, by owner.
#[derive(Debug)]
pub struct RoundRobin<K, T> {
    /// What each owner has waiting, oldest first, with its bytes.
    waiting: HashMap<K, VecDeque<(usize, T)>>,
    /// Owners with something waiting, in the order in which they are served.
    turns: VecDeque<K>,
}

impl<K, T> Default for RoundRobin<K, T> {
    fn default() -> Self {
        Self { waiting: HashMap::new(), turns: VecDeque::new() }
    }
}

impl<K: Clone + Eq + Hash, T> RoundRobin<K, T> {
    /// Puts something in line behind what its owner has waiting.
    pub fn push(&mut self, owner: K, bytes: usize, item: T) {
        let line = self.waiting.entry(owner.clone()).or_default();
        if line.is_empty() {
            self.turns.push_back(owner);
        }
        line.push_back((bytes, item));
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Takes one of each owner in turn, until there are `most` or they have
    /// `most_bytes`. At least one is taken, however large it is.
    pub fn take(&mut self, most: usize, most_bytes: usize) -> Vec<T> {
        let (mut taken, mut bytes) = (Vec::new(), 0_usize);
        while taken.len() < most && (taken.is_empty() || bytes < most_bytes) {
            let Some(owner) = self.turns.pop_front() else { break };
            let Some(line) = self.waiting.get_mut(&owner) else { continue };
            if let Some((size, item)) = line.pop_front() {
                bytes = bytes.saturating_add(size);
                taken.push(item);
            }
            if line.is_empty() {
                self.waiting.remove(&owner);
            } else {
                self.turns.push_back(owner);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_who_has_much_does_not_hold_up_another() {
        let mut queue = RoundRobin::default();
        (0..1_000).for_each(|n| queue.push("flood", 10, ("flood", n)));
        queue.push("ann", 10, ("ann", 0));
        queue.push("bob", 10, ("bob", 0));
        assert_eq!(queue.take(4, 1_000), [("flood", 0), ("ann", 0), ("bob", 0), ("flood", 1)]);
        queue.push("ann", 10, ("ann", 1));
        assert_eq!(queue.take(2, 1_000), [("flood", 2), ("ann", 1)]);
    }

    #[test]
    fn a_batch_is_bounded_in_bytes_and_never_empty() {
        let mut queue = RoundRobin::default();
        queue.push("a", 5_000, 1);
        queue.push("a", 10, 2);
        queue.push("b", 60, 3);
        queue.push("b", 60, 4);
        assert_eq!(queue.take(10, 100), [1], "too large, and taken all the same");
        assert_eq!(queue.take(10, 100), [3, 2, 4]);
        assert!(queue.take(10, 100).is_empty() && queue.is_empty());
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_each_owner_keeps_its_order(
            pushes in prop::collection::vec((0..5u8, 0..300usize), 0..60), most in 1..8usize,
        ) {
            let mut queue = RoundRobin::default();
            for (n, (owner, bytes)) in pushes.iter().enumerate() {
                queue.push(*owner, *bytes, (*owner, n));
            }
            let mut taken = Vec::new();
            while !queue.is_empty() {
                let batch = queue.take(most, 500);
                prop_assert!(!batch.is_empty() && batch.len() <= most);
                taken.extend(batch);
            }
            prop_assert_eq!(taken.len(), pushes.len());
            for owner in 0..5 {
                let numbers: Vec<_> = taken.iter().filter(|it| it.0 == owner).map(|it| it.1).collect();
                prop_assert!(numbers.is_sorted());
            }
            prop_assert!(queue.waiting.is_empty() && queue.turns.is_empty());
        }
    }
}
