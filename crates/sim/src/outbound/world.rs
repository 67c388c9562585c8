//! Nodes, gateways and providers, and what happens to them next.

use super::gateway::Gateway;
use super::judge::{Asked, Judge};
use super::process::{ChatKey, Process, entry, permission};
use super::provider::{CORRECTED_BY, Provider};
use super::store::Store;
use super::{Variant, Violation};
use crate::dice::Dice;
use crate::trace::Trace;
use angelia_core::clock::Mono;
use angelia_core::egress::Owner;
use angelia_core::egress::delivery::{ActionAnswer, Permission};
use angelia_core::ports::{ActionId, ActionOutcome, LeftOpen};
use std::time::Duration;

const NODES: usize = 3;
const INSTANCES: usize = 4;

/// What all nodes share.
pub(super) struct Outside {
    pub(super) dice: Dice,
    pub(super) now: Mono,
    pub(super) store: Store,
    pub(super) provider: Provider,
    /// Requests on their way to the node that holds their bot.
    pub(super) forwarded: Vec<(usize, Asked)>,
    /// Answers on their way to gateways.
    pub(super) answers: Vec<(Asked, ActionAnswer)>,
    pub(super) judge: Judge,
    pub(super) variant: Variant,
    pub(super) events: u64,
    pub(super) trace: Trace,
    faulty: bool,
}

impl Outside {
    pub(super) fn trace(&mut self, line: impl FnOnce() -> String) {
        let at = self.now.0.as_secs_f32();
        self.trace.tell(|| format!("{at:9.1}  {}", line()));
    }

    /// Whether a call is permitted.
    pub(super) fn permission(&mut self) -> Permission {
        if self.faulty { permission(self.dice.below(100)) } else { Permission::Granted }
    }

    /// Has the ledger told how actions ended; answers those it does not want to hear of.
    pub(super) fn finish(
        &mut self,
        by: Owner,
        ends: Vec<(ActionId, ActionOutcome)>,
    ) -> Option<Vec<ActionId>> {
        let ids: Vec<ActionId> = ends.iter().map(|(id, _)| *id).collect();
        let others = self.store.finish(by, ends);
        for id in ids {
            if let Some(outcome) = self.store.outcome(id) {
                self.judge.finished(by, id);
                self.trace(|| format!("action {} is {}", id.0, outcome.state.as_str()));
            }
        }
        others
    }

    /// Has the ledger told that nobody knows whether a message arrived, and what is said of it.
    pub(super) fn leave_open(
        &mut self,
        by: Owner,
        (id, outcome): (ActionId, ActionOutcome),
        (remark, chat): (Asked, ChatKey),
    ) -> Option<LeftOpen> {
        let new = entry(remark, self.store.wall());
        let left = if self.variant == Variant::RemarkApart {
            let others = self.store.finish(by, vec![(id, outcome)])?;
            let said = others.is_empty().then(|| self.store.accept(by, vec![new]));
            said.map_or(Some(LeftOpen::NotOurs), |said| said.map(|said| LeftOpen::Remarked(said[0].id)))
        } else {
            self.store.leave_open(by, (id, outcome), new)
        };
        if self.store.outcome(id).is_some() {
            self.judge.finished(by, id);
        }
        if let Some(LeftOpen::Remarked(said)) = left {
            self.judge.accepted(said, remark, chat, by);
            self.trace(|| format!("action {} is in doubt, and action {} says so", id.0, said.0));
        }
        left
    }

    /// A request that goes no further.
    fn refuse(&mut self, asked: Asked) {
        self.judge.answered(asked.request, None, true);
        self.answers.push((asked, ActionAnswer::NeverSent("nobody is there to send it".into())));
    }
}

/// A machine, with a process or without.
struct Node {
    process: Option<Process>,
    /// Until when it stands still.
    paused: Mono,
}

/// Everything.
pub(super) struct World {
    nodes: Vec<Node>,
    gateways: Vec<Gateway>,
    pub(super) outside: Outside,
    /// Numbers that requests and texts were given.
    numbers: u64,
}

impl World {
    pub(super) fn new(seed: u64, variant: Variant, traced: bool) -> Self {
        let now = Mono(Duration::from_secs(1));
        let outside = Outside {
            dice: Dice::new(seed),
            now,
            store: Store::new(!seed, now),
            provider: Provider::default(),
            forwarded: Vec::new(),
            answers: Vec::new(),
            judge: Judge::new(variant != Variant::ResumeEverything),
            variant,
            events: 0,
            trace: Trace::new(traced),
            faulty: true,
        };
        let nodes = (0..NODES).map(|_| Node { process: None, paused: now }).collect();
        let gateways = (0..INSTANCES).map(|_| Gateway::default()).collect();
        Self { nodes, gateways, outside, numbers: 0 }
    }

    /// Lets so many things happen, and then everything settle.
    pub(super) fn run(&mut self, steps: usize) -> Result<u64, Violation> {
        for _ in 0..steps {
            self.step();
            self.outside.judge.so_far()?;
        }
        self.settle_down()?;
        Ok(self.outside.events)
    }

    /// Lets one thing happen.
    fn step(&mut self) {
        match self.outside.dice.below(100) {
            0..10 => self.gateway_asks(),
            10..66 => self.node_works(),
            66..75 => self.provider_receives(),
            75..86 => self.node_hears(),
            86..89 => self.request_arrives(),
            89..92 => self.gateway_hears(),
            92..96 => self.time_passes(),
            96..98 => self.gateway_dials(),
            98 => self.node_starts(),
            _ if self.outside.faulty && self.outside.dice.percent(40) => self.fault(),
            _ => self.time_passes(),
        }
    }

    fn node(&mut self) -> usize {
        self.outside.dice.below(NODES)
    }

    fn instance(&mut self) -> usize {
        self.outside.dice.below(INSTANCES)
    }

    /// The process of a node, if there is one and it does not stand still.
    fn awake(&mut self, node: usize) -> Option<(&mut Process, &mut Outside)> {
        let it = &mut self.nodes[node];
        let process = it.process.as_mut().filter(|_| it.paused <= self.outside.now)?;
        Some((process, &mut self.outside))
    }

    /// A gateway sends a request to the node it is connected to, which passes it on
    /// to the one that holds the bot.
    fn gateway_asks(&mut self) {
        let instance = self.instance();
        let Some((node, _)) = self.gateways[instance].socket else { return };
        if self.awake(node).is_none() {
            return;
        }
        let (anew, outside) = (self.outside.faulty, &mut self.outside);
        let asked = self.gateways[instance].ask(instance, &mut self.numbers, &mut outside.dice, anew);
        let Some(asked) = asked else { return };
        outside.trace(|| format!("gateway {instance} asks at node {node}: {asked:?}"));
        let typing = outside.dice.percent(5);
        let Some((process, outside)) = self.awake(node) else { return };
        if process.holds[asked.bot] {
            if typing {
                process.typing(asked, outside);
            }
            return process.arrived(asked, outside);
        }
        match outside.store.members.holder(asked.bot) {
            Some(holder) => outside.forwarded.push((holder, asked)),
            None => outside.refuse(asked),
        }
    }

    /// A request arrives at the node it was passed on to, or never.
    fn request_arrives(&mut self) {
        let at = self.outside.dice.below(self.outside.forwarded.len().max(1));
        let Some((node, asked)) = self.outside.forwarded.get(at).copied() else { return };
        let lost = self.outside.faulty && self.outside.dice.percent(5);
        let revoked = self.outside.judge.is_revoked(asked.instance, asked.generation);
        let Some((process, outside)) = self.awake(node) else { return };
        outside.forwarded.swap_remove(at);
        if lost || revoked {
            return;
        }
        if process.holds[asked.bot] {
            return process.arrived(asked, outside);
        }
        outside.refuse(asked);
    }

    /// A node does one of the things it has to do.
    fn node_works(&mut self) {
        let first = self.node();
        let busy = (first..first + NODES).map(|node| node % NODES).find(|node| self.is_busy(*node));
        let Some(node) = busy else { return };
        let Some((process, outside)) = self.awake(node) else { return };
        let job = outside.dice.below(process.jobs.len());
        process.perform(job, outside);
        let stopped = process.stopping && process.is_idle();
        if stopped {
            outside.store.members.leave(process.member, outside.now);
        }
        if process.replaced || stopped {
            self.end(node);
        }
    }

    fn is_busy(&self, node: usize) -> bool {
        let Node { process, paused } = &self.nodes[node];
        *paused <= self.outside.now && process.as_ref().is_some_and(|process| !process.jobs.is_empty())
    }

    fn provider_receives(&mut self) {
        let Outside { dice, now, provider, judge, faulty, .. } = &mut self.outside;
        let received = provider.receive(dice, *faulty, *now, judge);
        if let Some(caller) = received {
            let heard = self.outside.provider.replies.last().map(|(_, heard)| format!("{heard:?}"));
            self.outside.trace(|| format!("the provider gets action {}: {heard:?}", caller.action.0));
        }
    }

    fn node_hears(&mut self) {
        let Outside { dice, provider, .. } = &mut self.outside;
        let Some((caller, heard)) = provider.reply(dice) else { return };
        match self.awake(caller.node) {
            Some((process, outside)) if process.member == caller.member => {
                process.heard(caller, heard, outside);
            }
            Some(_) => {}
            None => self.outside.provider.replies.insert(0, (caller, heard)),
        }
    }

    fn gateway_hears(&mut self) {
        let Some((asked, answer)) = self.outside.dice.take(&mut self.outside.answers) else { return };
        let lost = self.outside.faulty && self.outside.dice.percent(5);
        let gateway = &mut self.gateways[asked.instance];
        if !lost && gateway.generation == asked.generation {
            gateway.hears(asked.request, &answer);
        }
    }

    fn time_passes(&mut self) {
        let passed = Duration::from_millis(self.outside.dice.below(2_000) as u64);
        self.outside.now = self.outside.now + passed;
        self.outside.store.at(self.outside.now);
        self.outside.provider.time_out(self.outside.now);
        for node in 0..NODES {
            if let Some((process, outside)) = self.awake(node) {
                process.look(outside);
                process.time(outside);
            }
        }
    }

    /// A gateway without a socket dials; one with a socket may do so again, elsewhere.
    fn gateway_dials(&mut self) {
        let (instance, node) = (self.instance(), self.node());
        let moves = self.outside.faulty && self.outside.dice.percent(10);
        let connected =
            self.gateways[instance].socket.is_some_and(|(node, member)| self.is_there(node, member));
        let Some((process, _)) = self.awake(node) else { return };
        let socket = Some((node, process.member));
        if !connected || moves {
            let gateway = &mut self.gateways[instance];
            gateway.hangs_up();
            gateway.socket = socket;
        }
    }

    fn is_there(&self, node: usize, member: u64) -> bool {
        self.nodes[node].process.as_ref().is_some_and(|process| process.member == member)
    }

    fn node_starts(&mut self) {
        let node = self.node();
        if self.nodes[node].process.is_none() && self.nodes[node].paused <= self.outside.now {
            self.nodes[node].process = Some(Process::start(node, &mut self.outside));
        }
    }

    fn end(&mut self, node: usize) {
        if let Some(process) = self.nodes[node].process.take() {
            process.crash(&mut self.outside);
        }
    }

    fn fault(&mut self) {
        let node = self.node();
        let now = self.outside.now;
        match self.outside.dice.below(100) {
            0..30 => self.end(node),
            // It stands still for a moment, or for longer than anybody waits.
            30..65 => {
                let pause = [2, 10, 40, 60, 200][self.outside.dice.below(5)];
                self.outside.trace(|| format!("node {node} stands still for {pause} s"));
                self.nodes[node].paused = now + Duration::from_secs(pause);
            }
            65..75 => {
                if let Some((process, outside)) = self.awake(node) {
                    outside.trace(|| format!("node {node} is to stop"));
                    process.stop(outside);
                }
            }
            75..80 => {
                let instance = self.instance();
                self.outside.trace(|| format!("the gateway of {instance} is revoked"));
                self.outside.judge.revoke(instance);
                self.gateways[instance].replaced();
            }
            80..92 => self.set_clock(),
            _ => {
                // A minute in which little happens.
                self.outside.now = now + Duration::from_secs(60);
                self.time_passes();
            }
        }
    }

    /// Somebody sets the wall clock: by a moment, by minutes, by days, or right again.
    fn set_clock(&mut self) {
        let second = 1_000;
        let corrected = CORRECTED_BY.as_millis() as i64;
        let small = self.outside.dice.below(2 * CORRECTED_BY.as_millis() as usize) as i64 - corrected;
        let off = match self.outside.dice.below(8) {
            0 => small - 3 * 24 * 3_600 * second,
            1 => small + 24 * 3_600 * second,
            2 => small - 8 * 60 * second,
            3 => small + 8 * 60 * second,
            _ => small,
        };
        self.outside.trace(|| format!("the wall clock is set {off} ms off"));
        self.outside.store.set_clock(off, self.outside.now);
    }

    /// Nothing fails any more: whatever was accepted has to end.
    fn settle_down(&mut self) -> Result<(), Violation> {
        /// Steps that are far more than enough for what can be waiting.
        const PATIENCE: usize = 400_000;
        self.outside.trace(|| "nothing fails any more".to_owned());
        self.outside.faulty = false;
        self.outside.store.heal();
        self.nodes.iter_mut().for_each(|node| node.paused = self.outside.now);
        for _ in 0..PATIENCE {
            if self.outside.judge.is_over() {
                break;
            }
            self.step();
            self.outside.judge.so_far()?;
        }
        self.outside.judge.verdict(&self.outside.store)
    }
}
