//! The invariants of the outbound simulation: what must be true whatever happened.

use super::Violation;
use super::process::ChatKey;
use super::provider::Caller;
use super::store::Store;
use angelia_core::clock::Mono;
use angelia_core::egress::{ActionState, Owner, REMARK, Remark, SEND, remark_on};
use angelia_core::ports::ActionId;
use std::collections::{BTreeMap, BTreeSet};

/// What a gateway asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Unlike every other request; a repetition is a new one.
    pub(super) request: u64,
    /// What is said, the same in every repetition.
    pub(super) text: u64,
    /// The gateway's instance, and how many gateways it had before.
    pub(super) instance: usize,
    pub(super) generation: u32,
    pub(super) bot: usize,
    /// The action whose message it changes.
    pub(super) edits: Option<ActionId>,
    /// The message in doubt of which the connector says this.
    pub(super) remark_on: Option<ActionId>,
}

impl Asked {
    /// What its chat hears if nobody knows whether it arrived: some operators want the one,
    /// some the other.
    pub(super) fn in_doubt(self) -> Option<Remark> {
        let op = if self.remark_on.is_some() {
            REMARK
        } else if self.edits.is_some() {
            "edit"
        } else {
            SEND
        };
        remark_on(op, true, Remark::ALL[self.instance % Remark::ALL.len()])
    }
}

/// An action, as the database and the provider have it.
struct Known {
    asked: Asked,
    chat: ChatKey,
    owner: Owner,
    written: Option<Mono>,
    told_never: bool,
    /// Somebody who had lost it brought it to the provider.
    late: bool,
}

/// What was promised, and what came of it.
#[derive(Default)]
pub(super) struct Judge {
    /// Whether there is a fence to be past.
    fenced: bool,
    known: BTreeMap<ActionId, Known>,
    /// What may not have ended.
    open: BTreeSet<ActionId>,
    answered: BTreeSet<u64>,
    /// The last action of each chat that its owner called for.
    reached: BTreeMap<ChatKey, ActionId>,
    /// By which action each text was said.
    said: BTreeMap<u64, ActionId>,
    /// What was said of messages in doubt.
    remarks: BTreeMap<ActionId, ActionId>,
    /// What each message shows: the action that changed it last.
    shown: BTreeMap<(ChatKey, ActionId), ActionId>,
    /// How many gateways of each instance were revoked.
    revoked: BTreeMap<usize, u32>,
    violation: Option<Violation>,
}

impl Judge {
    pub(super) fn new(fenced: bool) -> Self {
        Self { fenced, ..Self::default() }
    }

    fn found(&mut self, violation: Violation) {
        self.violation.get_or_insert(violation);
    }

    /// What was wrong so far.
    pub(super) fn so_far(&self) -> Result<(), Violation> {
        self.violation.map_or(Ok(()), Err)
    }

    /// The ledger has it.
    pub(super) fn accepted(&mut self, id: ActionId, asked: Asked, chat: ChatKey, owner: Owner) {
        if let Some(message) = asked.remark_on
            && self.remarks.insert(message, id).is_some()
        {
            self.found(Violation::RemarkedTwice(message));
        }
        let known = Known { asked, chat, owner, written: None, told_never: false, late: false };
        self.known.insert(id, known);
        self.open.insert(id);
    }

    /// What `whose` left is `by`'s.
    pub(super) fn adopted(&mut self, by: Owner, whose: Owner) {
        for id in &self.open {
            if let Some(known) = self.known.get_mut(id)
                && known.owner == whose
            {
                known.owner = by;
            }
        }
    }

    /// Whose it is.
    pub(super) fn owner(&self, id: ActionId) -> Option<Owner> {
        self.known.get(&id).map(|known| known.owner)
    }

    /// The ledger let `by` begin it.
    pub(super) fn begun(&mut self, by: Owner, id: ActionId) {
        if self.fenced && self.owner(id) != Some(by) {
            self.found(Violation::PastTheFence(id));
        }
    }

    /// The ledger let `by` finish it.
    pub(super) fn finished(&mut self, by: Owner, id: ActionId) {
        if self.open.remove(&id) {
            self.begun(by, id);
        }
    }

    pub(super) fn revoke(&mut self, instance: usize) {
        *self.revoked.entry(instance).or_default() += 1;
    }

    /// Whether that gateway was revoked. Durable, this is what nodes ask for, too.
    pub(super) fn is_revoked(&self, instance: usize, generation: u32) -> bool {
        self.revoked.get(&instance).is_some_and(|revoked| generation < *revoked)
    }

    /// A provider is called.
    pub(super) fn called(&mut self, caller: Caller) {
        let Some(known) = self.known.get(&caller.action) else { return };
        if self.is_revoked(known.asked.instance, known.asked.generation) {
            return self.found(Violation::Revoked(caller.action));
        }
        // One who was replaced may still call for what had been begun, or needs no note.
        if known.owner != caller.owner {
            return;
        }
        // What is said of a message has its place.
        let place = known.asked.remark_on.unwrap_or(caller.action);
        let reached = self.reached.entry(caller.chat).or_insert(place);
        let before = *reached;
        *reached = before.max(place);
        if before > place {
            self.found(Violation::OutOfOrder(before, caller.action));
        }
    }

    /// When the provider got it first, if it has it, and whether it is an edit.
    pub(super) fn written(&self, id: ActionId) -> Option<(Mono, bool)> {
        let known = self.known.get(&id)?;
        known.written.map(|at| (at, known.asked.edits.is_some()))
    }

    /// The provider takes a call, which it recognises or not.
    pub(super) fn arrived(&mut self, caller: Caller, recognised: bool, now: Mono) {
        let id = caller.action;
        let Some(known) = self.known.get_mut(&id) else { return };
        let again = known.written.is_some() && !recognised;
        known.written.get_or_insert(now);
        known.late |= known.owner != caller.owner;
        let (asked, told_never, chat, late) = (known.asked, known.told_never, known.chat, known.late);
        if let Some(message) = asked.edits {
            // Late ones are not held back by anything.
            let shown = self.shown.entry((chat, message)).or_insert(id);
            *shown = if late { (*shown).max(id) } else { id };
        } else if again || (asked.remark_on.is_none() && *self.said.entry(asked.text).or_insert(id) != id) {
            return self.found(Violation::SaidTwice(id));
        }
        if told_never {
            self.found(Violation::ToldNever(id));
        }
    }

    /// A request is answered; `never` if with that it was never sent and will not be.
    pub(super) fn answered(&mut self, request: u64, id: Option<ActionId>, never: bool) {
        if !self.answered.insert(request) {
            return self.found(Violation::AnsweredTwice(request));
        }
        let Some((id, known)) = id.and_then(|id| Some((id, self.known.get_mut(&id)?))) else { return };
        known.told_never |= never;
        if never && known.written.is_some() {
            self.found(Violation::ToldNever(id));
        }
    }

    /// A node has nothing more to do with a request.
    pub(super) fn ended(&mut self, request: u64) {
        if !self.answered.contains(&request) {
            self.found(Violation::Silent(request));
        }
    }

    /// Whether everything ended.
    pub(super) fn is_over(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether everything that was accepted ended, and as the ledger says.
    pub(super) fn verdict(&mut self, store: &Store) -> Result<(), Violation> {
        self.so_far()?;
        let mut last = BTreeMap::new();
        for (id, known) in &self.known {
            let Some(outcome) = store.outcome(*id) else { return Err(Violation::Lost(*id)) };
            let is_there = known.written.is_some();
            let untrue = match outcome.state {
                ActionState::Sent => !is_there,
                ActionState::Failed => is_there && !known.late,
                _ => false,
            };
            if untrue {
                return Err(Violation::Untrue(*id));
            }
            let may_write = !self.is_revoked(known.asked.instance, known.asked.generation);
            let in_doubt = outcome.state == ActionState::Ambiguous && known.asked.in_doubt().is_some();
            if in_doubt && may_write && !self.remarks.contains_key(id) {
                return Err(Violation::PassedOver(*id));
            }
            if let (Some(message), ActionState::Sent) = (known.asked.edits, outcome.state) {
                last.insert((known.chat, message), *id);
            }
        }
        let old = last.iter().find(|(message, id)| self.shown.get(message) < Some(id));
        old.map_or(Ok(()), |(_, id)| Err(Violation::OldText(*id)))
    }
}
