//! The database all nodes share: the ledger, the members, and a wall clock that is
//! set back and forth. Commits fail, and the answers of some get lost.

use super::members::{MemberId, Members};
use crate::dice::Dice;
use angelia_core::clock::{Age, ClockState, Mono, UnixMillis};
use angelia_core::egress::Owner;
use angelia_core::ports::{Accepted, ActionId, ActionOutcome, Ledger, LeftOpen, NewAction, StoredAction};
use angelia_engines::memory::MemoryLedger;
use futures_util::FutureExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Where the wall clock begins.
const BEGINNING: i64 = 1_800_000_000_000;

/// The shared database.
pub(super) struct Store {
    ledger: MemoryLedger,
    pub(super) members: Members,
    dice: Dice,
    /// How many of a hundred commits fail, and of how many the answer is lost.
    faults: usize,
    wall: Arc<AtomicI64>,
    /// How far the wall clock is off.
    off: i64,
    clock: ClockState,
    looked: Mono,
}

impl Store {
    pub(super) fn new(seed: u64, now: Mono) -> Self {
        let wall = Arc::new(AtomicI64::new(BEGINNING));
        let read = wall.clone();
        Self {
            ledger: MemoryLedger::new(move || UnixMillis(read.load(Ordering::Relaxed))),
            members: Members::default(),
            dice: Dice::new(seed),
            faults: 3,
            wall,
            off: 0,
            clock: ClockState::first(UnixMillis(BEGINNING), None),
            looked: now,
        }
    }

    /// From now on every commit succeeds.
    pub(super) fn heal(&mut self) {
        self.faults = 0;
    }

    /// Time passed.
    pub(super) fn at(&mut self, now: Mono) {
        let wall = BEGINNING + i64::try_from(now.0.as_millis()).unwrap_or(i64::MAX) + self.off;
        self.wall.store(wall, Ordering::Relaxed);
        self.clock.look(UnixMillis(wall), now.since(self.looked));
        self.looked = now;
    }

    /// Somebody sets the wall clock: by a moment, or by days.
    pub(super) fn set_clock(&mut self, off: i64, now: Mono) {
        self.off = off;
        self.at(now);
    }

    pub(super) fn wall(&self) -> UnixMillis {
        UnixMillis(self.wall.load(Ordering::Relaxed))
    }

    /// How long ago something was stored, as far as that is known.
    pub(super) fn age(&self, stamp: UnixMillis) -> Age {
        self.clock.age(stamp, self.clock.seen())
    }

    /// Commits, or fails, or commits and nobody learns of it.
    fn commit<T>(&mut self, make: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.dice.percent(self.faults) {
            return None;
        }
        let made = make(self);
        if self.dice.percent(self.faults) { None } else { made }
    }

    /// What is not accepted is told to its agent as never sent: an error says that
    /// nothing was changed, and a commit that nobody learns of is no error.
    pub(super) fn accept(&mut self, by: Owner, actions: Vec<NewAction>) -> Option<Vec<Accepted>> {
        if self.dice.percent(self.faults) {
            return None;
        }
        self.ledger.accept(by, actions).now_or_never()?.ok()
    }

    pub(super) fn begin(&mut self, by: Owner, id: ActionId) -> Option<bool> {
        self.commit(|it| it.ledger.begin(by, id).now_or_never()?.ok())
    }

    pub(super) fn postpone(&mut self, by: Owner, id: ActionId) {
        self.commit(|it| it.ledger.postpone(by, id).now_or_never()?.ok());
    }

    pub(super) fn finish(
        &mut self,
        by: Owner,
        ends: Vec<(ActionId, ActionOutcome)>,
    ) -> Option<Vec<ActionId>> {
        self.commit(|it| it.ledger.finish(by, ends).now_or_never()?.ok())
    }

    /// As for what is accepted, a commit that nobody learns of is no error.
    pub(super) fn leave_open(
        &mut self,
        by: Owner,
        (id, outcome): (ActionId, ActionOutcome),
        remark: NewAction,
    ) -> Option<LeftOpen> {
        if self.dice.percent(self.faults) {
            return None;
        }
        self.ledger.leave_open(by, id, outcome, remark).now_or_never()?.ok()
    }

    pub(super) fn unfinished(
        &mut self,
        by: Owner,
        after: ActionId,
        limit: usize,
    ) -> Option<Vec<StoredAction>> {
        self.commit(|it| it.ledger.unfinished(by, after, limit).now_or_never()?.ok())
    }

    /// What is unfinished, whosoever it is, of everybody before `before`.
    pub(super) fn everything(&self, before: Owner) -> Vec<StoredAction> {
        let owners = (1..before.0).map(Owner);
        let found =
            owners.filter_map(|it| self.ledger.unfinished(it, ActionId(0), usize::MAX).now_or_never()?.ok());
        let mut found: Vec<StoredAction> = found.flatten().collect();
        found.sort_by_key(|stored| stored.id);
        found
    }

    /// `None` if the store does not tell.
    pub(super) fn body(&mut self, id: ActionId) -> Option<Option<Vec<u8>>> {
        self.commit(|it| it.ledger.body(id).now_or_never()?.ok())
    }

    /// A member works as somebody new, too.
    pub(super) fn new_owner(&mut self, member: MemberId) -> Option<Owner> {
        self.commit(|it| {
            let owner = it.ledger.new_owner().now_or_never()?.ok()?;
            it.members.works_as(member, owner).then_some(owner)
        })
    }

    /// Whether it was done and heard of; `done` tells whether it was done.
    pub(super) fn adopt(&mut self, by: Owner, whose: Owner, done: &mut bool) -> Option<()> {
        self.commit(|it| {
            it.ledger.adopt(by, Some(whose)).now_or_never()?.ok()?;
            *done = true;
            Some(())
        })
    }

    pub(super) fn renew(&mut self, member: MemberId, now: Mono) -> Option<bool> {
        self.commit(|it| Some(it.members.renew(member, now)))
    }

    /// See [`Members::inherit`].
    pub(super) fn inherit(&mut self, heir: MemberId, now: Mono) -> Option<Option<Vec<Owner>>> {
        self.commit(|it| Some(it.members.inherit(heir, now)))
    }

    pub(super) fn settled(&mut self, heir: MemberId, owners: &[Owner]) -> Option<()> {
        self.commit(|it| {
            it.members.settled(heir, owners);
            Some(())
        })
    }

    /// How an action ended; `None` if it has not.
    pub(super) fn outcome(&self, id: ActionId) -> Option<ActionOutcome> {
        self.ledger.outcome(id)
    }
}
