//! Actions for a bot that another node holds: accepted here under the bot's outbox, performed
//! there, answered here.
//!
//! The ledger is the queue between the two. That something waits and how it ended is said over
//! the bus; whoever misses that looks in the ledger (docs/decisions/0046).

use super::action::{OutboundAction, Reply, never_sent, result};
use super::chats::{self, ChatKey, News};
use super::outbox::{LOOK_DEAF, LOOK_EVERY};
use super::perform::refusal;
use super::{Egress, asked};
use crate::supervise::Lifecycle;
use angelia_contract::action::{Action, ActionResult};
use angelia_core::clock::{self, Mono};
use angelia_core::directory::BotKey;
use angelia_core::egress::delivery::{MAX_WAITING, answer_of};
use angelia_core::egress::{ANSWER_WITHIN, Owner};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::fail;
use angelia_core::inbox::InstanceId;
use angelia_core::ports::{ActionId, Control, Hint, MAX_OUTCOMES};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Actions accepted in one commit.
const BATCH: usize = 64;
/// Answers that are waited for at one time: a socket waits for 64, and a node has many. Further
/// ones are refused, and their agent is told.
const MAX_PENDING: usize = 100_000;
/// How long is waited for somebody to hold a bot: longer than a node is believed to be there, and
/// shorter than a gateway waits.
const PATIENCE: Duration = Duration::from_secs(12);
/// How soon is looked again who holds a bot.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

const NOBODY: &str = "no node works for this bot just now; nothing was sent";
const TOO_MUCH: &str = "too much waits for other nodes; nothing was sent";

/// What waits to be accepted, and which answers are waited for.
#[derive(Default)]
pub(super) struct Elsewhere {
    /// What waits, chat by chat; each has a task.
    chats: Mutex<HashMap<ChatKey, VecDeque<Arc<OutboundAction>>>>,
    pending: Mutex<HashMap<ActionId, Pending>>,
    /// Under whom is accepted for each bot, as was last heard.
    owners: Mutex<HashMap<usize, Owner>>,
    look: Notify,
}

/// An answer that comes from another node.
struct Pending {
    reply: Reply,
    follow_up: bool,
    since: Mono,
}

impl Elsewhere {
    /// Whether something waits for a chat: what comes after it waits behind it.
    pub(super) fn is_busy(&self, key: &ChatKey) -> bool {
        self.chats.lock().contains_key(key)
    }

    /// Somebody waits for how an action ends, whoever performs it.
    pub(super) fn expect(&self, id: ActionId, action: &OutboundAction) {
        if let Some(reply) = action.reply.hand_on() {
            let (follow_up, since) = (action.is_follow_up(), clock::mono());
            self.pending.lock().insert(id, Pending { reply, follow_up, since });
        }
    }

    fn answer(&self, id: ActionId, result: impl FnOnce(bool) -> Option<ActionResult>) {
        let mut pending = self.pending.lock();
        let Some(result) = pending.get(&id).and_then(|it| result(it.follow_up)) else { return };
        let answered = pending.remove(&id);
        drop(pending);
        if let Some(answered) = answered {
            answered.reply.give(result);
        }
    }

    /// The next of a chat, in order; `None` if nothing waits, and its task ends.
    fn next(&self, key: &ChatKey) -> Option<Vec<Arc<OutboundAction>>> {
        let mut chats = self.chats.lock();
        let waiting = chats.get_mut(key)?;
        let next: Vec<_> = waiting.drain(..waiting.len().min(BATCH)).collect();
        if next.is_empty() {
            chats.remove(key);
            return None;
        }
        Some(next)
    }

    /// Hints may have been lost.
    pub(super) fn look(&self) {
        self.look.notify_one();
    }

    /// Those whose answers are waited for. Nobody waits for longer than a gateway does.
    fn waiting(&self) -> Vec<ActionId> {
        let (mut pending, now) = (self.pending.lock(), clock::mono());
        pending.retain(|_, it| now.since(it.since) < ANSWER_WITHIN);
        pending.keys().copied().collect()
    }
}

/// Has an action accepted for whoever holds its bot, after what waits for its chat.
pub(super) fn enter(egress: &Arc<Egress>, key: ChatKey, action: Arc<OutboundAction>) {
    if matches!(action.action, Action::Typing { .. }) {
        return asked::tell(egress, &action);
    }
    let elsewhere = &egress.elsewhere;
    if elsewhere.pending.lock().len() >= MAX_PENDING {
        return action.reply.give(never_sent(TOO_MUCH));
    }
    let mut chats = elsewhere.chats.lock();
    if let Some(waiting) = chats.get_mut(&key) {
        if waiting.len() >= MAX_WAITING {
            return action.reply.give(never_sent("too much waits for this chat; nothing was sent"));
        }
        return waiting.push_back(action);
    }
    chats.insert(key.clone(), VecDeque::from([action]));
    drop(chats);
    let egress = egress.clone();
    tokio::spawn(async move {
        let task = ChatOf { egress, key };
        while let Some(batch) = task.egress.elsewhere.next(&task.key) {
            task.accept(batch).await;
        }
    });
}

/// The task of a chat. Should it fail, the next action starts another.
struct ChatOf {
    egress: Arc<Egress>,
    key: ChatKey,
}

impl Drop for ChatOf {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.egress.elsewhere.chats.lock().remove(&self.key);
        }
    }
}

impl ChatOf {
    /// Has actions accepted, all or none; the next ones come after that.
    async fn accept(&self, batch: Vec<Arc<OutboundAction>>) {
        let (egress, bot, until) = (&self.egress, self.key.bot, clock::mono() + PATIENCE);
        loop {
            if !egress.is_elsewhere(bot) {
                // It is this node's by now.
                for action in batch {
                    chats::tell(egress, self.key.clone(), News::Asked(action));
                }
                return;
            }
            let why = match self.try_accept(&batch).await {
                Ok(true) => return,
                Ok(false) => NOBODY.to_owned(),
                Err(error) if error.kind() == Kind::Conflict => NOBODY.to_owned(),
                Err(error) => return refuse(&batch, &refusal(egress, batch.len(), &error)),
            };
            if clock::mono() >= until || egress.life.is_stopping() {
                return refuse(&batch, &why);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Has them accepted under whoever is noted for the bot; `false` if nobody is.
    async fn try_accept(&self, batch: &[Arc<OutboundAction>]) -> Result<bool> {
        let (egress, bot) = (&self.egress, self.key.bot);
        let key = egress.bot_key(bot);
        let Some(owner) = self.owner(&key).await? else { return Ok(false) };
        let entries = batch.iter().map(|action| action.entry(egress)).collect();
        let accepted = egress.ledger.accept(owner, entries).await.inspect_err(|error: &Error| {
            // Another node has the bot by now: who that is says the store.
            if error.kind() == Kind::Conflict {
                egress.elsewhere.owners.lock().remove(&bot);
            }
        })?;
        accepted.iter().for_each(|_| fail::point("action_accepted"));
        for (action, accepted) in batch.iter().zip(&accepted) {
            egress.elsewhere.expect(accepted.id, action);
        }
        egress.cluster.bus().publish(Hint::Control(Control::Waiting { bot: key }));
        Ok(true)
    }

    async fn owner(&self, key: &BotKey) -> Result<Option<Owner>> {
        let owners = &self.egress.elsewhere.owners;
        let known = owners.lock().get(&self.key.bot).copied();
        if known.is_some() {
            return Ok(known);
        }
        let owner = self.egress.ledger.outbox(key).await?;
        if let Some(owner) = owner {
            owners.lock().insert(self.key.bot, owner);
        }
        Ok(owner)
    }
}

fn refuse(batch: &[Arc<OutboundAction>], why: &str) {
    batch.iter().for_each(|action| action.reply.give(never_sent(why)));
}

impl Egress {
    /// What another node says of actions.
    pub(crate) fn hear(&self, control: Control) {
        match control {
            Control::Waiting { bot } => {
                let outbox = self.bots.position(&bot).and_then(|bot| self.outboxes[bot].as_ref());
                if let Some(outbox) = outbox {
                    outbox.look();
                }
            }
            Control::Done { action, result, .. } => {
                self.elsewhere.answer(action, |_| serde_json::from_str(&result).ok());
            }
            _ => {}
        }
    }

    /// Tells whoever waits for an action, on whichever node, what came of it.
    pub(super) fn tell_done(&self, action: ActionId, instance: InstanceId, result: &ActionResult) {
        // Made of strings: it can always be written.
        let result = serde_json::to_string(result).unwrap_or_default();
        self.cluster.bus().publish(Hint::Control(Control::Done { action, instance, result }));
    }

    /// Hints of other nodes may have been lost.
    pub(crate) fn look_now(&self) {
        self.outboxes.iter().flatten().for_each(super::outbox::Outbox::look);
        self.elsewhere.look();
    }

    /// Looks in the ledger how actions ended whose answers did not come.
    pub(super) async fn look_for_answers(self: Arc<Self>, life: Arc<Lifecycle>) {
        loop {
            let every = if self.cluster.hears_all() { LOOK_EVERY } else { LOOK_DEAF };
            let next = async { drop(tokio::time::timeout(every, self.elsewhere.look.notified()).await) };
            if life.unless_stopped(next).await.is_none() {
                return;
            }
            for some in self.elsewhere.waiting().chunks(MAX_OUTCOMES) {
                // What a store does not tell now it tells the next time.
                let Ok(ended) = self.ledger.outcomes(some.to_vec()).await else { break };
                for (id, outcome) in ended {
                    self.elsewhere.answer(id, |follow_up| answer_of(outcome, follow_up).map(result));
                }
            }
        }
    }
}
