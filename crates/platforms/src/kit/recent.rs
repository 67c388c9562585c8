//! Bounded memories: what is asked for stays, and of the rest the older half goes
//! when the younger one is full.

use angelia_core::secret::fingerprint;
use parking_lot::Mutex;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// A map that remembers so many entries in each of its halves.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    half: usize,
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Eq + Hash, V: Clone> Recent<K, V> {
    /// One that remembers `half` entries, and up to as many older ones.
    pub(crate) fn new(half: usize) -> Self {
        Self { half, young: HashMap::new(), old: HashMap::new() }
    }

    pub(crate) fn put(&mut self, key: K, value: V) {
        if self.young.len() >= self.half {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if let Some(value) = self.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.put(key, value.clone());
        Some(value)
    }

    pub(crate) fn forget<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.young.remove(key);
        self.old.remove(key);
    }

    /// Forgets what `keep` does not name.
    pub(crate) fn retain(&mut self, keep: impl Fn(&V) -> bool) {
        self.young.retain(|_, value| keep(value));
        self.old.retain(|_, value| keep(value));
    }
}

/// What a message shows, recognised and not kept.
pub(crate) type Print = [u8; 32];

/// What the bot's own messages show, as far as it is remembered: an edit of a long text
/// changes its last messages, and a call for each of the others is spared.
#[derive(Debug)]
pub(crate) struct SentMessages<K>(Mutex<Recent<K, Print>>);

impl<K: Eq + Hash> SentMessages<K> {
    /// A memory of `half` messages, and up to as many older ones.
    pub(crate) fn new(half: usize) -> Self {
        Self(Mutex::new(Recent::new(half)))
    }

    /// A message shows this now.
    pub(crate) fn note(&self, message: impl Into<K>, text: &str) {
        self.0.lock().put(message.into(), fingerprint(text));
    }

    /// Whether a message is known to show just this.
    pub(crate) fn shows<Q: Eq + Hash + ?Sized>(&self, message: &Q, text: &str) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.lock().get(message) == Some(fingerprint(text))
    }

    /// Whether a message is known to be the bot's own.
    pub(crate) fn knows<Q: Eq + Hash + ?Sized>(&self, message: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.lock().get(message).is_some()
    }

    /// Nobody knows any more what a message shows.
    pub(crate) fn forget<Q: Eq + Hash + ?Sized>(&self, message: &Q)
    where
        K: Borrow<Q>,
    {
        self.0.lock().forget(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_of_the_rest_the_older_half_goes() {
        let mut recent = Recent::new(10);
        recent.put("a".to_owned(), 1);
        for n in 0..100 {
            recent.put(n.to_string(), n);
            assert_eq!(recent.get("a"), Some(1), "after {n}");
            assert!(recent.young.len() + recent.old.len() <= 20);
        }
        assert_eq!((recent.get("99"), recent.get("50")), (Some(99), None));
        recent.retain(|value| *value != 99);
        recent.forget("a");
        assert_eq!((recent.get("99"), recent.get("a"), recent.get("98")), (None, None, Some(98)));
    }

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
}
