//! One queue per chat that has something to do.
//!
//! Two workers serve a lane for as long as there is work. One makes what
//! arrives durable, in order, whatever the other is doing; the other performs
//! it, one action at a time. An edit that a newer one of the same message
//! overtakes before it was begun is answered and not performed.

use super::answer::never_sent;
use super::errand::Errand;
use super::{aside, light};
use crate::server::Server;
use crate::telemetry::Counter;
use angelia_contract::action::ActionResult;
use angelia_core::clock::{self, Mono, UnixMillis};
use angelia_core::egress::{ANSWER_WITHIN, ActionState};
use angelia_core::fail;
use angelia_core::inbox::InstanceId;
use angelia_core::store::{Accepted, ActionId, ActionOutcome};
use angelia_core::vault::{LIVES_FOR, Use, Way};
use futures_util::FutureExt;
use futures_util::future::join_all;
use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Actions that may wait for one chat. Sockets wait for their answers, so only
/// a store or provider that stands still fills it.
const MAX_LANE: usize = 1_024;
/// Bytes that may wait for all chats of one instance: a provider that stands
/// still must not cost the server its memory.
const MAX_HELD: usize = 16 * 1024 * 1024;
/// What an action holds besides its text.
const OVERHEAD: usize = 1_024;
/// Actions accepted in one commit.
const BATCH: usize = 64;

/// A chat as one instance writes to it through one bot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    pub(super) instance: InstanceId,
    pub(super) bot: usize,
    /// As the provider counts it.
    pub(super) chat: String,
}

/// An action that is in the ledger and has to be performed.
#[derive(Clone)]
pub(super) struct Owed {
    pub(super) id: ActionId,
    pub(super) errand: Arc<Errand>,
    /// What it answers with.
    pub(super) uses: Option<Use>,
    /// How long it is tried for.
    pub(super) until: Mono,
    /// Whether it was found in the ledger at start.
    pub(super) resumed: bool,
    /// Whether an earlier call may have written it.
    pub(super) perhaps_sent: bool,
    /// When an earlier process first called the provider.
    pub(super) begun: Option<Begun>,
    /// Whether a newer edit took its place.
    pub(super) superseded: bool,
    /// What it holds of its instance's share; nothing reads it.
    pub(super) _room: Option<Arc<Room>>,
}

impl Owed {
    pub(super) fn new(accepted: Accepted, errand: Arc<Errand>, until: Mono) -> Self {
        let Accepted { id, uses, uses_until } = accepted;
        let until = until.max(takes_place_until(uses, uses_until));
        let (resumed, perhaps_sent, superseded) = (false, false, false);
        Self { id, errand, uses, until, resumed, perhaps_sent, begun: None, superseded, _room: None }
    }
}

/// How long what takes the place of "thinking…" is tried for at least: given up
/// sooner, that would stay there. After the end it is given to the chat.
fn takes_place_until(uses: Option<Use>, until: Option<UnixMillis>) -> Mono {
    let now = clock::mono();
    let lasts = until.and_then(|end| u64::try_from(end.0 - clock::wall().0).ok());
    match (uses, lasts) {
        (Some(Use { way: Way::Original, .. }), Some(lasts)) => {
            now + Duration::from_millis(lasts).min(LIVES_FOR) + ANSWER_WITHIN
        }
        _ => now,
    }
}

/// When a provider was first called, also by a process whose clock is gone.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    at: Mono,
    before: Duration,
}

impl Begun {
    /// So long ago.
    pub(super) fn ago(before: Duration) -> Self {
        Self { at: clock::mono(), before }
    }

    pub(super) fn elapsed(self) -> Duration {
        clock::mono().since(self.at).saturating_add(self.before)
    }
}

/// What the second worker of a lane does.
pub(super) enum Work {
    Owed(Owed),
    /// Shows that the agent writes; not in the ledger.
    Typing(Arc<Errand>),
}

impl Work {
    fn owed(&mut self) -> Option<&mut Owed> {
        match self {
            Self::Owed(owed) => Some(owed),
            Self::Typing(_) => None,
        }
    }
}

/// What is to be accepted, with the room it takes.
type Arrived = (Arc<Errand>, Arc<Room>);

#[derive(Default)]
struct Queue {
    arrived: VecDeque<Arrived>,
    ready: VecDeque<Work>,
    accepting: bool,
    performing: bool,
    /// Told of what became ready; whoever performs an edit listens.
    news: Arc<Notify>,
}

impl Queue {
    fn is_over(&self) -> bool {
        !self.accepting && !self.performing && self.arrived.is_empty() && self.ready.is_empty()
    }
}

/// All lanes of the server.
#[derive(Default)]
pub(super) struct Lanes {
    queues: Mutex<HashMap<Lane, Queue>>,
    held: Arc<Mutex<HashMap<InstanceId, usize>>>,
}

/// Bytes of an instance that wait; free again when it is dropped.
pub(super) struct Room {
    held: Arc<Mutex<HashMap<InstanceId, usize>>>,
    instance: InstanceId,
    bytes: usize,
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = held.get_mut(&self.instance) {
            *bytes = bytes.saturating_sub(self.bytes);
            if *bytes == 0 {
                held.remove(&self.instance);
            }
        }
    }
}

impl Lanes {
    fn queues(&self) -> MutexGuard<'_, HashMap<Lane, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn room(&self, instance: InstanceId, bytes: usize) -> Option<Arc<Room>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let now = held.get(&instance).copied().unwrap_or_default() + bytes;
        if now > MAX_HELD {
            return None;
        }
        held.insert(instance, now);
        Some(Arc::new(Room { held: self.held.clone(), instance, bytes }))
    }

    /// Whether nothing waits or is performed there.
    pub(super) fn is_idle(&self, lane: &Lane) -> bool {
        !self.queues().contains_key(lane)
    }

    /// Queues what arrived; tells whether a worker has to be started to accept
    /// it, or `None` if too much waits.
    fn arrive(&self, lane: Lane, errand: Arc<Errand>) -> Option<bool> {
        let room = self.room(lane.instance, errand.size() + OVERHEAD)?;
        let mut queues = self.queues();
        let queue = queues.entry(lane).or_default();
        if queue.arrived.len() + queue.ready.len() >= MAX_LANE {
            return None;
        }
        queue.arrived.push_back((errand, room));
        Some(!std::mem::replace(&mut queue.accepting, true))
    }

    /// What is to be accepted next; `None` ends the worker.
    fn arrived(&self, lane: &Lane) -> Option<Vec<Arrived>> {
        let mut queues = self.queues();
        let queue = queues.get_mut(lane)?;
        if queue.arrived.is_empty() {
            queue.accepting = false;
            if queue.is_over() {
                queues.remove(lane);
            }
            return None;
        }
        let count = queue.arrived.len().min(BATCH);
        Some(queue.arrived.drain(..count).collect())
    }

    /// Queues what is to be performed. Answers the edits that this overtakes,
    /// and whether a worker has to be started to perform it.
    pub(super) fn ready(&self, lane: &Lane, work: Vec<Work>) -> (Vec<Owed>, bool) {
        let mut overtaken = Vec::new();
        let mut queues = self.queues();
        let queue = queues.entry(lane.clone()).or_default();
        for mut item in work {
            if let Some(newer) = item.owed() {
                for older in queue.ready.iter_mut().filter_map(Work::owed) {
                    if !older.superseded && older.errand.edits_the_same(&newer.errand) {
                        older.superseded = true;
                        overtaken.push(older.clone());
                    }
                }
            }
            queue.ready.push_back(item);
        }
        queue.news.notify_one();
        (overtaken, !std::mem::replace(&mut queue.performing, true))
    }

    /// What is to be performed next; `None` ends the worker.
    fn next(&self, lane: &Lane) -> Option<Work> {
        let mut queues = self.queues();
        let queue = queues.get_mut(lane)?;
        let next = queue.ready.pop_front();
        if next.is_none() {
            queue.performing = false;
            if queue.is_over() {
                queues.remove(lane);
            }
        }
        next
    }

    /// Takes out what need not be performed any more.
    fn remove(&self, lane: &Lane, ids: &[ActionId]) {
        let mut queues = self.queues();
        if let Some(queue) = queues.get_mut(lane) {
            queue.ready.retain_mut(|work| work.owed().is_none_or(|owed| !ids.contains(&owed.id)));
        }
    }

    /// Whether an edit of the same message waits behind this one.
    pub(super) fn has_newer(&self, lane: &Lane, errand: &Errand) -> bool {
        let mut queues = self.queues();
        let Some(queue) = queues.get_mut(lane) else { return false };
        queue.ready.iter_mut().filter_map(Work::owed).any(|owed| owed.errand.edits_the_same(errand))
    }

    /// Tells when something became ready behind what is being performed.
    pub(super) fn news(&self, lane: &Lane) -> Arc<Notify> {
        self.queues().get(lane).map(|queue| queue.news.clone()).unwrap_or_default()
    }
}

/// Takes an action into its lane.
pub(super) fn enter(server: &Arc<Server>, errand: Arc<Errand>) {
    let lane = errand.lane(server);
    match server.egress.lanes.arrive(lane.clone(), errand.clone()) {
        Some(true) => drop(tokio::spawn(accept(server.clone(), lane))),
        Some(false) => {}
        None => errand.reply.give(never_sent("too much waits for this chat; nothing was sent")),
    }
}

/// Makes durable what arrives, in order.
async fn accept(server: Arc<Server>, lane: Lane) {
    while let Some(batch) = server.egress.lanes.arrived(&lane) {
        // What fails beyond reason must not take the chat's later actions with it.
        let _ = AssertUnwindSafe(accept_batch(&server, &lane, batch)).catch_unwind().await;
    }
}

async fn accept_batch(server: &Arc<Server>, lane: &Lane, batch: Vec<Arrived>) {
    let entries: Vec<_> =
        batch.iter().filter(|(errand, _)| errand.is_owed()).map(|(errand, _)| errand.entry(server)).collect();
    let accepted = match entries.is_empty() {
        true => Ok(Vec::new()),
        false => server.store.accept_actions(entries).await,
    };
    let Ok(accepted) = accepted else {
        let why = "the connector's store does not commit; nothing was sent";
        batch.iter().for_each(|(errand, _)| errand.reply.give(never_sent(why)));
        return;
    };
    accepted.iter().for_each(|_| fail::point("action_accepted"));
    let (until, mut accepted) = (clock::mono() + server.egress.timings.queued_for, accepted.into_iter());
    let work = batch.into_iter().filter_map(|(errand, room)| match errand.is_owed() {
        true => Some(Work::Owed(Owed { _room: Some(room), ..Owed::new(accepted.next()?, errand, until) })),
        false => Some(Work::Typing(errand)),
    });
    let (overtaken, start) = server.egress.lanes.ready(lane, work.collect());
    if start {
        tokio::spawn(perform(server.clone(), lane.clone()));
    }
    supersede(server, lane, &overtaken).await;
}

/// Answers and finishes edits that a newer one overtook. One whose end is not
/// durable stays in the lane, before the newer one: a restart must not show
/// the older text last.
async fn supersede(server: &Arc<Server>, lane: &Lane, overtaken: &[Owed]) {
    let ends = overtaken.iter().map(|owed| {
        let message_id = owed.errand.edits().unwrap_or_default();
        owed.errand.reply.give(ActionResult::sent(message_id));
        server.metrics.count(Counter::OutboundSuperseded);
        let outcome = ActionOutcome {
            state: ActionState::Superseded,
            message_id: Some(message_id.to_owned()),
            error: None,
        };
        server.store.finish_action(owed.id, outcome)
    });
    let ended = join_all(ends).await;
    let durable = overtaken.iter().zip(ended).filter(|(_, end)| end.is_ok());
    let ids: Vec<ActionId> = durable.map(|(owed, _)| owed.id).collect();
    if !ids.is_empty() {
        server.egress.lanes.remove(lane, &ids);
    }
}

/// Performs what is ready, one after the other.
pub(super) async fn perform(server: Arc<Server>, lane: Lane) {
    while let Some(work) = server.egress.lanes.next(&lane) {
        let done = async {
            match work {
                Work::Owed(owed) => aside::carry(&server, &lane, owed).await,
                Work::Typing(errand) => light::show_typing(&server, &errand).await,
            }
        };
        let _ = AssertUnwindSafe(done).catch_unwind().await;
    }
}
