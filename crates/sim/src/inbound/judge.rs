//! The invariants of the inbound simulation: what must be true whatever happened.

use super::Violation;
use angelia_core::inbox::{Entry, InstanceId, Seq};
use angelia_core::ports::log::NewEntry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What was promised, and what came of it.
#[derive(Default)]
pub(crate) struct Judge {
    /// Entries that were accepted.
    accepted: BTreeSet<(InstanceId, Seq)>,
    handled: BTreeSet<(InstanceId, Seq)>,
    /// The last number of each conversation that was handled for the first time.
    last: BTreeMap<(InstanceId, Arc<str>), Seq>,
}

impl Judge {
    pub(crate) fn accepted(&mut self, new: &NewEntry, seq: Seq) {
        self.accepted.insert((new.instance, seq));
    }

    /// A gateway reads an entry, which says whose it is and whether it goes ahead:
    /// it may come before its writer knows that it was taken.
    pub(crate) fn handled(&mut self, by: InstanceId, entry: &Entry) -> Result<(), Violation> {
        let said = std::str::from_utf8(&entry.body).ok().and_then(|body| body.split_once(':'));
        let Some((_, ahead)) = said.filter(|(whose, _)| *whose == by.0.to_string()) else {
            return Err(Violation::SomeoneElses(by, entry.seq));
        };
        if !self.handled.insert((by, entry.seq)) || ahead == "true" {
            return Ok(());
        }
        let last = self.last.entry((by, entry.session_key.clone())).or_default();
        if *last > entry.seq {
            return Err(Violation::OutOfOrder(by, *last, entry.seq));
        }
        *last = entry.seq;
        Ok(())
    }

    /// Whether everything that was accepted arrived.
    pub(crate) fn verdict(&self) -> Result<(), Violation> {
        let lost = self.accepted.iter().find(|entry| !self.handled.contains(entry));
        lost.map_or(Ok(()), |(instance, seq)| Err(Violation::Lost(*instance, *seq)))
    }
}
