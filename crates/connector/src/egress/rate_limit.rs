//! Waiting for a call of a bot: as often as its provider lets it, shared fairly
//! by its tenants, and each chat at its own pace. Tenants whose calls are refused
//! again and again make none for a while.

use angelia_core::clock;
use angelia_core::egress::{Budget, Decision, Paces, Rate, RefusalCounts, Ticket, Urgency};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// The calls of one bot.
pub(super) struct RateLimit {
    queue: Option<Arc<FairQueue>>,
    paces: Mutex<Paces>,
}

/// A chat that a call is for, if its provider counts calls by chat.
pub(super) struct Paced {
    pub(super) chat: String,
    pub(super) rate: Rate,
    pub(super) urgency: Urgency,
}

/// Permission for one call; given back if it is not made.
pub(super) struct Permit(Option<(Arc<FairQueue>, String)>);

impl RateLimit {
    pub(super) fn new(rate: Option<Rate>) -> Self {
        let queue = rate.map(|rate| Arc::new(FairQueue::new(rate)));
        Self { queue, paces: Mutex::default() }
    }

    /// Waits for a call; tenants are let through as [`Budget`] says.
    pub(super) async fn turn(&self, tenant: &str) -> Permit {
        match &self.queue {
            Some(queue) => queue.turn(tenant).await,
            None => Permit(None),
        }
    }

    /// Waits for a call to a chat: first until the chat may be written to, so
    /// that nobody holds a turn that others could use, and then for the turn.
    pub(super) async fn turn_for(&self, tenant: &str, paced: Option<Paced>) -> Permit {
        let Some(Paced { chat, rate, urgency }) = paced else { return self.turn(tenant).await };
        loop {
            let now = clock::mono();
            let next = self.paces.lock().next_at(&chat, rate, urgency, now);
            if next > now {
                tokio::time::sleep(next.since(now)).await;
                continue;
            }
            let permit = self.turn(tenant).await;
            // Another instance may have written there while this one waited.
            if self.paces.lock().take(&chat, rate, urgency, clock::mono()).is_ok() {
                return permit;
            }
        }
    }

    /// Another node made the calls of this bot until now.
    pub(super) fn take_over(&self) {
        let now = clock::mono();
        self.paces.lock().take_over(now);
        if let Some(queue) = &self.queue {
            queue.state.lock().budget.take_over(now);
        }
    }

    /// The provider wants no call to this chat for a while.
    pub(super) fn pause_chat(&self, chat: &str, pause: Duration) {
        let now = clock::mono();
        self.paces.lock().pause(chat, now + pause, now);
    }

    /// The provider wants no call of this bot for a while.
    pub(super) fn pause(&self, pause: Duration) {
        if let Some(queue) = &self.queue {
            queue.state.lock().budget.pause(clock::mono() + pause);
        }
    }

    /// Takes a call that nobody waits for; `false` if there is none, or the chat
    /// is not to be written to now.
    pub(super) fn spare(&self, tenant: &str, paced: Option<Paced>) -> bool {
        let now = clock::mono();
        let rests = |it: Paced| self.paces.lock().next_at(&it.chat, it.rate, Urgency::Whole, now) > now;
        !paced.is_some_and(rests)
            && self.queue.as_ref().is_none_or(|queue| queue.state.lock().budget.spare(tenant, clock::mono()))
    }
}

impl Permit {
    /// The call is made now.
    pub(super) fn made(mut self) {
        if let Some((queue, tenant)) = self.0.take() {
            queue.state.lock().budget.made(&tenant, clock::mono());
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some((queue, tenant)) = self.0.take() {
            queue.state.lock().budget.give_back(&tenant);
            queue.returned.notify_one();
        }
    }
}

/// Lets those who wait through, one by one.
struct FairQueue {
    state: Mutex<State>,
    /// A call was given back: somebody may go sooner.
    returned: Notify,
}

struct State {
    budget: Budget,
    waiting: HashMap<Ticket, (String, oneshot::Sender<Permit>)>,
    /// Whether a task looks after those who wait.
    attended: bool,
}

/// A place in the line; left when it is dropped.
struct InLine<'a> {
    queue: &'a FairQueue,
    tenant: &'a str,
    ticket: Ticket,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        state.budget.leave(self.tenant, self.ticket);
        let sender = state.waiting.remove(&self.ticket);
        drop((state, sender));
    }
}

impl FairQueue {
    fn new(rate: Rate) -> Self {
        let budget = Budget::new(rate, clock::mono());
        let state = State { budget, waiting: HashMap::new(), attended: false };
        Self { state: Mutex::new(state), returned: Notify::new() }
    }

    async fn turn(self: &Arc<Self>, tenant: &str) -> Permit {
        let (permit, granted) = oneshot::channel();
        let ticket = {
            let mut state = self.state.lock();
            let ticket = state.budget.join(tenant);
            state.waiting.insert(ticket, (tenant.to_owned(), permit));
            ticket
        };
        let _in_line = InLine { queue: self, tenant, ticket };
        if self.let_through() {
            tokio::spawn(self.clone().attend());
        }
        // The other end is dropped by nobody else.
        granted.await.unwrap_or(Permit(None))
    }

    /// Lets through whoever may go now; `true` if others wait and nobody looks after them.
    fn let_through(self: &Arc<Self>) -> bool {
        let mut through = Vec::new();
        let mut state = self.state.lock();
        let now = clock::mono();
        while let Some(ticket) = state.budget.grant(now) {
            through.extend(state.waiting.remove(&ticket));
        }
        let somebody_waits = state.budget.next_at().is_some();
        let unattended = somebody_waits && !std::mem::replace(&mut state.attended, somebody_waits);
        drop(state);
        for (tenant, permit) in through {
            // Whoever is gone gives it back.
            let _ = permit.send(Permit(Some((self.clone(), tenant))));
        }
        unattended
    }

    /// Lets others through as time earns it, until nobody waits.
    async fn attend(self: Arc<Self>) {
        loop {
            let next = {
                let mut state = self.state.lock();
                let next = state.budget.next_at();
                state.attended = next.is_some();
                next
            };
            let Some(next) = next else { return };
            tokio::select! {
                () = tokio::time::sleep(next.since(clock::mono())) => {}
                () = self.returned.notified() => {}
            }
            self.let_through();
        }
    }
}

/// Stops tenants whose calls are refused again and again: refusals get a bot banned for all.
#[derive(Default)]
pub(super) struct RefusalLimit {
    refusals: Mutex<RefusalCounts>,
    /// A call is over: others may be let through.
    over: Notify,
}

/// Permission for one call that may be refused.
pub(super) struct Slot {
    limit: Arc<RefusalLimit>,
    tenant: String,
    refused: bool,
}

impl Slot {
    /// The call is over.
    pub(super) fn over(mut self, refused: bool) {
        self.refused = refused;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.limit.refusals.lock().done(&self.tenant, self.refused, clock::mono());
        self.limit.over.notify_waiters();
    }
}

impl RefusalLimit {
    /// Waits for permission to call; `None` if too many of the tenant's calls were refused.
    pub(super) async fn slot(self: &Arc<Self>, tenant: &str) -> Option<Slot> {
        loop {
            let mut over = std::pin::pin!(self.over.notified());
            over.as_mut().enable();
            match self.ask(tenant) {
                Decision::Go => return Some(self.taken(tenant)),
                Decision::No => return None,
                Decision::Wait => over.await,
            }
        }
    }

    /// The same, for what is not worth waiting for.
    pub(super) fn slot_at_once(self: &Arc<Self>, tenant: &str) -> Option<Slot> {
        (self.ask(tenant) == Decision::Go).then(|| self.taken(tenant))
    }

    fn ask(&self, tenant: &str) -> Decision {
        self.refusals.lock().ask(tenant, clock::mono())
    }

    fn taken(self: &Arc<Self>, tenant: &str) -> Slot {
        Slot { limit: self.clone(), tenant: tenant.to_owned(), refused: false }
    }
}
