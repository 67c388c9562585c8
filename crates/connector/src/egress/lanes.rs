//! One queue per chat that has something to do.
//!
//! Two workers serve a lane for as long as there is work. One makes what
//! arrives durable, in order, whatever the other is doing; the other performs
//! it, one action at a time. An edit that a newer one of the same message
//! overtakes before it was begun is answered and not performed.

use super::answer::never_sent;
use super::errand::Errand;
use super::{aside, light, resume};
use crate::server::Server;
use crate::telemetry::Counter;
use angelia_contract::action::ActionResult;
use angelia_core::clock::{self, Mono, UnixMillis};
use angelia_core::egress::{ANSWER_WITHIN, ActionState, Target};
use angelia_core::error::{Error, Kind};
use angelia_core::fail;
use angelia_core::inbox::InstanceId;
use angelia_core::store::{Accepted, ActionId, ActionOutcome, StoredAction};
use angelia_core::vault::{LIVES_FOR, Use, Way};
use futures_util::FutureExt;
use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Actions that may wait for one chat. Sockets wait for their answers, so only
/// a store or provider that stands still fills it.
const MAX_LANE: usize = 1_024;
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

impl Lane {
    pub(super) fn of(server: &Server, instance: InstanceId, bot: usize, target: &Target) -> Self {
        Self { instance, bot, chat: server.platforms()[bot].chat_key(target) }
    }
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
}

impl Owed {
    pub(super) fn new(accepted: Accepted, errand: Arc<Errand>, until: Mono) -> Self {
        let Accepted { id, uses, uses_until } = accepted;
        let until = until.max(takes_place_until(uses, uses_until));
        let (resumed, perhaps_sent, superseded) = (false, false, false);
        Self { id, errand, uses, until, resumed, perhaps_sent, begun: None, superseded }
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

/// An unfinished action of an earlier process; its body is still in the store.
pub(super) struct Resumed {
    pub(super) stored: StoredAction,
    pub(super) target: Target,
    /// Whether a newer edit took its place.
    pub(super) superseded: bool,
}

/// What the second worker of a lane does.
pub(super) enum Work {
    Owed(Owed),
    Resumed(Box<Resumed>),
    /// Shows that the agent writes; not in the ledger.
    Typing(Arc<Errand>),
}

impl Work {
    /// The message that it changes, and where that is.
    fn edits(&self) -> Option<(&str, &Target)> {
        match self {
            Self::Owed(owed) => Some((owed.errand.edits()?, &owed.errand.target)),
            Self::Resumed(resumed) => Some((resumed.stored.edits.as_deref()?, &resumed.target)),
            Self::Typing(_) => None,
        }
    }

    fn id(&self) -> Option<ActionId> {
        match self {
            Self::Owed(owed) => Some(owed.id),
            Self::Resumed(resumed) => Some(resumed.stored.id),
            Self::Typing(_) => None,
        }
    }

    /// Marks it as overtaken; what is to be answered and finished for it, if it is not marked already.
    fn overtake(&mut self) -> Option<Overtaken> {
        let (id, errand, superseded) = match self {
            Self::Owed(owed) => (owed.id, Some(owed.errand.clone()), &mut owed.superseded),
            Self::Resumed(resumed) => (resumed.stored.id, None, &mut resumed.superseded),
            Self::Typing(_) => return None,
        };
        if std::mem::replace(superseded, true) {
            return None;
        }
        let message_id = self.edits()?.0.to_owned();
        Some(Overtaken { id, message_id, errand })
    }
}

/// An edit whose place a newer one took.
pub(super) struct Overtaken {
    id: ActionId,
    message_id: String,
    /// Who waits for its answer.
    errand: Option<Arc<Errand>>,
}

#[derive(Default)]
struct Queue {
    arrived: VecDeque<Arc<Errand>>,
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
}

impl Lanes {
    fn queues(&self) -> MutexGuard<'_, HashMap<Lane, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing waits or is performed there.
    pub(super) fn is_idle(&self, lane: &Lane) -> bool {
        !self.queues().contains_key(lane)
    }

    /// Queues what arrived; tells whether a worker has to be started to accept
    /// it, or `None` if too much waits.
    fn arrive(&self, lane: Lane, errand: Arc<Errand>) -> Option<bool> {
        let mut queues = self.queues();
        let queue = queues.entry(lane).or_default();
        if queue.arrived.len() + queue.ready.len() >= MAX_LANE {
            return None;
        }
        queue.arrived.push_back(errand);
        Some(!std::mem::replace(&mut queue.accepting, true))
    }

    /// What is to be accepted next; `None` ends the worker.
    fn arrived(&self, lane: &Lane) -> Option<Vec<Arc<Errand>>> {
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
    pub(super) fn ready(&self, lane: &Lane, work: Vec<Work>) -> (Vec<Overtaken>, bool) {
        let mut overtaken = Vec::new();
        let mut queues = self.queues();
        let queue = queues.entry(lane.clone()).or_default();
        for item in work {
            if let Some(newer) = item.edits() {
                let older = queue.ready.iter_mut().filter(|older| older.edits() == Some(newer));
                overtaken.extend(older.filter_map(Work::overtake));
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
            queue.ready.retain(|work| work.id().is_none_or(|id| !ids.contains(&id)));
        }
    }

    /// Whether an edit of the same message waits behind this one.
    pub(super) fn has_newer(&self, lane: &Lane, errand: &Errand) -> bool {
        let Some(message_id) = errand.edits() else { return false };
        let queues = self.queues();
        let Some(queue) = queues.get(lane) else { return false };
        queue.ready.iter().any(|work| work.edits() == Some((message_id, &errand.target)))
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

async fn accept_batch(server: &Arc<Server>, lane: &Lane, batch: Vec<Arc<Errand>>) {
    let owed = batch.iter().filter(|errand| errand.is_owed());
    let entries: Vec<_> = owed.map(|errand| errand.entry(server)).collect();
    let accepted = match entries.is_empty() {
        true => Ok(Vec::new()),
        false => server.store.accept_actions(entries).await,
    };
    let accepted = match accepted {
        Ok(accepted) => accepted,
        Err(error) => return refuse(server, &batch, &error),
    };
    accepted.iter().for_each(|_| fail::point("action_accepted"));
    let (until, mut accepted) = (clock::mono() + server.egress.timings.queued_for, accepted.into_iter());
    let work = batch.into_iter().filter_map(|errand| match errand.is_owed() {
        true => Some(Work::Owed(Owed::new(accepted.next()?, errand, until))),
        false => Some(Work::Typing(errand)),
    });
    let (overtaken, start) = server.egress.lanes.ready(lane, work.collect());
    if start {
        tokio::spawn(perform(server.clone(), lane.clone()));
    }
    supersede(server, lane, overtaken).await;
}

/// Tells everybody why nothing of theirs was written down.
fn refuse(server: &Server, batch: &[Arc<Errand>], error: &Error) {
    let why = match error.kind() {
        // Of this tenant's own making, and its to mend.
        Kind::TooMany => {
            server.metrics.add(Counter::OutboundOverBudget, batch.len() as u64);
            error.to_string()
        }
        _ => "the connector's store does not commit; nothing was sent".to_owned(),
    };
    batch.iter().for_each(|errand| errand.reply.give(never_sent(&why)));
}

/// Answers and finishes edits that a newer one overtook. One whose end is not
/// durable stays in the lane, before the newer one: a restart must not show
/// the older text last.
pub(super) async fn supersede(server: &Arc<Server>, lane: &Lane, overtaken: Vec<Overtaken>) {
    if overtaken.is_empty() {
        return;
    }
    let mut ends = Vec::with_capacity(overtaken.len());
    for Overtaken { id, message_id, errand } in overtaken {
        server.metrics.count(Counter::OutboundSuperseded);
        if let Some(errand) = errand {
            errand.reply.give(ActionResult::sent(&message_id));
        }
        let state = ActionState::Superseded;
        ends.push((id, ActionOutcome { state, message_id: Some(message_id), error: None }));
    }
    let ids: Vec<ActionId> = ends.iter().map(|(id, _)| *id).collect();
    if server.store.finish_actions(ends).await.is_ok() {
        server.egress.lanes.remove(lane, &ids);
    }
}

/// Performs what is ready, one after the other.
pub(super) async fn perform(server: Arc<Server>, lane: Lane) {
    while let Some(work) = server.egress.lanes.next(&lane) {
        let done = async {
            match work {
                Work::Owed(owed) => aside::carry(&server, &lane, owed).await,
                Work::Resumed(resumed) => resume::carry(&server, &lane, *resumed).await,
                Work::Typing(errand) => light::show_typing(&server, &errand).await,
            }
        };
        let _ = AssertUnwindSafe(done).catch_unwind().await;
    }
}
