//! Which event waits behind which: one lane per conversation.
//!
//! Pure bookkeeping; who runs the turns is in `dispatch`.

use std::collections::{HashMap, VecDeque};

use angelia_contract::session_key::may_belong_to;
use angelia_contract::{KeyOptions, Rules, Source, session_key};
use tokio::sync::watch;

use crate::seen::{Delivery, Fingerprint, Seen};

/// A piece of work with what is needed to acknowledge it.
pub(crate) struct Job<W> {
    pub(crate) work: W,
    /// The id to acknowledge; none if there is none, or it was done.
    pub(crate) buffer_id: Option<String>,
    pub(crate) fingerprint: Option<Fingerprint>,
}

/// The conversations that have something to do.
pub(crate) struct Lanes<W> {
    lanes: HashMap<String, Lane<W>>,
    waiting: usize,
    max_waiting: usize,
    pub(crate) seen: Seen,
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
pub(crate) enum Admission {
    /// It is the first in its lane: a task has to be started for it.
    NewLane,
    /// It waits behind others.
    Queued,
    /// It is known already; acknowledge it if it was settled.
    Repeated { settled: bool },
    /// Too much is waiting.
    Shed,
}

impl<W> Lanes<W> {
    pub(crate) fn new(max_waiting: usize) -> Self {
        Self { lanes: HashMap::new(), waiting: 0, max_waiting, seen: Seen::default(), draining: false }
    }

    /// Puts a job into its lane.
    pub(crate) fn admit(&mut self, key: &str, job: Job<W>) -> Admission {
        if let Some(fingerprint) = job.fingerprint {
            match self.seen.note(fingerprint, job.buffer_id.as_deref()) {
                Delivery::New => {}
                Delivery::Held => return Admission::Repeated { settled: false },
                Delivery::Settled => return Admission::Repeated { settled: true },
            }
        }
        if self.waiting >= self.max_waiting {
            if let Some(fingerprint) = job.fingerprint {
                self.seen.forget(fingerprint);
            }
            return Admission::Shed;
        }
        self.waiting += 1;
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.queue.push_back(job);
            return Admission::Queued;
        }
        let lane = Lane { queue: VecDeque::from([job]), running: None };
        self.lanes.insert(key.to_owned(), lane);
        Admission::NewLane
    }

    /// The next job of a lane; none closes the lane.
    pub(crate) fn next(&mut self, key: &str) -> Option<Job<W>> {
        let lane = self.lanes.get_mut(key)?;
        lane.running = None;
        while let Some(job) = lane.queue.pop_front() {
            self.waiting -= 1;
            // Not acknowledged, so the connector still has it.
            if self.draining && job.buffer_id.is_some() {
                if let Some(fingerprint) = job.fingerprint {
                    self.seen.forget(fingerprint);
                }
                continue;
            }
            return Some(job);
        }
        self.lanes.remove(key);
        None
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

    fn running(sources: &[Source]) -> (Lanes<()>, Vec<watch::Receiver<bool>>) {
        let mut lanes = Lanes::new(100);
        let signals = sources
            .iter()
            .map(|source| {
                let key = session_key(source, &KeyOptions::default(), Rules::Newer);
                let job = Job { work: (), buffer_id: None, fingerprint: None };
                assert_eq!(lanes.admit(&key, job), Admission::NewLane);
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
        let mut lanes = Lanes::new(2);
        let job = |buffer_id: Option<&str>, fingerprint| Job {
            work: (),
            buffer_id: buffer_id.map(str::to_owned),
            fingerprint,
        };
        assert_eq!(lanes.admit("k", job(Some("a"), Some(1))), Admission::NewLane);
        assert_eq!(lanes.admit("k", job(None, None)), Admission::Queued);
        assert_eq!(lanes.admit("k", job(None, Some(2))), Admission::Shed);
        lanes.draining = true;
        assert!(lanes.next("k").is_some_and(|job| job.buffer_id.is_none()));
        assert!(lanes.next("k").is_none());
        assert!(lanes.is_empty());
        assert_eq!(lanes.admit("k", job(Some("b"), Some(1))), Admission::NewLane);
        assert_eq!(lanes.admit("k", job(None, Some(2))), Admission::Queued);
    }
}
