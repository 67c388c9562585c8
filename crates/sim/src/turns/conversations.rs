//! Held conversations of a socket: read when their turn is over, joined, pushed
//! (`relay/session/turns.rs`).

use super::Variant;
use super::gateway::Down;
use super::jobs::Job;
use super::session::Session;
use angelia_core::clock::Mono;
use angelia_core::inbox::{Entry, Epoch, FrameKind, Permit, Seq};
use angelia_core::ports::log::{Joined, Ownership, Stretch, TurnNote};
use angelia_core::turns::{ConversationKey, Line, Plan, Verdict, join};

impl Session {
    /// Whether an entry that was just appended is of a conversation that is held.
    pub(super) fn heard_of_held(&mut self, entry: &Entry, now: Mono) -> bool {
        let conversation = ConversationKey::of(entry, false);
        if !self.turns.is_held(&conversation) {
            return false;
        }
        if self.variant == Variant::NoSecondLook {
            return true;
        }
        if let Some(line) = self.line_of(entry)
            && self.turns.heard(&line, false, now) == Verdict::Interrupt
        {
            self.interrupt_turn(&conversation);
        }
        true
    }

    pub(super) fn interrupt_turn(&mut self, conversation: &ConversationKey) {
        if let Some(turn) = self.turns.turn(conversation) {
            self.frames.push(Down::Interrupt(turn.session_key.to_string()));
        }
    }

    /// A page came: what is held by now is left to the log.
    pub(super) fn page_read(&mut self, page: Option<Stretch>) {
        self.backlog.loaded(page);
        if self.variant != Variant::NoSecondLook {
            self.turns.heard_of_some();
        }
        if self.turns.holds_any() {
            let turns = &self.turns;
            self.backlog.leave(|entry| turns.is_held(&ConversationKey::of(entry, false)), |_| {});
        }
    }

    pub(super) fn read_conversations(&mut self, now: Mono) {
        while let Some(conversation) = self.turns.next_to_read(now) {
            self.jobs.push(Job::Conversation(conversation));
        }
    }

    /// Pushes what may go of a conversation, or has it go together first.
    pub(super) fn conversation_read(&mut self, key: &ConversationKey, read: Option<Stretch>, now: Mono) {
        let Some(read) = read else { return self.turns.look_again(key, now) };
        let new = |entry: &Entry| !self.window.contains(entry.seq) && !self.not_again.contains(&entry.seq);
        let entries: Vec<Entry> = read.into_iter().filter(new).collect();
        let lines: Vec<Line> = entries.iter().map_while(|entry| self.line_of(entry)).collect();
        let reading = self.backlog.is_loading() && self.variant != Variant::NoSecondLook;
        match self.turns.read(key, &lines, false, reading, now) {
            Plan::Free | Plan::Wait => {}
            Plan::Interrupt => self.interrupt_turn(key),
            Plan::Push(lines) => match &entries[lines] {
                [one] => self.push_held(key, one, now),
                several => self.join_lines(key, several, now),
            },
        }
    }

    fn push_held(&mut self, key: &ConversationKey, entry: &Entry, now: Mono) {
        let permit = self.window.permit(FrameKind::Acknowledged, entry.body.len(), now);
        let Some(line) = self.line_of(entry).filter(|_| permit == Permit::Push && !self.lost) else {
            return self.turns.look_again(key, now);
        };
        self.remember_not_again(entry.seq);
        self.push(entry, &line, now);
        self.turns.put_back(key);
        if self.variant == Variant::NoSecondLook {
            self.turns.read(key, &[], false, false, now);
        }
    }

    fn join_lines(&mut self, key: &ConversationKey, entries: &[Entry], now: Mono) {
        let bodies: Vec<_> = entries.iter().map(|entry| entry.body.clone()).collect();
        let (Some(body), Some(last)) = (join(&bodies), entries.last()) else {
            return self.push_held(key, &entries[0], now);
        };
        let lines = entries.iter().map(|entry| (entry.seq, entry.revision)).collect();
        if self.variant == Variant::JoinsUncommitted {
            self.push_held(key, &Entry { body: body.clone(), ..last.clone() }, now);
        }
        let epoch = self.epoch.unwrap_or_default();
        self.jobs.push(Job::Join(epoch, key.clone(), Joined { lines, body }));
    }

    /// Lines went together: what took them up is pushed. If not now, it is read again.
    pub(super) fn joined(&mut self, key: &ConversationKey, entry: Option<Entry>, now: Mono) {
        match entry {
            _ if self.variant == Variant::JoinsUncommitted => {}
            Some(entry) if self.line_of(&entry).is_some_and(|line| self.turns.may_go(&line, false, now)) => {
                self.push_held(key, &entry, now);
            }
            Some(_) => self.turns.put_back(key),
            None => self.turns.look_again(key, now),
        }
    }

    /// Writes down what opened and closed; one commit at a time.
    pub(super) fn note_turns(&mut self, epoch: Epoch) {
        self.turn_notes.append(&mut self.turns.take_notes());
        if !self.noting.is_empty() || self.turn_notes.is_empty() {
            return;
        }
        self.noting = std::mem::take(&mut self.turn_notes);
        self.jobs.push(Job::Notes(epoch, self.noting.clone()));
    }

    /// Whether the row of an entry's turn is not written yet.
    pub(super) fn is_unnoted(&self, seq: Seq) -> bool {
        self.noting.iter().chain(&self.turn_notes).any(|note| note.opens() == Some(seq))
    }

    /// Which of these entries, that would go ahead, are read with their conversation instead.
    pub(super) fn read_with_conversations(&self, page: Option<&Stretch>) -> Vec<Seq> {
        let waits = |line: Line| !line.sort.goes_ahead() && self.turns.is_held(&line.conversation);
        let entries = page.into_iter().flat_map(|read| read.page.items.iter());
        entries.filter(|it| self.line_of(it).is_some_and(waits)).map(|entry| entry.seq).collect()
    }

    pub(super) fn turns_noted(&mut self, outcome: Option<Ownership>, notes: Vec<TurnNote>) {
        self.noting.clear();
        match outcome {
            Some(ownership) => self.lost |= ownership == Ownership::Lost,
            None => drop(self.turn_notes.splice(0..0, notes)),
        }
    }
}
