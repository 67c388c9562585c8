//! What a stand-in knows, and how it asks its connector for something.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use angelia_contract::action::{Action, ActionResult, Metadata};
use angelia_contract::event::Event;
use angelia_contract::frame::{GatewayFrame, Outbound};
use angelia_contract::session_key::{KeyOptions, Rules, session_key};
use angelia_contract::{platform, source};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::diary::Diary;
use super::files::Home;
use super::link::Order;
use super::settings::Settings;

/// How long it waits for the result of anything it asks for.
const RESULT_WITHIN: Duration = Duration::from_secs(30);
/// How long it waits for the answer to its going idle.
const IDLE_CONFIRMED: Duration = Duration::from_secs(10);
/// Messages it remembers, to drop them when they come again.
const REMEMBERED: usize = 512;
/// Nudges that a turn has not seen yet.
const NUDGES: usize = 64;

/// What happens to a running turn.
#[derive(Debug)]
pub(super) enum Nudge {
    /// It is to stop.
    Interrupt,
    /// It is taken down by a command.
    Cancel,
    /// A text that came in the middle: the model is asked again, with it.
    Redirect(String),
    /// Somebody answered what the agent asked.
    Reply(String),
}

/// A conversation with a running turn.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) nudges: mpsc::Sender<Nudge>,
    /// Whether the agent waits for an answer in words.
    pub(super) asks: bool,
    /// Whether the agent waits for an approval.
    pub(super) wants_approval: bool,
}

#[derive(Debug, Default)]
struct State {
    orders: Option<mpsc::Sender<Order>>,
    /// What the first descriptor of the process offers; later ones are not looked at.
    ops: Option<Vec<String>>,
    requests: u64,
    awaited: HashMap<String, oneshot::Sender<ActionResult>>,
    idle_confirmed: Option<oneshot::Sender<()>>,
    seen: HashSet<String>,
    seen_in_order: VecDeque<String>,
    running: HashMap<String, Running>,
    /// Conversations it had so far.
    known: HashSet<String>,
    /// Texts of interrupted turns, by conversation.
    unanswered: HashMap<String, Vec<String>>,
    /// Open prompts, and the conversation that waits for each.
    prompts: HashMap<String, String>,
}

/// The process: it outlives its sockets.
#[derive(Debug)]
pub(super) struct Gateway {
    pub(super) settings: Settings,
    pub(super) diary: Diary,
    /// Whom it asks for files.
    pub(super) home: OnceLock<Home>,
    ready_at: Instant,
    state: Mutex<State>,
}

impl Gateway {
    pub(super) fn new(settings: Settings) -> Self {
        let ready_at = Instant::now() + settings.starts_for;
        Self { settings, diary: Diary::default(), home: OnceLock::new(), ready_at, state: Mutex::default() }
    }

    /// How long it is still about to start.
    pub(super) fn starts_for(&self) -> Option<Duration> {
        Some(self.ready_at.saturating_duration_since(Instant::now())).filter(|rest| !rest.is_zero())
    }

    /// Files an event as hermes does.
    pub(super) fn key(&self, event: &Event) -> String {
        let per_user = !self.settings.shares_sessions;
        let options = KeyOptions { group_sessions_per_user: per_user, ..KeyOptions::default() };
        session_key(&event.source, &options, Rules::Newer)
    }

    // --- its socket ---

    pub(super) fn attach(&self, orders: mpsc::Sender<Order>) {
        self.state().orders = Some(orders);
        self.diary.connected();
    }

    /// The socket is gone: whoever waits for a result is told so at once.
    pub(super) fn detach(&self) {
        let mut state = self.state();
        state.orders = None;
        state.awaited.clear();
    }

    pub(super) fn is_attached(&self) -> bool {
        self.state().orders.is_some()
    }

    /// Has something done with the socket, if there is one.
    pub(super) async fn order(&self, order: Order) {
        let orders = self.state().orders.clone();
        if let Some(orders) = orders {
            let _ = orders.send(order).await;
        }
    }

    pub(super) async fn write(&self, frame: &GatewayFrame) {
        self.order(Order::Write(frame.to_line())).await;
    }

    pub(super) fn described(&self, ops: Vec<String>) {
        self.state().ops.get_or_insert(ops);
    }

    pub(super) fn is_described(&self) -> bool {
        self.state().ops.is_some()
    }

    pub(super) fn is_offered(&self, op: &str) -> bool {
        self.state().ops.as_ref().is_some_and(|ops| ops.iter().any(|offered| offered == op))
    }

    /// Asks for an action and waits for its result: not at all without a socket, and no longer
    /// than half a minute with one.
    pub(super) async fn ask(&self, event: &Event, action: Action) -> ActionResult {
        let (result, orders, request) = {
            let mut state = self.state();
            let Some(orders) = state.orders.clone() else {
                return ActionResult::network("not connected");
            };
            state.requests += 1;
            let request = format!("{:032x}", state.requests);
            let (told, result) = oneshot::channel();
            state.awaited.insert(request.clone(), told);
            (result, orders, request)
        };
        let op = action.op().to_owned();
        let platform = platform::canonical(&event.source.platform);
        let named = (platform != source::RELAY).then(|| platform.to_owned());
        let frame =
            Outbound { request_id: request.clone(), action, bot_id: self.bot(platform), platform: named };
        let _ = orders.send(Order::Write(GatewayFrame::Outbound(frame).to_line())).await;
        let outcome = timeout(RESULT_WITHIN, result).await;
        self.state().awaited.remove(&request);
        let result = match outcome {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => ActionResult::network("connection lost"),
            Err(_) => ActionResult::timed_out("no result"),
        };
        self.diary.asked(op, result.success);
        result
    }

    fn bot(&self, platform: &str) -> Option<String> {
        let greeted = self.settings.identities.iter().find(|(greeted, _)| greeted == platform);
        greeted.filter(|(greeted, _)| greeted != source::RELAY).map(|(_, bot)| bot.clone())
    }

    pub(super) fn resolve(&self, request: &str, result: ActionResult) {
        if let Some(told) = self.state().awaited.remove(request) {
            let _ = told.send(result);
        }
    }

    /// Announces that it goes idle and leaves; whether the connector answered.
    pub(super) async fn go_idle(&self) -> bool {
        let (told, confirmed) = oneshot::channel();
        self.state().idle_confirmed = Some(told);
        self.write(&GatewayFrame::GoingIdle).await;
        let confirmed = matches!(timeout(IDLE_CONFIRMED, confirmed).await, Ok(Ok(())));
        self.order(Order::Close).await;
        confirmed
    }

    pub(super) fn idle_confirmed(&self) {
        if let Some(told) = self.state().idle_confirmed.take() {
            let _ = told.send(());
        }
    }

    // --- its conversations ---

    /// Whether a message came before; remembers it.
    pub(super) fn is_repeated(&self, event: &Event) -> bool {
        let Some(message) = event.message_id.as_deref().filter(|id| !id.is_empty()) else {
            return false;
        };
        let platform = platform::canonical(&event.source.platform);
        let name = format!("{platform}:{}:{message}", event.source.chat_id);
        let mut state = self.state();
        if !state.seen.insert(name.clone()) {
            return true;
        }
        state.seen_in_order.push_back(name);
        if state.seen_in_order.len() > REMEMBERED
            && let Some(oldest) = state.seen_in_order.pop_front()
        {
            state.seen.remove(&oldest);
        }
        false
    }

    /// Opens a turn; none if one is open.
    pub(super) fn open(&self, key: &str) -> Option<mpsc::Receiver<Nudge>> {
        let mut state = self.state();
        if state.running.contains_key(key) {
            return None;
        }
        let (nudges, nudged) = mpsc::channel(NUDGES);
        state.running.insert(key.to_owned(), Running { nudges, asks: false, wants_approval: false });
        Some(nudged)
    }

    /// Whether nothing was said in a conversation before.
    pub(super) fn is_first(&self, key: &str) -> bool {
        self.state().known.insert(key.to_owned())
    }

    pub(super) fn close(&self, key: &str) {
        self.state().running.remove(key);
    }

    /// Looks at, or changes, what a running turn waits for.
    pub(super) fn running<T>(&self, key: &str, look: impl FnOnce(&mut Running) -> T) -> Option<T> {
        self.state().running.get_mut(key).map(look)
    }

    /// Tells a running turn something; nothing happens without one.
    pub(super) fn nudge(&self, key: &str, nudge: Nudge) {
        self.running(key, |running| {
            let _ = running.nudges.try_send(nudge);
        });
    }

    /// Adds a text to what the model has not answered; all of that.
    pub(super) fn unanswered(&self, key: &str, text: &str) -> String {
        let mut state = self.state();
        let texts = state.unanswered.entry(key.to_owned()).or_default();
        texts.push(text.to_owned());
        texts.join("\n\n")
    }

    pub(super) fn answered(&self, key: &str) {
        self.state().unanswered.remove(key);
    }

    pub(super) fn prompt(&self, id: &str, key: &str) {
        self.state().prompts.insert(id.to_owned(), key.to_owned());
    }

    /// Takes an open prompt; the conversation that waits for it.
    pub(super) fn pressed(&self, id: &str) -> Option<String> {
        self.state().prompts.remove(id)
    }

    /// A poisoned lock only means that another task failed first.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line of text in the chat of an event.
pub(super) fn send(event: &Event, content: &str, reply_to: Option<String>, notify: bool) -> Action {
    let mut metadata = metadata(event);
    if notify {
        metadata.insert("notify".to_owned(), Value::Bool(true));
    }
    Action::Send { chat_id: event.source.chat_id.clone(), content: content.to_owned(), reply_to, metadata }
}

/// What goes along with everything: whose chat it is.
pub(super) fn metadata(event: &Event) -> Metadata {
    let given = [("user_id", &event.source.user_id), ("scope_id", &event.source.scope_id)];
    let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?.into())));
    given.chain(event.source.thread_id.clone().map(|id| ("thread_id".to_owned(), id.into()))).collect()
}
