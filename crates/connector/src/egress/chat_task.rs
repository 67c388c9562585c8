//! One task for each chat that has something to do: it tells the chat's queue
//! what happened, does what the queue wants done, and ends with the last of it.
//!
//! Nothing is decided here. What becomes of an action is
//! [`ChatQueue`]'s to say (docs/decisions/0030).

use super::Egress;
use super::action::{OutboundAction, result};
use super::chats::{ChatKey, Ending, FirstPart, Inbox, News};
use super::in_hand::{InHand, Wait};
use super::outbox::ActingAs;
use super::perform::{self, Done, InFlight};
use super::remark::{self, InDoubt};
use super::{resume, typing};
use crate::telemetry::Counter;
use angelia_contract::action::Action;
use angelia_core::clock::{self, Mono};
use angelia_core::egress::Remark;
use angelia_core::egress::delivery::{
    Asked, Begun, ChatQueue, Counted, DeliveryId, Effect, Event, Left, Opened, Permission, Text,
};
use angelia_core::error::Result;
use angelia_core::ports::{ActionId, ActionOutcome, StoredAction};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// The task of one chat.
pub(super) struct ChatTask {
    egress: Arc<Egress>,
    key: ChatKey,
    inbox: Arc<Inbox>,
    queue: ChatQueue,
    in_hand: HashMap<DeliveryId, InHand>,
    running: FuturesUnordered<BoxFuture<'static, Done>>,
    effects: Vec<Effect>,
    /// What happened with the last effects.
    at_once: VecDeque<Event>,
    numbers: u64,
    /// Whether the queue was told that the server stops.
    stopping: bool,
}

impl ChatTask {
    pub(super) fn new(egress: Arc<Egress>, key: ChatKey, inbox: Arc<Inbox>) -> Self {
        let queue = ChatQueue::new(egress.timings);
        Self {
            egress,
            key,
            inbox,
            queue,
            in_hand: HashMap::new(),
            running: FuturesUnordered::new(),
            effects: Vec::new(),
            at_once: VecDeque::new(),
            numbers: 0,
            stopping: false,
        }
    }

    /// Works until there is nothing left to do.
    pub(super) async fn run(mut self) {
        let inbox = self.inbox.clone();
        loop {
            self.take_first_parts();
            self.take_news();
            match inbox.ending() {
                Some(Ending::CutOff) => return self.in_hand.values().for_each(|it| it.hand_on(&self.egress)),
                Some(Ending::Closing) => self.begin_nothing_more(),
                None => {}
            }
            let idle = self.queue.is_idle() && self.running.is_empty();
            if idle && self.egress.chats.leave(&self.key, &inbox) {
                return;
            }
            let wakes_at = self.queue.wakes_at();
            tokio::select! {
                Some(done) = self.running.next() => {
                    // A platform tells of a first part before it is done. What arrived
                    // comes after: a chat's next call is not to wait for its commit.
                    self.take_first_parts();
                    self.done(done);
                }
                () = inbox.told() => {}
                () = until(wakes_at) => self.happened(Event::Time),
            }
        }
    }

    fn take_first_parts(&mut self) {
        for FirstPart(id, message_id) in self.inbox.take_first_parts() {
            self.happened(Event::FirstPart(id, message_id));
        }
    }

    /// Hands over what came from outside, in its order.
    fn take_news(&mut self) {
        let mut arrived = Vec::new();
        for next in self.inbox.take() {
            let event = match next {
                News::Asked(action) if matches!(action.action, Action::Typing { .. }) => {
                    Event::TypingAsked(self.put(InHand::of(action)))
                }
                News::Asked(action) => {
                    let asked = action.asked(&self.egress);
                    arrived.push((self.put(InHand::of(action)), asked));
                    continue;
                }
                News::Adopted { stored, under, untouched } => {
                    Event::Adopted(stored.into_iter().map(|it| self.adopt(it, under, untouched)).collect())
                }
            };
            self.arrived(&mut arrived);
            self.happened(event);
        }
        self.arrived(&mut arrived);
    }

    fn arrived(&mut self, arrived: &mut Vec<(DeliveryId, Asked)>) {
        if !arrived.is_empty() {
            self.happened(Event::Arrived(std::mem::take(arrived)));
        }
    }

    fn put(&mut self, in_hand: InHand) -> DeliveryId {
        self.numbers += 1;
        self.in_hand.insert(DeliveryId(self.numbers), in_hand);
        DeliveryId(self.numbers)
    }

    fn adopt(&mut self, stored: StoredAction, under: ActingAs, untouched: bool) -> (DeliveryId, Left) {
        let left = resume::left(&self.egress, &stored, untouched);
        let number = Some(stored.id);
        let asked_by = self.egress.cluster.is_shared().then_some(stored.instance);
        let stored = Some(Box::new(stored));
        (self.put(InHand { stored, number, under, asked_by, ..InHand::default() }), left)
    }

    /// Keeps what came of something that was done, and tells the queue of it.
    fn done(&mut self, done: Done) {
        if let Some(event) = self.keep(done) {
            self.happened(event);
        }
    }

    fn keep(&mut self, done: Done) -> Option<Event> {
        Some(match done {
            Done::Nothing => return None,
            Done::Happened(event) => event,
            Done::Accepted(numbers, claimed, under) => {
                for (id, number) in numbers {
                    self.with(id, |it| (it.number, it.under) = (Some(number), under));
                }
                Event::Accepted(claimed)
            }
            Done::Read(id, action, text) => {
                self.with(id, |it| it.action = action);
                Event::Read(id, text)
            }
            Done::Permission(id, told, permit) => {
                self.with(id, |it| (it.permit, it.waiting) = (permit, None));
                Event::Permission(id, told)
            }
            Done::Opened(id, told, answer) => {
                self.with(id, |it| it.answer = answer);
                Event::Opened(id, told)
            }
            Done::Remarked(id, said, (number, under)) => {
                let asked = said.asked(&self.egress);
                let number = Some(number);
                let remark = self.put(InHand { number, under, ..InHand::of(said) });
                Event::Remarked { id, remark, asked }
            }
            Done::Finished(event, lost) => {
                self.at_once.extend(lost);
                event
            }
        })
    }

    fn with(&mut self, id: DeliveryId, change: impl FnOnce(&mut InHand)) {
        if let Some(in_hand) = self.in_hand.get_mut(&id) {
            change(in_hand);
        }
    }

    /// Tells the queue, and does what it wants done. What is known at once happens
    /// at once, with nothing in between.
    fn happened(&mut self, event: Event) {
        if self.egress.life.is_stopping() {
            self.begin_nothing_more();
        }
        let mut effects = std::mem::take(&mut self.effects);
        let mut next = Some(event);
        while let Some(event) = next {
            self.queue.on(event, clock::mono(), &mut effects);
            for effect in effects.drain(..) {
                let known = self.perform(effect).and_then(|done| self.keep(done));
                self.at_once.extend(known);
            }
            next = self.at_once.pop_front();
        }
        self.effects = effects;
    }

    /// The server stops, or the bot goes to another node. What was called is written down.
    fn begin_nothing_more(&mut self) {
        if !std::mem::replace(&mut self.stopping, true) {
            self.happened(Event::Stopping);
        }
    }

    /// Has something done, or does it and tells what came of it.
    fn perform(&mut self, effect: Effect) -> Option<Done> {
        match effect {
            Effect::Accept(ids) => self.accept(ids),
            Effect::Read(id) => self.read(id),
            Effect::AskPermission { id, paced } => return self.ask_permission(id, paced),
            Effect::Release(id) => self.with(id, |it| {
                it.give_leave_back();
                it.in_flight = None;
            }),
            Effect::Open(id, used) => {
                let action = self.action(id)?;
                let failed = Done::Opened(id, Opened::StoreFails, None);
                self.start(perform::open(self.egress.clone(), action, id, used), failed);
            }
            Effect::Begin(id) => {
                self.in_flight(id);
                let number = self.number(id)?;
                let failed = Done::Happened(Event::Begun(id, Begun::StoreFails));
                self.start(perform::begin(self.egress.clone(), id, number), failed);
            }
            Effect::Authorize(id) => {
                let under = self.in_hand.get(&id).map_or(ActingAs::Node, |it| it.under);
                if !self.egress.may_call(self.key.bot, under) {
                    return Some(Done::Happened(Event::NotNow(id)));
                }
                let allowed = self.action(id).is_some_and(|it| it.is_allowed(&self.egress));
                return Some(Done::Happened(Event::Authorized(id, allowed)));
            }
            Effect::Call { id, way, earlier, within } => {
                self.in_flight(id);
                let action = self.action(id)?;
                let it = self.in_hand.get_mut(&id)?;
                let answer = it.answer.take().filter(|_| way.is_some());
                let (number, under, permit) = (it.number?, it.under, it.permit.take()?);
                let call = perform::Call { id, number, under, action, answer, earlier, within, permit };
                let calling = perform::call(self.egress.clone(), self.inbox.clone(), call);
                self.start(calling, perform::broke_off(id));
            }
            Effect::Pause { id, reach, after } => self.action(id)?.pause(&self.egress, reach, after),
            Effect::Postpone(id) => {
                self.with(id, InHand::give_leave_back);
                let number = self.number(id)?;
                let told = Done::Happened(Event::Postponed(id));
                self.start(perform::postpone(self.egress.clone(), id, number), told);
            }
            Effect::Finish(ends) => self.finish(ends),
            Effect::LeaveOpen { id, outcome, remark } => self.leave_open(id, outcome, remark),
            Effect::Answer(id, answer) => self.in_hand.get(&id)?.give(&self.egress, &result(answer)),
            Effect::ShowTyping(id) => {
                let (egress, action) = (self.egress.clone(), self.action(id)?);
                let shown = async move {
                    typing::show(&egress, &action).await;
                    Ok(Done::Happened(Event::TypingShown(id)))
                };
                self.start(shown, Done::Happened(Event::TypingShown(id)));
            }
            Effect::Count(counted) => self.egress.metrics.count(match counted {
                Counted::Superseded => Counter::OutboundSuperseded,
                Counted::Ambiguous => Counter::OutboundAmbiguous,
                Counted::Expired => Counter::OutboundExpired,
                Counted::Declined => Counter::OutboundDeclined,
            }),
            Effect::Ended { id, untold } => self.ended(id, untold),
        }
        None
    }

    /// Has something done; `failed` is what comes of it otherwise.
    fn start(&self, doing: impl Future<Output = Result<Done>> + Send + 'static, failed: Done) {
        self.running.push(or_failed(doing, failed));
    }

    fn accept(&mut self, ids: Vec<DeliveryId>) {
        let actions: Vec<_> = ids.into_iter().filter_map(|id| Some((id, self.action(id)?))).collect();
        let accepting = perform::accept(self.egress.clone(), self.key.clone(), actions);
        self.start(accepting, perform::not_accepted());
    }

    fn read(&mut self, id: DeliveryId) {
        let stored = self.in_hand.get_mut(&id).and_then(|it| it.stored.take());
        let Some(stored) = stored else { return };
        let reading = resume::read(self.egress.clone(), self.key.bot, id, stored);
        self.start(reading.map(Ok), Done::Read(id, None, Text::Gone));
    }

    /// Mostly there is nothing to wait for, and no task is troubled.
    fn ask_permission(&mut self, id: DeliveryId, paced: bool) -> Option<Done> {
        let number = self.in_hand.get(&id).and_then(|it| it.number);
        let asking = perform::ask_permission(self.egress.clone(), self.action(id)?, (id, number), paced);
        let mut asking = or_failed(asking, Done::Permission(id, Permission::StoreFails, None));
        let done = asking.as_mut().now_or_never();
        if done.is_none() {
            let (asking, waiting) = abortable(asking);
            self.with(id, |it| it.waiting = Some(Wait(waiting)));
            self.running.push(Box::pin(async move { asking.await.unwrap_or(Done::Nothing) }));
        }
        done
    }

    fn finish(&mut self, ends: Vec<(DeliveryId, ActionOutcome)>) {
        let ids: Vec<DeliveryId> = ends.iter().map(|(id, _)| *id).collect();
        ids.iter().for_each(|id| self.with(*id, InHand::give_leave_back));
        let end = |(id, outcome)| {
            self.number(id).map(|(number, under)| perform::End { id, number, under, outcome })
        };
        let ends = ends.into_iter().filter_map(end).collect();
        let failed = Done::Happened(Event::Finished { ids, durable: false });
        self.start(perform::finish(self.egress.clone(), ends), failed);
    }

    /// Something is said of a message in doubt; nothing can be of one that is not at hand.
    fn leave_open(&mut self, id: DeliveryId, outcome: ActionOutcome, remark: Remark) {
        let Some((number, in_doubt)) = self.in_doubt(id) else {
            return self.finish(vec![(id, outcome)]);
        };
        self.with(id, InHand::give_leave_back);
        let leaving = remark::leave_open(self.egress.clone(), id, number, outcome, (remark, in_doubt));
        self.start(leaving, Done::Happened(Event::Finished { ids: vec![id], durable: false }));
    }

    fn in_doubt(&self, id: DeliveryId) -> Option<((ActionId, ActingAs), InDoubt)> {
        let InHand { action, stored, .. } = self.in_hand.get(&id)?;
        let unread = |stored: &StoredAction| InDoubt::unread(stored, self.key.bot, resume::target(stored));
        let in_doubt = match action {
            Some(action) => Some(InDoubt::of(action)),
            None => stored.as_deref().map(unread),
        };
        self.number(id).zip(in_doubt)
    }

    /// Its number in the ledger, and as whom that is spoken to.
    fn number(&self, id: DeliveryId) -> Option<(ActionId, ActingAs)> {
        let it = self.in_hand.get(&id)?;
        Some((it.number?, it.under))
    }

    fn ended(&mut self, id: DeliveryId, untold: bool) {
        let in_hand = self.in_hand.remove(&id);
        if let Some(in_hand) = &in_hand {
            in_hand.hand_on(&self.egress);
        }
        if untold {
            let action = in_hand.and_then(|it| it.number).map(|it| it.0);
            tracing::error!(action, "the end of an action is not in the ledger");
        }
    }

    fn action(&self, id: DeliveryId) -> Option<Arc<OutboundAction>> {
        self.in_hand.get(&id)?.action.clone()
    }

    /// A stopping server waits for it from now on.
    fn in_flight(&mut self, id: DeliveryId) {
        if let Some(in_hand) = self.in_hand.get_mut(&id) {
            in_hand.in_flight.get_or_insert_with(|| InFlight::begin(&self.egress));
        }
    }
}

/// What came of something. A panic must not take the chat's later actions with it.
fn or_failed(
    doing: impl Future<Output = Result<Done>> + Send + 'static,
    failed: Done,
) -> BoxFuture<'static, Done> {
    let doing = AssertUnwindSafe(doing).catch_unwind();
    Box::pin(async move { doing.await.ok().and_then(Result::ok).unwrap_or(failed) })
}

/// Sleeps until then; for ever, if there is no such moment.
async fn until(wakes_at: Option<Mono>) {
    match wakes_at {
        Some(at) => tokio::time::sleep(at.since(clock::mono())).await,
        None => std::future::pending().await,
    }
}

impl Drop for ChatTask {
    fn drop(&mut self) {
        self.egress.chats.forget(&self.key, &self.inbox);
    }
}
