//! The queue of one chat's actions: accepted at once and in order, performed one by one.
//!
//! Edit coalescing is part of it: an edit that waits is overtaken by a later one.

use super::action::{Delivery, Moment, State};
use super::{ActionAnswer, Asked, Claimed, DeliveryId, Effect, EgressTimings, Event, Left};
use crate::clock::Mono;
use crate::vault::{CapabilityId, Way};
use std::collections::VecDeque;

angelia_contract::limits! {
    /// Sockets wait for their answers, so only a store or a provider that stands still fills it. Further ones are refused, and their agent is told.
    pub const MAX_WAITING: usize = 1_024, count "actions that wait for one chat";
}
/// Actions accepted in one commit.
const BATCH: usize = 64;

const TOO_MUCH_WAITS: &str = "too much waits for this chat; nothing was sent";

/// What one instance has to say in one chat through one bot.
///
/// What arrives is accepted in order, whatever is being performed. The first
/// accepted one is performed, the others wait for it. An edit that a newer one of
/// the same message overtakes before it was begun is answered and not performed.
/// An answer that takes a place of its own and takes long goes on aside.
#[derive(Clone, Debug)]
pub struct ChatQueue {
    timings: EgressTimings,
    /// In order: what is performed, what is accepted, what is being accepted, what arrived.
    deliveries: VecDeque<Delivery>,
    /// Answers that their chat does not wait for any more.
    aside: Vec<Delivery>,
    /// Shows that the agent writes; what comes after it waits for it.
    typing: Option<DeliveryId>,
    /// How many are being accepted.
    accepting: usize,
    stopping: bool,
}

impl ChatQueue {
    /// A chat that has nothing to do.
    pub fn new(timings: EgressTimings) -> Self {
        Self {
            timings,
            deliveries: VecDeque::new(),
            aside: Vec::new(),
            typing: None,
            accepting: 0,
            stopping: false,
        }
    }

    /// Takes what happened at `now`; adds what is to be done to `effects`.
    pub fn on(&mut self, event: Event, now: Mono, effects: &mut Vec<Effect>) {
        match event {
            Event::Arrived(came) => self.arrived(came, now, effects),
            Event::TypingAsked(id) => self.typing_asked(id, effects),
            Event::TypingShown(id) => {
                self.typing = self.typing.filter(|shown| *shown != id);
                effects.push(Effect::Ended { id, untold: false });
            }
            Event::Adopted(left) => self.adopted(left, now, effects),
            Event::Accepted(claimed) => self.accepted(claimed, now, effects),
            Event::NotAccepted(why) => self.not_accepted(&why, now, effects),
            Event::Read(id, text) => self.with(id, now, effects, |it, at| it.read(text, at)),
            Event::Permission(id, permission) => {
                let comes_first = self.comes_first(id);
                self.with(id, now, effects, |it, at| it.permission(permission, comes_first, at));
            }
            Event::Opened(id, opened) => self.with(id, now, effects, |it, at| it.opened(opened, at)),
            Event::Begun(id, begun) => self.with(id, now, effects, |it, at| it.begun(begun, at)),
            Event::Authorized(id, allowed) => {
                self.with(id, now, effects, |it, at| it.authorized(allowed, at));
            }
            Event::NotNow(id) => self.with(id, now, effects, |it, at| it.not_now(at)),
            Event::FirstPart(id, message_id) => {
                self.with(id, now, effects, |it, at| it.first_part(message_id, at));
            }
            Event::Called { id, outcome, withdrawn } => {
                self.with(id, now, effects, |it, at| it.called(outcome, withdrawn, at));
            }
            Event::Postponed(id) => self.with(id, now, effects, |it, at| it.postponed(at)),
            Event::Finished { ids, durable } => self.finished(&ids, durable, now, effects),
            Event::Remarked { id, remark, asked } => self.remarked(id, (remark, asked), now, effects),
            Event::Disowned(ids) => {
                ids.iter().for_each(|id| self.with(*id, now, effects, Delivery::disowned));
                self.deliveries.retain(|it| !ended(it, effects));
            }
            Event::GivenUp(ids) => {
                ids.iter().for_each(|id| self.with(*id, now, effects, |it, _| it.given_up()));
                self.deliveries.retain(|it| !ended(it, effects));
            }
            Event::Time => self.look(now, effects),
            Event::Stopping => {
                self.stopping = true;
                self.look(now, effects);
            }
        }
        self.go_on(now, effects);
    }

    /// When it wants to be told that time passed.
    pub fn wakes_at(&self) -> Option<Mono> {
        let turn = self.deliveries.front().and_then(|it| earlier(it.wakes_at(), it.aside_at));
        self.aside.iter().fold(turn, |soonest, it| earlier(soonest, it.wakes_at()))
    }

    /// Whether nothing waits or is performed.
    pub fn is_idle(&self) -> bool {
        self.deliveries.is_empty() && self.aside.is_empty() && self.typing.is_none()
    }

    fn arrived(&mut self, came: Vec<(DeliveryId, Asked)>, now: Mono, effects: &mut Vec<Effect>) {
        let under_way = usize::from(self.deliveries.front().is_some_and(is_under_way));
        for (id, asked) in came {
            let mut delivery = Delivery::arrived(id, asked);
            if self.deliveries.len() - under_way < MAX_WAITING {
                self.deliveries.push_back(delivery);
                continue;
            }
            let why = ActionAnswer::NeverSent(TOO_MUCH_WAITS.to_owned());
            delivery.answer(why, &mut self.moment(now, effects));
            effects.push(Effect::Ended { id, untold: false });
        }
    }

    /// Where messages are on their way they show better that the agent writes.
    fn typing_asked(&mut self, id: DeliveryId, effects: &mut Vec<Effect>) {
        if self.typing.is_none() && self.deliveries.is_empty() && !self.stopping {
            self.typing = Some(id);
            return effects.push(Effect::ShowTyping(id));
        }
        effects.push(Effect::Answer(id, ActionAnswer::Shown));
        effects.push(Effect::Ended { id, untold: false });
    }

    fn adopted(&mut self, mut left: Vec<(DeliveryId, Left)>, now: Mono, effects: &mut Vec<Effect>) {
        // What waits behind a message waits behind what is said of it.
        left.sort_by_key(|(_, left)| !left.remark);
        let from = self.first(&State::Accepting);
        let came_since = self.deliveries.split_off(from);
        self.deliveries.extend(left.into_iter().map(|(id, left)| Delivery::adopted(id, left, now)));
        self.deliveries.extend(came_since);
        self.overtake(from, now, effects);
    }

    fn accepted(&mut self, claimed: Vec<Claimed>, now: Mono, effects: &mut Vec<Effect>) {
        let from = self.first(&State::Accepting);
        for (delivery, claimed) in self.deliveries.iter_mut().skip(from).take(self.accepting).zip(claimed) {
            delivery.accepted(claimed, self.timings.queued_for, now);
        }
        self.accepting = 0;
        self.overtake(from, now, effects);
    }

    fn not_accepted(&mut self, why: &str, now: Mono, effects: &mut Vec<Effect>) {
        let from = self.first(&State::Accepting);
        let refused: Vec<_> = self.deliveries.drain(from..from + self.accepting).collect();
        self.accepting = 0;
        for mut delivery in refused {
            delivery.answer(ActionAnswer::NeverSent(why.to_owned()), &mut self.moment(now, effects));
            effects.push(Effect::Ended { id: delivery.id, untold: false });
        }
    }

    /// Lets the edits from position `from` on, which the ledger has just taken,
    /// take the place of older ones of the same messages.
    fn overtake(&mut self, from: usize, now: Mono, effects: &mut Vec<Effect>) {
        let mut ends = Vec::new();
        for newer in from.max(1)..self.deliveries.len() {
            let (older, rest) = self.deliveries.make_contiguous().split_at_mut(newer);
            let Some(newer) = rest.first().filter(|it| it.edits.is_some() && it.state == State::Queued)
            else {
                continue;
            };
            let mut at = Moment { now, timings: self.timings, stopping: self.stopping, effects };
            for older in older.iter_mut().filter(|older| older.edits == newer.edits) {
                match older.overtake(&mut at) {
                    Some(end) => ends.push(end),
                    None => older.look(&mut at),
                }
            }
        }
        // They end before the newer one is sent: no restart may show the older text last.
        if !ends.is_empty() {
            effects.push(Effect::Finish(ends));
        }
    }

    fn finished(&mut self, ids: &[DeliveryId], durable: bool, now: Mono, effects: &mut Vec<Effect>) {
        for id in ids {
            let its_turn = !self.deliveries.iter().skip(1).any(|waits| waits.id == *id);
            self.with(*id, now, effects, |it, at| it.finished(durable, its_turn, at));
        }
        // Overtaken ones end before their turn comes.
        self.deliveries.retain(|it| !ended(it, effects));
    }

    /// What is said of a message comes right behind it: whatever else waits was meant to
    /// come after that message.
    fn remarked(
        &mut self,
        id: DeliveryId,
        (remark, asked): (DeliveryId, Asked),
        now: Mono,
        effects: &mut Vec<Effect>,
    ) {
        let mut said = Delivery::arrived(remark, asked);
        said.accepted(Claimed::default(), self.timings.queued_for, now);
        // Its chat may have gone on without it.
        let under_way = self.deliveries.front().is_some_and(is_under_way);
        self.deliveries.insert(usize::from(under_way), said);
        self.finished(&[id], true, now, effects);
    }

    /// What only waits looks whether it still should.
    fn look(&mut self, now: Mono, effects: &mut Vec<Effect>) {
        let mut at = Moment { now, timings: self.timings, stopping: self.stopping, effects };
        self.aside.iter_mut().for_each(|it| it.look(&mut at));
        if let Some(first) = self.deliveries.front_mut() {
            first.look(&mut at);
        }
    }

    /// Begins what can be begun.
    fn go_on(&mut self, now: Mono, effects: &mut Vec<Effect>) {
        self.aside.retain(|it| !ended(it, effects));
        while let Some(first) = self.deliveries.front_mut() {
            if ended(first, effects) {
                self.deliveries.pop_front();
            } else if first.aside_at.is_some_and(|then| then <= now) {
                self.aside.extend(self.deliveries.pop_front());
            } else if first.state == State::Queued && self.typing.is_none() {
                let mut at = Moment { now, timings: self.timings, stopping: self.stopping, effects };
                first.start(&mut at);
            } else {
                break;
            }
        }
        self.accept(effects);
    }

    /// Has the next that arrived written down.
    fn accept(&mut self, effects: &mut Vec<Effect>) {
        if self.accepting > 0 {
            return;
        }
        let from = self.first(&State::Arrived);
        let batch = self.deliveries.iter_mut().skip(from).take(BATCH);
        let ids: Vec<DeliveryId> = batch
            .map(|it| {
                it.state = State::Accepting;
                it.id
            })
            .collect();
        self.accepting = ids.len();
        if !ids.is_empty() {
            effects.push(Effect::Accept(ids));
        }
    }

    /// The position of the first that is in this state on the way into the ledger.
    fn first(&self, state: &State) -> usize {
        let later = |it: &Delivery| it.state == *state || it.state == State::Arrived;
        self.deliveries.partition_point(|it| !later(it))
    }

    /// Whether the answer is under way behind which this one would be.
    fn comes_first(&self, id: DeliveryId) -> bool {
        let behind: Option<CapabilityId> = self
            .deliveries
            .front()
            .filter(|it| it.id == id)
            .and_then(|it| it.uses)
            .filter(|used| used.way == Way::Further)
            .map(|used| used.capability);
        behind.is_some_and(|capability| {
            self.aside.iter().any(|it| it.uses.is_some_and(|used| used.capability == capability))
        })
    }

    fn with(
        &mut self,
        id: DeliveryId,
        now: Mono,
        effects: &mut Vec<Effect>,
        act: impl FnOnce(&mut Delivery, &mut Moment<'_>),
    ) {
        let mut at = Moment { now, timings: self.timings, stopping: self.stopping, effects };
        // Mostly the first.
        if let Some(delivery) = self.deliveries.iter_mut().chain(&mut self.aside).find(|it| it.id == id) {
            act(delivery, &mut at);
        }
    }

    fn moment<'a>(&self, now: Mono, effects: &'a mut Vec<Effect>) -> Moment<'a> {
        Moment { now, timings: self.timings, stopping: self.stopping, effects }
    }
}

fn is_under_way(delivery: &Delivery) -> bool {
    !matches!(delivery.state, State::Arrived | State::Accepting | State::Queued)
}

/// Whether nothing more comes of it; tells so.
fn ended(delivery: &Delivery, effects: &mut Vec<Effect>) -> bool {
    let State::Over { untold } = delivery.state else { return false };
    effects.push(Effect::Ended { id: delivery.id, untold });
    true
}

fn earlier(one: Option<Mono>, other: Option<Mono>) -> Option<Mono> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}
