//! A socket: core's turns, backlog and window, driven as the connector drives them
//! (`relay/session/deliver.rs`). What becomes of held conversations is in `conversations.rs`.

use super::Variant;
use super::gateway::Down;
use super::jobs::{Answer, Job};
use super::store::{INSTANCE, Store};
use angelia_contract::action::Action;
use angelia_core::clock::{Mono, UnixMillis};
use angelia_core::inbox::{
    AckHabit, Backlog, Entry, Epoch, FrameKind, PAGE, Permit, Revisions, Seq, SettledBy, Window,
};
use angelia_core::ports::log::{Log, Ownership, Returned, Settlement, TurnNote};
use angelia_core::ports::{Hint, HintKind};
use angelia_core::turns::{Line, Peer, Signs, TURN_LIMIT, Turns, Verdict, WhileBusy};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Entries remembered as done.
const REMEMBERED: usize = 4 * PAGE.count;
/// More than any rest behind the last sign of a turn.
const ANY_REST: Duration = Duration::from_secs(2);

/// One socket.
pub(crate) struct Session {
    pub(super) turns: Turns,
    pub(super) backlog: Backlog,
    pub(super) window: Window,
    pub(super) epoch: Option<Epoch>,
    /// What it asks of the log, and writes, since somebody looked.
    pub(crate) jobs: Vec<Job>,
    pub(crate) frames: Vec<Down>,
    /// Whether somebody else drains the instance.
    pub(crate) lost: bool,
    pub(super) not_again: VecDeque<Seq>,
    pub(super) variant: Variant,
    while_busy: WhileBusy,
    claiming: bool,
    to_settle: Vec<Settlement>,
    settling: Vec<Settlement>,
    late: Vec<Seq>,
    looking_at_late: bool,
    pub(super) turn_notes: Vec<TurnNote>,
    pub(super) noting: Vec<TurnNote>,
}

impl Session {
    pub(crate) fn new(
        peer: Peer,
        signs: Vec<(Arc<str>, Signs)>,
        while_busy: WhileBusy,
        variant: Variant,
    ) -> Self {
        Self {
            turns: Turns::new(peer, TURN_LIMIT, signs),
            backlog: Backlog::default(),
            window: Window::new(AckHabit::Acknowledges),
            epoch: None,
            jobs: Vec::new(),
            frames: Vec::new(),
            lost: false,
            not_again: VecDeque::new(),
            variant,
            while_busy,
            claiming: false,
            to_settle: Vec::new(),
            settling: Vec::new(),
            late: Vec::new(),
            looking_at_late: false,
            turn_notes: Vec::new(),
            noting: Vec::new(),
        }
    }

    /// What is known of its turns.
    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Whether it drains its instance, and so knows what earlier sockets left.
    pub(crate) fn drains(&self) -> bool {
        self.epoch.is_some()
    }

    /// When it has to look again.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        self.turns.next_deadline(true).into_iter().chain(self.window.next_tick()).min()
    }

    pub(super) fn line_of(&self, entry: &Entry) -> Option<Line> {
        Line::read(entry, false, entry.while_busy.unwrap_or(self.while_busy))
    }

    /// A hint came.
    pub(crate) fn hint(&mut self, hint: Hint, now: Mono) {
        match hint {
            Hint::Log { mark, entry, kind, .. } => {
                if kind == HintKind::Appended && self.heard_of_held(&entry, now) {
                    return self.backlog.passed_over(mark);
                }
                match kind {
                    HintKind::Redriven => self.backlog.redriven(mark, Some(entry)),
                    HintKind::Appended => self.backlog.appended(mark, Some(entry), false),
                    HintKind::Ahead => self.backlog.appended(mark, Some(entry), true),
                }
            }
            Hint::Revised { entry, .. } => {
                let mut revised = Revisions::default();
                revised.put(entry);
                self.backlog.revise(&mut revised);
            }
            Hint::Removed { seqs, .. } => seqs.into_iter().for_each(|seq| self.backlog.remove(seq)),
            Hint::Reached { mark, .. } => self.backlog.told(mark),
            Hint::Line(_) | Hint::Room { .. } | Hint::Control(_) | Hint::Missed(_) => {}
        }
    }

    /// Somebody looked how far the log is.
    pub(crate) fn told(&mut self, mark: angelia_core::inbox::Mark) {
        self.backlog.told(mark);
        self.turns.heard_of_some();
    }

    /// An acknowledgement came.
    pub(crate) fn acknowledged(&mut self, seq: Seq, now: Mono) {
        let settled = self.window.ack(seq);
        if settled.is_empty() && !self.late.contains(&seq) {
            self.late.push(seq);
        }
        for done in settled {
            self.turns.acknowledged(done.seq, now);
            let pushed_at = Some(UnixMillis(0));
            self.to_settle.push(Settlement { seq: done.seq, by: SettledBy::Ack, pushed_at });
        }
    }

    /// The gateway asks for something.
    pub(crate) fn acts(&mut self, action: &Action, ticket: u64, now: Mono) {
        self.turns.acts(action, None, ticket, now);
        if self.variant == Variant::EndsAtTheSign {
            self.turns.answered(ticket, true, now.before(ANY_REST));
        }
    }

    /// It was done, or not: the gateway is told.
    pub(crate) fn performed(&mut self, ticket: u64, ok: bool, now: Mono) {
        self.frames.push(Down::Result(ticket, ok));
        self.turns.answered(ticket, ok, now);
    }

    /// Lets time pass, and does what may be done.
    pub(crate) fn advance(&mut self, now: Mono) {
        self.turns.tick(now);
        self.turns.wait_long(now);
        let lingering: Vec<Seq> = self.window.lingering(now).into_iter().map(|(seq, _)| seq).collect();
        if !lingering.is_empty() {
            self.jobs.push(Job::Pushed(lingering));
        }
        match self.epoch {
            None if !std::mem::replace(&mut self.claiming, true) => self.jobs.push(Job::Claim),
            None => {}
            Some(_) if self.lost || self.looking_at_late || !self.late.is_empty() => {}
            Some(_) => self.drain(now),
        }
        self.commit();
    }

    fn drain(&mut self, now: Mono) {
        if let Some(after) = self.backlog.wants_page() {
            self.jobs.push(Job::Page(after, self.turns.pass_over()));
        }
        if self.backlog.wants_ahead() {
            self.jobs.push(Job::Ahead);
        }
        self.push_ready(now);
        self.read_conversations(now);
    }

    fn commit(&mut self) {
        let Some(epoch) = self.epoch else { return };
        self.note_turns(epoch);
        if self.settling.is_empty() {
            let (later, now): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.to_settle).into_iter().partition(|done| self.is_unnoted(done.seq));
            (self.to_settle, self.settling) = (later, now);
            if !self.settling.is_empty() {
                self.jobs.push(Job::Settle(epoch, self.settling.clone()));
            }
        }
        if !self.looking_at_late && !self.late.is_empty() {
            self.looking_at_late = true;
            self.jobs.push(Job::Late(std::mem::take(&mut self.late)));
        }
    }

    fn push_ready(&mut self, now: Mono) {
        while self.backlog.knows_ahead() {
            let Some((place, line, bytes)) = self.next_entry(now) else { break };
            if self.window.permit(FrameKind::Acknowledged, bytes, now) == Permit::Wait {
                break;
            }
            let entry = match place {
                None => self.backlog.pop_ahead(),
                Some(place) => self.backlog.take_at(place),
            };
            let Some(entry) = entry else { break };
            if self.not_again.contains(&entry.seq) {
                continue;
            }
            self.remember_not_again(entry.seq);
            self.push(&entry, &line, now);
        }
    }

    /// What to push next, its place in line, and its size.
    fn next_entry(&mut self, now: Mono) -> Option<(Option<usize>, Line, usize)> {
        let mut stuck: Vec<Seq> = Vec::new();
        loop {
            let ahead = self.backlog.front_ahead().filter(|entry| !stuck.contains(&entry.seq));
            let first = || self.backlog.first(|entry| stuck.contains(&entry.seq));
            let next = ahead.map(|entry| (None, entry));
            let (place, entry) = next.or_else(|| first().map(|(place, entry)| (Some(place), entry)))?;
            let (bytes, seq) = (entry.body.len(), entry.seq);
            let line = self.line_of(entry)?;
            if self.may_go(&line, now) {
                return Some((place, line, bytes));
            }
            if place.is_none() && self.turns.is_held(&line.conversation) {
                self.backlog.remove(seq);
            }
            if self.variant == Variant::HeadOfLine {
                return None;
            }
            stuck.push(seq);
        }
    }

    /// Whether a line is pushed now. If not, its conversation waits in the log from here on.
    pub(super) fn may_go(&mut self, line: &Line, now: Mono) -> bool {
        if self.variant == Variant::HeadOfLine && self.turns.turn(&line.conversation).is_some() {
            return false;
        }
        let verdict = self.turns.consider(line, false, now);
        if verdict == Verdict::Push {
            return true;
        }
        if self.turns.is_held(&line.conversation) {
            self.backlog.leave(|entry| line.conversation.holds(entry), |_| {});
        }
        if verdict == Verdict::Interrupt {
            self.interrupt_turn(&line.conversation);
        }
        false
    }

    pub(super) fn remember_not_again(&mut self, seq: Seq) {
        if self.not_again.len() >= REMEMBERED {
            self.not_again.pop_front();
        }
        self.not_again.push_back(seq);
    }

    pub(super) fn push(&mut self, entry: &Entry, line: &Line, now: Mono) {
        self.frames.push(Down::Push(entry.clone()));
        self.turns.pushed(line, now);
        self.window.pushed(entry.seq, FrameKind::Acknowledged, entry.body.len(), now);
    }

    /// Hears what the log said.
    pub(crate) fn answered(&mut self, answer: Answer, now: Mono) {
        match answer {
            Answer::Claimed(claimed) => {
                self.claiming = false;
                if let Some((claimed, turns)) = claimed {
                    self.epoch = Some(claimed.epoch);
                    self.turns.restore(turns, claimed.mark.tail, now);
                    self.backlog.claimed(claimed.mark, claimed.usage.entries);
                }
            }
            Answer::Page(page) => self.page_read(page),
            Answer::Ahead(page) => {
                let waits = self.read_with_conversations(page.as_ref());
                let known = |entry: &Entry| self.not_again.contains(&entry.seq) || waits.contains(&entry.seq);
                self.backlog.loaded_ahead(page, known);
            }
            Answer::Conversation(key, read) => self.conversation_read(&key, read, now),
            Answer::Joined(key, entry) => self.joined(&key, entry.flatten(), now),
            Answer::Noted(outcome, notes) => self.turns_noted(outcome, notes),
            Answer::Settled(Some(ownership), settled) => {
                self.settling.clear();
                self.lost |= ownership == Ownership::Lost;
                self.window.committed(settled.len());
                self.backlog.look_ahead_again();
            }
            Answer::Settled(None, settled) => {
                self.settling.clear();
                self.to_settle.splice(0..0, settled);
            }
            Answer::Late(settled, late) => self.looked_at_late(settled, late),
            Answer::Pushed => {}
        }
    }

    fn looked_at_late(&mut self, settled: Option<Vec<Seq>>, late: Vec<Seq>) {
        self.looking_at_late = false;
        let Some(settled) = settled else { return self.late.extend(late) };
        for seq in settled {
            self.backlog.remove(seq);
            self.remember_not_again(seq);
        }
        self.backlog.look_ahead_again();
    }

    /// Ends in order: what settled is committed, the rest returns to the log.
    pub(crate) fn finish(mut self, store: &mut Store) {
        let Some(epoch) = self.epoch else { return };
        self.turns.socket_ends();
        self.turn_notes.append(&mut self.turns.take_notes());
        let notes: Vec<TurnNote> = self.noting.drain(..).chain(self.turn_notes.drain(..)).collect();
        let noted = store.ask(|log| log.note_turns(INSTANCE, epoch, notes.clone())).is_some();
        let settled = self.settling.drain(..).chain(self.to_settle.drain(..));
        let settled =
            settled.filter(|done| noted || notes.iter().all(|it| it.opens() != Some(done.seq))).collect();
        store.ask(|log| log.settle(INSTANCE, epoch, settled));
        let entries = self.window.end().returned.iter().map(|(seq, _)| (*seq, UnixMillis(0))).collect();
        // Sockets end by chance here, which says nothing of the entries they end on.
        store.ask(|log| log.returned(INSTANCE, epoch, Returned { entries, strike: None }));
    }
}
