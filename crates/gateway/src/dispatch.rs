//! From frames to turns: which task runs an agent for an event, and when.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use angelia_contract::{Event, Inbound, PassthroughForward, Rules, session_key};
use futures_util::FutureExt as _;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::acks::{Ack, Flooded};
use crate::agent::{Agent, Interrupted};
use crate::builder::AckWhen;
use crate::chat::Chat;
use crate::conversation::Conversation;
use crate::handle::GatewayHandle;
use crate::interaction::interaction_event;
use crate::lanes::{Enqueued, InboundItem, Job, Lanes};
use crate::repeated_events::fingerprint;
use crate::shared::{Shared, count};

/// What a turn works on.
enum Work {
    Event { event: Box<Event>, bot_id: Option<String> },
    Forward(PassthroughForward),
}

/// Hands deliveries to the agent. Dropping it ends all turns.
///
/// Nothing here makes the caller wait: it is the reader of the socket, and
/// turns wait for answers only that reader can deliver.
pub(crate) struct Dispatcher<A> {
    floor: Arc<Floor<A>>,
    tasks: JoinSet<()>,
}

/// What the tasks of all lanes share.
struct Floor<A> {
    agent: A,
    shared: Arc<Shared>,
    lanes: Mutex<Lanes<Work>>,
    turns: Semaphore,
    quiet: Notify,
}

impl<A: Agent> Dispatcher<A> {
    pub(crate) fn new(agent: A, shared: Arc<Shared>) -> Self {
        let early = shared.settings.ack_when == AckWhen::Queued;
        let floor = Floor {
            agent,
            lanes: Mutex::new(Lanes::new(shared.settings.max_backlog, early)),
            turns: Semaphore::new(shared.settings.max_turns),
            quiet: Notify::new(),
            shared,
        };
        Self { floor: Arc::new(floor), tasks: JoinSet::new() }
    }

    /// Takes in a message.
    pub(crate) fn inbound(&mut self, inbound: Inbound, ack: Option<Ack>) -> Result<(), Flooded> {
        self.event(inbound.event, inbound.bot_id, ack, true)
    }

    /// Takes in a forwarded request; an interaction becomes a message.
    ///
    /// Connectors do not wait for the acknowledgement of one.
    pub(crate) fn forward(&mut self, forward: PassthroughForward, ack: Option<Ack>) -> Result<(), Flooded> {
        if let Some(event) = interaction_event(&forward) {
            return self.event(event, Some(forward.bot_id), ack, false);
        }
        // A key no session can have, so that no interrupt finds it.
        let key = format!("passthrough:{}:{}", forward.platform, forward.bot_id);
        let work = Work::Forward(forward);
        self.admit(key, InboundItem { work, ack, awaited: false, fingerprint: None })
    }

    fn event(
        &mut self,
        event: Event,
        bot_id: Option<String>,
        ack: Option<Ack>,
        awaited: bool,
    ) -> Result<(), Flooded> {
        let fingerprint = fingerprint(&event);
        // A press answers the turn that waits for it, and begins none. It may come again, if its
        // acknowledgement does not get through.
        let questions = &self.floor.shared.questions;
        if event.prompt_response.as_ref().is_some_and(|it| questions.answer(it, &event.source)) {
            ack.iter().for_each(Ack::release);
            self.floor.lanes().handled(fingerprint);
            return Ok(());
        }
        let key = session_key(&event.source, &self.floor.shared.settings.keys, Rules::Newer);
        let work = Work::Event { event: Box::new(event), bot_id };
        self.admit(key, InboundItem { work, ack, awaited, fingerprint })
    }

    /// Stops the turn a connector means.
    pub(crate) fn interrupt(&self, session_key: String, chat_id: String) {
        let keys = &self.floor.shared.settings.keys;
        let turns = self.floor.lanes().interrupt(&session_key, &chat_id, keys);
        tracing::debug!(turns, "interrupt");
        let interrupted = Interrupted { session_key, chat_id, turns };
        let told = AssertUnwindSafe(|| self.floor.agent.on_interrupt(&interrupted));
        if std::panic::catch_unwind(told).is_err() {
            tracing::error!("the agent panicked over an interrupt");
        }
    }

    /// A way to wait for the end of all turns, apart from the dispatcher.
    pub(crate) fn turns(&self) -> impl Turns + use<A> {
        Arc::clone(&self.floor)
    }

    /// Fails if the connector has to deliver again, on another socket.
    fn admit(&mut self, key: String, delivery: InboundItem<Work>) -> Result<(), Flooded> {
        while self.tasks.try_join_next().is_some() {}
        let floor = &self.floor;
        let comes_again = delivery.ack.is_some();
        let admission = floor.lanes().admit(&key, delivery);
        match admission {
            Enqueued::NewLane => {
                self.tasks.spawn(Arc::clone(floor).run_lane(key));
            }
            Enqueued::Queued | Enqueued::Left => {}
            Enqueued::Repeated => count(&floor.shared.counters.repeated),
            Enqueued::Shed => {
                count(&floor.shared.counters.shed);
                tracing::warn!(comes_again, "too many events are waiting; one was not taken in");
                if comes_again {
                    return Err(Flooded);
                }
            }
        }
        Ok(())
    }
}

/// The running turns, seen from the one who wants them to end.
pub(crate) trait Turns: Send + Sync {
    /// Starts or stops leaving waiting work to the connector.
    fn drain(&self, draining: bool);
    /// Completes when no turn is running and nothing waits, or it was told
    /// to wait no longer.
    fn ended(&self, grace: Duration) -> impl Future<Output = ()> + Send;
}

impl<A: Agent> Turns for Arc<Floor<A>> {
    fn drain(&self, draining: bool) {
        self.lanes().draining = draining;
    }

    async fn ended(&self, grace: Duration) {
        let ended = async {
            loop {
                let quiet = self.quiet.notified();
                if self.lanes().is_empty() {
                    return;
                }
                quiet.await;
            }
        };
        if timeout(grace, ended).await.is_err() {
            tracing::warn!("the grace is over, and turns are still running or waiting");
        }
    }
}

impl<A: Agent> Floor<A> {
    /// Works through one lane until it is empty.
    async fn run_lane(self: Arc<Self>, key: String) {
        // One permit per turn, not per lane: a busy conversation stands in
        // line again after each of its turns.
        while let Ok(_turn) = self.turns.acquire().await {
            let Some(job) = self.next(&key) else { return };
            self.run(&key, job).await;
        }
    }

    fn next(&self, key: &str) -> Option<Job<Work>> {
        let mut lanes = self.lanes();
        let job = lanes.next(key);
        if lanes.is_empty() {
            self.quiet.notify_waiters();
        }
        job
    }

    async fn run(&self, key: &str, job: Job<Work>) {
        let Job { work, receipt, fingerprint } = job;
        let taken = || {
            if self.shared.settings.ack_when != AckWhen::Handled {
                receipt.release();
            }
        };
        match work {
            Work::Event { event, bot_id } => {
                // Before anything waits, so that no interrupt can be missed.
                let cancel = self.lanes().start(key, &event.source);
                taken();
                self.turn(key, *event, bot_id, cancel).await;
            }
            Work::Forward(forward) => {
                taken();
                let gateway = self.gateway();
                let handled = async { self.agent.on_passthrough(forward, gateway).await };
                self.guarded(handled).await;
            }
        }
        receipt.release();
        self.lanes().handled(fingerprint);
    }

    async fn turn(&self, key: &str, event: Event, bot_id: Option<String>, cancel: watch::Receiver<bool>) {
        let conversation = self.conversation(key, &event, bot_id, cancel.clone());
        // In a block of its own: the call may panic as well as its future.
        let turn = self.guarded(async { self.agent.on_event(event, conversation).await });
        if self.shared.settings.cooperative {
            return turn.await;
        }
        tokio::select! {
            biased;
            () = cancelled(cancel) => tracing::debug!("a turn was interrupted"),
            () = turn => {}
        }
    }

    fn conversation(
        &self,
        key: &str,
        event: &Event,
        bot_id: Option<String>,
        cancel: watch::Receiver<bool>,
    ) -> Conversation {
        let source = &event.source;
        let chat =
            Chat { bot_id: self.shared.bot_for(&source.platform, bot_id.as_deref()), ..Chat::from(source) };
        let anchor = event.message_id.as_deref().or(source.message_id.as_deref());
        Conversation {
            gateway: self.gateway(),
            source: Arc::new(source.clone()),
            chat: Arc::new(chat),
            session_key: Arc::from(key),
            message_id: anchor.filter(|id| !id.is_empty()).map(Arc::from),
            cancel,
        }
    }

    /// Runs the agent's code so that a panic ends this turn only.
    async fn guarded(&self, work: impl Future<Output = ()> + Send) {
        if AssertUnwindSafe(work).catch_unwind().await.is_err() {
            tracing::error!("the agent panicked; the turn is over");
        }
    }

    fn gateway(&self) -> GatewayHandle {
        GatewayHandle { shared: Arc::clone(&self.shared) }
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes<Work>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn cancelled(mut cancel: watch::Receiver<bool>) {
    if cancel.wait_for(|cancelled| *cancelled).await.is_err() {
        std::future::pending::<()>().await;
    }
}
