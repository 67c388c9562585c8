//! A bot's chats at hand: a bounded memory over the store.

use angelia_core::directory::{BotKey, Chat, KnownChat};
use angelia_core::error::Result;
use angelia_core::records::Records;
use angelia_core::store::DirectoryStore;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Chats kept in each half of the memory. A chat that is asked for stays; of the
/// others the older half goes when the younger one is full. Some 300 bytes each.
const HALF: usize = 50_000;
/// Chats remembered for not being in the store; one that is forgotten is asked for anew.
const ABSENT: usize = 10_000;

/// What a bot knows of its chats without asking anybody.
pub(crate) struct Directory {
    bot: BotKey,
    records: Arc<dyn Records>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    young: HashMap<String, Arc<KnownChat>>,
    old: HashMap<String, Arc<KnownChat>>,
    /// What the store was asked for and did not have.
    absent: HashSet<String>,
}

impl Memory {
    fn put(&mut self, chat: Arc<KnownChat>) {
        self.absent.remove(&chat.chat.chat_id);
        if self.young.len() >= HALF {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(chat.chat.chat_id.clone(), chat);
    }

    fn note_absent(&mut self, chat_id: &str) {
        if self.absent.len() >= ABSENT {
            self.absent.clear();
        }
        self.absent.insert(chat_id.to_owned());
    }

    fn get(&mut self, chat_id: &str) -> Option<Arc<KnownChat>> {
        if let Some(chat) = self.young.get(chat_id) {
            return Some(chat.clone());
        }
        let chat = self.old.remove(chat_id)?;
        self.put(chat.clone());
        Some(chat)
    }
}

impl Directory {
    /// The directory of one bot.
    pub(crate) fn new(bot: BotKey, records: Arc<dyn Records>) -> Self {
        Self { bot, records, memory: Mutex::default() }
    }

    /// A chat, if it is at hand.
    pub(crate) fn at_hand(&self, chat_id: &str) -> Option<Arc<KnownChat>> {
        self.memory().get(chat_id)
    }

    /// A chat, at hand or from the store.
    pub(crate) async fn find(&self, chat_id: &str) -> Result<Option<Arc<KnownChat>>> {
        if let Some(chat) = self.at_hand(chat_id) {
            return Ok(Some(chat));
        }
        let stored = self.records.chat(&self.bot, chat_id).await?.map(Arc::new);
        let mut memory = self.memory();
        // What was learnt while the store was asked is newer.
        if let Some(newer) = memory.get(chat_id) {
            return Ok(Some(newer));
        }
        match &stored {
            Some(chat) => memory.put(chat.clone()),
            None => memory.note_absent(chat_id),
        }
        Ok(stored)
    }

    /// Whether the store was asked for a chat and did not have it, and nothing was heard of
    /// it since.
    pub(crate) fn is_absent(&self, chat_id: &str) -> bool {
        self.memory().absent.contains(chat_id)
    }

    /// Takes note of what a provider said of a chat; answers whether that is new,
    /// and has to be committed. A chat that is not at hand is always new: ask for
    /// it with [`Directory::find`] first where that matters.
    pub(crate) fn learn(&self, chat: &Chat) -> bool {
        let mut memory = self.memory();
        match memory.get(&chat.chat_id) {
            Some(known) if known.chat == *chat => false,
            Some(known) => {
                memory.put(Arc::new(KnownChat { chat: chat.clone(), ..(*known).clone() }));
                true
            }
            None => {
                memory.put(Arc::new(chat.clone().into()));
                true
            }
        }
    }

    /// Changes what is at hand of a chat; what is not at hand is read changed from the store.
    pub(crate) fn change(&self, chat_id: &str, change: impl FnOnce(&mut KnownChat)) {
        let mut memory = self.memory();
        if let Some(known) = memory.get(chat_id) {
            let mut known = (*known).clone();
            change(&mut known);
            memory.put(Arc::new(known));
        }
    }

    /// Forgets what is at hand of the chats that `gone` names.
    pub(crate) fn forget(&self, gone: impl Fn(&KnownChat) -> bool) {
        let mut memory = self.memory();
        memory.young.retain(|_, chat| !gone(chat));
        memory.old.retain(|_, chat| !gone(chat));
    }

    /// Forgets what is at hand of one chat.
    pub(crate) fn forget_chat(&self, chat_id: &str) {
        let mut memory = self.memory();
        memory.young.remove(chat_id);
        memory.old.remove(chat_id);
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_bounded() {
        let mut memory = Memory::default();
        for number in 0..2 * ABSENT {
            memory.note_absent(&number.to_string());
        }
        let newest = (2 * ABSENT - 1).to_string();
        assert!(memory.absent.len() <= ABSENT && memory.absent.contains(&newest));
        memory.put(Arc::new(Chat::new(newest.as_str(), angelia_core::directory::ChatKind::Dm).into()));
        assert!(!memory.absent.contains(&newest), "they have written");
    }
}
