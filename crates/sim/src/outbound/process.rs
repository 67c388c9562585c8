//! A process on a node: core's chat queues, driven as the connector drives them,
//! with everything it asks the database for on its way for a while.

use super::Variant;
use super::judge::Asked;
use super::members::{BOTS, MemberId};
use super::provider::{Caller, Heard, repeats};
use super::takeover::Step;
use super::world::Outside;
use angelia_core::clock::Mono;
use angelia_core::egress::delivery::{
    self, ActionAnswer, Begun, ChatQueue, Claimed, DeliveryId, Edited, Effect, EgressTimings, Event,
    Permission, Text,
};
use angelia_core::egress::{Owner, REMARK, SEND, Target};
use angelia_core::inbox::InstanceId;
use angelia_core::ports::{ActionId, ActionOutcome, LeftOpen, NewAction};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What one instance says through one bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChatKey {
    pub(super) instance: usize,
    pub(super) bot: usize,
}

/// What a process has to do, or what came of it and is on its way back.
pub(super) enum Job {
    Do(ChatKey, Effect),
    Accepted(ChatKey, Vec<(DeliveryId, ActionId)>),
    /// Something is said of a message in doubt, under this number.
    Remarked(ChatKey, DeliveryId, ActionId),
    Told(ChatKey, Vec<Event>),
    /// About itself and what others left.
    Member(Step),
}

/// An action in a queue.
pub(super) struct InHand {
    pub(super) asked: Asked,
    /// Whether somebody waits for its answer; nobody does for what others left.
    pub(super) awaited: bool,
    pub(super) owner: Owner,
    pub(super) number: Option<ActionId>,
}

/// A process.
pub(super) struct Process {
    pub(super) node: usize,
    pub(super) member: MemberId,
    /// As whom it accepts, once it knows.
    pub(super) own: Option<Owner>,
    /// Which bots' calls it makes, as far as it knows.
    pub(super) holds: [bool; BOTS],
    pub(super) jobs: Vec<Job>,
    /// Whether it takes something up.
    pub(super) inherits: bool,
    /// It learnt that it was replaced.
    pub(super) replaced: bool,
    pub(super) looked: Mono,
    pub(super) stopping: bool,
    /// How far its monotonic clock is ahead of the others'.
    ahead: Duration,
    chats: BTreeMap<ChatKey, ChatQueue>,
    in_hand: BTreeMap<DeliveryId, InHand>,
    numbers: u64,
    effects: Vec<Effect>,
}

impl Process {
    pub(super) fn start(node: usize, outside: &mut Outside) -> Self {
        let member = outside.store.members.join(node, outside.now);
        outside.trace(|| format!("node {node} starts as {member}"));
        Self {
            node,
            member,
            own: None,
            holds: [false; BOTS],
            jobs: vec![Job::Member(Step::Start)],
            inherits: true,
            replaced: false,
            looked: outside.now,
            stopping: false,
            ahead: Duration::from_secs(outside.dice.below(100_000) as u64),
            chats: BTreeMap::new(),
            in_hand: BTreeMap::new(),
            numbers: 0,
            effects: Vec::new(),
        }
    }

    /// A gateway asks for something.
    pub(super) fn arrived(&mut self, asked: Asked, outside: &mut Outside) {
        let id = self.put(asked, true, Owner(0), None);
        let new = delivery::Asked {
            edits: asked.edits.map(|message| edited(asked, message)),
            follow_up: false,
            repeats: repeats(asked.bot, asked.edits.is_some()),
            in_doubt: asked.in_doubt(),
        };
        self.happened(chat(asked), Event::Arrived(vec![(id, new)]), outside);
    }

    /// A gateway wants it shown that it writes; nobody waits for that.
    pub(super) fn typing(&mut self, asked: Asked, outside: &mut Outside) {
        let id = self.put(asked, false, Owner(0), None);
        self.happened(chat(asked), Event::TypingAsked(id), outside);
    }

    pub(super) fn put(
        &mut self,
        asked: Asked,
        awaited: bool,
        owner: Owner,
        number: Option<ActionId>,
    ) -> DeliveryId {
        self.numbers += 1;
        self.in_hand.insert(DeliveryId(self.numbers), InHand { asked, awaited, owner, number });
        DeliveryId(self.numbers)
    }

    /// Something comes of a call.
    pub(super) fn heard(&mut self, caller: Caller, heard: Heard, outside: &mut Outside) {
        let id = caller.id;
        let event = match heard {
            Heard::FirstPart(message_id) => Event::FirstPart(id, message_id),
            Heard::Outcome(outcome) => Event::Called { id, outcome, withdrawn: false },
        };
        self.happened(caller.chat, event, outside);
    }

    /// Time passed.
    pub(super) fn time(&mut self, outside: &mut Outside) {
        let now = self.clock(outside.now);
        let due = |(key, queue): (&ChatKey, &ChatQueue)| {
            queue.wakes_at().is_some_and(|then| then <= now).then_some(*key)
        };
        let due: Vec<ChatKey> = self.chats.iter().filter_map(due).collect();
        due.into_iter().for_each(|key| self.happened(key, Event::Time, outside));
    }

    /// It is to stop: nothing is begun any more.
    pub(super) fn stop(&mut self, outside: &mut Outside) {
        self.stopping = true;
        let chats: Vec<ChatKey> = self.chats.keys().copied().collect();
        chats.into_iter().for_each(|key| self.happened(key, Event::Stopping, outside));
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.chats.values().all(ChatQueue::is_idle)
    }

    fn clock(&self, now: Mono) -> Mono {
        now + self.ahead
    }

    /// Tells a chat's queue, and does what it wants done. What is known at once
    /// happens at once, with nothing in between.
    pub(super) fn happened(&mut self, key: ChatKey, event: Event, outside: &mut Outside) {
        let now = self.clock(outside.now);
        let mut next = VecDeque::from([event]);
        let mut effects = std::mem::take(&mut self.effects);
        while let Some(event) = next.pop_front() {
            outside.events += 1;
            let (node, member) = (self.node, self.member);
            outside.trace(|| format!("node {node}/{member} {key:?} hears {event:?}"));
            let stopping = self.stopping;
            let queue = self.chats.entry(key).or_insert_with(|| {
                let mut queue = ChatQueue::new(EgressTimings::default());
                if stopping {
                    queue.on(Event::Stopping, now, &mut Vec::new());
                }
                queue
            });
            queue.on(event, now, &mut effects);
            for effect in effects.drain(..) {
                next.extend(self.heed(key, effect, outside));
            }
        }
        self.effects = effects;
    }

    fn heed(&mut self, key: ChatKey, effect: Effect, outside: &mut Outside) -> Option<Event> {
        match effect {
            Effect::Authorize(id) => {
                let asked = self.in_hand.get(&id)?.asked;
                return Some(Event::Authorized(
                    id,
                    !outside.judge.is_revoked(asked.instance, asked.generation),
                ));
            }
            Effect::Release(id) => {
                let waits = |job: &Job| matches!(job, Job::Do(_, Effect::AskPermission { id: asks, .. }) if *asks == id);
                self.jobs.retain(|job| !waits(job));
            }
            Effect::Answer(id, answer) => self.answer(id, answer, outside),
            Effect::Call { id, .. } => self.call(key, id, outside),
            Effect::Ended { id, .. } => {
                if let Some(it) = self.in_hand.remove(&id).filter(|it| it.awaited && !self.stopping) {
                    outside.judge.ended(it.asked.request);
                }
            }
            Effect::Count(_) | Effect::Pause { .. } => {}
            other => self.jobs.push(Job::Do(key, other)),
        }
        None
    }

    fn answer(&self, id: DeliveryId, answer: ActionAnswer, outside: &mut Outside) {
        let Some(it) = self.in_hand.get(&id).filter(|it| it.awaited) else { return };
        let never = matches!(answer, ActionAnswer::NeverSent(_));
        outside.trace(|| format!("request {} is answered {answer:?}", it.asked.request));
        outside.judge.answered(it.asked.request, it.number, never);
        outside.answers.push((it.asked, answer));
    }

    fn call(&self, chat: ChatKey, id: DeliveryId, outside: &mut Outside) {
        let (node, member) = (self.node, self.member);
        let Some((owner, Some(action))) = self.in_hand.get(&id).map(|it| (it.owner, it.number)) else {
            return;
        };
        outside.trace(|| format!("node {node}/{member} calls for action {}", action.0));
        let caller = Caller { node, member, chat, id, owner, action };
        outside.judge.called(caller);
        outside.provider.call(caller, outside.now);
    }

    /// Does one of its jobs, or hears what came of it.
    pub(super) fn perform(&mut self, at: usize, outside: &mut Outside) {
        match self.jobs.swap_remove(at) {
            Job::Do(key, effect) => {
                let done = self.act(key, effect, outside);
                self.jobs.extend(done);
            }
            Job::Accepted(key, numbers) => {
                let claimed = vec![Claimed::default(); numbers.len()];
                for (id, number) in numbers {
                    if let Some(it) = self.in_hand.get_mut(&id) {
                        (it.number, it.owner) = (Some(number), self.own.unwrap_or_default());
                    }
                }
                self.happened(key, Event::Accepted(claimed), outside);
            }
            Job::Remarked(key, id, number) => {
                if let Some(event) = self.remarked(id, number) {
                    self.happened(key, event, outside);
                }
            }
            Job::Told(key, events) => events.into_iter().for_each(|it| self.happened(key, it, outside)),
            Job::Member(step) => self.take(step, outside),
        }
    }

    /// It is gone: what it asked the database for last may have been done or not.
    pub(super) fn crash(mut self, outside: &mut Outside) {
        outside.trace(|| format!("node {}/{} is gone", self.node, self.member));
        for job in std::mem::take(&mut self.jobs) {
            if let Job::Do(key, effect) = job
                && outside.dice.percent(50)
            {
                self.act(key, effect, outside);
            }
        }
        outside.provider.hang_up(self.member);
    }

    /// Does what a chat's queue wants done; what came of it.
    fn act(&mut self, key: ChatKey, effect: Effect, outside: &mut Outside) -> Option<Job> {
        let event = match effect {
            // What others left comes first.
            Effect::Accept(_) if self.inherits => return Some(Job::Do(key, effect)),
            Effect::Accept(ids) => return Some(self.accept(key, ids, outside)),
            Effect::Read(id) => match outside.store.body(self.in_hand.get(&id)?.number?) {
                Some(Some(_)) => Event::Read(
                    id,
                    Text::Read(repeats(key.bot, self.in_hand.get(&id)?.asked.edits.is_some())),
                ),
                Some(None) => Event::Read(id, Text::Gone),
                None => return Some(Job::Do(key, effect)),
            },
            Effect::AskPermission { id, .. } => Event::Permission(id, outside.permission()),
            Effect::Begin(id) => {
                let (owner, number) = self.fence(id, outside)?;
                let begun = match outside.store.begin(owner, number) {
                    Some(true) => {
                        outside.judge.begun(self.in_hand.get(&id)?.owner, number);
                        Begun::Ours
                    }
                    Some(false) => Begun::NotOurs,
                    None => Begun::StoreFails,
                };
                Event::Begun(id, begun)
            }
            Effect::Postpone(id) => {
                let (owner, number) = self.fence(id, outside)?;
                outside.store.postpone(owner, number);
                Event::Postponed(id)
            }
            Effect::Finish(ends) => return Some(self.finish(key, ends, outside)),
            Effect::LeaveOpen { id, outcome, .. } => return self.leave_open(key, (id, outcome), outside),
            Effect::ShowTyping(id) => Event::TypingShown(id),
            _ => return None,
        };
        Some(Job::Told(key, vec![event]))
    }

    /// As whom it acts on an action; the broken variants say what the ledger wants to hear.
    fn fence(&self, id: DeliveryId, outside: &Outside) -> Option<(Owner, ActionId)> {
        let (owner, number) = self.in_hand.get(&id).map(|it| (it.owner, it.number))?;
        let heard = match outside.variant {
            Variant::Sound | Variant::RemarkApart => Some(owner),
            Variant::NoFence | Variant::ResumeEverything => outside.judge.owner(number?),
        };
        Some((heard?, number?))
    }

    fn accept(&mut self, key: ChatKey, ids: Vec<DeliveryId>, outside: &mut Outside) -> Job {
        let asked: Vec<Asked> = ids.iter().filter_map(|id| self.in_hand.get(id)).map(|it| it.asked).collect();
        let wall = outside.store.wall();
        let entries = asked.iter().map(|asked| entry(*asked, wall)).collect();
        let accepted = self.own.and_then(|own| Some((own, outside.store.accept(own, entries)?)));
        let Some((own, accepted)) = accepted else {
            return Job::Told(key, vec![Event::NotAccepted("it is not written down".into())]);
        };
        for (asked, accepted) in asked.iter().zip(&accepted) {
            outside.trace(|| format!("request {} is action {}", asked.request, accepted.id.0));
            outside.judge.accepted(accepted.id, *asked, key, own);
        }
        Job::Accepted(key, ids.into_iter().zip(accepted.iter().map(|it| it.id)).collect())
    }

    /// Ends a message in doubt, and writes down what is said of it.
    fn leave_open(
        &self,
        key: ChatKey,
        (id, outcome): (DeliveryId, ActionOutcome),
        outside: &mut Outside,
    ) -> Option<Job> {
        let (owner, number) = self.fence(id, outside)?;
        let told = |durable| Job::Told(key, vec![Event::Finished { ids: vec![id], durable }]);
        let asked = Asked { remark_on: Some(number), ..self.in_hand.get(&id)?.asked };
        Some(match outside.leave_open(owner, (number, outcome), (asked, key)) {
            Some(LeftOpen::Remarked(remark)) => Job::Remarked(key, id, remark),
            Some(LeftOpen::NotOurs) => Job::Told(key, vec![Event::Disowned(vec![id])]),
            Some(LeftOpen::Before) => told(true),
            None => told(false),
        })
    }

    /// Takes what is said of a message in doubt into its hands.
    fn remarked(&mut self, id: DeliveryId, number: ActionId) -> Option<Event> {
        let InHand { asked, owner, number: message, .. } = self.in_hand.get(&id)?;
        let (asked, owner) = (Asked { remark_on: *message, edits: None, ..*asked }, *owner);
        let new = delivery::Asked {
            edits: None,
            follow_up: false,
            repeats: repeats(asked.bot, false),
            in_doubt: asked.in_doubt(),
        };
        let remark = self.put(asked, false, owner, Some(number));
        Some(Event::Remarked { id, remark, asked: new })
    }

    /// In one commit what is one owner's, as it mostly is.
    fn finish(&self, key: ChatKey, ends: Vec<(DeliveryId, ActionOutcome)>, outside: &mut Outside) -> Job {
        let mut by_owner = BTreeMap::<Owner, Vec<(DeliveryId, ActionId, ActionOutcome)>>::new();
        for (id, outcome) in ends {
            if let Some((owner, number)) = self.fence(id, outside) {
                by_owner.entry(owner).or_default().push((id, number, outcome));
            }
        }
        let mut events = Vec::new();
        for (owner, ends) in by_owner {
            let ids: Vec<(DeliveryId, ActionId)> =
                ends.iter().map(|(id, number, _)| (*id, *number)).collect();
            let ends = ends.into_iter().map(|(_, number, outcome)| (number, outcome)).collect();
            let others = outside.finish(owner, ends);
            let durable = others.is_some();
            let others = others.unwrap_or_default();
            let (lost, ours): (Vec<_>, Vec<_>) =
                ids.into_iter().partition(|(_, number)| others.contains(number));
            let event =
                |ids: Vec<(DeliveryId, ActionId)>| ids.into_iter().map(|(id, _)| id).collect::<Vec<_>>();
            events.push(Event::Finished { ids: event(ours), durable });
            events.extend((!lost.is_empty()).then(|| Event::Disowned(event(lost))));
        }
        Job::Told(key, events)
    }
}

pub(super) fn chat(asked: Asked) -> ChatKey {
    ChatKey { instance: asked.instance, bot: asked.bot }
}

/// What is changed; messages are called after the action that sent them.
pub(super) fn edited(asked: Asked, message: ActionId) -> Edited {
    Edited { message_id: format!("m{}", message.0), target: Target::chat(asked.bot.to_string()) }
}

/// What the ledger keeps.
pub(super) fn entry(asked: Asked, received_at: angelia_core::clock::UnixMillis) -> NewAction {
    NewAction {
        tenant: asked.instance.to_string(),
        instance: InstanceId(asked.instance as i64),
        gateway_id: Some(asked.generation.to_string()),
        platform: "sim".into(),
        bot: asked.bot.to_string(),
        chat_id: asked.bot.to_string(),
        thread_id: None,
        op: if asked.remark_on.is_some() { REMARK } else { SEND }.into(),
        edits: asked.edits.map(|message| message.0.to_string()),
        reply_to: None,
        body: Vec::new(),
        answering: None,
        received_at,
    }
}

/// Whether a call is permitted.
pub(super) fn permission(roll: usize) -> Permission {
    match roll {
        0..3 => Permission::Denied,
        3..8 => Permission::StoreFails,
        _ => Permission::Granted,
    }
}
