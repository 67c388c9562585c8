//! A socket on a node: core's backlog and window, driven as the connector drives
//! them, with every answer of the log on its way for a while.

use super::Variant;
use super::store::Store;
use angelia_core::clock::{Mono, UnixMillis};
use angelia_core::inbox::{
    AckHabit, Backlog, Entry, Epoch, FrameKind, InstanceId, Mark, PAGE, Permit, Seq, SettledBy, Window,
};
use angelia_core::ports::log::{Claimed, Ownership, Returned, Settlement, Stretch};
use std::collections::{BTreeSet, VecDeque};

/// What was asked of the log, and its answer if it has one already.
#[derive(Debug)]
pub(crate) enum Job {
    Claim,
    Page(Seq),
    Ahead,
    Settle(Vec<Settlement>),
    Late(Vec<Seq>),
    Idle,
    Answer(Answer),
}

/// What the log said; on its way to the socket.
#[derive(Debug)]
pub(crate) enum Answer {
    Claimed(Option<Claimed>),
    Page(Option<Stretch>),
    Ahead(Option<Stretch>),
    Settled(Option<Ownership>, Vec<Settlement>),
    Late(Option<Vec<Seq>>, Vec<Seq>),
    Idle(Option<Ownership>),
}

/// One socket.
pub(crate) struct Session {
    pub(crate) instance: InstanceId,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) jobs: Vec<Job>,
    /// Frames on their way to the gateway, in order.
    pub(crate) frames: VecDeque<Entry>,
    /// Acknowledgements on their way here, in order.
    pub(crate) acks: VecDeque<Seq>,
    /// Whether somebody else drains the instance.
    pub(crate) lost: bool,
    backlog: Backlog,
    window: Window,
    to_settle: Vec<Settlement>,
    settling: bool,
    late: Vec<Seq>,
    looking_at_late: bool,
    claiming: bool,
    not_again: BTreeSet<Seq>,
    /// How far hints brought the broken variant.
    heard: Seq,
}

impl Session {
    pub(crate) fn new(instance: InstanceId) -> Self {
        Self {
            instance,
            epoch: None,
            jobs: Vec::new(),
            frames: VecDeque::new(),
            acks: VecDeque::new(),
            lost: false,
            backlog: Backlog::default(),
            window: Window::new(AckHabit::Acknowledges),
            to_settle: Vec::new(),
            settling: false,
            late: Vec::new(),
            looking_at_late: false,
            claiming: false,
            not_again: BTreeSet::new(),
            heard: Seq(0),
        }
    }

    /// A hint came.
    pub(crate) fn hint(&mut self, mark: Mark, gift: Option<Entry>, ahead: bool, variant: Variant) {
        if variant == Variant::Watermark && mark.tail > self.heard {
            // As it was once: what is told of is the next, whatever is missing in between.
            self.backlog.claimed(Mark { tail: Seq(mark.tail.0 - 1), ..mark }, 0);
            self.heard = mark.tail;
        }
        self.backlog.appended(mark, gift, ahead);
    }

    /// Somebody looked how far the log is.
    pub(crate) fn told(&mut self, mark: Mark, variant: Variant) {
        if variant != Variant::Watermark {
            self.backlog.told(mark);
        }
    }

    /// The gateway says that it sleeps.
    pub(crate) fn goes_idle(&mut self) {
        if self.epoch.is_some() {
            self.jobs.push(Job::Idle);
        }
    }

    /// Takes the next acknowledgement that arrived; `None` if there is none.
    pub(crate) fn hear(&mut self) -> Option<Seq> {
        let seq = self.acks.pop_front()?;
        let settled = self.window.ack(seq);
        if settled.is_empty() && !self.late.contains(&seq) {
            self.late.push(seq);
        }
        let by = SettledBy::Ack;
        let done =
            settled.into_iter().map(|it| Settlement { seq: it.seq, by, pushed_at: Some(UnixMillis(0)) });
        self.to_settle.extend(done);
        Some(seq)
    }

    /// Does what may be done: claims, reads on, pushes, settles.
    pub(crate) fn advance(&mut self, now: Mono) {
        if self.epoch.is_none() {
            if !self.claiming {
                self.claiming = true;
                self.jobs.push(Job::Claim);
            }
            return;
        }
        if !self.lost && self.late.is_empty() && !self.looking_at_late {
            self.drain(now);
        }
        if !self.settling && !self.to_settle.is_empty() {
            self.settling = true;
            self.jobs.push(Job::Settle(std::mem::take(&mut self.to_settle)));
        }
        if !self.looking_at_late && !self.late.is_empty() {
            self.looking_at_late = true;
            self.jobs.push(Job::Late(std::mem::take(&mut self.late)));
        }
    }

    fn drain(&mut self, now: Mono) {
        if let Some(after) = self.backlog.wants_page() {
            self.jobs.push(Job::Page(after));
        }
        if self.backlog.wants_ahead() {
            self.jobs.push(Job::Ahead);
        }
        while self.backlog.knows_ahead() {
            let ahead = self.backlog.front_ahead().is_some();
            let Some(bytes) = self
                .backlog
                .front_ahead()
                .or_else(|| self.backlog.first(|_| false).map(|(_, entry)| entry))
                .map(|entry| entry.body.len())
            else {
                return;
            };
            if self.window.permit(FrameKind::Acknowledged, bytes, now) == Permit::Wait {
                return;
            }
            let next = if ahead { self.backlog.pop_ahead() } else { self.backlog.take_at(0) };
            let Some(entry) = next else { return };
            if self.not_again.contains(&entry.seq) {
                continue;
            }
            if ahead {
                self.not_again.insert(entry.seq);
            }
            self.window.pushed(entry.seq, FrameKind::Acknowledged, entry.body.len(), now);
            self.frames.push_back(entry);
        }
    }

    /// Has the log do what one of the jobs asks, and the answer is another job; or
    /// hears an answer, and then it is `true`.
    pub(crate) fn perform(&mut self, at: usize, store: &Store) -> bool {
        let (instance, epoch) = (self.instance, self.epoch.unwrap_or_default());
        let job = self.jobs.remove(at);
        let answer = match job {
            Job::Claim => Answer::Claimed(store.claim(instance)),
            Job::Page(after) => Answer::Page(store.load(instance, after, PAGE)),
            Job::Ahead => Answer::Ahead(store.load_ahead(instance, PAGE)),
            Job::Settle(settled) => Answer::Settled(store.settle(instance, epoch, settled.clone()), settled),
            Job::Late(seqs) => Answer::Late(store.settle_late(instance, seqs.clone()), seqs),
            Job::Idle => Answer::Idle(store.set_idle(instance, epoch)),
            Job::Answer(answer) => {
                self.answered(answer);
                return true;
            }
        };
        self.jobs.push(Job::Answer(answer));
        false
    }

    fn answered(&mut self, answer: Answer) {
        match answer {
            Answer::Claimed(claimed) => {
                self.claiming = false;
                if let Some(Claimed { epoch, mark, usage, .. }) = claimed {
                    self.epoch = Some(epoch);
                    self.heard = self.heard.max(mark.tail);
                    self.backlog.claimed(mark, usage.entries);
                }
            }
            Answer::Page(page) => self.backlog.loaded(page),
            Answer::Ahead(page) => {
                let known = &self.not_again;
                self.backlog.loaded_ahead(page, |entry| known.contains(&entry.seq));
            }
            Answer::Settled(Some(ownership), settled) => {
                self.settling = false;
                self.lost |= ownership == Ownership::Lost;
                self.window.committed(settled.len());
                self.backlog.look_ahead_again();
            }
            Answer::Settled(None, settled) => {
                self.settling = false;
                self.to_settle.splice(0..0, settled);
            }
            Answer::Late(Some(settled), _) => {
                self.looking_at_late = false;
                for seq in settled {
                    self.backlog.remove(seq);
                    self.not_again.insert(seq);
                }
                self.backlog.look_ahead_again();
            }
            Answer::Late(None, seqs) => {
                self.looking_at_late = false;
                self.late.extend(seqs);
            }
            Answer::Idle(ownership) => self.lost |= ownership == Some(Ownership::Lost),
        }
    }

    /// Ends in order: what settled is committed, the rest returns to the log.
    pub(crate) fn finish(mut self, store: &Store) {
        while !self.acks.is_empty() {
            self.hear();
        }
        let Some(epoch) = self.epoch else { return };
        for job in std::mem::take(&mut self.jobs) {
            if let Job::Settle(settled) | Job::Answer(Answer::Settled(None, settled)) = job {
                self.to_settle.extend(settled);
            }
        }
        let _ = store.settle(self.instance, epoch, std::mem::take(&mut self.to_settle));
        let ended = self.window.end();
        let entries = ended.returned.iter().map(|(seq, _)| (*seq, UnixMillis(0))).collect();
        // Sockets end by chance here, which says nothing of the entries they end on.
        let _ = store.returned(self.instance, epoch, Returned { entries, strike: None });
    }
}
