//! Recognising events that are delivered again.
//!
//! A connector delivers again whatever was not acknowledged when a connection
//! broke, including events this process already holds.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use angelia_contract::Event;

use crate::acks::Receipt;

/// Handled events remembered, as many as hermes-agent remembers.
const MAX_HANDLED: usize = 512;

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

/// What is known about an event that came before.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// It waits or runs; a further delivery is acknowledged with the first.
    Held(Arc<Receipt>),
    /// It was handled; a further delivery is only to be acknowledged.
    Handled,
}

/// The memory of recent events.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    events: HashMap<Fingerprint, Known>,
    handled: VecDeque<Fingerprint>,
}

impl Seen {
    pub(crate) fn find(&self, event: Fingerprint) -> Option<&Known> {
        self.events.get(&event)
    }

    /// A new event was taken in.
    pub(crate) fn hold(&mut self, event: Fingerprint, receipt: Arc<Receipt>) {
        self.events.insert(event, Known::Held(receipt));
    }

    /// An event that was held is done.
    pub(crate) fn handled(&mut self, event: Fingerprint) {
        if self.handled.len() == MAX_HANDLED
            && let Some(oldest) = self.handled.pop_front()
        {
            self.events.remove(&oldest);
        }
        self.events.insert(event, Known::Handled);
        self.handled.push_back(event);
    }

    /// An event that was held is given up; its next delivery is new again.
    pub(crate) fn forget(&mut self, event: Fingerprint) {
        self.events.remove(&event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_recognised_until_it_is_given_up() {
        let mut seen = Seen::default();
        assert!(seen.find(1).is_none());
        seen.hold(1, Receipt::new(None, true));
        assert!(matches!(seen.find(1), Some(Known::Held(_))));
        seen.handled(1);
        assert!(matches!(seen.find(1), Some(Known::Handled)));
        seen.hold(2, Receipt::new(None, true));
        seen.forget(2);
        assert!(seen.find(2).is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let mut seen = Seen::default();
        for event in 0..2000 {
            seen.hold(event, Receipt::new(None, true));
            seen.handled(event);
        }
        assert_eq!((seen.events.len(), seen.handled.len()), (MAX_HANDLED, MAX_HANDLED));
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
