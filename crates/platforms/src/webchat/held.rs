//! The messages of rooms that wait until the agent has finished, on whichever node its socket is.
//!
//! It is written nowhere. The node with the socket tells the others what it holds of a room,
//! and whoever begins to read there asks for it. While nodes do not hear each other a line is
//! shown as on the server, which is true too.

use angelia_core::clock::Mono;
use angelia_core::ports::Following;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Messages of one room that a node tells others of; a socket shows no more as held.
const MAX_TOLD: usize = 512;
/// How long what another node told is believed after something of it may have been lost: whoever
/// holds anything answers within it.
const DOUBTED_FOR: Duration = Duration::from_secs(2);

/// What is held, in all rooms.
#[derive(Default)]
pub(super) struct AllHeld(Mutex<State>);

#[derive(Default)]
struct State {
    /// How often what is held here has changed: of two things that a node told the later counts.
    changes: u64,
    here: HashMap<String, Here>,
    /// By room and node, for the rooms that somebody reads here.
    elsewhere: HashMap<String, BTreeMap<String, Elsewhere>>,
}

struct Here {
    /// One is there twice while its agent's new socket holds it and the old one is not gone yet.
    messages: Vec<String>,
    /// Whoever begins to read the room on another node asks for them.
    _following: Option<Following>,
}

struct Elsewhere {
    change: u64,
    messages: Vec<String>,
    /// Since when something later may have been lost.
    doubted: Option<Mono>,
}

/// What one node holds of a room, as it tells others.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HeldHere {
    /// The how-manieth change of that node it was.
    pub(super) change: u64,
    /// What is held.
    pub(super) messages: Vec<String>,
}

impl AllHeld {
    /// A message is held here; answers what to tell others.
    pub(super) fn hold(
        &self,
        room: &str,
        message_id: &str,
        following: impl FnOnce() -> Option<Following>,
    ) -> HeldHere {
        let mut state = self.0.lock();
        let first = || Here { messages: Vec::new(), _following: following() };
        let here = state.here.entry(room.to_owned()).or_insert_with(first);
        here.messages.push(message_id.to_owned());
        state.changed(room)
    }

    /// It is not any more; answers what to tell others, if it was.
    pub(super) fn release(&self, room: &str, message_id: &str) -> Option<HeldHere> {
        let mut state = self.0.lock();
        let messages = &mut state.here.get_mut(room)?.messages;
        let at = messages.iter().position(|held| held == message_id)?;
        messages.remove(at);
        let gone = if messages.is_empty() { state.here.remove(room) } else { None };
        let told = state.changed(room);
        drop(state);
        drop(gone);
        Some(told)
    }

    /// What is held in a room, on whichever node.
    pub(super) fn of(&self, room: &str) -> Vec<String> {
        let state = self.0.lock();
        let here = state.here.get(room).into_iter().flat_map(|here| &here.messages);
        let elsewhere = state.elsewhere.get(room).into_iter().flat_map(BTreeMap::values);
        here.chain(elsewhere.flat_map(|node| &node.messages)).cloned().collect()
    }

    /// What is held here, for somebody who asks; `None` for nothing.
    pub(super) fn here(&self, room: &str) -> Option<HeldHere> {
        let state = self.0.lock();
        state.here.contains_key(room).then(|| state.told(room))
    }

    /// Another node told what it holds of a room.
    pub(super) fn told(&self, room: &str, node: &str, held: HeldHere) {
        let HeldHere { change, mut messages } = held;
        messages.truncate(MAX_TOLD);
        let mut state = self.0.lock();
        let nodes = state.elsewhere.entry(room.to_owned()).or_default();
        // An older one came late, or was said again by somebody.
        if nodes.get(node).is_some_and(|known| known.change > change) {
            return;
        }
        // What holds nothing is kept as well: something older must not count after it.
        nodes.insert(node.to_owned(), Elsewhere { change, messages, doubted: None });
    }

    /// Something of what others told of a room may have been lost.
    pub(super) fn doubt(&self, room: &str, now: Mono) {
        let mut state = self.0.lock();
        for told in state.elsewhere.get_mut(room).into_iter().flat_map(BTreeMap::values_mut) {
            told.doubted.get_or_insert(now);
        }
    }

    /// Forgets what nodes told that are gone or did not say it again, and rooms that nobody
    /// reads; answers the rooms of which there is less now.
    pub(super) fn forget(
        &self,
        now: Mono,
        is_there: impl Fn(&str) -> bool,
        is_read: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let mut less = Vec::new();
        let believed = |doubted: Option<Mono>| doubted.is_none_or(|since| now.since(since) < DOUBTED_FOR);
        self.0.lock().elsewhere.retain(|room, nodes| {
            let before = nodes.len();
            nodes.retain(|node, told| is_there(node) && believed(told.doubted));
            if nodes.len() < before {
                less.push(room.clone());
            }
            !nodes.is_empty() && is_read(room)
        });
        less
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let state = self.0.lock();
        state.here.is_empty() && state.elsewhere.is_empty()
    }
}

impl State {
    fn changed(&mut self, room: &str) -> HeldHere {
        self.changes += 1;
        self.told(room)
    }

    fn told(&self, room: &str) -> HeldHere {
        let messages = self.here.get(room).map(|here| here.messages.as_slice()).unwrap_or_default();
        let messages = messages.iter().take(MAX_TOLD).cloned().collect();
        HeldHere { change: self.changes, messages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    fn told(change: u64, messages: &[&str]) -> HeldHere {
        HeldHere { change, messages: messages.iter().map(|id| (*id).to_owned()).collect() }
    }

    #[test]
    fn of_two_things_that_a_node_told_the_later_counts() {
        let held = AllHeld::default();
        assert_eq!(held.hold("lab", "wp1", || None), told(1, &["wp1"]));
        held.told("lab", "b", told(7, &["wp2"]));
        held.told("lab", "b", told(6, &["wp2", "wp3"]));
        held.told("lab", "c", told(2, &["wp4"]));
        assert_eq!(held.of("lab"), ["wp1", "wp2", "wp4"]);
        held.told("lab", "b", told(8, &[]));
        held.told("lab", "b", told(7, &["wp2"]));
        assert_eq!(held.of("lab"), ["wp1", "wp4"], "it is not held again by what came late");
        assert_eq!(held.release("lab", "wp1"), Some(told(2, &[])));
        assert_eq!((held.release("lab", "wp1"), held.here("lab")), (None, None));
    }

    #[test]
    fn what_nobody_says_again_and_what_is_of_nodes_that_are_gone_is_forgotten() {
        let held = AllHeld::default();
        held.told("lab", "b", told(1, &["wp1"]));
        held.told("lab", "c", told(1, &["wp2"]));
        held.told("den", "b", told(1, &["wp3"]));
        held.doubt("lab", at(10));
        held.told("lab", "c", told(1, &["wp2"]));
        let nobody: [String; 0] = [];
        assert_eq!(held.forget(at(11), |_| true, |_| true), nobody);
        assert_eq!(held.forget(at(12), |_| true, |_| true), ["lab"]);
        assert_eq!((held.of("lab"), held.of("den")), (vec!["wp2".into()], vec!["wp3".into()]));
        assert_eq!(held.forget(at(13), |node| node != "c", |_| true), ["lab"]);
        assert_eq!(held.forget(at(13), |_| true, |room| room != "den"), nobody);
        assert!(held.is_empty());
    }
}
