//! A bot's chats at hand: a bounded memory over the store.

use angelia_core::directory::{BotKey, Chat, KnownChat};
use angelia_core::error::Result;
use angelia_core::ports::Ports;
use angelia_core::records::Records;
use angelia_core::store::{DirectoryStore, Intake};
use hashlink::LruCache;
use parking_lot::Mutex;
use std::sync::Arc;

/// Chats kept at hand: those that were asked for last. Some 300 bytes each.
const KNOWN: usize = 100_000;
/// The same of chats that are not in the store; one that is forgotten is asked for anew.
const ABSENT: usize = 10_000;

/// What a bot knows of its chats without asking anybody.
pub(crate) struct Directory {
    bot: BotKey,
    records: Arc<dyn Records>,
    memory: Mutex<Memory>,
}

struct Memory {
    known: LruCache<String, Arc<KnownChat>>,
    /// What the store was asked for and did not have.
    absent: LruCache<String, ()>,
}

impl Memory {
    fn put(&mut self, chat: Arc<KnownChat>) {
        let chat_id = &chat.chat.chat_id;
        self.absent.remove(chat_id);
        self.known.insert(chat_id.clone(), chat);
    }

    /// Takes note of what a provider said of a chat; whether that is new. Who says nothing of
    /// its language changes none.
    fn learn(&mut self, chat: &Chat) -> bool {
        let new = match self.known.get(&chat.chat_id) {
            Some(known) => {
                let language = chat.language.or(known.chat.language);
                KnownChat { chat: Chat { language, ..chat.clone() }, ..(**known).clone() }
            }
            None => chat.clone().into(),
        };
        let differs = self.known.get(&chat.chat_id).is_none_or(|known| **known != new);
        if differs {
            self.put(Arc::new(new));
        }
        differs
    }
}

impl Directory {
    /// The directory of one bot.
    pub(crate) fn new(bot: BotKey, records: Arc<dyn Records>) -> Self {
        let memory = Memory { known: LruCache::new(KNOWN), absent: LruCache::new(ABSENT) };
        Self { bot, records, memory: Mutex::new(memory) }
    }

    /// A chat, if it is at hand.
    pub(crate) fn at_hand(&self, chat_id: &str) -> Option<Arc<KnownChat>> {
        self.memory.lock().known.get(chat_id).cloned()
    }

    /// A chat, at hand or from the store.
    pub(crate) async fn find(&self, chat_id: &str) -> Result<Option<Arc<KnownChat>>> {
        if let Some(chat) = self.at_hand(chat_id) {
            return Ok(Some(chat));
        }
        let stored = self.records.chat(&self.bot, chat_id).await?.map(Arc::new);
        let mut memory = self.memory.lock();
        // What was learnt while the store was asked is newer.
        if let Some(newer) = memory.known.get(chat_id).cloned() {
            return Ok(Some(newer));
        }
        match &stored {
            Some(chat) => memory.put(chat.clone()),
            None => drop(memory.absent.insert(chat_id.to_owned(), ())),
        }
        Ok(stored)
    }

    /// Whether the store was asked for a chat and did not have it, and nothing was heard of
    /// it since.
    pub(crate) fn is_absent(&self, chat_id: &str) -> bool {
        self.memory.lock().absent.get(chat_id).is_some()
    }

    /// Takes note of what a provider said of a chat; answers whether that is new,
    /// and has to be committed. A chat that is not at hand is always new: ask for
    /// it with [`Directory::find`] first where that matters.
    pub(crate) fn learn(&self, chat: &Chat) -> bool {
        self.memory.lock().learn(chat)
    }

    /// Takes note of chats; answers those that are new. Whoever does not commit them
    /// has to [`unlearn`](Self::unlearn) them.
    pub(crate) async fn learn_all(&self, chats: Vec<Chat>) -> Result<Vec<Chat>> {
        for chat in &chats {
            // Else what was known of it besides would look forgotten. All before the
            // first is learnt: what is at hand counts as committed.
            self.find(&chat.chat_id).await?;
        }
        Ok(chats.into_iter().filter(|chat| self.learn(chat)).collect())
    }

    /// Forgets at hand what was not committed, so that it is new again.
    pub(crate) fn unlearn(&self, chats: &[Chat]) {
        chats.iter().for_each(|chat| self.forget_chat(&chat.chat_id));
    }

    /// Keeps what a provider said of a chat, durably.
    pub(crate) async fn keep(&self, chat: Chat, ports: &Ports) -> Result<Arc<KnownChat>> {
        let chats = self.learn_all(vec![chat.clone()]).await?;
        if !chats.is_empty() {
            let intake = Intake { chats, ..Intake::default() };
            let kept = ports.ingest.take_in(&self.bot, None, vec![intake]).await;
            // Else nobody would try to keep it again.
            kept.inspect_err(|_| self.forget_chat(&chat.chat_id))?;
        }
        let known = self.find(&chat.chat_id).await?;
        Ok(known.unwrap_or_else(|| Arc::new(chat.into())))
    }

    /// Changes what is at hand of a chat; what is not at hand is read changed from the store.
    pub(crate) fn change(&self, chat_id: &str, change: impl FnOnce(&mut KnownChat)) {
        let mut memory = self.memory.lock();
        if let Some(known) = memory.known.get(chat_id).cloned() {
            let mut known = (*known).clone();
            change(&mut known);
            memory.put(Arc::new(known));
        }
    }

    /// Forgets what is at hand of the chats that `gone` names.
    pub(crate) fn forget(&self, gone: impl Fn(&KnownChat) -> bool) {
        self.memory.lock().known.retain(|_, chat| !gone(chat));
    }

    /// Forgets what is at hand of one chat.
    pub(crate) fn forget_chat(&self, chat_id: &str) {
        self.memory.lock().known.remove(chat_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::directory::ChatKind;
    use angelia_core::own_words::Language;

    #[test]
    fn a_language_stays_until_another_one_is_told() {
        let mut memory = Memory { known: LruCache::new(9), absent: LruCache::new(9) };
        let said = |language| Chat { language, ..Chat::new("ann", ChatKind::Dm) };
        assert!(memory.learn(&said(Some(Language::German))));
        assert!(!memory.learn(&said(None)), "that is nothing new");
        assert_eq!(memory.known.get("ann").unwrap().chat.language, Some(Language::German));
        assert!(memory.learn(&said(Some(Language::English))));
        assert_eq!(memory.known.get("ann").unwrap().chat.language, Some(Language::English));
    }

    #[test]
    fn whoever_has_written_is_absent_no_more() {
        let mut memory = Memory { known: LruCache::new(9), absent: LruCache::new(9) };
        memory.absent.insert("ann".into(), ());
        memory.put(Arc::new(Chat::new("ann", ChatKind::Dm).into()));
        assert!(memory.absent.get("ann").is_none() && memory.known.get("ann").is_some());
    }
}
