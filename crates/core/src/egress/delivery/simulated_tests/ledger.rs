//! The ledger of the world around one chat: what a process wants done to it, or what of that.

use super::{Known, Variant, World};
use crate::egress::ActionRow;
use crate::egress::delivery::{Asked, Claimed, DeliveryId, Effect, Event, Repeats};
use crate::ports::ActionOutcome;

impl World {
    /// Does to the ledger what a process wants done; whether it is its to do.
    pub(super) fn store(&mut self, at: usize, effect: &Effect) -> bool {
        let (wall, owner) = (self.wall(), self.processes[at].owner);
        let numbers = self.processes[at].actions.clone();
        let (ledger, fenced) = (&mut self.ledger, self.variant != Variant::NoFence);
        let mut change = |id: &DeliveryId, change: &dyn Fn(ActionRow) -> Option<ActionRow>| -> bool {
            let Some(known) = numbers.get(id).and_then(|number| ledger.get_mut(number)) else { return false };
            let changed = change(known.row);
            known.row = changed.unwrap_or(known.row);
            changed.is_some()
        };
        match effect {
            Effect::Begin(id) => change(id, &|row| row.begin(if fenced { owner } else { row.owner }, wall)),
            Effect::Postpone(id) => change(id, &|row| row.postpone(owner)),
            Effect::Finish(ends) => {
                for (id, end) in ends {
                    change(id, &|row| row.finish(owner, end.state));
                }
                true
            }
            Effect::LeaveOpen { id, outcome, .. } => self.leave_open(at, *id, outcome),
            Effect::Accept(ids) => self.accept(at, ids),
            _ => true,
        }
    }

    pub(super) fn accept(&mut self, at: usize, ids: &[DeliveryId]) -> bool {
        for id in ids {
            let (asked, claimed) = self.processes[at].arrived[id].clone();
            let number = self.keep(at, asked, claimed, None);
            self.processes[at].actions.insert(*id, number);
        }
        true
    }

    pub(super) fn keep(&mut self, at: usize, asked: Asked, claimed: Claimed, remark_on: Option<u64>) -> u64 {
        let number = self.ledger.last_key_value().map_or(1, |(last, _)| last + 1);
        let (row, received) = (ActionRow::accepted(self.processes[at].owner), self.now);
        let (forbidden, told_never, out) = (false, false, None);
        let known = Known { row, asked, claimed, received, remark_on, forbidden, out, told_never };
        self.ledger.insert(number, known);
        number
    }

    /// Nobody knows whether a message arrived: it ends, and something is said of it, in one
    /// commit. Whether it was its owner's to end.
    pub(super) fn leave_open(&mut self, at: usize, id: DeliveryId, outcome: &ActionOutcome) -> bool {
        let (owner, number) = (self.processes[at].owner, self.processes[at].actions[&id]);
        let known = self.ledger.get_mut(&number).unwrap();
        let Some(ended) = known.row.finish(owner, outcome.state) else { return false };
        if self.variant != Variant::RemarksFirst {
            known.row = ended;
        }
        let repeats = Repeats::always(known.asked.repeats.message);
        if self.variant != Variant::EndsFirst {
            let asked = Asked { edits: None, follow_up: false, repeats, in_doubt: None };
            self.keep(at, asked, Claimed::default(), Some(number));
        }
        true
    }

    /// The same, as its process hears of it.
    pub(super) fn left_open(&mut self, at: usize, id: DeliveryId, outcome: &ActionOutcome) -> Event {
        let number = self.processes[at].actions[&id];
        if !self.leave_open(at, id, outcome) {
            let ours = self.ledger[&number].row.owner == self.processes[at].owner;
            return if ours {
                Event::Finished { ids: vec![id], durable: true }
            } else {
                Event::Disowned(vec![id])
            };
        }
        // The broken ones make up for it, unless a crash comes first.
        let known = self.ledger.get_mut(&number).unwrap();
        known.row.state = outcome.state;
        let repeats = Repeats::always(known.asked.repeats.message);
        let asked = Asked { edits: None, follow_up: false, repeats, in_doubt: None };
        if self.variant == Variant::EndsFirst {
            self.keep(at, asked.clone(), Claimed::default(), Some(number));
        }
        let said = *self.ledger.last_key_value().unwrap().0;
        let process = &mut self.processes[at];
        process.numbers += 1;
        let remark = DeliveryId(process.numbers);
        process.actions.insert(remark, said);
        Event::Remarked { id, remark, asked }
    }
}
