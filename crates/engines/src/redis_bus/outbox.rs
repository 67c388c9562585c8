//! What waits to be sent to the other nodes: bounded, and without patience. A hint that finds
//! no room is dropped, and its topic noted, so that who follows it hears that they missed
//! something as soon as there is a way to tell them.

use super::wire::MAX_GIFT;
use angelia_core::ports::{Control, Hint, Topic};
use parking_lot::Mutex;
use std::collections::{BTreeSet, VecDeque};
use tokio::sync::Notify;

/// Hints that wait; beyond them they are dropped.
const MAX_WAITING: usize = 16_384;
/// Their bytes, for the same reason.
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;
/// Hints in one round trip to the server.
const BATCH: usize = 512;
/// Their bytes.
const BATCH_BYTES: usize = 512 * 1024;
/// Topics of which something was dropped; with more of them everybody is told.
const MAX_LOST: usize = 1_024;
/// What a hint takes besides its texts.
const EACH: usize = 256;

/// What may have been missed: something of a topic, or of any.
pub(super) type Missed = Option<Topic>;

/// What is missed by whoever does not hear a hint.
pub(super) fn missed_with(hint: &Hint) -> Missed {
    match hint {
        Hint::Missed(of) => of.clone(),
        hint => Some(hint.topic()),
    }
}

/// Hints on their way to other nodes.
#[derive(Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    filled: Notify,
}

#[derive(Default)]
struct State {
    /// Whether there is a server to send to.
    open: bool,
    waiting: VecDeque<Hint>,
    bytes: usize,
    lost: Lost,
}

impl Outbox {
    /// Puts a hint in line; `false` if it is dropped.
    pub(super) fn put(&self, hint: Hint) -> bool {
        let hint = without_large_gift(hint);
        let size = size(&hint);
        let mut state = self.state.lock();
        let full = state.waiting.len() >= MAX_WAITING || state.bytes + size > MAX_WAITING_BYTES;
        if !state.open || full {
            state.lost.note(missed_with(&hint));
            return false;
        }
        state.bytes += size;
        state.waiting.push_back(hint);
        drop(state);
        self.filled.notify_one();
        true
    }

    /// There is a server: hints are taken from now on.
    pub(super) fn open(&self) {
        self.state.lock().open = true;
        // Something may have been lost before.
        self.filled.notify_one();
    }

    /// There is none any more; answers how many hints are dropped with it.
    pub(super) fn close(&self) -> usize {
        let mut state = self.state.lock();
        let State { open, waiting, bytes, lost } = &mut *state;
        *open = false;
        *bytes = 0;
        waiting.iter().for_each(|hint| lost.note(missed_with(hint)));
        std::mem::take(waiting).len()
    }

    /// Takes note that something did not arrive.
    pub(super) fn lost(&self, missed: Missed) {
        self.state.lock().lost.note(missed);
    }

    /// What is to be sent next, as soon as there is something.
    pub(super) async fn next(&self) -> Vec<Hint> {
        loop {
            let batch = self.take();
            if !batch.is_empty() {
                return batch;
            }
            self.filled.notified().await;
        }
    }

    fn take(&self) -> Vec<Hint> {
        let mut state = self.state.lock();
        if !state.open {
            return Vec::new();
        }
        let mut batch = state.lost.take(BATCH);
        let mut bytes = 0;
        while batch.len() < BATCH && bytes < BATCH_BYTES {
            let Some(hint) = state.waiting.pop_front() else { break };
            let size = size(&hint);
            (bytes, state.bytes) = (bytes + size, state.bytes.saturating_sub(size));
            batch.push(hint);
        }
        batch
    }

    /// How many hints wait, and their bytes.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.waiting.len(), state.bytes)
    }
}

/// An entry that is too large to travel stays in the store.
fn without_large_gift(hint: Hint) -> Hint {
    match hint {
        Hint::Log { instance, mark, entry, .. } if entry.body.len() > MAX_GIFT => {
            Hint::Reached { instance, mark }
        }
        hint => hint,
    }
}

/// Memory a hint takes, about.
fn size(hint: &Hint) -> usize {
    EACH + match hint {
        Hint::Log { entry, .. } | Hint::Revised { entry, .. } => entry.body.len(),
        Hint::Removed { seqs, .. } => size_of_val(seqs.as_slice()),
        Hint::Line(line) => line.text.len() + line.room.len(),
        Hint::Room { room, event } => room.len() + event.len(),
        Hint::Control(Control::Done { result, .. }) => result.len(),
        Hint::Control(
            Control::Call { body, .. } | Control::Inquiry { body, .. } | Control::Answer { body, .. },
        ) => body.len(),
        Hint::Control(_) | Hint::Reached { .. } | Hint::Missed(_) => 0,
    }
}

/// Topics of which something was dropped.
#[derive(Default)]
struct Lost {
    topics: BTreeSet<Topic>,
    /// Whether it is to be told of everything: there are too many to count them.
    all: bool,
}

impl Lost {
    fn note(&mut self, missed: Missed) {
        match missed {
            Some(topic) if !self.all && self.topics.len() < MAX_LOST => drop(self.topics.insert(topic)),
            Some(topic) if self.topics.contains(&topic) => {}
            _ => {
                self.all = true;
                self.topics.clear();
            }
        }
    }

    /// Up to so many hints that say so.
    fn take(&mut self, most: usize) -> Vec<Hint> {
        if std::mem::take(&mut self.all) {
            return vec![Hint::Missed(None)];
        }
        let topics = std::iter::from_fn(|| self.topics.pop_first());
        topics.take(most).map(|topic| Hint::Missed(Some(topic))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::inbox::InstanceId;

    fn hint(instance: i64, event: &str) -> Hint {
        Hint::Control(Control::Done {
            action: Default::default(),
            instance: InstanceId(instance),
            result: event.to_owned(),
        })
    }

    fn missed(hints: &[Hint]) -> Vec<Missed> {
        hints.iter().filter(|hint| matches!(hint, Hint::Missed(_))).map(missed_with).collect()
    }

    #[test]
    fn without_a_server_nothing_is_kept_but_what_was_missed() {
        let outbox = Outbox::default();
        for _ in 0..100_000 {
            assert!(!outbox.put(hint(7, "x")));
        }
        assert_eq!(outbox.waiting(), (0, 0));
        assert!(outbox.take().is_empty(), "there is nobody to tell");
        outbox.open();
        assert_eq!(missed(&outbox.take()), [Some(Topic::Instance(InstanceId(7)))]);
        assert!(outbox.take().is_empty(), "it is told once");
    }

    #[test]
    fn the_line_is_bounded_in_number_and_in_bytes() {
        let outbox = Outbox::default();
        outbox.open();
        let taken = (0..MAX_WAITING + 100).filter(|_| outbox.put(hint(1, ""))).count();
        assert_eq!(taken, MAX_WAITING);
        let outbox = Outbox::default();
        outbox.open();
        let large = "x".repeat(MAX_GIFT);
        let taken = (0..2_000).filter(|_| outbox.put(hint(1, &large))).count();
        assert!(taken < 1_100 && outbox.waiting().1 <= MAX_WAITING_BYTES, "{taken}");
        assert_eq!(missed(&outbox.take()), [Some(Topic::Instance(InstanceId(1)))]);
        let mut left = 0;
        while !outbox.take().is_empty() {
            left += 1;
        }
        assert!(left > 30 && outbox.waiting() == (0, 0), "{left} batches, {:?}", outbox.waiting());
    }

    #[test]
    fn of_too_many_topics_everybody_is_told() {
        let outbox = Outbox::default();
        assert!((0..10_000).all(|instance| !outbox.put(hint(instance, ""))));
        outbox.open();
        assert_eq!(missed(&outbox.take()), [None]);
        assert!(outbox.take().is_empty());
        outbox.lost(None);
        assert_eq!(missed(&outbox.take()), [None]);
    }

    #[test]
    fn what_waits_when_the_server_goes_is_dropped_and_noted() {
        let outbox = Outbox::default();
        outbox.open();
        (1..=2).for_each(|instance| assert!(outbox.put(hint(instance, "x"))));
        assert_eq!(outbox.close(), 2);
        outbox.open();
        assert_eq!(missed(&outbox.take()), [1, 2].map(|id| Some(Topic::Instance(InstanceId(id)))));
    }
}
