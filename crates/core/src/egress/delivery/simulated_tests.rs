//! A world around one chat, for tests: a ledger, a provider that judges every
//! call, and processes that crash or are believed dead and go on.

mod judge;
mod ledger;

use super::queue_tests::{TIMINGS, edit, send};
use super::{
    Asked, Begun, ChatQueue, Claimed, DeliveryId, Effect, Event, Left, Opened, Outcome, Permission, Reach,
    Repeats, Text,
};
use crate::clock::{Mono, UnixMillis};
use crate::egress::{ActionRow, ActionState, Dedupe, Owner, Remark, is_suspect};
use crate::vault::{CapabilityId, Use, Way};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Dice by which permission is granted, capabilities are live, calls are sent and ends are durable.
const LUCK: u64 = 23;
const IN_DOUBT: [Option<Remark>; 3] = [None, Some(Remark::Tell), Some(Remark::Repeat)];
const DEDUPES: [Dedupe; 3] = [Dedupe::No, Dedupe::For(Duration::from_secs(8)), Dedupe::Yes];

/// The ledger as it is, or one that is known to be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    Sound,
    /// It listens to everybody.
    NoFence,
    /// What is said of a message in doubt is written down after the message has ended.
    EndsFirst,
    /// And before it has.
    RemarksFirst,
}

/// An action as the ledger and the provider know it.
struct Known {
    row: ActionRow,
    asked: Asked,
    claimed: Claimed,
    received: Mono,
    /// The message in doubt of which this is said.
    remark_on: Option<u64>,
    /// Its sender could not write there when it ended.
    forbidden: bool,
    /// Calls after which it may be there: when the first of them was made, and how.
    out: Option<(Mono, Option<Way>)>,
    /// That it was certainly never sent was told.
    told_never: bool,
}

/// One process at work on the chat.
struct Process {
    owner: Owner,
    queue: ChatQueue,
    /// What it waits for.
    open: Vec<Effect>,
    actions: BTreeMap<DeliveryId, u64>,
    arrived: BTreeMap<DeliveryId, (Asked, Claimed)>,
    numbers: u64,
    answered: BTreeSet<DeliveryId>,
    ended: BTreeSet<DeliveryId>,
    /// Calls before which nothing of an action was out.
    first_calls: BTreeSet<DeliveryId>,
    stopping: bool,
}

/// The world around it.
pub(super) struct World {
    now: Mono,
    ledger: BTreeMap<u64, Known>,
    /// The one that works, and before it those that only believe that they do.
    processes: Vec<Process>,
    owners: i64,
    allowed: bool,
    variant: Variant,
    /// What has ended stays so.
    over: BTreeSet<CapabilityId>,
    /// The last action that was called and waits for its turn in the chat.
    reached: u64,
    /// The order is kept for as long as one process works, and the ledger hears of ends.
    in_order: bool,
    calls: usize,
}

impl World {
    pub(super) fn new(variant: Variant) -> Self {
        let mut world = Self {
            now: Mono(Duration::from_secs(1_000)),
            ledger: BTreeMap::new(),
            processes: Vec::new(),
            owners: 0,
            allowed: true,
            variant,
            over: BTreeSet::new(),
            reached: 0,
            in_order: true,
            calls: 0,
        };
        world.start();
        world
    }

    /// A process starts and adopts what there is.
    fn start(&mut self) {
        self.owners += 1;
        let owner = Owner(self.owners);
        let mut process = Process {
            owner,
            queue: ChatQueue::new(TIMINGS),
            open: Vec::new(),
            actions: BTreeMap::new(),
            arrived: BTreeMap::new(),
            numbers: 0,
            answered: BTreeSet::new(),
            ended: BTreeSet::new(),
            first_calls: BTreeSet::new(),
            stopping: false,
        };
        let mut left = Vec::new();
        for (number, known) in &mut self.ledger {
            let Some(row) = known.row.adopt(owner, None) else { continue };
            known.row = row;
            process.numbers += 1;
            let id = DeliveryId(process.numbers);
            process.actions.insert(id, *number);
            let age = self.now.since(known.received);
            left.push((
                id,
                Left {
                    edits: known.asked.edits.clone(),
                    follow_up: known.asked.follow_up,
                    claimed: known.claimed,
                    in_doubt: known.asked.in_doubt,
                    remark: known.remark_on.is_some(),
                    suspect: is_suspect(row.state, row.crashes),
                    sending: row.state == ActionState::Sending,
                    begun: row.begun_at.map(|at| self.now.since(Mono(Duration::from_millis(at.0 as u64)))),
                    left: TIMINGS.queued_for.saturating_sub(age),
                    untouched: false,
                },
            ));
        }
        self.processes.push(process);
        let at = self.processes.len() - 1;
        self.tell(at, Event::Adopted(left));
    }

    /// The process is gone; what it asked the store for last may have been done or not.
    fn crash(&mut self, dice: u64) {
        let at = self.processes.len() - 1;
        let open = std::mem::take(&mut self.processes[at].open);
        for (n, effect) in open.into_iter().enumerate() {
            if dice >> n & 1 == 1 {
                self.store(at, &effect);
            }
        }
        self.processes.clear();
        self.start();
    }

    /// The process is believed dead, and is not.
    fn take_over(&mut self) {
        self.in_order = false;
        self.start();
        if self.processes.len() > 3 {
            self.processes.remove(0);
        }
    }

    fn wall(&self) -> UnixMillis {
        UnixMillis(self.now.0.as_millis() as i64)
    }

    fn tell(&mut self, at: usize, event: Event) {
        let mut effects = Vec::new();
        if event == Event::Stopping {
            self.processes[at].stopping = true;
        }
        self.processes[at].queue.on(event, self.now, &mut effects);
        for effect in effects {
            self.heed(at, effect);
        }
    }

    fn heed(&mut self, at: usize, effect: Effect) {
        match effect {
            Effect::Authorize(id) => self.tell(at, Event::Authorized(id, self.allowed)),
            Effect::Release(id) => {
                self.processes[at]
                    .open
                    .retain(|it| !matches!(it, Effect::AskPermission { id: asks, .. } if *asks == id));
            }
            Effect::Answer(id, answer) => self.judge_answer(at, id, &answer),
            Effect::Ended { id, untold } => {
                self.in_order &= !untold;
                assert!(self.processes[at].ended.insert(id), "{id:?} ended twice");
            }
            Effect::Call { id, way, .. } => {
                self.judge_call(at, id, way);
                self.processes[at].open.push(effect);
            }
            Effect::Finish(ref ends) => {
                for (id, _) in ends.iter().filter(|(_, end)| end.state == ActionState::Ambiguous) {
                    let number = self.processes[at].actions[id];
                    self.ledger.get_mut(&number).unwrap().forbidden |= !self.allowed;
                }
                self.processes[at].open.push(effect);
            }
            Effect::Count(_) | Effect::Pause { .. } => {}
            _ => self.processes[at].open.push(effect),
        }
    }

    fn arrive(&mut self, asked: Asked, claimed: Claimed) {
        let at = self.processes.len() - 1;
        let process = &mut self.processes[at];
        process.numbers += 1;
        let id = DeliveryId(process.numbers);
        process.arrived.insert(id, (asked.clone(), claimed));
        self.tell(at, Event::Arrived(vec![(id, asked)]));
    }

    /// Answers something that a process waits for; `dice` says how.
    fn answer(&mut self, at: usize, which: usize, dice: u64) {
        let open = &mut self.processes[at].open;
        if open.is_empty() {
            return;
        }
        let effect = open.remove(which % open.len());
        let fails = dice.is_multiple_of(6);
        let event = match &effect {
            Effect::Accept(_) if fails => Event::NotAccepted("the store does not commit".into()),
            Effect::Accept(ids) => {
                self.accept(at, ids);
                let claimed = ids.iter().map(|id| self.processes[at].arrived[id].1);
                Event::Accepted(claimed.collect())
            }
            Effect::Read(id) => {
                let known = &self.ledger[&self.processes[at].actions[id]];
                let gone = known.row.state.is_over();
                Event::Read(*id, if gone { Text::Gone } else { Text::Read(known.asked.repeats) })
            }
            Effect::AskPermission { id, .. } => {
                let permission = [
                    Permission::StoreFails,
                    Permission::Denied,
                    Permission::Granted,
                    Permission::Granted,
                    Permission::Granted,
                ];
                Event::Permission(*id, permission[dice as usize % 5])
            }
            Effect::Open(id, used) => {
                let opened = match dice % 16 {
                    0..3 => Opened::StoreFails,
                    3 => Opened::Over,
                    _ => Opened::Live,
                };
                if opened == Opened::Over {
                    self.over.insert(used.capability);
                }
                let is_over = self.over.contains(&used.capability) && opened == Opened::Live;
                Event::Opened(*id, if is_over { Opened::Over } else { opened })
            }
            Effect::Begin(id) if fails => Event::Begun(*id, Begun::StoreFails),
            Effect::Begin(id) => {
                let ours = self.store(at, &effect);
                Event::Begun(*id, if ours { Begun::Ours } else { Begun::NotOurs })
            }
            Effect::Postpone(id) => {
                if !fails {
                    self.store(at, &effect);
                }
                Event::Postponed(*id)
            }
            Effect::Finish(ends) if fails => {
                Event::Finished { ids: ends.iter().map(|(id, _)| *id).collect(), durable: false }
            }
            Effect::Finish(ends) => {
                self.store(at, &effect);
                let owner = self.processes[at].owner;
                let row = |id: &DeliveryId| self.ledger[&self.processes[at].actions[id]].row;
                let ids = ends.iter().map(|(id, _)| *id);
                let (ids, lost) = ids.partition(|id| row(id).owner == owner);
                self.tell(at, Event::Disowned(lost));
                Event::Finished { ids, durable: true }
            }
            Effect::LeaveOpen { id, .. } if fails => Event::Finished { ids: vec![*id], durable: false },
            Effect::LeaveOpen { id, outcome, .. } => self.left_open(at, *id, outcome),
            Effect::Call { id, .. } => self.outcome(at, *id, dice),
            Effect::ShowTyping(id) => Event::TypingShown(*id),
            other => panic!("nobody waits for {other:?}"),
        };
        self.tell(at, event);
    }

    fn outcome(&mut self, at: usize, id: DeliveryId, dice: u64) -> Event {
        let why = || "why".to_owned();
        let sent = || Outcome::Sent { message_id: "m".into(), recorded: false };
        let after = Duration::from_secs(dice % 4);
        let outcome = match dice % 9 {
            0 => Outcome::Refused { why: why() },
            1 => Outcome::Later { after, reach: Reach::Action, why: why() },
            2 | 3 => Outcome::Unknown { why: why() },
            4 => Outcome::Open { why: why() },
            _ => sent(),
        };
        if matches!(outcome, Outcome::Refused { .. } | Outcome::Later { .. }) {
            let number = self.processes[at].actions[&id];
            let known = self.ledger.get_mut(&number).unwrap();
            // This call wrote nothing; an earlier one may have.
            if self.processes[at].first_calls.remove(&id) {
                known.out = None;
            }
        }
        Event::Called { id, outcome, withdrawn: false }
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
        for at in 0..self.processes.len() {
            if self.processes[at].queue.wakes_at().is_some_and(|then| then <= self.now) {
                self.tell(at, Event::Time);
            }
        }
    }

    /// Something happens.
    pub(super) fn step(&mut self, kind: u8, dice: u64) {
        let last = self.processes.len() - 1;
        let dedupe = DEDUPES[dice as usize % 3];
        match kind {
            0..5 => {
                let in_doubt = IN_DOUBT[dice as usize / 3 % 3];
                self.arrive(Asked { in_doubt, ..send(dedupe) }, Claimed::default());
            }
            5..11 => self.arrive(edit(["a", "b"][dice as usize / 3 % 2], dedupe), Claimed::default()),
            11..16 => {
                let way = if dice.is_multiple_of(2) { Way::Original } else { Way::Further };
                let uses = Some(Use { capability: CapabilityId((dice / 2 % 6) as i64), way });
                let repeats = Repeats { message: dedupe, original: Dedupe::Yes, further: Dedupe::No };
                let follow_up = dice.is_multiple_of(5);
                let asked = Asked { edits: None, follow_up, repeats, in_doubt: Some(Remark::Tell) };
                self.arrive(asked, Claimed { uses, lasts: Some(Duration::from_secs(60)) });
            }
            16 => {
                self.processes[last].numbers += 1;
                let id = DeliveryId(self.processes[last].numbers);
                self.tell(last, Event::TypingAsked(id));
            }
            17..77 => self.answer(dice as usize % (last + 1), dice as usize >> 8, dice >> 16),
            77..90 => self.pass(Duration::from_secs([0, 1, 2, 5, 12, 40][dice as usize % 6])),
            90 => self.pass(Duration::from_secs(dice % 400)),
            91..93 => self.first_part(last),
            93..95 => self.allowed = !self.allowed,
            95 => self.tell(last, Event::Stopping),
            96 => self.take_over(),
            _ => self.crash(dice),
        }
    }

    fn first_part(&mut self, at: usize) {
        let calling = self.processes[at].open.iter().find_map(|effect| match effect {
            Effect::Call { id, .. } => Some(*id),
            _ => None,
        });
        if let Some(id) = calling {
            self.processes[at].first_calls.remove(&id);
            self.tell(at, Event::FirstPart(id, "first".into()));
        }
    }

    /// Lets everything succeed until nothing is left to do.
    pub(super) fn settle(&mut self) {
        self.allowed = true;
        self.processes.clear();
        self.start();
        for _ in 0..10_000 {
            if self.processes[0].queue.is_idle() {
                break;
            }
            self.answer(0, 0, LUCK);
            if self.processes[0].open.is_empty() {
                self.pass(Duration::from_secs(1));
            }
        }
        let process = &self.processes[0];
        assert!(process.queue.is_idle(), "something never ends: {:?}", process.queue);
        assert_eq!(process.ended.len(), process.actions.len(), "each ends once");
        assert!(self.ledger.values().all(|known| known.row.state.is_over()), "and the ledger knows");
        self.judge_remarks();
    }
}
