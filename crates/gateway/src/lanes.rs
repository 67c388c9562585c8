//! Which event waits behind which: one lane per conversation.
//!
//! Pure bookkeeping; who runs the turns is in `dispatch`.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use angelia_contract::session_key::may_belong_to;
use angelia_contract::{KeyOptions, Rules, Source, session_key};
use tokio::sync::watch;

use crate::acks::{Ack, Receipt};
use crate::repeated_events::{Fingerprint, Known, Seen};

/// Events taken in beyond the backlog, and not acknowledged until there is
/// room: several times what connectors push without an acknowledgement.
const OVERDRAFT: usize = 64;

/// Something a connector delivered.
pub(crate) struct InboundItem<W> {
    pub(crate) work: W,
    pub(crate) ack: Option<Ack>,
    /// Whether the connector keeps it until it is acknowledged.
    pub(crate) awaited: bool,
    pub(crate) fingerprint: Option<Fingerprint>,
}

/// A piece of work with what is needed to acknowledge it.
pub(crate) struct Job<W> {
    pub(crate) work: W,
    pub(crate) receipt: Arc<Receipt>,
    pub(crate) fingerprint: Option<Fingerprint>,
}

/// The conversations that have something to do.
pub(crate) struct Lanes<W> {
    lanes: HashMap<String, Lane<W>>,
    waiting: usize,
    max_waiting: usize,
    /// Whether work is acknowledged as soon as it waits.
    early: bool,
    /// Work to be acknowledged as soon as there is room for it.
    over: VecDeque<Arc<Receipt>>,
    seen: Seen,
    /// While set, work that can be left to the connector is.
    pub(crate) draining: bool,
}

/// Exists exactly as long as the task that runs it.
struct Lane<W> {
    queue: VecDeque<Job<W>>,
    running: Option<Running>,
}

/// A turn that is under way.
struct Running {
    source: Source,
    cancel: watch::Sender<bool>,
}

/// What became of a delivery.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Enqueued {
    /// It is the first in its lane: a task has to be started for it.
    NewLane,
    /// It waits behind others.
    Queued,
    /// It is known already.
    Repeated,
    /// The connector keeps it: this side is ending.
    Left,
    /// Too much is waiting; it is neither taken in nor acknowledged.
    Shed,
}

impl<W> Lanes<W> {
    pub(crate) fn new(max_waiting: usize, early: bool) -> Self {
        Self {
            lanes: HashMap::new(),
            waiting: 0,
            max_waiting,
            early,
            over: VecDeque::new(),
            seen: Seen::default(),
            draining: false,
        }
    }

    /// Puts a delivery into its lane.
    pub(crate) fn admit(&mut self, key: &str, delivery: InboundItem<W>) -> Enqueued {
        let InboundItem { work, ack, awaited, fingerprint } = delivery;
        if let Some(known) = fingerprint.and_then(|event| self.seen.find(event)) {
            match (known, ack) {
                (Known::Held(receipt), Some(ack)) => receipt.add(ack),
                (Known::Handled, Some(ack)) => ack.release(),
                (_, None) => {}
            }
            return Enqueued::Repeated;
        }
        let leave = self.draining && awaited && ack.is_some();
        if leave || self.waiting >= self.max_waiting.saturating_add(OVERDRAFT) {
            if let Some(ack) = ack {
                ack.withdraw();
            }
            return if leave { Enqueued::Left } else { Enqueued::Shed };
        }
        let receipt = Receipt::new(ack, awaited);
        if let Some(fingerprint) = fingerprint {
            self.seen.hold(fingerprint, Arc::clone(&receipt));
        }
        if self.early || !awaited {
            self.over.push_back(Arc::clone(&receipt));
        }
        self.waiting += 1;
        self.acknowledge();
        let job = Job { work, receipt, fingerprint };
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.queue.push_back(job);
            return Enqueued::Queued;
        }
        let lane = Lane { queue: VecDeque::from([job]), running: None };
        self.lanes.insert(key.to_owned(), lane);
        Enqueued::NewLane
    }

    /// The next job of a lane; none closes the lane.
    pub(crate) fn next(&mut self, key: &str) -> Option<Job<W>> {
        let lane = self.lanes.get_mut(key)?;
        lane.running = None;
        while let Some(job) = lane.queue.pop_front() {
            self.waiting -= 1;
            self.over.retain(|receipt| !Arc::ptr_eq(receipt, &job.receipt));
            // Not acknowledged, so the connector still has it.
            if self.draining && job.receipt.withdraw() {
                if let Some(fingerprint) = job.fingerprint {
                    self.seen.forget(fingerprint);
                }
                continue;
            }
            self.acknowledge();
            return Some(job);
        }
        self.lanes.remove(key);
        None
    }

    /// Notes that the job of this fingerprint was handled.
    pub(crate) fn handled(&mut self, fingerprint: Option<Fingerprint>) {
        if let Some(fingerprint) = fingerprint {
            self.seen.handled(fingerprint);
        }
    }

    /// Lets go the acknowledgements there is room for.
    fn acknowledge(&mut self) {
        // What is not acknowledged while draining is about to be left.
        while !self.draining
            && self.waiting.saturating_sub(self.over.len()) < self.max_waiting
            && let Some(receipt) = self.over.pop_front()
        {
            receipt.release();
        }
    }

    /// Marks a turn as running and gives the signal that ends it.
    pub(crate) fn start(&mut self, key: &str, source: &Source) -> watch::Receiver<bool> {
        let (cancel, cancelled) = watch::channel(false);
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.running = Some(Running { source: source.clone(), cancel });
        }
        cancelled
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Interrupts the running turn a connector means; tells how many.
    ///
    /// The connector's spelling of a key depends on its generation and on
    /// guesses about settings. So: lanes by their own key first, then by any
    /// generation's spelling, then a single lane that the key may name.
    pub(crate) fn interrupt(&self, key: &str, chat_id: &str, options: &KeyOptions) -> usize {
        if let Some(running) = self.lanes.get(key).and_then(|lane| lane.running.as_ref()) {
            running.cancel.send_replace(true);
            return 1;
        }
        let running = || self.lanes.values().filter_map(|lane| lane.running.as_ref());
        let spelled = running().filter(|turn| spellings(&turn.source, options).any(|k| k == key));
        let mut stopped = 0;
        for turn in spelled {
            turn.cancel.send_replace(true);
            stopped += 1;
        }
        if stopped > 0 {
            return stopped;
        }
        let mut possible = running().filter(|turn| may_name(key, chat_id, &turn.source));
        // With two candidates either could be the wrong one.
        match (possible.next(), possible.next()) {
            (Some(turn), None) => {
                turn.cancel.send_replace(true);
                1
            }
            _ => 0,
        }
    }
}

/// The keys other generations and settings give a source.
fn spellings(source: &Source, options: &KeyOptions) -> impl Iterator<Item = String> {
    let profiles = [options.profile.clone(), None, source.profile.clone()];
    profiles.into_iter().flat_map(move |profile| {
        let options = KeyOptions { profile, ..options.clone() };
        [Rules::Newer, Rules::Published].map(|rules| session_key(source, &options, rules))
    })
}

fn may_name(key: &str, chat_id: &str, source: &Source) -> bool {
    let user = source.user_id_alt.as_deref().or(source.user_id.as_deref());
    let thread = source.thread_id.as_deref();
    (chat_id.is_empty() || chat_id == source.chat_id)
        && may_belong_to(key, &source.platform, &source.chat_id, thread, user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acks::Acks;

    fn source(user: &str, thread: Option<&str>) -> Source {
        Source {
            platform: "slack".into(),
            chat_id: "C1".into(),
            chat_type: "group".into(),
            user_id: Some(user.into()),
            thread_id: thread.map(str::to_owned),
            scope_id: Some("T1".into()),
            ..Source::default()
        }
    }

    fn delivery(ack: Option<Ack>, fingerprint: Option<Fingerprint>) -> InboundItem<()> {
        InboundItem { work: (), ack, awaited: true, fingerprint }
    }

    fn running(sources: &[Source]) -> (Lanes<()>, Vec<watch::Receiver<bool>>) {
        let mut lanes = Lanes::new(100, true);
        let signals = sources
            .iter()
            .map(|source| {
                let key = session_key(source, &KeyOptions::default(), Rules::Newer);
                assert_eq!(lanes.admit(&key, delivery(None, None)), Enqueued::NewLane);
                assert!(lanes.next(&key).is_some());
                lanes.start(&key, source)
            })
            .collect();
        (lanes, signals)
    }

    fn hit(sources: &[Source], key: &str, chat_id: &str) -> Vec<bool> {
        let (lanes, signals) = running(sources);
        lanes.interrupt(key, chat_id, &KeyOptions::default());
        signals.iter().map(|signal| *signal.borrow()).collect()
    }

    #[test]
    fn either_generations_key_stops_exactly_one_turn() {
        let two = [source("U1", None), source("U2", None)];
        for key in ["agent:main:slack:group:T1:C1:U2", "agent:main:slack:group:C1:U2"] {
            assert_eq!(hit(&two, key, "C1"), [false, true], "{key}");
        }
        // Filed under `relay`, or under another profile: found by structure.
        for key in ["agent:main:relay:channel:C1:U2", "agent:other:slack:group:C1:U2"] {
            assert_eq!(hit(&two, key, "C1"), [false, true], "{key}");
            assert_eq!(hit(&two, key, "C9"), [false, false], "{key}");
        }
    }

    #[test]
    fn a_key_that_could_mean_two_stops_none() {
        let two = [source("U1", None), source("U2", None)];
        assert_eq!(hit(&two, "agent:main:slack:group:C1", "C1"), [false, false]);
        assert_eq!(hit(&two[..1], "agent:main:slack:group:C1", "C1"), [true]);
        for key in ["agent:main:slack:group:C1:U3", "agent:main:discord:group:C1:U1", "", "nonsense"] {
            assert_eq!(hit(&two, key, "C1"), [false, false], "{key}");
        }
    }

    #[test]
    fn what_is_left_to_the_connector_is_new_when_it_comes_back() {
        let acks = Arc::new(Acks::default());
        let ack = |id: &str| Some(acks.arrive(id.to_owned()).unwrap());
        let mut lanes = Lanes::new(10, false);
        assert_eq!(lanes.admit("k", delivery(ack("a"), Some(1))), Enqueued::NewLane);
        assert_eq!(lanes.admit("k", delivery(None, None)), Enqueued::Queued);
        lanes.draining = true;
        assert_eq!(lanes.admit("k", delivery(ack("b"), Some(2))), Enqueued::Left);
        assert!(lanes.next("k").is_some_and(|job| job.fingerprint.is_none()));
        assert!(lanes.next("k").is_none());
        assert!(lanes.is_empty());
        lanes.draining = false;
        assert_eq!(lanes.admit("k", delivery(None, Some(1))), Enqueued::NewLane);
        assert_eq!(lanes.admit("k", delivery(None, Some(2))), Enqueued::Queued);
        assert_eq!(lanes.admit("k", delivery(None, Some(2))), Enqueued::Repeated);
        assert!(acks.due().is_empty());
    }

    #[test]
    fn what_was_acknowledged_is_run_although_this_side_ends() {
        let acks = Arc::new(Acks::default());
        let ack = |id: &str| Some(acks.arrive(id.to_owned()).unwrap());
        let mut lanes = Lanes::new(10, true);
        lanes.admit("k", delivery(ack("a"), Some(1)));
        assert_eq!(acks.due(), ["a"]);
        lanes.admit("k", delivery(ack("b"), Some(2)));
        // Released, but not written: the connector keeps it.
        lanes.draining = true;
        assert!(lanes.next("k").is_some_and(|job| job.fingerprint == Some(1)));
        assert!(lanes.next("k").is_none());
        assert!(acks.due().is_empty());
    }

    #[test]
    fn what_the_backlog_has_no_room_for_is_acknowledged_when_it_has() {
        let acks = Arc::new(Acks::default());
        let mut lanes = Lanes::new(2, true);
        for id in 0..66 {
            let ack = acks.arrive(id.to_string()).unwrap();
            assert_ne!(lanes.admit("k", delivery(Some(ack), Some(id))), Enqueued::Shed);
        }
        let ack = acks.arrive("too many".to_owned()).unwrap();
        assert_eq!(lanes.admit("k", delivery(Some(ack), Some(66))), Enqueued::Shed);
        assert_eq!(acks.due(), ["0", "1"]);
        for id in 2..66 {
            assert!(lanes.next("k").is_some());
            assert_eq!(acks.due(), [id.to_string()]);
        }
        assert!(acks.due().is_empty());
        assert!(lanes.over.is_empty());
    }
}
