//! Texts that went out as several messages: an action has the id of the first, and
//! receipts come for each.

use hashlink::LruCache;
use parking_lot::Mutex;

/// Parts remembered, some 100 bytes each: those of a day. A receipt of an older one is lost.
const REMEMBERED: usize = 10_000;

/// The further messages of texts, each with the first of its text.
pub(super) struct Parts(Mutex<LruCache<String, String>>);

impl Default for Parts {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(REMEMBERED)))
    }
}

impl Parts {
    /// A text goes on with this message.
    pub(super) fn add(&self, further: String, first: &str) {
        self.0.lock().insert(further, first.to_owned());
    }

    /// The first message of the text that this one goes on with.
    pub(super) fn first_of(&self, further: &str) -> Option<String> {
        self.0.lock().peek(further).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_know_their_beginning_as_long_as_there_is_room() {
        let parts = Parts::default();
        (0..=REMEMBERED).for_each(|n| parts.add(format!("SM{n}"), "SM"));
        assert_eq!((parts.first_of("SM0"), parts.first_of("SM1").as_deref()), (None, Some("SM")));
        assert_eq!(parts.0.lock().len(), REMEMBERED);
    }
}
