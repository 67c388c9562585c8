//! What a bot's own messages show, as far as it is remembered.

use angelia_core::secret::fingerprint;
use hashlink::LruCache;
use parking_lot::Mutex;
use std::borrow::Borrow;
use std::hash::Hash;

/// What a message shows, recognised and not kept.
pub(crate) type Print = [u8; 32];

/// What the bot's own messages show, as far as it is remembered: an edit of a long text
/// changes its last messages, and a call for each of the others is spared.
#[derive(Debug)]
pub(crate) struct SentMessages<K>(Mutex<LruCache<K, Print>>);

impl<K: Eq + Hash> SentMessages<K> {
    /// A memory of the last `most` messages.
    pub(crate) fn new(most: usize) -> Self {
        Self(Mutex::new(LruCache::new(most)))
    }

    /// A message shows this now.
    pub(crate) fn note(&self, message: impl Into<K>, text: &str) {
        self.0.lock().insert(message.into(), fingerprint(text));
    }

    /// Whether a message is known to show just this.
    pub(crate) fn shows<Q: Eq + Hash + ?Sized>(&self, message: &Q, text: &str) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.lock().get(message) == Some(&fingerprint(text))
    }

    /// Whether a message is known to be the bot's own.
    pub(crate) fn knows<Q: Eq + Hash + ?Sized>(&self, message: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.lock().get(message).is_some()
    }

    /// Nobody knows any more what any message shows: another node may have changed them.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Nobody knows any more what a message shows.
    pub(crate) fn forget<Q: Eq + Hash + ?Sized>(&self, message: &Q)
    where
        K: Borrow<Q>,
    {
        self.0.lock().remove(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_known_by_what_it_shows() {
        let sent = SentMessages::<String>::new(100);
        sent.note("1", "a");
        assert!(sent.shows("1", "a") && sent.knows("1"));
        assert!(!sent.shows("1", "b") && !sent.shows("2", "a") && !sent.knows("2"));
        sent.note("1", "b");
        assert!(sent.shows("1", "b"));
        sent.forget("1");
        assert!(!sent.knows("1") && !sent.shows("1", "b"));
    }

    #[test]
    fn only_the_last_are_remembered() {
        let sent = SentMessages::<String>::new(2);
        ["1", "2", "3"].iter().for_each(|message| sent.note(*message, "a"));
        assert!(!sent.knows("1") && sent.knows("2") && sent.knows("3"));
    }
}
