//! One bot's calls, shared by its tenants.
//!
//! A provider counts the calls of a bot, whoever they are for. A tenant that
//! floods must not use up what the others need, and what the others do not
//! need must not be wasted.

use crate::clock::Mono;
use crate::limit::{Gcra, Rate};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The part of a window's calls after which a tenant stands back: four tenants
/// that flood at once still get through a window each.
const SHARE: u32 = 4;

/// A place in the line for one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// What a tenant may take of a window before it stands back.
fn share(rate: Rate) -> u32 {
    (rate.calls / SHARE).max(1)
}

/// The calls of one bot: a rate, and who is next.
///
/// While others wait, tenants that took a quarter of the last window stand
/// back behind those that did not. Within each of the two groups tenants take
/// turns, and a tenant's own calls stay in their order.
#[derive(Clone, Debug)]
pub struct Budget {
    rate: Rate,
    calls: Gcra,
    /// The last moment that was looked at.
    now: Mono,
    /// The provider wants no call before.
    paused_until: Option<Mono>,
    /// Calls granted and neither made nor given back.
    granted: u32,
    /// Calls made in the last window, oldest first; at most a window's and a burst's.
    made: VecDeque<(Mono, Arc<str>)>,
    /// Calls granted or made, by tenant.
    taken: HashMap<Arc<str>, u32>,
    waiting: HashMap<Arc<str>, VecDeque<Ticket>>,
    /// Tenants that wait, the one that waits longest for its turn first.
    turns: VecDeque<Arc<str>>,
    tickets: u64,
}

impl Budget {
    /// Nothing was called yet.
    pub fn new(rate: Rate, now: Mono) -> Self {
        Self {
            rate,
            calls: Gcra::default(),
            now,
            paused_until: None,
            granted: 0,
            made: VecDeque::new(),
            taken: HashMap::new(),
            waiting: HashMap::new(),
            turns: VecDeque::new(),
            tickets: 0,
        }
    }

    /// Another node made the calls until now: as many as there may have been.
    pub fn take_over(&mut self, now: Mono) {
        self.calls = Gcra::default();
        self.calls.note(self.rate, self.rate.burst, now);
    }

    /// Gets in line for one call.
    pub fn join(&mut self, tenant: &str) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        match self.waiting.get_mut(tenant) {
            Some(line) => line.push_back(ticket),
            None => {
                let tenant: Arc<str> = tenant.into();
                self.turns.push_back(tenant.clone());
                self.waiting.insert(tenant, VecDeque::from([ticket]));
            }
        }
        ticket
    }

    /// Gets out of the line; `false` if the ticket is not in it any more.
    pub fn leave(&mut self, tenant: &str, ticket: Ticket) -> bool {
        let Some(line) = self.waiting.get_mut(tenant) else { return false };
        let Some(position) = line.iter().position(|waits| *waits == ticket) else { return false };
        line.remove(position);
        if line.is_empty() {
            self.waiting.remove(tenant);
            self.turns.retain(|waits| &**waits != tenant);
        }
        true
    }

    /// The next call, if there may be one now. It is either made or given back.
    pub fn grant(&mut self, now: Mono) -> Option<Ticket> {
        self.count(now);
        if !self.is_earned() || self.is_paused(now) {
            return None;
        }
        let tenant = self.turns.remove(self.next_turn()?)?;
        let line = self.waiting.get_mut(&tenant)?;
        let ticket = line.pop_front()?;
        if line.is_empty() {
            self.waiting.remove(&tenant);
        } else {
            self.turns.push_back(tenant.clone());
        }
        self.granted += 1;
        *self.taken.entry(tenant).or_default() += 1;
        Some(ticket)
    }

    /// A granted call is made now.
    pub fn made(&mut self, tenant: &str, now: Mono) {
        self.count(now);
        self.granted = self.granted.saturating_sub(1);
        self.calls.note(self.rate, 1, now);
        self.made.push_back((now, tenant.into()));
    }

    /// A granted call is not made.
    pub fn give_back(&mut self, tenant: &str) {
        self.granted = self.granted.saturating_sub(1);
        self.forget(tenant);
    }

    /// Makes a call at once if nobody waits for it; `false` if there is none to spare.
    pub fn spare(&mut self, tenant: &str, now: Mono) -> bool {
        self.count(now);
        let spare = self.turns.is_empty() && self.is_earned() && !self.is_paused(now);
        if spare {
            self.granted += 1;
            *self.taken.entry(tenant.into()).or_default() += 1;
            self.made(tenant, now);
        }
        spare
    }

    /// When the next call may be granted, if anybody waits for one.
    pub fn next_at(&self) -> Option<Mono> {
        let earned = self.earned_at();
        (!self.turns.is_empty()).then(|| self.paused_until.map_or(earned, |until| until.max(earned)))
    }

    /// The provider wants no call of this bot before `until`.
    pub fn pause(&mut self, until: Mono) {
        self.paused_until = Some(self.paused_until.map_or(until, |before| before.max(until)));
    }

    fn is_paused(&self, now: Mono) -> bool {
        self.paused_until.is_some_and(|until| now < until)
    }

    /// When there may be one call more than was granted.
    fn earned_at(&self) -> Mono {
        self.calls.ready_at(self.rate, self.granted + 1, self.now)
    }

    fn is_earned(&self) -> bool {
        self.earned_at() <= self.now
    }

    /// Whose turn it is: of those that took less than their share the first,
    /// else the first of all.
    fn next_turn(&self) -> Option<usize> {
        let share = share(self.rate);
        let modest = |tenant: &Arc<str>| self.taken.get(tenant).is_none_or(|taken| *taken < share);
        let first = (!self.turns.is_empty()).then_some(0);
        self.turns.iter().position(modest).or(first)
    }

    /// Lets time pass: old calls leave the window.
    fn count(&mut self, now: Mono) {
        self.now = self.now.max(now);
        while let Some((at, _)) = self.made.front()
            && now.since(*at) >= self.rate.per
            && let Some((_, tenant)) = self.made.pop_front()
        {
            self.forget(&tenant);
        }
    }

    fn forget(&mut self, tenant: &str) {
        if let Some(taken) = self.taken.get_mut(tenant) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(tenant);
            }
        }
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
