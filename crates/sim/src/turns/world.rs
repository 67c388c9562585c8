//! The node, the gateway and the people, and what happens to them next.

use super::agenda::{Agenda, Event, SocketId};
use super::gateway::{Down, Gateway, Kind, Up};
use super::jobs::Job;
use super::judge::Judge;
use super::people::{self, Conversation, What, Writes};
use super::session::Session;
use super::store::Store;
use super::{LineId, Variant, Violation};
use crate::dice::Dice;
use crate::trace::Trace;
use angelia_contract::action::Action;
use angelia_core::clock::Mono;
use angelia_core::ports::Hint;
use angelia_core::ports::log::Log;
use angelia_core::turns::{Generation, Peer, Signs, WhileBusy};
use std::sync::Arc;
use std::time::Duration;

/// How often somebody looks at the log of a live socket.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How long a failure is held back.
const RETRY: Duration = Duration::from_secs(1);
/// The longest way of a frame, but for how much it varies.
const FARTHEST: usize = 320;
/// Lines that may still be changed.
const RECENT: usize = 40;

fn millis(span: usize) -> Duration {
    Duration::from_millis(span as u64)
}

/// One direction of a socket: frames keep their order.
#[derive(Default)]
struct Wire {
    way: usize,
    last: Mono,
}

impl Wire {
    fn arrives(&mut self, now: Mono, dice: &mut Dice) -> Mono {
        self.last = self.last.max(now + millis(self.way + dice.below(self.way / 4 + 1)));
        self.last
    }
}

/// Everything.
pub(crate) struct World {
    dice: Dice,
    agenda: Agenda,
    store: Store,
    session: Option<(SocketId, Session)>,
    wakes: Option<Mono>,
    wires: (Wire, Wire),
    /// What the node knows of the gateway from earlier sockets.
    signs: Vec<(Arc<str>, Signs)>,
    while_busy: WhileBusy,
    gateway: Gateway,
    people: Vec<Conversation>,
    recent: Vec<(Writes, u32)>,
    said: u64,
    sockets: u64,
    judge: Judge,
    variant: Variant,
    /// Of a hundred things that may break, how many do.
    faults: usize,
    calm: bool,
    pub(crate) trace: Trace,
}

impl World {
    pub(crate) fn new(seed: u64, variant: Variant, traced: bool) -> Self {
        let mut dice = Dice::new(seed);
        let kind = match dice.below(10) {
            0..6 => Kind::Reacts,
            6..8 => Kind::Notifies,
            _ => Kind::Mute { types: dice.percent(50) },
        };
        let while_busy = match dice.below(10) {
            0..7 => WhileBusy::Auto,
            7 => WhileBusy::Collect,
            8 => WhileBusy::Followup,
            _ => WhileBusy::Interrupt,
        };
        // With some seeds nothing breaks: there nobody may wait for others at all.
        let faults = if dice.percent(35) { 0 } else { 1 + dice.below(4) };
        let mut trace = Trace::new(traced);
        trace.tell(|| format!("{kind:?}, {while_busy:?}, {faults} faults"));
        let mut agenda = Agenda::default();
        for event in [Event::Dials, Event::Talk, Event::Talk, Event::Edits, Event::Looks, Event::Fault] {
            agenda.after(Duration::ZERO, event);
        }
        Self {
            agenda,
            store: Store::new(!seed, faults),
            session: None,
            wakes: None,
            wires: (Wire::default(), Wire::default()),
            signs: Vec::new(),
            while_busy,
            gateway: Gateway::new(kind, Dice::new(seed.wrapping_mul(31))),
            people: people::conversations(),
            recent: Vec::new(),
            said: 0,
            sockets: 0,
            judge: Judge::default(),
            variant,
            faults,
            calm: false,
            trace,
            dice,
        }
    }

    /// Lets so many things happen, and then everything settle.
    pub(crate) fn run(&mut self, steps: usize) -> Result<u64, Violation> {
        /// Longer than anything takes.
        const PATIENCE: Duration = Duration::from_secs(3 * 3_600);
        /// And than anybody looks for what is over.
        const QUIET: Duration = Duration::from_secs(400);
        /// And steps that are far more than enough for it.
        const MOST: u64 = 200_000;
        let mut happened = 0;
        while happened < steps as u64 && self.step()? {
            happened += 1;
        }
        let last = happened + MOST;
        self.trace.tell(|| "nothing fails any more, and nobody writes");
        (self.calm, self.store.faults) = (true, 0);
        let until = self.agenda.now + PATIENCE;
        while happened < last
            && self.agenda.now < until
            && !(self.store.is_empty() && self.gateway.is_free())
            && self.step()?
        {
            happened += 1;
        }
        self.judge.verdict()?;
        let until = self.agenda.now + QUIET;
        while happened < last && self.agenda.now < until && self.step()? {
            happened += 1;
        }
        let turns = self.session.as_ref().map(|(_, session)| session.turns());
        let open = turns.is_some_and(|turns| turns.is_any_open() || turns.holds_any());
        if open { Err(Violation::Open) } else { Ok(happened) }
    }

    /// Lets the next thing happen.
    fn step(&mut self) -> Result<bool, Violation> {
        let Some(event) = self.agenda.next() else { return Ok(false) };
        self.judge.now = self.agenda.now;
        self.happens(event)?;
        if std::mem::take(&mut self.store.failed) {
            self.judge.broke();
        }
        for hint in self.store.hints() {
            self.publish(hint);
        }
        if let Some((_, session)) = &mut self.session {
            session.advance(self.agenda.now);
            self.judge.held(session.turns())?;
        }
        self.carry();
        Ok(true)
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        let now = self.agenda.now;
        self.trace.tell(|| format!("{:9.3} {}", now.0.as_secs_f64(), line()));
    }

    fn happens(&mut self, event: Event) -> Result<(), Violation> {
        let now = self.agenda.now;
        match event {
            Event::Talk => self.talk(),
            Event::Writes(writes) => self.writes(&writes),
            Event::Edits => self.edits(),
            Event::Dials => self.dials(),
            Event::Fault => self.fault(),
            Event::Looks => {
                self.agenda.after(LOOK_EVERY, Event::Looks);
                let mark = self.store.mark();
                if let Some(((_, session), mark)) = self.session.as_mut().zip(mark)
                    && self.variant != Variant::NoSecondLook
                {
                    session.told(mark);
                }
                self.judge.is_prompt()?;
            }
            Event::Gateway(timer) => self.gateway.timer(timer),
            Event::Runs(socket, job) => self.runs(socket, job),
            Event::ToGateway(socket, frame) if self.gateway.socket == Some(socket) => {
                self.tell(|| format!("the gateway reads {}", of(&frame)));
                self.gateway.reads(frame, &mut self.judge)?;
            }
            Event::Hint(hint) => {
                if let Some((_, session)) = &mut self.session {
                    session.hint(hint, now);
                }
            }
            Event::ToGateway(..) => {}
            Event::Wakes(socket) => self.wakes = self.wakes.filter(|_| !self.is_live(socket)),
            Event::Answered(socket, answer) => {
                if let Some((_, session)) = self.session.as_mut().filter(|(number, _)| *number == socket) {
                    self.trace.tell(|| format!("{:9.3} the log says {answer}", now.0.as_secs_f64()));
                    session.answered(answer, now);
                }
            }
            Event::Performed(socket, ticket, ok) => {
                if let Some((_, session)) = self.session.as_mut().filter(|(number, _)| *number == socket) {
                    session.performed(ticket, ok, now);
                }
            }
            Event::ToNode(socket, frame) => self.node_reads(socket, frame),
        }
        Ok(())
    }

    fn is_live(&self, socket: SocketId) -> bool {
        self.session.as_ref().is_some_and(|(number, _)| *number == socket)
    }

    /// Somebody writes a line or many, now and then.
    fn talk(&mut self) {
        if self.calm {
            return;
        }
        let pause = 200 + self.dice.below(25_000);
        self.agenda.after(millis(pause), Event::Talk);
        let all = self.people.len();
        // The last one writes seldom.
        let conversation = if self.dice.percent(4) { all - 1 } else { self.dice.below(all - 1) };
        let (count, gap) = match self.dice.below(100) {
            0..45 => (1, 1),
            45..85 => (2 + self.dice.below(4), 1_500),
            85..97 => (5 + self.dice.below(40), 120),
            _ => (100 + self.dice.below(100), 40),
        };
        // Whoever has them go one by one waits for each.
        let count = if self.while_busy == WhileBusy::Followup { count.min(6) } else { count };
        let mut at = Duration::ZERO;
        for _ in 0..count {
            self.said += 1;
            let what = What::any(&mut self.dice);
            self.agenda.after(at, Event::Writes(Writes { conversation, id: LineId(self.said), what }));
            at += millis(self.dice.below(gap));
        }
    }

    fn writes(&mut self, writes: &Writes) {
        let entry = people::entry(writes, &self.people[writes.conversation]);
        if self.store.ask(|log| log.append(entry)).is_none() {
            return self.agenda.after(millis(500), Event::Writes(writes.clone()));
        }
        if !matches!(writes.what, What::Press(_)) {
            self.recent.push((writes.clone(), 0));
        }
        self.recent.drain(..self.recent.len().saturating_sub(RECENT));
    }

    fn edits(&mut self) {
        let pause = self.dice.below(8_000);
        self.agenda.after(millis(pause), Event::Edits);
        if self.calm || self.recent.is_empty() {
            return;
        }
        let at = self.dice.below(self.recent.len());
        let (writes, form) = &mut self.recent[at];
        *form += 1;
        let revision = people::revision(writes, &self.people[writes.conversation], *form);
        self.store.ask(|log| log.revise(revision));
    }

    /// What was committed is told, if it is not lost on the way.
    fn publish(&mut self, hint: Hint) {
        if let Hint::Log { entry, .. } = &hint {
            let rest = if self.gateway.kind == Kind::Reacts { 8 } else { 75 };
            self.judge.appended(entry, Duration::from_secs(rest));
            let (seq, key) = (entry.seq, entry.session_key.clone());
            self.tell(|| format!("{} is written in {key}", seq.buffer_id()));
        }
        if !self.calm && self.dice.percent(2 * self.faults) {
            self.tell(|| "a hint is lost".to_owned());
            return self.judge.broke();
        }
        let span = self.dice.below(15);
        self.agenda.after(millis(span), Event::Hint(hint));
    }

    fn runs(&mut self, socket: SocketId, job: Job) {
        // What a socket asked for before it ended is done or not.
        let outlives = |dice: &mut Dice| job.writes() && dice.percent(50);
        if !self.is_live(socket) && !outlives(&mut self.dice) {
            return;
        }
        self.tell(|| format!("the log does {job}"));
        let answer = job.run(&mut self.store);
        let slow = !self.calm && self.dice.percent(2 * self.faults);
        let span = if slow { self.dice.below(2_000) } else { self.dice.below(40) };
        if slow {
            self.judge.broke();
        }
        let span = millis(span) + if answer.is_failure() { RETRY } else { Duration::ZERO };
        self.agenda.after(span, Event::Answered(socket, answer));
    }

    fn node_reads(&mut self, socket: SocketId, frame: Up) {
        let now = self.agenda.now;
        let Some((_, session)) = self.session.as_mut().filter(|(number, _)| *number == socket) else {
            return;
        };
        match frame {
            Up::Ack(seq) => session.acknowledged(seq, now),
            Up::Ask(ticket, action) => {
                session.acts(&action, ticket, now);
                if !session.drains() {
                    self.gateway.was_not_understood(&action);
                }
                let quick = matches!(action, Action::React { .. } | Action::Typing { .. });
                let span = if quick { self.dice.below(20) } else { 20 + self.dice.below(500) };
                let ok = self.calm || !self.dice.percent(self.faults);
                self.agenda.after(millis(span), Event::Performed(socket, ticket, ok));
                self.tell(|| format!("the node hears {}", of_action(&action)));
            }
        }
    }

    /// The gateway dials, unless it is connected.
    fn dials(&mut self) {
        if self.session.is_some() {
            return;
        }
        self.sockets += 1;
        let socket = self.sockets;
        self.tell(|| format!("socket {socket} opens"));
        self.wires = (self.wire(), self.wire());
        let peer = Peer { generation: Generation::Newer, interrupts: true };
        let session = Session::new(peer, self.signs.clone(), self.while_busy, self.variant);
        self.session = Some((socket, session));
        self.wakes = None;
        self.gateway.socket = Some(socket);
        self.judge.connected();
    }

    fn wire(&mut self) -> Wire {
        Wire { way: self.dice.below(FARTHEST + 1), last: self.agenda.now }
    }

    fn fault(&mut self) {
        let pause = 5_000 + self.dice.below(120_000);
        self.agenda.after(millis(pause), Event::Fault);
        if self.calm || self.faults == 0 {
            return;
        }
        let Some((socket, session)) = self.session.take() else { return };
        self.judge.broke();
        self.signs = session.turns().signs().to_vec();
        let kind = self.dice.below(10);
        self.tell(|| format!("socket {socket} ends ({kind})"));
        match kind {
            0..6 => session.finish(&mut self.store),
            // The node is gone, and all it had in mind.
            6..9 => self.signs.clear(),
            _ => {
                session.finish(&mut self.store);
                self.gateway.restarts();
                self.judge.restarted();
            }
        }
        self.gateway.hung_up();
        let pause = if self.dice.percent(50) { self.dice.below(500) } else { self.dice.below(15_000) };
        self.agenda.after(millis(pause), Event::Dials);
    }

    /// Takes what node and gateway wrote and asked for on its way.
    fn carry(&mut self) {
        let now = self.agenda.now;
        for person in &self.people {
            if self.gateway.works_in(&person.session_key) {
                self.judge.works(&person.session_key);
            }
        }
        if let Some((socket, session)) = &mut self.session {
            for job in session.jobs.drain(..) {
                let span = self.dice.below(40);
                self.agenda.after(millis(span), Event::Runs(*socket, job));
            }
            for frame in session.frames.drain(..) {
                let at = self.wires.0.arrives(now, &mut self.dice);
                self.agenda.at(at, Event::ToGateway(*socket, frame));
            }
            let due = session.next_deadline().map(|at| at.max(now + millis(1)));
            if let Some(due) = due.filter(|due| self.wakes.is_none_or(|wakes| wakes > *due || wakes <= now)) {
                self.wakes = Some(due);
                self.agenda.at(due, Event::Wakes(*socket));
            }
        }
        for frame in std::mem::take(&mut self.gateway.out) {
            if let Some(socket) = self.gateway.socket {
                let at = self.wires.1.arrives(now, &mut self.dice);
                self.agenda.at(at, Event::ToNode(socket, frame));
            }
        }
        for (span, timer) in std::mem::take(&mut self.gateway.timers) {
            self.agenda.after(span, Event::Gateway(timer));
        }
        for asked in std::mem::take(&mut self.gateway.asked) {
            let Some(conversation) = self.people.iter().position(|it| it.session_key == asked.session_key)
            else {
                continue;
            };
            self.said += 1;
            let (id, span) = (LineId(self.said), 500 + self.dice.below(40_000));
            let what = asked.prompt.map_or(What::Text, What::Press);
            self.agenda.after(millis(span), Event::Writes(Writes { conversation, id, what }));
        }
    }
}

fn of(frame: &Down) -> String {
    match frame {
        Down::Push(entry) => format!("{} of {}", entry.seq.buffer_id(), entry.session_key),
        Down::Interrupt(key) => format!("an interrupt of {key}"),
        Down::Result(ticket, ok) => format!("the result of {ticket}: {ok}"),
    }
}

fn of_action(action: &Action) -> String {
    match action {
        Action::React { message_id, emoji, remove, .. } => {
            format!("{emoji} on {message_id}, remove {remove}")
        }
        Action::Send { chat_id, reply_to, metadata, .. } => {
            format!("words in {chat_id} for {reply_to:?}, {metadata:?}")
        }
        other => format!("{} in {:?}", other.op(), other.chat_id()),
    }
}
