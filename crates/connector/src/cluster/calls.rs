//! Asking the node that has something, over the bus. A question may get lost, as may the answer:
//! whoever asks waits for a while and then goes on without.

use angelia_core::directory::BotKey;
use angelia_core::ports::{BoxFuture, Bus, Control, Hint};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Questions that wait for an answer at one time. Further ones go unasked.
const MAX_WAITING: usize = 10_000;
/// Inquiries of all nodes that wait at one time: an operator's questions, few at once.
const MAX_INQUIRIES: usize = 64;
/// Answers kept for one inquiry: more nodes than share one store.
const MAX_ANSWERS: usize = 64;

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Subject {
    /// What an agent wants done that is not written down.
    Egress,
    /// What a provider posted.
    Webhook,
}

/// Answers questions about a bot that this node has. `None`: nothing is answered.
pub(crate) type Answerer = Arc<dyn Fn(BotKey, Value) -> BoxFuture<'static, Option<Value>> + Send + Sync>;

/// Answers what all nodes are asked. `None`: nothing is answered.
pub(crate) type Answers = Box<dyn Fn(Value) -> BoxFuture<'static, Option<Value>> + Send + Sync>;

#[derive(Serialize, Deserialize)]
struct Question {
    about: Subject,
    what: Value,
}

/// Questions of this node, and what it answers to those of others.
pub(crate) struct Calls {
    node: String,
    bus: Arc<dyn Bus>,
    last: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Value>>>,
    egress: OnceLock<Answerer>,
    webhooks: OnceLock<Answerer>,
    /// Answers to what all nodes are asked.
    inquiries: Mutex<HashMap<u64, mpsc::Sender<Value>>>,
    inquired: OnceLock<Answers>,
}

impl Calls {
    pub(super) fn new(node: String, bus: Arc<dyn Bus>) -> Self {
        let (last, waiting) = (AtomicU64::new(0), Mutex::default());
        let (egress, webhooks) = (OnceLock::new(), OnceLock::new());
        let (inquiries, inquired) = (Mutex::default(), OnceLock::new());
        Self { node, bus, last, waiting, egress, webhooks, inquiries, inquired }
    }

    /// Has questions of other nodes answered.
    pub(crate) fn answer_by(&self, about: Subject, answerer: Answerer) {
        let _ = self.answerer(about).set(answerer);
    }

    fn answerer(&self, about: Subject) -> &OnceLock<Answerer> {
        match about {
            Subject::Egress => &self.egress,
            Subject::Webhook => &self.webhooks,
        }
    }

    /// Asks the node that holds a bot; `None` if no answer comes in time.
    pub(crate) async fn ask(
        &self,
        bot: &BotKey,
        about: Subject,
        what: Value,
        within: Duration,
    ) -> Option<Value> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = self.waiting.lock();
            if waiting.len() >= MAX_WAITING {
                return None;
            }
            waiting.insert(id, answer);
        }
        let waits = Waits { calls: self, id };
        self.publish(bot, id, &Question { about, what });
        let answer = tokio::time::timeout(within, answered).await.ok()?.ok();
        drop(waits);
        answer
    }

    /// Tells the node that holds a bot something, and waits for nothing.
    pub(crate) fn tell(&self, bot: &BotKey, about: Subject, what: Value) {
        self.publish(bot, 0, &Question { about, what });
    }

    fn publish(&self, bot: &BotKey, id: u64, question: &Question) {
        // Made of values: it can be written.
        let body = serde_json::to_string(question).unwrap_or_default();
        let (bot, node) = (bot.clone(), self.node.clone());
        self.bus.publish(Hint::Control(Control::Call { bot, id, node, body }));
    }

    /// Has what all nodes are asked answered by this one.
    pub(crate) fn answer_all_by(&self, answers: Answers) {
        let _ = self.inquired.set(answers);
    }

    /// Asks all other nodes. Answers what `expected` of them said, or as many as did in time.
    pub(crate) async fn ask_all(&self, what: &Value, expected: usize, within: Duration) -> Vec<Value> {
        let mut answers = Vec::new();
        if expected == 0 || !self.bus.is_connected() {
            return answers;
        }
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (answer, mut answered) = mpsc::channel(MAX_ANSWERS);
        {
            let mut inquiries = self.inquiries.lock();
            if inquiries.len() >= MAX_INQUIRIES {
                return answers;
            }
            inquiries.insert(id, answer);
        }
        let _waits = Waits { calls: self, id };
        let (node, body) = (self.node.clone(), what.to_string());
        self.bus.publish(Hint::Control(Control::Inquiry { id, node, body }));
        let all = async {
            while answers.len() < expected
                && let Some(answer) = answered.recv().await
            {
                answers.push(answer);
            }
        };
        let _ = tokio::time::timeout(within, all).await;
        answers
    }

    /// Another node asks all of them.
    pub(super) fn inquired(self: &Arc<Self>, id: u64, node: String, body: &str) {
        if node == self.node {
            return;
        }
        let Ok(what) = serde_json::from_str(body) else { return };
        let Some(answer) = self.inquired.get().map(|answers| answers(what)) else { return };
        let calls = self.clone();
        tokio::spawn(async move {
            if let Some(answer) = answer.await {
                let body = answer.to_string();
                calls.bus.publish(Hint::Control(Control::Answer { node, id, body }));
            }
        });
    }

    /// Another node asks about a bot that this one has.
    pub(super) fn asked(self: &Arc<Self>, bot: BotKey, id: u64, node: String, body: &str) {
        let Ok(Question { about, what }) = serde_json::from_str(body) else { return };
        let Some(answerer) = self.answerer(about).get().cloned() else { return };
        let calls = self.clone();
        tokio::spawn(async move {
            if let Some(answer) = answerer(bot, what).await
                && id != 0
            {
                let body = answer.to_string();
                calls.bus.publish(Hint::Control(Control::Answer { node, id, body }));
            }
        });
    }

    /// An answer came.
    pub(super) fn answered(&self, node: &str, id: u64, body: &str) {
        if node != self.node {
            return;
        }
        let Ok(answer) = serde_json::from_str(body) else { return };
        if let Some(inquiry) = self.inquiries.lock().get(&id) {
            let _ = inquiry.try_send(answer);
        } else if let Some(waiting) = self.waiting.lock().remove(&id) {
            let _ = waiting.send(answer);
        }
    }
}

/// Waiting for an answer; nobody does any more once this is dropped.
struct Waits<'a> {
    calls: &'a Calls,
    id: u64,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.calls.waiting.lock().remove(&self.id);
        self.calls.inquiries.lock().remove(&self.id);
    }
}
