//! Turns on one socket: which lines wait, what is read of their conversations when a turn is
//! over, what goes together, and what the log and people are told of it
//! ([`angelia_core::turns`] decides).

use super::deliver::or_later;
use super::{Done, PeerProfile, Phase, RETRY, Session};
use crate::media::FILES_OF_EVENT;
use crate::relay::Relay;
use crate::telemetry::Counter;
use angelia_contract::event::Event;
use angelia_contract::frame::{ConnectorFrame, Inbound};
use angelia_core::clock::{self, Mono};
use angelia_core::error::Result;
use angelia_core::identity::GatewayRecord;
use angelia_core::inbox::{Entry, Permit, Seq};
use angelia_core::media::count_files;
use angelia_core::ports::log::{Joined, Ownership, Stretch, TurnNote};
use angelia_core::store::PageSize;
use angelia_core::turns::{
    ConversationKey, Generation, JOINED_BYTES, JOINED_LINES, Line, Peer, Plan, Turns, Verdict, WhileBusy,
    join,
};
use angelia_platforms::webchat;
use std::time::Duration;

/// What an agent is told that waits for an answer and is to end.
const ENOUGH: &str = "stop";
/// An interrupt that ends a turn does so within this time.
const ENDS: Duration = Duration::from_millis(1_500);
/// Those that are looked at again.
const MAX_UNANSWERED: usize = 16;
/// What is read of a conversation at once: as much as may go together.
const CONVERSATION: PageSize = PageSize { count: JOINED_LINES, bytes: 4 * JOINED_BYTES };

/// The turns of a gateway that has not said hello.
pub(super) fn at_first(relay: &Relay, record: &GatewayRecord, profile: PeerProfile) -> Turns {
    let signs = relay.sessions.standing(record.instance).signs;
    Turns::new(peer(profile, false), relay.turn_limit, signs)
}

/// What is known of a gateway that sent a manifest of its commands, or none.
pub(super) fn peer(profile: PeerProfile, manifest: bool) -> Peer {
    let generation = if manifest {
        Generation::Newer
    } else if profile.published {
        Generation::Older
    } else {
        Generation::Other
    };
    Peer { generation, interrupts: profile.interrupts }
}

/// Whether gateways file what comes from a platform under `relay`, where older ones act as newer do.
fn is_relayed(platform: &str) -> bool {
    platform == webchat::NAME
}

impl Session {
    /// What a turn has to know of an entry; `None` if it goes at once whatever runs.
    pub(super) fn line_of(&self, entry: &Entry) -> Option<Line> {
        let while_busy = entry.while_busy.or(self.while_busy()).unwrap_or_default();
        if self.turns.never_waits(&entry.platform, is_relayed(&entry.platform), while_busy) {
            return None;
        }
        Line::read(entry, self.one_per_chat, while_busy)
    }

    /// What an operator wants of the gateway by now.
    fn while_busy(&self) -> Option<WhileBusy> {
        let now = self.relay.identities.now().find(&self.record.tenant, &self.record.gateway_id);
        now.map_or(self.record.while_busy, |record| record.while_busy)
    }

    /// Whether the gateway acts on an interrupt there.
    pub(super) fn acts_on_interrupts(&self, platform: &str) -> bool {
        self.turns.acts_on_interrupts(platform, is_relayed(platform))
    }

    /// Whether an interrupt is how an entry's conversation is stopped. Where one was in vain, the
    /// text is.
    pub(super) fn may_interrupt(&self, entry: &Entry) -> bool {
        let conversation = ConversationKey::of(entry, self.one_per_chat);
        self.acts_on_interrupts(&entry.platform) && !self.turns.is_unmoved(&conversation, clock::mono())
    }

    /// Whether a line is pushed now. If not, its conversation waits in the log from here on.
    pub(super) fn may_go(&mut self, line: &Line, entry: &Entry, now: Mono) -> bool {
        let verdict = self.turns.consider(line, is_relayed(&line.platform), now);
        if verdict == Verdict::Push {
            return true;
        }
        if self.turns.is_held(&line.conversation) {
            let shown = &mut self.held_lines;
            self.backlog.leave(|entry| line.conversation.holds(entry), |entry| shown.hold(entry));
        }
        if verdict == Verdict::Interrupt {
            self.interrupt_turn(&line.conversation, entry);
        }
        false
    }

    /// Whether an entry that was just appended is of a conversation that is held.
    pub(super) fn heard_of_held(&mut self, entry: &Entry) -> bool {
        if !self.turns.holds_any() {
            return false;
        }
        let conversation = ConversationKey::of(entry, self.one_per_chat);
        if !self.turns.is_held(&conversation) {
            return false;
        }
        self.held_lines.hold(entry);
        let now = clock::mono();
        match self.line_of(entry) {
            None => self.turns.heard_of_some(),
            Some(line) => {
                if self.turns.heard(&line, is_relayed(&line.platform), now) == Verdict::Interrupt {
                    self.interrupt_turn(&conversation, entry);
                }
            }
        }
        true
    }

    /// Asks the turn of a conversation to end, for the sake of `entry`.
    fn interrupt_turn(&mut self, conversation: &ConversationKey, entry: &Entry) {
        let Some(turn) = self.turns.turn(conversation) else { return };
        if turn.session_key.is_empty() {
            return;
        }
        let session_key = turn.session_key.to_string();
        let chat_id = conversation.chat_id.to_string();
        self.relay.metrics.count(Counter::Interrupts);
        self.outgoing.line(&ConnectorFrame::InterruptInbound { session_key, chat_id }.to_line());
        self.may_be_unanswered(conversation, entry, clock::mono());
    }

    /// An interrupt was sent, for the sake of `entry`.
    pub(super) fn may_be_unanswered(&mut self, conversation: &ConversationKey, entry: &Entry, now: Mono) {
        let listed = self.unanswered.iter().any(|(_, known, _)| known == conversation);
        if self.turns.is_unanswered(conversation) && !listed && self.unanswered.len() < MAX_UNANSWERED {
            self.unanswered.push((now + ENDS, conversation.clone(), entry.clone()));
        }
    }

    /// Answers agents that asked something in words, and that no interrupt has ended.
    fn answer_unanswered(&mut self, now: Mono) {
        let due: Vec<_> = self.unanswered.extract_if(.., |(at, ..)| *at <= now).collect();
        for (_, conversation, entry) in due {
            if self.turns.is_unanswered(&conversation) {
                self.answer_for(&entry);
            }
        }
    }

    /// Answers for somebody what an interrupted agent asked, so that the interrupt counts. It is no
    /// entry: it says what `entry` means, which has its own way.
    fn answer_for(&mut self, entry: &Entry) {
        let Ok(event) = serde_json::from_slice::<Event>(&entry.body) else { return };
        let event = Event { text: ENOUGH.into(), message_id: None, ..event };
        let (platform, bot_id) = (Some(entry.platform.to_string()), Some(entry.bot.to_string()));
        let frame = Inbound { event, buffer_id: None, platform, bot_id };
        self.outgoing.line(&ConnectorFrame::Inbound(frame).to_line());
    }

    /// Which of these entries, that would go ahead, are read with their conversation instead.
    pub(super) fn read_with_conversations(&self, page: Option<&Stretch>) -> Vec<Seq> {
        let waits = |entry: &&Entry| {
            let waits = |line: Line| !line.sort.goes_ahead() && self.turns.is_held(&line.conversation);
            self.turns.holds_any() && self.line_of(entry).is_some_and(waits)
        };
        let entries = page.into_iter().flat_map(|read| read.page.items.iter());
        entries.filter(waits).map(|entry| entry.seq).collect()
    }

    /// Leaves what is held to the log.
    pub(super) fn leave_held(&mut self) {
        if self.turns.holds_any() {
            let (turns, shared, shown) = (&self.turns, self.one_per_chat, &mut self.held_lines);
            let held = |entry: &Entry| turns.is_held(&ConversationKey::of(entry, shared));
            self.backlog.leave(held, |entry| shown.hold(entry));
        }
    }

    /// Whether conversations can be read and pushed now.
    pub(super) fn may_read_conversations(&self) -> bool {
        let settled = !self.looking_at_late && self.late.is_empty();
        let room = self.outgoing.has_room() && self.page_again.is_none();
        self.phase == Phase::Draining && self.may_push() && settled && room
    }

    /// Memory that is set aside for what is being read of them.
    pub(super) fn reserved_for_conversations(&self) -> usize {
        self.turns.reading() * CONVERSATION.bytes
    }

    /// Reads the conversations whose turn is over.
    pub(super) fn read_conversations(&mut self, now: Mono) {
        while self.turns.holds_any()
            && self.may_read_conversations()
            && let Some(conversation) = self.turns.next_to_read(now)
        {
            if !self.count_held() {
                self.page_again = Some(now + RETRY);
                return self.turns.put_back(&conversation);
            }
            let (ports, instance) = (self.relay.ports.clone(), self.record.instance);
            self.jobs.push(Box::pin(async move {
                let read = ports.log.load_conversation(instance, &conversation, CONVERSATION).await;
                Done::Conversation(conversation, or_later(read).await)
            }));
        }
    }

    /// Pushes what may go of a conversation, or has it go together first.
    pub(super) fn conversation_read(&mut self, conversation: &ConversationKey, read: Option<Stretch>) {
        let now = clock::mono();
        let Some(read) = read.filter(|_| self.phase == Phase::Draining) else {
            return self.turns.look_again(conversation, now);
        };
        let new = |entry: &Entry| !self.window.contains(entry.seq) && !self.not_again.contains(&entry.seq);
        let more = read.page.more;
        let entries: Vec<Entry> = read.into_iter().filter(new).collect();
        // All that was read is under way, and there are others behind it.
        let hidden = entries.is_empty() && more;
        if hidden || entries.first().is_some_and(|entry| self.is_left_alone(entry)) {
            return self.turns.look_again(conversation, now);
        }
        let lines: Vec<Line> = entries.iter().map_while(|entry| self.line_of(entry)).collect();
        if let Some(first) = entries.first().filter(|_| lines.is_empty()) {
            return self.push_held(conversation, first, now);
        }
        let relayed = entries.first().is_some_and(|entry| is_relayed(&entry.platform));
        let reading = self.backlog.is_loading();
        match self.turns.read(conversation, &lines, relayed, reading, now) {
            Plan::Free | Plan::Wait => {}
            Plan::Interrupt => self.interrupt_turn(conversation, &entries[0]),
            Plan::Push(lines) => match &entries[lines] {
                [one] => self.push_held(conversation, one, now),
                several => self.join_lines(conversation, several, now),
            },
        }
    }

    /// Pushes the first entry of a held conversation, if there is room for it.
    fn push_held(&mut self, conversation: &ConversationKey, entry: &Entry, now: Mono) {
        let form = self.form(entry);
        let permit = self.window.permit(form.kind(), entry.body.len(), now);
        let lacks_files = self.lacks_files(entry);
        if lacks_files {
            self.bring_files(entry);
        }
        if self.phase != Phase::Draining || !self.may_push() || permit == Permit::Wait || lacks_files {
            return self.turns.look_again(conversation, now);
        }
        self.remember_not_again(entry.seq);
        let line = self.line_of(entry);
        self.push(entry, form, line.as_ref(), now);
        self.turns.put_back(conversation);
    }

    fn join_lines(&mut self, conversation: &ConversationKey, entries: &[Entry], now: Mono) {
        // The files of one event come together. Lines with further ones are the next.
        let mut files = 0;
        let fits = |entry: &&Entry| {
            files += count_files(&entry.body);
            files <= FILES_OF_EVENT
        };
        let entries = &entries[..entries.iter().take_while(fits).count().max(1)];
        if let [one] = entries {
            return self.push_held(conversation, one, now);
        }
        let bodies: Vec<_> = entries.iter().map(|entry| entry.body.clone()).collect();
        let Some(body) = join(&bodies) else { return self.push_held(conversation, &entries[0], now) };
        let lines: Vec<(Seq, u32)> = entries.iter().map(|entry| (entry.seq, entry.revision)).collect();
        let seqs = lines.iter().map(|(seq, _)| *seq).collect();
        let (ports, instance, epoch) = (self.relay.ports.clone(), self.record.instance, self.epoch());
        let conversation = conversation.clone();
        self.jobs.push(Box::pin(async move {
            let joined = ports.log.join(instance, epoch, Joined { lines, body }).await;
            Done::Joined(conversation, seqs, or_later(joined).await)
        }));
    }

    /// Lines went together: what took them up is pushed. If not now, it is read again.
    pub(super) fn joined(&mut self, conversation: &ConversationKey, lines: &[Seq], entry: Option<Entry>) {
        let now = clock::mono();
        // Meanwhile something that goes ahead may have begun a turn.
        let may_go = |it: &Self, entry: &Entry| {
            it.line_of(entry).is_none_or(|line| it.turns.may_go(&line, is_relayed(&line.platform), now))
        };
        match entry {
            Some(entry) => {
                lines.iter().for_each(|seq| self.held_lines.release(*seq));
                if may_go(self, &entry) {
                    self.push_held(conversation, &entry, now);
                } else {
                    self.turns.put_back(conversation);
                }
            }
            None => self.turns.look_again(conversation, now),
        }
    }

    /// Lets turns end, and tells of those that brought nothing.
    pub(super) fn pass_turns(&mut self, now: Mono) {
        self.answer_unanswered(now);
        let passed = self.turns.tick(now);
        if !passed.over.is_empty() {
            self.note_signs();
        }
        for turn in passed.lost {
            self.relay.tell_turn_lost(&self.record, &turn.row);
        }
        if !self.one_per_chat && self.turns.is_stalled_by_others(self.window.oldest(), now) {
            // From its next socket on; on this one turns are told apart as they were.
            self.relay.sessions.update(self.record.instance, |standing| standing.one_per_chat = true);
        }
        for waits in self.turns.wait_long(now) {
            if let Some(turn) = self.turns.turn(&waits.conversation) {
                self.relay.tell_held(&self.record, &turn.row, waits.message_id);
            }
        }
    }

    /// Remembers what the gateway has shown, for its next socket and for operators.
    fn note_signs(&mut self) {
        let signs = self.turns.signs();
        self.relay.sessions.update(self.record.instance, |standing| {
            if standing.signs != signs {
                standing.signs = signs.to_vec();
            }
        });
    }

    /// Writes down what opened and closed; one commit at a time.
    pub(super) fn note_turns(&mut self) {
        self.turn_notes.append(&mut self.turns.take_notes());
        if self.noting_turns.is_some() || self.turn_notes.is_empty() || self.epoch.is_none() {
            return;
        }
        let notes = std::mem::take(&mut self.turn_notes);
        self.noting_turns = Some(notes.iter().filter_map(TurnNote::opens).collect());
        let (ports, instance, epoch) = (self.relay.ports.clone(), self.record.instance, self.epoch());
        self.jobs.push(Box::pin(async move {
            let noted = ports.log.note_turns(instance, epoch, notes.clone()).await;
            Done::TurnsNoted(or_later(noted).await, notes)
        }));
    }

    /// Whether the row of an entry's turn is not written yet. Only that tells the next socket of
    /// the turn once the entry is settled.
    pub(super) fn is_unnoted(&self, seq: Seq) -> bool {
        let noting = self.noting_turns.as_ref().is_some_and(|opened| opened.contains(&seq));
        noting || self.turn_notes.iter().any(|note| note.opens() == Some(seq))
    }

    /// Writes down what the next socket has to know of this one's turns.
    pub(super) async fn note_last_turns(&mut self) {
        self.turns.socket_ends();
        self.turn_notes.append(&mut self.turns.take_notes());
        let notes = std::mem::take(&mut self.turn_notes);
        if let Some(epoch) = self.epoch.filter(|_| !notes.is_empty())
            && self.relay.ports.log.note_turns(self.record.instance, epoch, notes.clone()).await.is_err()
        {
            self.turn_notes = notes;
        }
    }

    pub(super) fn turns_noted(&mut self, outcome: Result<Ownership>, notes: Vec<TurnNote>) {
        self.noting_turns = None;
        match outcome {
            Ok(ownership) => self.heed(ownership),
            Err(_) => drop(self.turn_notes.splice(0..0, notes)),
        }
    }
}
