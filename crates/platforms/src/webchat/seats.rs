//! Seats: what each person, all visitors and everybody together may have open at a time.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Which bound leaves no seat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full {
    /// Everybody's, or that of all visitors.
    pub(super) all: bool,
    /// The person's own.
    pub(super) each: bool,
}

/// Who sits.
#[derive(Debug)]
pub(super) struct Seats<K>(Mutex<Taken<K>>);

#[derive(Debug)]
struct Taken<K> {
    /// How many seats there are.
    most: usize,
    /// How many of them visitors may have.
    most_visiting: usize,
    each: HashMap<K, usize>,
    all: usize,
    visiting: usize,
}

/// One seat. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Seat<K: Eq + Hash> {
    seats: Arc<Seats<K>>,
    who: K,
    visiting: bool,
}

impl<K: Clone + Eq + Hash> Seats<K> {
    /// So many seats, of which visitors may have so many.
    pub(super) fn new(most: usize, most_visiting: usize) -> Arc<Self> {
        let each = HashMap::new();
        Arc::new(Self(Mutex::new(Taken { most, most_visiting, each, all: 0, visiting: 0 })))
    }

    /// Says how many there are from now on.
    pub(super) fn bound(&self, most: usize, most_visiting: usize) {
        let mut taken = self.0.lock();
        (taken.most, taken.most_visiting) = (most, most_visiting);
    }

    /// Takes one more seat for somebody who may have `most`.
    pub(super) fn take(self: &Arc<Self>, who: K, visiting: bool, most: usize) -> Result<Seat<K>, Full> {
        let mut taken = self.0.lock();
        let all = taken.all >= taken.most || visiting && taken.visiting >= taken.most_visiting;
        let each = taken.each.get(&who).is_some_and(|seats| *seats >= most);
        if all || each {
            return Err(Full { all, each });
        }
        *taken.each.entry(who.clone()).or_default() += 1;
        taken.all += 1;
        taken.visiting += usize::from(visiting);
        Ok(Seat { seats: self.clone(), who, visiting })
    }

    /// Whether nobody sits, and nothing is kept of who did.
    #[cfg(test)]
    pub(super) fn are_free(&self) -> bool {
        let taken = self.0.lock();
        taken.each.is_empty() && (taken.all, taken.visiting) == (0, 0)
    }
}

impl<K: Eq + Hash> Drop for Seat<K> {
    fn drop(&mut self) {
        let mut taken = self.seats.0.lock();
        taken.all -= 1;
        taken.visiting -= usize::from(self.visiting);
        if let Some(seats) = taken.each.get_mut(&self.who) {
            *seats -= 1;
            if *seats == 0 {
                taken.each.remove(&self.who);
            }
        }
    }
}
