//! A bot's chats at hand: a bounded memory over the store.

use angelia_core::clock::{self, Mono};
use angelia_core::directory::{BotKey, Chat, KnownChat};
use angelia_core::error::Result;
use angelia_core::ports::Ports;
use angelia_core::records::Records;
use angelia_core::store::{DirectoryStore, Intake};
use hashlink::LruCache;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Chats kept at hand: those that were asked for last. Some 300 bytes each.
const KNOWN: usize = 100_000;
/// The same of chats that are not in the store; one that is forgotten is asked for anew.
const ABSENT: usize = 10_000;
/// For how long what was read counts where other nodes write to the store as well.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// For how long it is still at hand there for whoever cannot wait: somebody who is about to call
/// asked for it anew right before, and then waited for the provider's limits, some ten seconds.
const AT_HAND_FOR: Duration = Duration::from_secs(15);

/// What a bot knows of its chats without asking anybody.
pub(crate) struct Directory {
    bot: BotKey,
    records: Arc<dyn Records>,
    memory: Mutex<Memory>,
}

struct Memory {
    /// Whether other nodes write to the store as well.
    shared: bool,
    /// Since when only this node does, because it has the bot.
    only_here_since: Option<Mono>,
    known: LruCache<String, Known>,
    /// What the store was asked for and did not have, and when.
    absent: LruCache<String, Mono>,
}

/// A chat at hand.
#[derive(Clone)]
struct Known {
    chat: Arc<KnownChat>,
    /// When the store was asked for it, or it was new.
    read_at: Mono,
    /// When anything was last learnt of it here.
    learnt_at: Mono,
}

impl Memory {
    fn new(shared: bool) -> Self {
        let (known, absent) = (LruCache::new(KNOWN), LruCache::new(ABSENT));
        Self { shared, only_here_since: None, known, absent }
    }

    /// Whether what was read then may still be used so long after.
    fn counts(&self, read_at: Mono, within: Duration, now: Mono) -> bool {
        !self.shared || now.since(read_at) < within
    }

    /// What is known of a chat, if that was read not longer ago than `within`.
    fn get(&mut self, chat_id: &str, within: Duration, now: Mono) -> Option<Arc<KnownChat>> {
        let Known { chat, read_at, .. } = self.known.get(chat_id)?.clone();
        let only_here = self.only_here_since.is_some_and(|since| read_at >= since);
        (only_here || self.counts(read_at, within, now)).then_some(chat)
    }

    fn put(&mut self, chat: Arc<KnownChat>, read_at: Mono, learnt_at: Mono) {
        let chat_id = chat.chat.chat_id.clone();
        self.absent.remove(&chat_id);
        self.known.insert(chat_id, Known { chat, read_at, learnt_at });
    }

    /// The store was asked at `asked` and has this of a chat. What was learnt meanwhile is newer.
    fn read(&mut self, chat_id: &str, stored: Option<KnownChat>, asked: Mono) -> Option<Arc<KnownChat>> {
        if let Some(newer) = self.known.get(chat_id).filter(|known| !self.shared || known.learnt_at > asked) {
            return Some(newer.chat.clone());
        }
        let stored = stored.map(Arc::new);
        match &stored {
            Some(chat) => self.put(chat.clone(), asked, asked),
            None => {
                self.known.remove(chat_id);
                self.absent.insert(chat_id.to_owned(), asked);
            }
        }
        stored
    }

    /// Takes note of what a provider said of a chat; whether that is new. Who says nothing of
    /// its language changes none.
    fn learn(&mut self, chat: &Chat, now: Mono) -> bool {
        let (new, read_at) = match self.known.get(&chat.chat_id) {
            Some(Known { chat: known, read_at, .. }) => {
                let language = chat.language.or(known.chat.language);
                (KnownChat { chat: Chat { language, ..chat.clone() }, ..(**known).clone() }, *read_at)
            }
            None => (chat.clone().into(), now),
        };
        let differs = self.known.get(&chat.chat_id).is_none_or(|known| *known.chat != new);
        if differs {
            self.put(Arc::new(new), read_at, now);
        }
        differs
    }
}

impl Directory {
    /// The directory of one bot; `shared` says that other nodes write to the store as well.
    pub(crate) fn new(bot: BotKey, records: Arc<dyn Records>, shared: bool) -> Self {
        Self { bot, records, memory: Mutex::new(Memory::new(shared)) }
    }

    /// From now on only this node learns of the bot's chats, or others may again. What is absent
    /// may come by others either way.
    pub(crate) fn only_here(&self, only_here: bool) {
        self.memory.lock().only_here_since = only_here.then(clock::mono);
    }

    /// A chat, if it is at hand. Among other nodes it may be some seconds old: whoever can wait
    /// asks [`Directory::find`] before.
    pub(crate) fn at_hand(&self, chat_id: &str) -> Option<Arc<KnownChat>> {
        self.memory.lock().get(chat_id, AT_HAND_FOR, clock::mono())
    }

    /// A chat, at hand or from the store. Among other nodes what is at hand counts for a moment.
    pub(crate) async fn find(&self, chat_id: &str) -> Result<Option<Arc<KnownChat>>> {
        self.find_within(chat_id, FRESH_FOR).await
    }

    /// The same, as it is now: whoever has the bot may just have learnt that the chat moved.
    pub(crate) async fn find_now(&self, chat_id: &str) -> Result<Option<Arc<KnownChat>>> {
        self.find_within(chat_id, Duration::ZERO).await
    }

    async fn find_within(&self, chat_id: &str, within: Duration) -> Result<Option<Arc<KnownChat>>> {
        let asked = clock::mono();
        if let Some(chat) = self.memory.lock().get(chat_id, within, asked) {
            return Ok(Some(chat));
        }
        let stored = self.records.chat(&self.bot, chat_id).await?;
        Ok(self.memory.lock().read(chat_id, stored, asked))
    }

    /// Whether the store was asked for a chat and did not have it, and nothing was heard of
    /// it since; among other nodes, a moment ago.
    pub(crate) fn is_absent(&self, chat_id: &str) -> bool {
        let mut memory = self.memory.lock();
        let asked = memory.absent.get(chat_id).copied();
        asked.is_some_and(|asked| memory.counts(asked, FRESH_FOR, clock::mono()))
    }

    /// Takes note of what a provider said of a chat; answers whether that is new,
    /// and has to be committed. A chat that is not at hand is always new: ask for
    /// it with [`Directory::find`] first where that matters.
    pub(crate) fn learn(&self, chat: &Chat) -> bool {
        self.memory.lock().learn(chat, clock::mono())
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
        self.learn_all(vec![chat.clone()]).await?;
        // Whether it is new or not: who learnt it in the same moment may not have committed it
        // yet, and other nodes know what is in the store.
        let intake = Intake { chats: vec![chat.clone()], ..Intake::default() };
        let kept = ports.ingest.take_in(&self.bot, None, vec![intake]).await;
        // Else nobody would try to keep it again.
        kept.inspect_err(|_| self.forget_chat(&chat.chat_id))?;
        let known = self.find(&chat.chat_id).await?;
        Ok(known.unwrap_or_else(|| Arc::new(chat.into())))
    }

    /// Changes what is at hand of a chat; what is not at hand is read changed from the store.
    pub(crate) fn change(&self, chat_id: &str, change: impl FnOnce(&mut KnownChat)) {
        let mut memory = self.memory.lock();
        if let Some(Known { chat, read_at, .. }) = memory.known.get(chat_id).cloned() {
            let mut known = (*chat).clone();
            change(&mut known);
            memory.put(Arc::new(known), read_at, clock::mono());
        }
    }

    /// Forgets what is at hand of the chats that `gone` names.
    pub(crate) fn forget(&self, gone: impl Fn(&KnownChat) -> bool) {
        self.memory.lock().known.retain(|_, known| !gone(&known.chat));
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

    const NOW: Mono = Mono(Duration::from_secs(1_000));

    fn later(span: Duration) -> Mono {
        NOW + span
    }

    fn chat(chat_id: &str) -> Chat {
        Chat::new(chat_id, ChatKind::Dm)
    }

    #[test]
    fn a_language_stays_until_another_one_is_told() {
        let mut memory = Memory::new(false);
        let said = |language| Chat { language, ..chat("ann") };
        assert!(memory.learn(&said(Some(Language::German)), NOW));
        assert!(!memory.learn(&said(None), NOW), "that is nothing new");
        let language = |memory: &mut Memory| memory.known.get("ann").unwrap().chat.chat.language;
        assert_eq!(language(&mut memory), Some(Language::German));
        assert!(memory.learn(&said(Some(Language::English)), NOW));
        assert_eq!(language(&mut memory), Some(Language::English));
    }

    #[test]
    fn whoever_has_written_is_absent_no_more() {
        let mut memory = Memory::new(false);
        memory.absent.insert("ann".into(), NOW);
        memory.put(Arc::new(chat("ann").into()), NOW, NOW);
        assert!(memory.absent.get("ann").is_none() && memory.known.get("ann").is_some());
    }

    #[test]
    fn among_other_nodes_what_was_read_counts_for_a_moment() {
        for shared in [false, true] {
            let mut memory = Memory::new(shared);
            memory.read("ann", Some(chat("ann").into()), NOW);
            let mut knows = |within, after| memory.get("ann", within, later(after)).is_some();
            assert!(knows(FRESH_FOR, FRESH_FOR / 2));
            assert_eq!(knows(FRESH_FOR, FRESH_FOR), !shared, "the store is asked again");
            assert!(knows(AT_HAND_FOR, FRESH_FOR), "whoever cannot wait");
            assert_eq!(knows(AT_HAND_FOR, AT_HAND_FOR), !shared);
            assert_eq!(memory.counts(NOW, FRESH_FOR, later(FRESH_FOR)), !shared);
        }
    }

    #[test]
    fn whoever_has_the_bot_need_not_ask_for_what_it_read_since() {
        let mut memory = Memory::new(true);
        memory.read("before", Some(chat("before").into()), NOW);
        memory.only_here_since = Some(later(FRESH_FOR));
        memory.read("since", Some(chat("since").into()), later(FRESH_FOR));
        let long_after = later(Duration::from_secs(3600));
        assert!(memory.get("since", FRESH_FOR, long_after).is_some());
        assert!(memory.get("before", FRESH_FOR, long_after).is_none(), "others may have written it then");
        memory.only_here_since = None;
        assert!(memory.get("since", FRESH_FOR, long_after).is_none());
    }

    #[test]
    fn what_another_node_wrote_replaces_what_is_at_hand() {
        let mut memory = Memory::new(true);
        let named = |name: &str| KnownChat::from(Chat { name: Some(name.into()), ..chat("ann") });
        memory.read("ann", Some(named("old")), NOW);
        let read = memory.read("ann", Some(named("new")), later(FRESH_FOR)).unwrap();
        assert_eq!(read.chat.name.as_deref(), Some("new"));
        // What was learnt here while the store was asked is newer than its answer.
        memory.learn(&Chat { name: Some("newest".into()), ..chat("ann") }, later(3 * FRESH_FOR));
        let read = memory.read("ann", Some(named("new")), later(2 * FRESH_FOR)).unwrap();
        assert_eq!(read.chat.name.as_deref(), Some("newest"));
        assert!(memory.read("ann", None, later(4 * FRESH_FOR)).is_none(), "another node forgot it");
        assert!(memory.known.get("ann").is_none() && memory.absent.get("ann").is_some());
    }
}
