//! What a stand-in did, for tests to judge.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::files::Fetched;

/// Something that the model was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// When.
    pub at: Instant,
    /// The conversation's key.
    pub session: String,
    /// The chat it was said in.
    pub chat: String,
    /// What is new in it.
    pub text: String,
    /// All of it: behind an interrupted turn also what that one had been given.
    pub whole: String,
}

/// The turns of one conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// How many began.
    pub begun: usize,
    /// How many of them ended.
    pub ended: usize,
    /// How many were open at once, at most.
    pub most_open: usize,
}

/// How a socket ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The connector closed it with this code.
    Closed(u16),
    /// The connection broke.
    Gone,
    /// No answer to a ping came: it closed the socket itself, with 1011.
    Keepalive,
    /// It left, or a test cut the line.
    Left,
}

/// Everything that happened so far.
#[derive(Debug, Default)]
pub(super) struct Diary(Mutex<Pages>);

#[derive(Debug, Default)]
struct Pages {
    given: Vec<Given>,
    fetched: Vec<Fetched>,
    stalls: Vec<Duration>,
    ends: Vec<End>,
    sockets: usize,
    turns: BTreeMap<String, Turns>,
    repeated: usize,
    lost_answers: usize,
    /// By operation: how often it was asked for, and how often in vain.
    asked: BTreeMap<String, (usize, usize)>,
}

impl Diary {
    pub(super) fn gave(&self, given: Given) {
        self.pages().given.push(given);
    }

    pub(super) fn fetched(&self, file: Fetched) {
        self.pages().fetched.push(file);
    }

    pub(super) fn all_fetched(&self) -> Vec<Fetched> {
        self.pages().fetched.clone()
    }

    /// A stall counts from its begin: a test may be over before it is.
    pub(super) fn stalls_now(&self) -> usize {
        let mut pages = self.pages();
        pages.stalls.push(Duration::ZERO);
        pages.stalls.len() - 1
    }

    pub(super) fn stalled(&self, number: usize, length: Duration) {
        self.pages().stalls[number] = length;
    }

    pub(super) fn connected(&self) {
        self.pages().sockets += 1;
    }

    pub(super) fn ended(&self, end: End) {
        self.pages().ends.push(end);
    }

    pub(super) fn repeated(&self) {
        self.pages().repeated += 1;
    }

    pub(super) fn lost_an_answer(&self) {
        self.pages().lost_answers += 1;
    }

    pub(super) fn asked(&self, op: String, done: bool) {
        let mut pages = self.pages();
        let (asked, in_vain) = pages.asked.entry(op).or_default();
        *asked += 1;
        *in_vain += usize::from(!done);
    }

    pub(super) fn asked_for(&self, op: &str) -> (usize, usize) {
        self.pages().asked.get(op).copied().unwrap_or_default()
    }

    pub(super) fn turn_begun(&self, session: &str) {
        let mut pages = self.pages();
        let turns = pages.turns.entry(session.to_owned()).or_default();
        turns.begun += 1;
        turns.most_open = turns.most_open.max(turns.begun - turns.ended);
    }

    pub(super) fn turn_ended(&self, session: &str) {
        self.pages().turns.entry(session.to_owned()).or_default().ended += 1;
    }

    pub(super) fn given(&self) -> Vec<Given> {
        self.pages().given.clone()
    }

    pub(super) fn stalls(&self) -> Vec<Duration> {
        self.pages().stalls.clone()
    }

    pub(super) fn ends(&self) -> Vec<End> {
        self.pages().ends.clone()
    }

    pub(super) fn sockets(&self) -> usize {
        self.pages().sockets
    }

    pub(super) fn repetitions(&self) -> usize {
        self.pages().repeated
    }

    pub(super) fn lost_answers(&self) -> usize {
        self.pages().lost_answers
    }

    pub(super) fn turns(&self) -> BTreeMap<String, Turns> {
        self.pages().turns.clone()
    }

    /// A poisoned lock only means that another task failed first.
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
