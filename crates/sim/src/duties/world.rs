//! Nodes and what happens to them next.

use super::node::{Flight, Process, Work};
use super::store::{BOTS, Store, lease_of};
use super::{Variant, Violation};
use crate::dice::Dice;
use crate::trace::Trace;
use angelia_core::clock::Mono;
use angelia_core::cluster::BEAT_EVERY;
use std::time::Duration;

const NODES: usize = 4;
/// How long everything is well before it is judged: longer than leases need to be shared out.
const SETTLES_FOR: Duration = Duration::from_secs(420);
/// How much time passes with each thing that happens, at the most.
const TICK: usize = 60;

/// Everything.
pub(crate) struct World {
    dice: Dice,
    now: Mono,
    store: Store,
    /// Until when the store does nothing.
    outage: Mono,
    nodes: Vec<Option<Process>>,
    names: u64,
    variant: Variant,
    faulty: bool,
    events: u64,
    pub(crate) trace: Trace,
}

impl World {
    pub(crate) fn new(seed: u64, variant: Variant, traced: bool) -> Self {
        Self {
            dice: Dice::new(seed),
            now: Mono(Duration::from_secs(1)),
            store: Store::new(variant),
            outage: Mono::default(),
            nodes: (0..NODES).map(|_| None).collect(),
            names: 0,
            variant,
            faulty: true,
            events: 0,
            trace: Trace::new(traced),
        }
    }

    /// Lets so many things happen, and then everything settle.
    pub(crate) fn run(&mut self, steps: usize) -> Result<u64, Violation> {
        for _ in 0..steps {
            self.step()?;
        }
        self.faulty = false;
        self.outage = self.now;
        let ends = self.now + SETTLES_FOR;
        let mut before = [0; BOTS];
        while self.now < ends {
            if self.now.since(ends.before(Duration::from_secs(10))).is_zero() {
                (0..BOTS).for_each(|bot| before[bot] = self.store.position(bot));
            }
            self.step()?;
        }
        self.verdict(before)?;
        Ok(self.events)
    }

    fn step(&mut self) -> Result<(), Violation> {
        self.now = self.now + Duration::from_millis(self.dice.below(TICK) as u64);
        self.store.set_clock(self.now);
        let at = self.dice.below(NODES);
        match self.dice.below(1_000) {
            0..12 if self.faulty => self.fault(at),
            0..40 => self.start(at),
            _ => self.node_goes_on(at)?,
        }
        self.events += 1;
        self.one_holder_each()
    }

    /// The law: by what each of them knows, and its clock, a bot is one node's at most. One that
    /// stands still counts: it goes on with what it takes for true.
    fn one_holder_each(&self) -> Result<(), Violation> {
        for bot in 0..BOTS {
            let processes = self.nodes.iter().flatten();
            let holders = processes.filter(|it| it.holds(bot, self.now, self.variant).is_some());
            if holders.count() > 1 {
                return Err(Violation::TwoHolders(bot));
            }
        }
        Ok(())
    }

    fn start(&mut self, at: usize) {
        if self.nodes[at].is_none() {
            self.names += 1;
            let name = format!("n{}", self.names);
            self.trace.tell(|| format!("{:?} {name} starts", self.now.0));
            self.nodes[at] = Some(Process::new(name, self.now));
        }
    }

    fn fault(&mut self, at: usize) {
        let long = Duration::from_millis(self.dice.below(12_000) as u64);
        let now = self.now;
        match self.dice.below(10) {
            0 => {
                self.trace.tell(|| format!("{:?} node {at} dies", now.0));
                self.nodes[at] = None;
            }
            1 | 2 => {
                self.trace.tell(|| format!("{:?} node {at} is told to leave", now.0));
                if let Some(node) = &mut self.nodes[at] {
                    node.leaving = true;
                    node.duties.leave();
                }
            }
            3 => {
                self.trace.tell(|| format!("{:?} the store is gone for {long:?}", now.0));
                self.outage = now + long;
            }
            _ => {
                self.trace.tell(|| format!("{:?} node {at} stands still for {long:?}", now.0));
                if let Some(node) = &mut self.nodes[at] {
                    node.paused = now + long;
                }
            }
        }
    }

    /// A node does the next thing it has to do.
    fn node_goes_on(&mut self, at: usize) -> Result<(), Violation> {
        let Some(mut node) = self.nodes[at].take() else { return Ok(()) };
        if node.paused > self.now {
            // What is on its way to the store gets there all the same.
            self.fly(&mut node, false);
            self.nodes[at] = Some(node);
            return Ok(());
        }
        node.duties.pass_time(self.now);
        self.fly(&mut node, true);
        self.give_sign(&mut node);
        for bot in 0..BOTS {
            self.work(&mut node, bot)?;
        }
        if node.leaving && !node.duties.is_at_work() && node.duties.to_give_back().is_empty() {
            if self.now >= self.outage {
                self.store.leave(&node.name);
            }
            return Ok(());
        }
        self.nodes[at] = Some(node);
        Ok(())
    }

    /// A sign of life goes on its way.
    fn fly(&mut self, node: &mut Process, awake: bool) {
        let Some(flight) = node.flight.take_if(|flight| flight.at() <= self.now) else { return };
        match flight {
            Flight::There { sign, began, fails, .. } => {
                let lost = self.faulty && self.dice.percent(3);
                let beat = if fails || self.now < self.outage { None } else { self.store.beat(sign) };
                let beat = beat.filter(|_| !lost).map(Box::new);
                let at = self.now + self.delay();
                node.flight = Some(Flight::Back { beat, began, at });
            }
            back @ Flight::Back { .. } if !awake => node.flight = Some(back),
            Flight::Back { beat: Some(beat), began, .. } => {
                let from = if self.variant == Variant::LateTerm { self.now } else { began };
                node.duties.learn(&beat, from);
            }
            Flight::Back { beat: None, .. } => {}
        }
    }

    fn delay(&mut self) -> Duration {
        let most = if self.faulty && self.dice.percent(4) { 5_000 } else { 80 };
        Duration::from_millis(self.dice.below(most) as u64)
    }

    fn give_sign(&mut self, node: &mut Process) {
        if node.flight.is_some() || node.next_sign > self.now {
            return;
        }
        node.next_sign = self.now + BEAT_EVERY;
        if self.now >= self.outage {
            for lease in node.duties.to_give_back() {
                self.store.release(&lease);
                node.duties.gave_back(&lease.name);
            }
        }
        let fails = self.faulty && self.dice.percent(3);
        let at = self.now + self.delay();
        node.flight = Some(Flight::There { sign: node.sign(self.now), began: self.now, at, fails });
    }

    /// Goes on with one bot.
    fn work(&mut self, node: &mut Process, bot: usize) -> Result<(), Violation> {
        let name = lease_of(bot);
        let work = node.work[bot].take();
        let over = node.duties.is_over(&name, self.now);
        node.work[bot] = match work {
            None => match node.duties.begin(&name, self.now) {
                Some(token) => Some(Work::Reading { token, next: self.store.position(bot) }),
                None => None,
            },
            // It stops in its own time.
            Some(Work::Reading { .. } | Work::Broken) if over => {
                if self.dice.percent(50) {
                    node.duties.stopped(&name);
                    None
                } else {
                    Some(Work::Broken)
                }
            }
            Some(Work::Reading { token, next }) if self.dice.percent(40) => {
                let at = self.now + self.delay();
                Some(Work::TakingIn { token, item: next, at })
            }
            Some(Work::TakingIn { token, item, at }) if at <= self.now => {
                let taken = self.now >= self.outage && self.store.take_in(bot, token, item)?;
                let told = !self.faulty || !self.dice.percent(2);
                Some(match (taken, told) {
                    (true, true) => Work::Reading { token, next: item + 1 },
                    // What became of it is looked up, as at a beginning.
                    (true, false) => Work::Reading { token, next: self.store.position(bot) },
                    (false, _) if self.now < self.outage => {
                        Work::TakingIn { token, item, at: self.now + self.delay() }
                    }
                    (false, _) => Work::Broken,
                })
            }
            other => other,
        };
        Ok(())
    }

    /// What must be true once everything was well for a while.
    fn verdict(&self, before: [u64; BOTS]) -> Result<(), Violation> {
        for (bot, before) in before.into_iter().enumerate() {
            if self.store.position(bot) <= before {
                return Err(Violation::Unread(bot));
            }
        }
        let held = |node: &Process| {
            (0..BOTS).filter(|bot| node.holds(*bot, self.now, self.variant).is_some()).count()
        };
        let counts: Vec<usize> = self.nodes.iter().flatten().map(held).collect();
        let (most, least) = (counts.iter().max(), counts.iter().min());
        match most.zip(least) {
            Some((most, least)) if most > &(least + 1) => Err(Violation::Uneven),
            _ => Ok(()),
        }
    }
}
