//! Conversations whose lines wait for the end of a turn: in the log, passed over by whoever reads
//! it, and read by themselves when their turn is over.

use super::join::{JOINED_BYTES, JOINED_LINES};
use super::{ConversationKey, Generation, Line, Sort, Turns, Verdict, WhileBusy};
use crate::clock::Mono;
use crate::inbox::Seq;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

angelia_contract::limits! {
    /// What comes for further ones waits at its place in line, and lets fewer others by.
    pub const MAX_HELD: usize = 1_024, count "conversations of one gateway whose lines wait for the end of a turn";
}

/// Conversations that are read at the same time: what is read of them is in memory.
const MAX_READING: usize = 8;
/// Somebody who writes in several lines is waited for so long after the last of them.
const TOGETHER: Duration = Duration::from_millis(500);
/// And no longer than this in all.
const TOGETHER_AT_MOST: Duration = Duration::from_secs(3);
/// Whoever's line waits so long is told.
const TELL_AFTER: Duration = Duration::from_secs(20);

/// A conversation that is held.
#[derive(Debug)]
struct Waits {
    /// Since when, and for which line; for none that is known if that was taken out.
    since: Mono,
    line: Option<(Seq, String)>,
    /// When the last line came that is known of.
    heard_at: Mono,
    /// When its turn ended.
    freed_at: Mono,
    /// Until when it is left alone: it was looked at in vain.
    not_before: Mono,
    /// Whether there may be words among its lines, which a turn that listens is given.
    text: bool,
    /// Whether there may be some that pass wherever the gateway bears it.
    passes: bool,
    /// Whether a reset may be among them, which goes in if no interrupt ends the turn.
    reset: bool,
    /// Whether it is of a platform that gateways file under `relay`.
    relayed: bool,
    /// Whether its lines are being read, joined or pushed.
    reading: bool,
    /// Whether lines came that were not read.
    unread: bool,
}

/// What is held.
#[derive(Debug, Default)]
pub(super) struct Held {
    conversations: BTreeMap<ConversationKey, Waits>,
}

/// What to do with the lines of a conversation whose turn is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing waits there any more.
    Free,
    /// They wait on.
    Wait,
    /// They wait on, and the turn is asked to end.
    Interrupt,
    /// These go: together, if they are several.
    Push(Range<usize>),
}

/// Somebody whose line waits for long.
#[derive(Clone, Debug)]
pub struct WaitsLong {
    /// The conversation.
    pub conversation: ConversationKey,
    /// The line that waits.
    pub message_id: String,
}

impl Held {
    /// Holds a line's conversation; `false` if too many are held.
    pub(super) fn hold(&mut self, line: &Line, relayed: bool, now: Mono) -> bool {
        if let Some(waits) = self.conversations.get_mut(&line.conversation) {
            waits.may_bring(line);
            return true;
        }
        if self.conversations.len() >= MAX_HELD {
            return false;
        }
        let waits = Waits {
            since: now,
            line: Some((line.seq, line.message_id.clone())),
            heard_at: now,
            freed_at: now,
            not_before: now,
            text: line.sort == Sort::Text,
            passes: passes(line),
            reset: line.sort == Sort::Reset,
            relayed,
            reading: false,
            unread: true,
        };
        self.conversations.insert(line.conversation.clone(), waits);
        true
    }

    pub(super) fn heard(&mut self, line: &Line, now: Mono) {
        if let Some(waits) = self.conversations.get_mut(&line.conversation) {
            waits.heard_at = now;
            waits.may_bring(line);
            if waits.line.is_none() {
                (waits.since, waits.line) = (now, Some((line.seq, line.message_id.clone())));
            }
        }
    }

    /// Everything of a chat is free.
    pub(super) fn freed_in(&mut self, chat_id: &str, now: Mono) {
        let here = self.conversations.iter_mut().filter(|(key, _)| *key.chat_id == *chat_id);
        here.for_each(|(_, waits)| waits.freed_at = now);
    }

    pub(super) fn freed(&mut self, conversation: &ConversationKey, now: Mono) {
        if let Some(waits) = self.conversations.get_mut(conversation) {
            waits.freed_at = now;
        }
    }
}

/// Whether a line is of words that go to a busy gateway which bears it.
fn passes(line: &Line) -> bool {
    line.sort == Sort::Text && line.while_busy == WhileBusy::Auto
}

impl Waits {
    /// A line came that was not read.
    fn may_bring(&mut self, line: &Line) {
        self.unread = true;
        self.text |= line.sort == Sort::Text;
        self.passes |= passes(line);
        self.reset |= line.sort == Sort::Reset;
    }

    /// When its lines are read, from the moment it is free on.
    fn due_at(&self, free_at: Mono) -> Mono {
        let at_most = free_at.max(self.since) + TOGETHER_AT_MOST;
        free_at.max(self.heard_at + TOGETHER).min(at_most).max(self.not_before)
    }
}

impl Turns {
    /// Whether lines of a conversation wait in the log.
    pub fn is_held(&self, conversation: &ConversationKey) -> bool {
        self.held.conversations.contains_key(conversation)
    }

    /// Whether anything is held.
    pub fn holds_any(&self) -> bool {
        !self.held.conversations.is_empty()
    }

    /// The conversations that whoever reads the log passes over.
    pub fn pass_over(&self) -> Vec<ConversationKey> {
        self.held.conversations.keys().cloned().collect()
    }

    /// An entry left the inbox: nobody is told that it waits.
    pub fn removed(&mut self, seq: Seq) {
        let waiting = self.held.conversations.values_mut();
        let of = |waits: &&mut Waits| waits.line.as_ref().is_some_and(|(first, _)| *first == seq);
        waiting.filter(of).for_each(|waits| waits.line = None);
    }

    /// Lines came that nobody has at hand: some may be of any conversation.
    pub fn heard_of_some(&mut self) {
        for waits in self.held.conversations.values_mut() {
            (waits.unread, waits.text, waits.passes, waits.reset) = (true, true, true, true);
        }
    }

    /// A conversation whose lines are to be read now. It is not named again before [`read`](Self::read).
    pub fn next_to_read(&mut self, now: Mono) -> Option<ConversationKey> {
        if self.reading() >= MAX_READING {
            return None;
        }
        let due = self
            .held
            .conversations
            .iter()
            .filter(|(_, waits)| !waits.reading)
            .find(|(key, waits)| self.free_at(key, waits).is_some_and(|free| waits.due_at(free) <= now));
        let key = due.map(|(key, _)| key.clone())?;
        if let Some(waits) = self.held.conversations.get_mut(&key) {
            (waits.reading, waits.unread) = (true, false);
        }
        Some(key)
    }

    /// How many conversations are being read.
    pub fn reading(&self) -> usize {
        self.held.conversations.values().filter(|waits| waits.reading).count()
    }

    /// When the lines of a held conversation may go; `None` if that is not known yet.
    fn free_at(&self, key: &ConversationKey, waits: &Waits) -> Option<Mono> {
        match self.turn_before(key) {
            None => Some(waits.freed_at),
            Some(turn) => {
                let (signs, relayed) = (self.signs_on(&turn.row.platform), waits.relayed);
                let older = self.peer_for(&turn.row.platform, relayed).generation == Generation::Older;
                let passes = turn.is_known_at(signs).filter(|_| older && waits.passes);
                let hears = turn.hears_at(signs).filter(|_| waits.text);
                let unmoved = turn.unmoved_at().filter(|_| waits.reset);
                hears.into_iter().chain(passes).chain(unmoved).min()
            }
        }
    }

    /// The first lines of a conversation were read: what becomes of them.
    /// Without them it is free again, unless `reads` says that a reader of the log passes it over just now.
    pub fn read(
        &mut self,
        conversation: &ConversationKey,
        lines: &[Line],
        relayed: bool,
        reads: bool,
        now: Mono,
    ) -> Plan {
        if lines.is_empty() {
            let stays = reads || self.held.conversations.get(conversation).is_some_and(|waits| waits.unread);
            if stays {
                self.look_again(conversation, now);
                return Plan::Wait;
            }
            self.held.conversations.remove(conversation);
            return Plan::Free;
        }
        // An agent that listens hears no command, and its answer may wait behind one.
        let waits =
            |line: &Line| self.judge(line, relayed, now) == Verdict::Hold && line.sort == Sort::Command;
        let place = lines.iter().take_while(|line| waits(line)).count();
        match lines.get(place).map(|line| self.judge(line, relayed, now)) {
            Some(Verdict::Push) => {}
            verdict => {
                self.nothing_goes(conversation, lines.get(place));
                if verdict != Some(Verdict::Interrupt) {
                    return Plan::Wait;
                }
                self.interrupts(conversation, now);
                return Plan::Interrupt;
            }
        }
        let going = place..place + self.together(&lines[place..]).max(1);
        if let Some(waits) = self.held.conversations.get_mut(conversation) {
            // From here on it is the first of the others that waits.
            let first = lines.iter().take(place).chain(lines.iter().skip(going.end)).next();
            (waits.since, waits.line) = (now, first.map(|line| (line.seq, line.message_id.clone())));
        }
        Plan::Push(going)
    }

    /// Nothing of a conversation goes now. `next` is the first of it that might; without one it
    /// waits until its turn is over or others come.
    fn nothing_goes(&mut self, conversation: &ConversationKey, next: Option<&Line>) {
        self.put_back(conversation);
        if let Some(waits) = self.held.conversations.get_mut(conversation).filter(|it| !it.unread) {
            waits.text = next.is_some_and(|line| line.sort == Sort::Text);
            waits.passes = next.is_some_and(passes);
            waits.reset = next.is_some_and(|line| line.sort == Sort::Reset);
        }
    }

    /// Whether the lines of a conversation are being read, joined or pushed.
    pub(super) fn is_read(&self, conversation: &ConversationKey) -> bool {
        self.held.conversations.get(conversation).is_some_and(|waits| waits.reading)
    }

    /// How many of these lines go together, from the first one on.
    pub(super) fn together(&self, lines: &[Line]) -> usize {
        let Some(first) = lines.first() else { return 0 };
        let mut bytes = 0;
        let fits = |line: &&Line| {
            bytes += line.length + 1;
            let place = |line: &Line| (line.session_key.clone(), line.bot.clone(), line.thread_id.clone());
            let alike = line.author == first.author && line.while_busy == first.while_busy;
            let alike = alike && place(line) == place(first);
            let whole = line.joins && line.while_busy != WhileBusy::Followup && !self.was_pushed(line);
            bytes <= JOINED_BYTES && alike && whole
        };
        lines.iter().take(JOINED_LINES).take_while(fits).count()
    }

    /// Whether an earlier socket pushed a line, or may have: they were the first words of its conversation.
    fn was_pushed(&self, line: &Line) -> bool {
        let first = line.seq <= self.waited_to && !self.begun.contains(&line.conversation);
        first || self.pushed_before.contains(&line.seq)
    }

    /// The same, a little later.
    pub fn look_again(&mut self, conversation: &ConversationKey, now: Mono) {
        self.put_back(conversation);
        if let Some(waits) = self.held.conversations.get_mut(conversation) {
            waits.not_before = now + TOGETHER;
        }
    }

    /// What was read of a conversation is done with: it is looked at again when it may go on.
    pub fn put_back(&mut self, conversation: &ConversationKey) {
        if let Some(waits) = self.held.conversations.get_mut(conversation) {
            waits.reading = false;
        }
    }

    /// Those whose lines wait for long, each turn's once.
    pub fn wait_long(&mut self, now: Mono) -> Vec<WaitsLong> {
        let mut told = Vec::new();
        for (key, waits) in &self.held.conversations {
            if let Some(turn) = self.open.get_mut(key)
                && let Some((_, message_id)) = &waits.line
                && !turn.told
                && now.since(waits.since) >= TELL_AFTER
            {
                turn.told = true;
                told.push(WaitsLong { conversation: key.clone(), message_id: message_id.clone() });
            }
        }
        told
    }

    /// When something is to be done about what is held; reading it only where that is possible.
    pub(super) fn held_deadlines(&self, may_read: bool) -> impl Iterator<Item = Mono> {
        let may_read = may_read && self.reading() < MAX_READING;
        self.held.conversations.iter().filter_map(move |(key, waits)| {
            let free = self.free_at(key, waits).filter(|_| may_read && !waits.reading);
            let read = free.map(|free| waits.due_at(free));
            let untold = waits.line.is_some() && self.open.get(key).is_some_and(|turn| !turn.told);
            let tell = untold.then(|| waits.since + TELL_AFTER);
            read.into_iter().chain(tell).min()
        })
    }
}
