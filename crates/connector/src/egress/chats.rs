//! The chats that have something to do, and the way to the task of each.

use super::Egress;
use super::action::{OutboundAction, never_sent};
use super::chat_task::ChatTask;
use super::elsewhere;
use super::outbox::ActingAs;
use angelia_contract::action::Action;
use angelia_core::egress::delivery::{DeliveryId, MAX_WAITING};
use angelia_core::egress::{SEND, Target};
use angelia_core::inbox::InstanceId;
use angelia_core::ports::StoredAction;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::Notify;

/// A chat as one instance writes to it through one bot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ChatKey {
    pub(super) instance: InstanceId,
    pub(super) bot: usize,
    /// As the provider counts it.
    pub(super) chat: String,
}

impl ChatKey {
    pub(super) fn of(egress: &Egress, instance: InstanceId, bot: usize, target: &Target) -> Self {
        Self { instance, bot, chat: egress.bots[bot].chat_key(target) }
    }
}

/// What comes to a chat's task from outside.
pub(super) enum News {
    /// A gateway asks for something.
    Asked(Arc<OutboundAction>),
    /// These were found in the ledger, oldest first.
    Adopted {
        stored: Vec<StoredAction>,
        /// As whom they are worked on.
        under: ActingAs,
        /// Whether nobody worked on them before.
        untouched: bool,
    },
}

/// The provider has the first part of a message.
pub(super) struct FirstPart(pub(super) DeliveryId, pub(super) String);

/// What a chat's task has not taken yet. It takes all there is as soon as it is told.
#[derive(Default)]
pub(super) struct Inbox {
    news: Mutex<VecDeque<News>>,
    first_parts: Mutex<Vec<FirstPart>>,
    told: Notify,
    ending: Mutex<Option<Ending>>,
}

/// Why a chat's task ends before it has nothing left to do: its bot goes to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It begins nothing more.
    Closing,
    /// It has taken too long.
    CutOff,
}

impl Inbox {
    pub(super) fn tell(&self, news: News) {
        self.news.lock().push_back(news);
        self.told.notify_one();
    }

    pub(super) fn tell_first_part(&self, first: FirstPart) {
        self.first_parts.lock().push(first);
        self.told.notify_one();
    }

    fn end(&self, ending: Ending) {
        *self.ending.lock() = Some(ending);
        self.told.notify_one();
    }

    /// Whether the task is to end.
    pub(super) fn ending(&self) -> Option<Ending> {
        *self.ending.lock()
    }

    /// Resolves when there may be news.
    pub(super) async fn told(&self) {
        self.told.notified().await;
    }

    pub(super) fn take(&self) -> VecDeque<News> {
        std::mem::take(&mut *self.news.lock())
    }

    pub(super) fn take_first_parts(&self) -> Vec<FirstPart> {
        std::mem::take(&mut *self.first_parts.lock())
    }
}

/// The queues of all chats that have something to do; each has one task.
#[derive(Default)]
pub(super) struct ChatQueues {
    chats: Mutex<HashMap<ChatKey, Arc<Inbox>>>,
}

impl ChatQueues {
    /// Tells a chat's task; one that has to be started for it is answered.
    fn tell(&self, key: &ChatKey, news: News) -> Result<Option<Arc<Inbox>>, News> {
        let mut chats = self.chats.lock();
        if let Some(inbox) = chats.get(key) {
            if inbox.news.lock().len() >= MAX_WAITING {
                return Err(news);
            }
            inbox.tell(news);
            return Ok(None);
        }
        let inbox = Arc::<Inbox>::default();
        inbox.tell(news);
        chats.insert(key.clone(), inbox.clone());
        Ok(Some(inbox))
    }

    /// Takes a chat out that has nothing to do; `false` if something came meanwhile.
    pub(super) fn leave(&self, key: &ChatKey, inbox: &Arc<Inbox>) -> bool {
        let mut chats = self.chats.lock();
        let idle = inbox.news.lock().is_empty();
        if idle {
            remove(&mut chats, key, inbox);
        }
        idle
    }

    /// Lets the tasks of a bot's chats end.
    pub(super) fn close(&self, bot: usize) {
        let chats = self.chats.lock();
        chats.iter().filter(|(key, _)| key.bot == bot).for_each(|(_, inbox)| inbox.end(Ending::Closing));
    }

    /// Whether a bot has chats that have something to do.
    pub(super) fn is_busy(&self, bot: usize) -> bool {
        self.chats.lock().keys().any(|key| key.bot == bot)
    }

    /// Ends the tasks of a bot's chats, whatever they are at.
    pub(super) fn cut_off(&self, bot: usize) {
        let mut chats = self.chats.lock();
        chats.extract_if(|key, _| key.bot == bot).for_each(|(_, inbox)| inbox.end(Ending::CutOff));
    }

    /// Takes a chat out whose task ended by a panic, so that the next action starts another.
    pub(super) fn forget(&self, key: &ChatKey, inbox: &Arc<Inbox>) {
        remove(&mut self.chats.lock(), key, inbox);
    }
}

/// Unless another task has taken the place.
fn remove(chats: &mut HashMap<ChatKey, Arc<Inbox>>, key: &ChatKey, inbox: &Arc<Inbox>) {
    if chats.get(key).is_some_and(|there| Arc::ptr_eq(there, inbox)) {
        chats.remove(key);
    }
}

/// Takes an action into the queue of its chat.
pub(super) fn enter(egress: &Arc<Egress>, action: Arc<OutboundAction>) {
    let key = action.chat(egress);
    if matches!(action.action, Action::Send { .. }) {
        egress.drafts.sent(&key);
    }
    if egress.is_elsewhere(action.bot) || egress.elsewhere.is_busy(&key) {
        return elsewhere::enter(egress, key, action);
    }
    tell(egress, key, News::Asked(action));
}

/// Tells a chat's task, and starts it if there is none; `false` if too much waits for it. What is
/// in the ledger is found again then.
pub(super) fn tell(egress: &Arc<Egress>, key: ChatKey, news: News) -> bool {
    if let News::Adopted { stored, .. } = &news
        && stored.iter().any(|stored| stored.op == SEND)
    {
        egress.drafts.sent(&key);
    }
    match egress.chats.tell(&key, news) {
        Ok(None) => return true,
        Ok(Some(inbox)) => {
            tokio::spawn(ChatTask::new(egress.clone(), key, inbox).run());
            return true;
        }
        Err(News::Asked(action)) => {
            action.reply.give(never_sent("too much waits for this chat; nothing was sent"));
        }
        Err(News::Adopted { .. }) => {}
    }
    false
}
