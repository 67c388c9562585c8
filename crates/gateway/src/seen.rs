//! Recognising events that are delivered again.
//!
//! A connector delivers again whatever was not acknowledged when a connection
//! broke, including events this process already holds.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use angelia_contract::Event;

/// Settled events remembered, as many as hermes-agent remembers.
const MAX_SETTLED: usize = 512;
/// Ids collected for one waiting event; more deliveries than that in one
/// turn's time are not acknowledged, and so come again later.
const MAX_EXTRA_IDS: usize = 8;

/// A digest of what makes two deliveries the same event.
pub(crate) type Fingerprint = u64;

/// The fingerprint of an event; none if it has no message id to tell it by.
///
/// The text is part of it: an edit keeps the message id, and on some platforms
/// several presses of one prompt's buttons do too.
pub(crate) fn fingerprint(event: &Event) -> Option<Fingerprint> {
    let id = event.message_id.as_deref().filter(|id| !id.is_empty())?;
    let press = event.prompt_response.as_ref();
    let mut hasher = DefaultHasher::new();
    (&event.source.platform, &event.source.chat_id, id).hash(&mut hasher);
    (&event.source.user_id, &event.text).hash(&mut hasher);
    press.map(|press| (&press.prompt_id, &press.option_id)).hash(&mut hasher);
    Some(hasher.finish())
}

/// What is known about a delivery.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Never seen.
    New,
    /// Held and not acknowledged yet; the new id will be, with the first.
    Held,
    /// Acknowledged before; to be acknowledged again.
    Settled,
}

/// The memory of recent events.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Extra ids of events that are held; none for settled ones.
    events: HashMap<Fingerprint, Option<Vec<String>>>,
    settled: VecDeque<Fingerprint>,
}

impl Seen {
    /// Takes note of a delivery.
    pub(crate) fn note(&mut self, event: Fingerprint, buffer_id: Option<&str>) -> Delivery {
        match self.events.get_mut(&event) {
            None => {
                self.events.insert(event, Some(Vec::new()));
                Delivery::New
            }
            Some(Some(ids)) => {
                if let Some(id) = buffer_id
                    && ids.len() < MAX_EXTRA_IDS
                {
                    ids.push(id.to_owned());
                }
                Delivery::Held
            }
            Some(None) => Delivery::Settled,
        }
    }

    /// An event was acknowledged; gives the ids of its repeats.
    pub(crate) fn settle(&mut self, event: Fingerprint) -> Vec<String> {
        let Some(ids) = self.events.get_mut(&event).and_then(Option::take) else {
            return Vec::new();
        };
        if self.settled.len() == MAX_SETTLED
            && let Some(oldest) = self.settled.pop_front()
        {
            self.events.remove(&oldest);
        }
        self.settled.push_back(event);
        ids
    }

    /// An event was given up unhandled; its next delivery is new again.
    pub(crate) fn forget(&mut self, event: Fingerprint) {
        if let Some(Some(_)) = self.events.get(&event) {
            self.events.remove(&event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_is_recognised_in_every_state() {
        let mut seen = Seen::default();
        assert_eq!(seen.note(1, Some("a")), Delivery::New);
        assert_eq!(seen.note(1, Some("b")), Delivery::Held);
        assert_eq!(seen.note(1, None), Delivery::Held);
        assert_eq!(seen.settle(1), ["b"]);
        assert_eq!(seen.note(1, Some("c")), Delivery::Settled);
        assert!(seen.settle(1).is_empty());
        seen.forget(1);
        assert_eq!(seen.note(1, None), Delivery::Settled);
        assert_eq!(seen.note(2, None), Delivery::New);
        seen.forget(2);
        assert_eq!(seen.note(2, None), Delivery::New);
    }

    #[test]
    fn memory_is_bounded() {
        let mut seen = Seen::default();
        for event in 0..2000 {
            seen.note(event, None);
            seen.settle(event);
        }
        assert_eq!((seen.events.len(), seen.settled.len()), (MAX_SETTLED, MAX_SETTLED));
    }

    #[test]
    fn edits_and_presses_are_events_of_their_own() {
        let event =
            |text: &str| Event { text: text.into(), message_id: Some("1".into()), ..Event::default() };
        assert_eq!(fingerprint(&event("a")), fingerprint(&event("a")));
        assert_ne!(fingerprint(&event("a")), fingerprint(&event("b")));
        assert_eq!(fingerprint(&Event::default()), None);
    }
}
