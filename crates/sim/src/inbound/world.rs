//! Nodes, gateways and people, and what happens to them next.

use super::judge::Judge;
use super::session::Session;
use super::store::{Hint, Store};
use super::{Variant, Violation};
use crate::dice::Dice;
use crate::trace::Trace;
use angelia_core::clock::{Mono, UnixMillis};
use angelia_core::inbox::{EntryKind, Epoch, InstanceId, Seq, WhenFull};
use angelia_core::ports::log::NewEntry;
use std::collections::BTreeMap;
use std::time::Duration;

const NODES: usize = 3;
const INSTANCES: i64 = 4;
const CHATS: usize = 3;
/// How often somebody looks at the logs of live sockets.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Which socket: its node and its number.
type SocketId = (usize, u64);

/// An agent's own half.
#[derive(Default)]
struct Gateway {
    socket: Option<SocketId>,
    /// Read and not acknowledged yet, in order.
    unacked: Vec<Seq>,
}

/// One process of the connector.
#[derive(Default)]
struct Node {
    sessions: BTreeMap<u64, Session>,
    /// Hints on their way here.
    hints: Vec<Hint>,
    /// Until when it stands still.
    paused: Mono,
    looked: Mono,
}

/// Everything.
pub(crate) struct World {
    dice: Dice,
    now: Mono,
    store: Store,
    nodes: Vec<Node>,
    gateways: BTreeMap<InstanceId, Gateway>,
    /// What people said that was not taken yet.
    unsaid: Vec<NewEntry>,
    said: u64,
    sockets: u64,
    epochs: BTreeMap<InstanceId, Epoch>,
    judge: Judge,
    variant: Variant,
    faulty: bool,
    /// What the machines were told so far.
    events: u64,
    pub(crate) trace: Trace,
}

impl World {
    pub(crate) fn new(seed: u64, variant: Variant, traced: bool) -> Self {
        let store = Store::new(!seed, variant);
        let instances = || (1..=INSTANCES).map(InstanceId);
        instances().for_each(|instance| store.add(instance));
        Self {
            dice: Dice::new(seed),
            now: Mono(Duration::from_secs(1)),
            store,
            nodes: (0..NODES).map(|_| Node::default()).collect(),
            gateways: instances().map(|instance| (instance, Gateway::default())).collect(),
            unsaid: Vec::new(),
            said: 0,
            sockets: 0,
            epochs: BTreeMap::new(),
            judge: Judge::default(),
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
        self.settle_down()?;
        Ok(self.events)
    }

    /// Lets one thing happen.
    fn step(&mut self) -> Result<(), Violation> {
        match self.dice.below(100) {
            0..12 => self.say(),
            12..30 => self.hint(),
            30..55 => self.log_answers()?,
            55..70 => self.gateway_reads()?,
            70..82 => self.gateway_acknowledges(),
            82..90 => self.node_hears(),
            90..94 => self.time_passes(),
            94..97 => self.gateway_dials(),
            _ if self.faulty => self.fault(),
            _ => self.time_passes(),
        }
        Ok(())
    }

    fn instance(&mut self) -> InstanceId {
        InstanceId(1 + self.dice.below(INSTANCES as usize) as i64)
    }

    /// Somebody writes, or repeats what was not taken.
    fn say(&mut self) {
        let new = match self.dice.take(&mut self.unsaid) {
            Some(again) => again,
            None if self.faulty => {
                self.said += 1;
                let (instance, chat) = (self.instance(), self.dice.below(CHATS));
                let ahead = self.dice.percent(10);
                let chat_id: std::sync::Arc<str> = format!("{}-{chat}", instance.0).into();
                NewEntry {
                    tenant: instance.0.to_string(),
                    instance,
                    kind: EntryKind::Message,
                    platform: "webchat".into(),
                    bot: "webchat".into(),
                    session_key: chat_id.clone(),
                    chat_id,
                    message_id: self.said.to_string(),
                    body: format!("{}:{ahead}", instance.0).into(),
                    ahead,
                    when_full: WhenFull::MakeRoom,
                    while_busy: None,
                    received_at: UnixMillis(0),
                }
            }
            None => return,
        };
        match self.store.append(new.clone()) {
            Some(seq) => {
                self.trace.tell(|| {
                    format!("{} is {} of instance {}", new.message_id, seq.buffer_id(), new.instance.0)
                });
                self.judge.accepted(&new, seq);
            }
            None => self.unsaid.push(new),
        }
        for hint in self.store.hints() {
            for node in &mut self.nodes {
                node.hints.push(hint.clone());
            }
        }
    }

    /// A hint arrives, in whatever order; or twice, or never.
    fn hint(&mut self) {
        let at = self.dice.below(NODES);
        if !self.is_awake(at) {
            return;
        }
        let Some(hint) = self.dice.take(&mut self.nodes[at].hints) else { return };
        if self.faulty && self.dice.percent(10) {
            return;
        }
        if self.faulty && self.dice.percent(10) {
            self.nodes[at].hints.push(hint.clone());
        }
        let gift = (!self.dice.percent(10)).then(|| hint.entry.clone());
        let (variant, now) = (self.variant, self.now);
        for session in self.nodes[at].sessions.values_mut().filter(|it| it.instance == hint.instance) {
            self.events += 1;
            self.trace.tell(|| format!("node {at} hears of {:?}", hint.mark));
            session.hint(hint.mark, gift.clone(), hint.ahead, variant);
            session.advance(now);
        }
    }

    fn is_awake(&self, node: usize) -> bool {
        self.nodes[node].paused <= self.now
    }

    /// The log does what some socket asked, or its answer arrives.
    fn log_answers(&mut self) -> Result<(), Violation> {
        let Some((node, number)) = self.any_session() else { return Ok(()) };
        let Some(session) = self.nodes[node].sessions.get_mut(&number) else { return Ok(()) };
        if session.jobs.is_empty() {
            return Ok(());
        }
        let (job, instance) = (self.dice.below(session.jobs.len()), session.instance);
        let slept = self.store.is_idle(instance);
        self.trace.tell(|| format!("socket {number} at node {node}: {:?}", session.jobs[job]));
        self.events += u64::from(session.perform(job, &self.store));
        session.advance(self.now);
        let (epoch, lost) = (session.epoch, session.lost);
        if !slept && self.store.is_idle(instance) && epoch != self.epochs.get(&instance).copied() {
            return Err(Violation::PastTheFence(instance));
        }
        if let Some(epoch) = epoch {
            let last = self.epochs.entry(instance).or_default();
            *last = (*last).max(epoch);
        }
        if lost {
            self.end((node, number));
        }
        Ok(())
    }

    fn any_session(&mut self) -> Option<SocketId> {
        let awake = (0..NODES).filter(|node| self.is_awake(*node));
        let all: Vec<SocketId> = awake
            .flat_map(|node| self.nodes[node].sessions.keys().map(move |number| (node, *number)))
            .collect();
        (!all.is_empty()).then(|| all[self.dice.below(all.len())])
    }

    fn gateway_reads(&mut self) -> Result<(), Violation> {
        let instance = self.instance();
        let Some(socket) = self.gateways[&instance].socket else { return Ok(()) };
        let Some(session) = self.nodes[socket.0].sessions.get_mut(&socket.1) else {
            // The node is gone, and the gateway notices.
            self.gateways.insert(instance, Gateway::default());
            return Ok(());
        };
        let Some(entry) = session.frames.pop_front() else { return Ok(()) };
        self.trace.tell(|| format!("gateway {} reads {}", instance.0, entry.seq.buffer_id()));
        if let Some(gateway) = self.gateways.get_mut(&instance) {
            gateway.unacked.push(entry.seq);
        }
        self.judge.handled(instance, &entry)
    }

    fn gateway_acknowledges(&mut self) {
        let instance = self.instance();
        let stalls = self.faulty && self.dice.percent(10);
        let Some(gateway) = self.gateways.get_mut(&instance) else { return };
        let Some(socket) = gateway.socket else { return };
        if gateway.unacked.is_empty() || stalls {
            return;
        }
        let seq = gateway.unacked.remove(0);
        if let Some(session) = self.nodes[socket.0].sessions.get_mut(&socket.1) {
            session.acks.push_back(seq);
        }
    }

    /// A socket hears an acknowledgement, and goes on.
    fn node_hears(&mut self) {
        let Some((node, number)) = self.any_session() else { return };
        let (now, sleeps) = (self.now, self.faulty && self.dice.percent(3));
        if let Some(session) = self.nodes[node].sessions.get_mut(&number) {
            if let Some(seq) = session.hear() {
                self.events += 1;
                self.trace
                    .tell(|| format!("socket {number} at node {node}: {} is acknowledged", seq.buffer_id()));
            }
            if sleeps {
                session.goes_idle();
            }
            session.advance(now);
        }
    }

    fn time_passes(&mut self) {
        self.now = self.now + Duration::from_millis(self.dice.below(4_000) as u64);
        for node in 0..NODES {
            if !self.is_awake(node) || self.now.since(self.nodes[node].looked) < LOOK_EVERY {
                continue;
            }
            self.nodes[node].looked = self.now;
            for session in self.nodes[node].sessions.values_mut() {
                if let Some(mark) = self.store.mark(session.instance) {
                    self.events += 1;
                    session.told(mark, self.variant);
                    session.advance(self.now);
                }
            }
        }
    }

    /// A gateway without a socket dials; one with a socket may do so again, elsewhere.
    fn gateway_dials(&mut self) {
        let instance = self.instance();
        let connected = self.gateways[&instance].socket.is_some();
        if connected && !(self.faulty && self.dice.percent(20)) {
            return;
        }
        let node = self.dice.below(NODES);
        if !self.is_awake(node) {
            return;
        }
        // Half of the old sockets are noticed as gone; the others linger.
        if let Some(old) = self.gateways[&instance].socket.filter(|_| self.dice.percent(50)) {
            self.end(old);
        }
        // A node has one socket for an instance, and the next waits for its end.
        let mine: Vec<u64> = self.nodes[node]
            .sessions
            .iter()
            .filter(|(_, session)| session.instance == instance)
            .map(|(number, _)| *number)
            .collect();
        mine.into_iter().for_each(|number| self.end((node, number)));
        self.sockets += 1;
        self.trace.tell(|| format!("gateway {} dials node {node}: socket {}", instance.0, self.sockets));
        let mut session = Session::new(instance);
        session.advance(self.now);
        self.nodes[node].sessions.insert(self.sockets, session);
        self.gateways.insert(instance, Gateway { socket: Some((node, self.sockets)), unacked: Vec::new() });
    }

    fn end(&mut self, (node, number): SocketId) {
        if let Some(session) = self.nodes[node].sessions.remove(&number) {
            self.trace.tell(|| format!("socket {number} at node {node} ends"));
            session.finish(&self.store);
        }
    }

    fn fault(&mut self) {
        let node = self.dice.below(NODES);
        let kind = self.dice.below(10);
        self.trace.tell(|| match kind {
            0..3 => format!("node {node} dies"),
            3..5 => format!("node {node} stands still"),
            5..8 => format!("node {node} loses its hints"),
            _ => "a socket breaks".to_owned(),
        });
        match kind {
            // It dies: nothing of it is finished, and its mail is gone.
            0..3 => self.nodes[node] = Node { looked: self.now, ..Node::default() },
            // It stands still for longer than anybody waits.
            3..5 => self.nodes[node].paused = self.now + Duration::from_secs(40),
            5..8 => self.nodes[node].hints.clear(),
            _ => {
                if let Some(socket) = self.any_session() {
                    self.end(socket);
                }
            }
        }
    }

    /// Nothing fails any more: whatever was accepted has to arrive.
    fn settle_down(&mut self) -> Result<(), Violation> {
        /// Steps that are far more than enough for what can be waiting.
        const PATIENCE: usize = 400_000;
        self.trace.tell(|| "nothing fails any more");
        self.faulty = false;
        self.store.heal();
        self.nodes.iter_mut().for_each(|node| node.paused = self.now);
        for _ in 0..PATIENCE {
            if self.unsaid.is_empty() && self.store.waiting().is_empty() {
                break;
            }
            self.step()?;
        }
        self.judge.verdict()
    }
}
