//! Turns: an agent works on one message of a conversation at a time, and what comes meanwhile waits.
//!
//! A turn opens with a push and closes by the strongest sign that its gateway has shown on that
//! platform. While it is open, the lines of its conversation wait in the log; other conversations
//! go on. What is open belongs to one socket; what has to outlive it are rows
//! ([`OpenTurn`]). Why it is so: docs/decisions/0043.
//!
//! | Question | File |
//! |---|---|
//! | What is known of a line that waits? | `line.rs` |
//! | What does a gateway's action say of its turn? | `signs.rs`, `acts.rs` |
//! | When is a turn over? | `turn.rs` |
//! | What if nobody's line began it? | `unasked.rs` |
//! | Does a line pass, wait, or end the turn? | `busy.rs`, `while_busy.rs` |
//! | What waits, and when is it looked at again? | `held.rs` |
//! | Which lines go together, and how? | `join.rs` |

mod acts;
mod busy;
mod held;
mod join;
mod line;
mod signs;
mod turn;
mod unasked;
mod while_busy;

pub use busy::{Generation, Peer, Verdict};
pub use held::{LIMITS, MAX_HELD, Plan, WaitsLong};
pub use join::{JOINED_BYTES, JOINED_LINES, join};
pub use line::{ConversationKey, Line, Sort, sort_of_text};
pub use signs::{Asked, Signs};
pub use turn::Turn;
pub use while_busy::WhileBusy;

use crate::clock::Mono;
use crate::inbox::Seq;
use crate::ports::log::{OpenTurn, TurnNote};
use held::Held;
use signs::{shown, shown_on};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// The longest turn, unless configured otherwise.
pub const TURN_LIMIT: Duration = Duration::from_secs(3_600);
/// How long a conversation waits for a sign of life of a turn that an earlier socket left.
const LIFE_WITHIN: Duration = Duration::from_secs(5);
/// The same for one that asked something: it shows none before it is answered.
const ASKS_ON: Duration = Duration::from_secs(60);
/// How long its answer may take from then on, until the person is told.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

/// A turn that is taken up again within this time was not over.
const AGAIN_WITHIN: Duration = Duration::from_secs(10);
/// Turns that are remembered for it.
const MAX_ENDED: usize = 64;

/// The turns of one socket, and the lines that wait for their end.
#[derive(Debug)]
pub struct Turns {
    peer: Peer,
    limit: Duration,
    open: BTreeMap<ConversationKey, Turn>,
    /// Those that nobody's line began, by their chats.
    unasked: BTreeMap<Arc<str>, Turn>,
    /// Open or not: what was last interrupted, and when.
    interrupted: BTreeMap<ConversationKey, Mono>,
    held: Held,
    signs: Vec<(Arc<str>, Signs)>,
    /// Turns that an earlier socket left without an answer, and until when one is awaited.
    owed: Vec<(Turn, Mono)>,
    /// Entries that an earlier socket pushed: they are pushed again as they are.
    pushed_before: HashSet<Seq>,
    /// Up to here the log went when this socket came: what waited may have been pushed as well.
    waited_to: Seq,
    /// The conversations of which such words were pushed here.
    begun: HashSet<ConversationKey>,
    /// Turns that ended a moment ago: one that is taken up again was not over.
    ended: VecDeque<(Turn, Mono)>,
    /// Prompts whose result is not written yet.
    asking: Vec<(u64, ConversationKey, Asked)>,
    /// Since when the socket is read without a pause.
    reading_since: Mono,
    /// What the log has to know of turns.
    notes: Vec<TurnNote>,
}

/// What became of turns as time passed.
#[derive(Debug, Default)]
pub struct Passed {
    /// They are over.
    pub over: Vec<Turn>,
    /// No answer came of them, and none will.
    pub lost: Vec<Turn>,
}

impl Turns {
    /// No turn yet, of a gateway that showed these signs on earlier sockets.
    pub fn new(peer: Peer, limit: Duration, signs: Vec<(Arc<str>, Signs)>) -> Self {
        Self {
            peer,
            limit,
            open: BTreeMap::new(),
            unasked: BTreeMap::new(),
            interrupted: BTreeMap::new(),
            held: Held::default(),
            signs,
            owed: Vec::new(),
            pushed_before: HashSet::new(),
            waited_to: Seq::default(),
            begun: HashSet::new(),
            ended: VecDeque::new(),
            asking: Vec::new(),
            reading_since: Mono::default(),
            notes: Vec::new(),
        }
    }

    /// What its hello told of the gateway. Signs of another generation are forgotten.
    pub fn met(&mut self, peer: Peer) {
        if peer.generation != self.peer.generation && peer.generation != Generation::Newer {
            self.signs.clear();
        }
        self.peer = peer;
    }

    /// What the gateway has shown, platform by platform.
    pub fn signs(&self) -> &[(Arc<str>, Signs)] {
        &self.signs
    }

    /// What it has shown on a platform.
    pub fn signs_on(&self, platform: &str) -> Signs {
        shown_on(&self.signs, platform)
    }

    /// Whether a turn is open.
    pub fn is_any_open(&self) -> bool {
        !self.open.is_empty() || !self.unasked.is_empty()
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.open.len()
    }

    /// The open turn of a conversation.
    pub fn turn(&self, conversation: &ConversationKey) -> Option<&Turn> {
        self.open.get(conversation)
    }

    /// The people in whose turns something is asked in a chat, or in a thread of it.
    pub fn people_in(&self, chat_id: &str, thread_id: Option<&str>) -> Vec<String> {
        let here = self
            .open
            .values()
            .map(|turn| &turn.row)
            .filter(|row| *row.conversation.chat_id == *chat_id && row.thread_id.as_deref() == thread_id);
        let mut people: Vec<String> = here.filter_map(|row| row.author.clone()).collect();
        people.sort_unstable();
        people.dedup();
        people
    }

    fn peer_for(&self, platform: &str, as_newer: bool) -> Peer {
        let reacts = self.signs_on(platform).reacts;
        let relayed = as_newer && self.peer.generation == Generation::Older;
        if reacts || relayed || self.peer.generation == Generation::Newer {
            let interrupts = self.peer.interrupts || relayed || reacts;
            Peer { generation: Generation::Newer, interrupts }
        } else {
            self.peer
        }
    }

    /// Whether the gateway acts on an interrupt there.
    pub fn acts_on_interrupts(&self, platform: &str, relayed: bool) -> bool {
        self.peer_for(platform, relayed).interrupts
    }

    /// Whether interrupts are known not to end what runs in a conversation.
    pub fn is_unmoved(&self, conversation: &ConversationKey, now: Mono) -> bool {
        self.open.get(conversation).and_then(Turn::unmoved_at).is_some_and(|at| at <= now)
    }

    /// Whether an interrupt has left an agent waiting for an answer, as far as can be seen.
    pub fn is_unanswered(&self, conversation: &ConversationKey) -> bool {
        self.open.get(conversation).is_some_and(Turn::is_unanswered)
    }

    /// Whether lines like this never wait, so that nothing needs to be known of them. `relayed`
    /// says that the gateway files the platform under `relay`.
    pub fn never_waits(&self, platform: &str, relayed: bool, while_busy: WhileBusy) -> bool {
        busy::never_waits(while_busy, self.peer_for(platform, relayed).generation)
    }

    /// What becomes of a line that is next; it is held from here on if it has to wait.
    pub fn consider(&mut self, line: &Line, relayed: bool, now: Mono) -> Verdict {
        let verdict = self.judge(line, relayed, now);
        // Lines of a conversation that is being read may be about to go together.
        let waits = verdict == Verdict::Push && !line.sort.goes_ahead() && self.is_read(&line.conversation);
        self.apply(line, if waits { Verdict::Hold } else { verdict }, relayed, now)
    }

    /// Whether a line that was read with its conversation may still go.
    pub fn may_go(&self, line: &Line, relayed: bool, now: Mono) -> bool {
        self.judge(line, relayed, now) == Verdict::Push
    }

    /// A line came for a conversation that is held: whether it asks for an interrupt.
    pub fn heard(&mut self, line: &Line, relayed: bool, now: Mono) -> Verdict {
        self.held.heard(line, now);
        self.notes.push(TurnNote::Held(line.seq));
        let verdict = self.judge(line, relayed, now);
        if verdict == Verdict::Interrupt { self.apply(line, verdict, relayed, now) } else { Verdict::Hold }
    }

    fn judge(&self, line: &Line, relayed: bool, now: Mono) -> Verdict {
        let Some(turn) = self.turn_before(&line.conversation) else { return Verdict::Push };
        if turn.row.seq == line.seq {
            // The same line once more: whoever works on it knows it.
            return Verdict::Push;
        }
        let peer = self.peer_for(&line.platform, relayed);
        let interrupted = self.interrupted.get(&line.conversation).copied();
        let verdict = busy::decide(line, turn, peer, self.signs_on(&line.platform), interrupted, now);
        let own = self.open.contains_key(&line.conversation);
        // What nobody asked for has no key to interrupt it by.
        if verdict == Verdict::Interrupt && !own { Verdict::Hold } else { verdict }
    }

    fn apply(&mut self, line: &Line, verdict: Verdict, relayed: bool, now: Mono) -> Verdict {
        if verdict == Verdict::Push {
            return verdict;
        }
        if !self.held.hold(line, relayed, now) {
            // More conversations than can be passed over: its place in line is all it has.
            return Verdict::Hold;
        }
        self.notes.push(TurnNote::Held(line.seq));
        if verdict == Verdict::Interrupt {
            self.interrupts(&line.conversation, now);
        }
        verdict
    }

    /// An interrupt is sent into a conversation: whatever its turn asked is over.
    fn interrupts(&mut self, conversation: &ConversationKey, now: Mono) {
        if let Some(turn) = self.open.get_mut(conversation) {
            turn.interrupt(now);
            self.notes.push(TurnNote::Interrupted(turn.row.clone()));
            self.interrupted.insert(conversation.clone(), now);
        }
        self.note_asks();
    }

    /// Somebody asked for the end of what runs in a session.
    pub fn stopped(&mut self, session_key: &str, now: Mono) {
        let stopped = self.open.values().find(|turn| *turn.session_key == *session_key);
        if let Some(conversation) = stopped.map(|turn| turn.row.conversation.clone()) {
            self.interrupts(&conversation, now);
        }
    }

    /// A line was pushed: it opens a turn, unless it goes into one.
    pub fn pushed(&mut self, line: &Line, now: Mono) {
        // Words may have been pushed before commands that wait in front of them.
        if line.seq <= self.waited_to && line.sort == Sort::Text {
            self.begun.insert(line.conversation.clone());
        }
        let signs = self.signs_on(&line.platform);
        if let Some(turn) = self.open.get_mut(&line.conversation).filter(|turn| turn.row.seq != line.seq) {
            let hears = turn.hears_at(signs).is_some_and(|at| at <= now);
            let in_words = line.sort == Sort::Reset || turn.unmoved_at().is_some_and(|at| at <= now);
            match line.sort {
                Sort::Stop | Sort::Reset => {
                    if in_words {
                        turn.is_told_to_end(now)
                    } else {
                        turn.interrupt(now)
                    }
                    self.notes.push(TurnNote::Interrupted(turn.row.clone()));
                }
                Sort::Text if hears => turn.was_told(now),
                Sort::Text => turn.is_followed_by(line),
                Sort::Press | Sort::Decision => turn.may_be_answered(),
                Sort::Command => {}
            }
            return self.note_asks();
        }
        if line.sort.goes_ahead() {
            return;
        }
        self.owed.retain(|(turn, _)| turn.row.conversation != line.conversation);
        let mut turn = Turn::open(line, now);
        if line.seq <= self.waited_to {
            turn.may_be_known();
        }
        self.notes.push(TurnNote::Opened(turn.row.clone()));
        self.open.insert(line.conversation.clone(), turn);
    }

    /// What the log has to know of turns since the last time, in order.
    pub fn take_notes(&mut self) -> Vec<TurnNote> {
        std::mem::take(&mut self.notes)
    }

    /// Notes the end of turns that are neither open nor owed any more.
    fn note_ends(&mut self, turns: &[Turn]) {
        for turn in turns {
            let key = &turn.row.conversation;
            let owed = self.owed.iter().any(|(turn, _)| turn.row.conversation == *key);
            if !owed && !self.open.contains_key(key) {
                self.notes.push(TurnNote::Closed(key.clone()));
            }
        }
    }

    /// The entry that began a turn was acknowledged.
    pub fn acknowledged(&mut self, seq: Seq, now: Mono) {
        if let Some(turn) = self.open.values_mut().find(|turn| turn.row.seq == seq) {
            turn.acknowledged(now);
        }
    }

    /// The socket is not being read: silence says nothing.
    pub fn not_reading(&mut self, now: Mono) {
        self.reading_since = now;
    }

    /// The gateway goes to sleep: it works on nothing.
    pub fn close_all(&mut self, now: Mono) {
        for chat_id in std::mem::take(&mut self.unasked).into_keys() {
            self.held.freed_in(&chat_id, now);
        }
        let over: Vec<Turn> = std::mem::take(&mut self.open).into_values().collect();
        for turn in &over {
            self.held.freed(&turn.row.conversation, now);
        }
        self.note_ends(&over);
    }

    /// Notes which turns ask something by now, and which no more.
    pub(super) fn note_asks(&mut self) {
        let asks = self.open.values_mut().filter_map(Turn::note_asks);
        self.notes.extend(asks.map(TurnNote::Opened));
    }

    /// The socket ends: of turns that said their last nothing is owed.
    pub fn socket_ends(&mut self) {
        let over: Vec<Turn> = self.open.values().filter(|turn| turn.has_ended()).cloned().collect();
        self.open.retain(|_, turn| !turn.has_ended());
        self.note_ends(&over);
    }

    /// Takes up what earlier sockets left open, in a log that goes to `tail`.
    pub fn restore(&mut self, rows: Vec<OpenTurn>, tail: Seq, now: Mono) {
        self.waited_to = tail;
        for row in rows {
            let mut turn = Turn::left(row, now);
            self.pushed_before.insert(turn.row.seq);
            if self.open.contains_key(&turn.row.conversation) {
                continue;
            }
            self.owed.push((turn.clone(), now + ANSWER_WITHIN));
            let asks = turn.row.asks;
            turn.wait_for_life(now + if asks { ASKS_ON } else { LIFE_WITHIN });
            self.open.insert(turn.row.conversation.clone(), turn);
        }
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: Mono) -> Passed {
        let mut passed = Passed::default();
        self.pass_unasked(now);
        let (signs, since, limit) = (&self.signs, self.reading_since, self.limit);
        let is_over = |turn: &Turn| {
            turn.over_at(shown_on(signs, &turn.row.platform), since, limit).is_some_and(|at| at <= now)
        };
        let over = self.open.values().filter(|turn| is_over(turn)).map(|turn| turn.row.conversation.clone());
        let over: Vec<ConversationKey> = over.collect();
        passed.over.extend(over.iter().filter_map(|key| self.open.remove(key)));
        while self.ended.front().is_some_and(|(_, at)| now.since(*at) >= AGAIN_WITHIN) {
            self.ended.pop_front();
        }
        for turn in &passed.over {
            if turn.ended_with_words() {
                shown(&mut self.signs, &turn.row.platform, |known| known.only_says = true);
            }
            if let Some(next) = turn.next(now) {
                self.notes.push(TurnNote::Opened(next.row.clone()));
                self.open.insert(next.row.conversation.clone(), next);
                continue;
            }
            self.held.freed(&turn.row.conversation, now);
            self.ended.push_back((turn.clone(), now));
        }
        self.ended.drain(..self.ended.len().saturating_sub(MAX_ENDED));
        passed.lost.extend(self.owed.extract_if(.., |(_, until)| *until <= now).map(|(turn, _)| turn));
        self.note_ends(&passed.over);
        self.note_ends(&passed.lost);
        self.interrupted.retain(|key, at| self.open.contains_key(key) || now.since(*at) < LIFE_WITHIN * 2);
        passed
    }

    /// When to look again if nothing else happens. What could be read counts only if it may be:
    /// otherwise whatever is in the way tells of its end.
    pub fn next_deadline(&self, may_read: bool) -> Option<Mono> {
        let over = self.open.values().chain(self.unasked.values()).filter_map(|turn| {
            turn.over_at(self.signs_on(&turn.row.platform), self.reading_since, self.limit)
        });
        let owed = self.owed.iter().map(|(_, until)| *until);
        over.chain(owed).chain(self.held_deadlines(may_read)).min()
    }
}

#[cfg(test)]
mod tests;
