//! One turn: an agent works on a message. What is seen of it, and when it is over.

use super::Line;
use super::signs::{Asked, Signs};
use crate::clock::Mono;
use crate::ports::log::OpenTurn;
use std::sync::Arc;
use std::time::Duration;

/// How long the next line is held back behind the result of a turn's last sign: gateways free a
/// conversation a little after they have read it (docs/decisions/0007).
pub(super) const REST: Duration = Duration::from_millis(250);
/// The most that a slow line makes of it.
const LONGEST_REST: Duration = Duration::from_secs(1);
/// A gateway that reacts does so right behind its acknowledgement; if not by then, there was no turn.
const SEEN_WITHIN: Duration = Duration::from_secs(5);
/// A gateway of which nothing is known yet has shown by then whether it reacts.
const REACTS_WITHIN: Duration = Duration::from_millis(1_500);
/// A gateway that acts, and has not acknowledged what it was given by then, does not read.
const UNREAD: Duration = Duration::from_secs(5);
/// Silence that ends a turn of a gateway that types while it works.
const SILENCE_TYPING: Duration = Duration::from_secs(10);
/// Silence that ends a turn of one that does not.
const SILENCE: Duration = Duration::from_secs(60);
/// A gateway types every two seconds, at times every three and a half; one that said something and
/// types no more waits for an answer.
const ASKED_SILENCE: Duration = Duration::from_secs(4);
/// One that stopped typing without having said anything may hang; what is written now may help.
const STRANGE_SILENCE: Duration = Duration::from_secs(30);
/// A gateway that asks gives up by then.
const ASKS: Duration = Duration::from_secs(300);
/// An interrupt has shown by then whether it ends anything.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// While it types: it does so every 2 s, and every 3.5 s while it does not read.
const TYPES: Duration = Duration::from_secs(4);
/// So long somebody is still typing the question, and little is lost by beginning again.
const YOUNG: Duration = Duration::from_secs(20);
/// How far a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It runs, as far as is known.
    Running,
    /// Its last sign came; the answer to that request is not written yet.
    Ending { ticket: u64, rest: Duration },
    /// That was written; it is over from then on.
    Over(Mono),
}

/// One open turn.
#[derive(Clone, Debug)]
pub struct Turn {
    /// What the log keeps of it.
    pub row: OpenTurn,
    /// The key a gateway builds for it; empty if that is not known.
    pub session_key: Arc<str>,
    opened_at: Mono,
    acked_at: Option<Mono>,
    /// How long its acknowledgement took: the line and back.
    round: Duration,
    seen: bool,
    stage: Stage,
    acted_at: Mono,
    typed_at: Option<Mono>,
    /// Whether the last it did was to say something.
    said_last: bool,
    pub(super) asked: Option<Asked>,
    typed_since_asked: u32,
    pub(super) interrupted_at: Option<Mono>,
    /// Whether the last it did before it was interrupted was to say something.
    pub(super) unanswered: bool,
    /// Whether an earlier socket left it, and this one pushed nothing of it.
    left: bool,
    /// Whether its gateway may know it from an earlier socket, and not mark it again.
    known: bool,
    /// Of a turn that was left: until when a sign of life is awaited.
    lives_until: Option<Mono>,
    /// What was pushed into it, and is worked on when it is over.
    next: Option<Box<Line>>,
    /// Whether somebody was told that their line waits for it.
    pub(super) told: bool,
}

impl Turn {
    pub(super) fn open(line: &Line, now: Mono) -> Self {
        let row = OpenTurn {
            conversation: line.conversation.clone(),
            platform: line.platform.clone(),
            bot: line.bot.clone(),
            thread_id: line.thread_id.clone(),
            seq: line.seq,
            message_id: line.message_id.clone(),
            author: line.author.clone(),
            asks: false,
        };
        Self { session_key: line.session_key.clone(), ..Self::left(row, now) }
    }

    /// A turn that the log tells of, as if it began now.
    pub fn left(row: OpenTurn, now: Mono) -> Self {
        let asked = row.asks.then_some(Asked::Approval);
        Self {
            session_key: row.conversation.session_key.clone().unwrap_or_default(),
            row,
            opened_at: now,
            acked_at: None,
            // Nobody measured it here.
            round: LONGEST_REST,
            seen: false,
            stage: Stage::Running,
            acted_at: now,
            typed_at: None,
            said_last: false,
            asked,
            typed_since_asked: 0,
            interrupted_at: None,
            unanswered: false,
            left: false,
            known: false,
            lives_until: None,
            next: None,
            told: false,
        }
    }

    /// Has it wait for a sign of life, on a new socket.
    pub(super) fn wait_for_life(&mut self, until: Mono) {
        (self.left, self.known, self.lives_until) = (true, true, Some(until));
    }

    /// Its message waited when this socket came: an earlier one may have pushed it.
    pub(super) fn may_be_known(&mut self) {
        self.known = true;
    }

    /// Whether an earlier socket left it, and this one pushed nothing of it.
    pub(super) fn is_left(&self) -> bool {
        self.left
    }

    pub(super) fn acknowledged(&mut self, now: Mono) {
        self.acked_at.get_or_insert(now);
        self.round = now.since(self.opened_at);
        self.acted_at = self.acted_at.max(now);
    }

    /// Whether the gateway works, but has not acknowledged this for long.
    pub(super) fn is_unread(&self, now: Mono) -> bool {
        let acts = self.acted_at > self.opened_at;
        acts && self.acked_at.is_none() && now.since(self.opened_at) >= UNREAD
    }

    /// The gateway did something in its chat.
    pub(super) fn lives(&mut self, now: Mono) {
        self.acted_at = now;
        self.lives_until = None;
        (self.said_last, self.unanswered) = (false, false);
    }

    pub(super) fn types(&mut self, now: Mono) {
        self.lives(now);
        self.typed_at = Some(now);
        // It goes on as soon as it was answered; one may have been on its way.
        self.typed_since_asked += 1;
        if self.typed_since_asked > 1 {
            self.asked = None;
        }
    }

    pub(super) fn asks(&mut self, asked: Asked) {
        self.asked = Some(asked);
        self.typed_since_asked = 0;
    }

    /// Its row, if that does not say yet whether it asks something.
    pub(super) fn note_asks(&mut self) -> Option<OpenTurn> {
        let asks = self.asked.is_some();
        (std::mem::replace(&mut self.row.asks, asks) != asks).then(|| self.row.clone())
    }

    /// Whether it asks something, or just said what may be a question.
    pub(super) fn may_ask(&self) -> bool {
        self.asked.is_some() || self.said_last
    }

    /// A decision reached it. It may be about an earlier question: whoever got theirs types again.
    pub(super) fn may_be_answered(&mut self) {
        self.typed_since_asked = self.typed_since_asked.max(1);
    }

    pub(super) fn says(&mut self, now: Mono, asks: bool) {
        self.lives(now);
        self.said_last = true;
        if asks {
            self.asks(Asked::Approval);
        }
    }

    /// It is asked to end.
    pub(super) fn interrupt(&mut self, now: Mono) {
        self.unanswered = self.said_last && self.asked.is_none();
        self.interrupted_at = Some(now);
        self.asked = None;
    }

    /// It is asked to end, in words that may clear it away without another mark.
    pub(super) fn is_told_to_end(&mut self, now: Mono) {
        self.interrupt(now);
        self.unanswered = false;
        (self.seen, self.known, self.said_last) = (false, true, false);
    }

    /// Somebody's words reached it while it runs.
    pub(super) fn was_told(&mut self, now: Mono) {
        self.acted_at = now;
        self.said_last = false;
        self.asked = None;
    }

    /// Somebody's words were pushed that its gateway keeps for afterwards.
    pub(super) fn is_followed_by(&mut self, line: &Line) {
        self.next = Some(Box::new(line.clone()));
    }

    /// Whether words in answer to a message are of this turn.
    pub(super) fn answers(&self, message: &str) -> bool {
        self.row.message_id == message || self.is_next(message)
    }

    fn is_next(&self, message: &str) -> bool {
        self.next.as_ref().is_some_and(|line| line.message_id == message)
    }

    /// The turn that its gateway goes on with, if a sign said that this one is over.
    pub(super) fn next(&self, now: Mono) -> Option<Self> {
        let line = self.next.as_ref().filter(|_| self.has_ended())?;
        Some(Self { acked_at: Some(now), round: self.round, ..Self::open(line, now) })
    }

    /// Whether a sign said that it is over.
    pub(super) fn has_ended(&self) -> bool {
        self.stage != Stage::Running
    }

    pub(super) fn seen(&mut self) {
        self.seen = true;
        self.stage = Stage::Running;
    }

    /// Whether the gateway marked that it took the message up.
    pub(super) fn is_seen(&self) -> bool {
        self.seen
    }

    /// The request under `ticket` says that it is over, and nothing more comes of it.
    pub(super) fn ends(&mut self, ticket: u64) {
        self.stage = Stage::Ending { ticket, rest: REST };
    }

    /// The request under `ticket` is its last message. Of one that began on this socket it is known
    /// whether marks follow; another may still be marked.
    pub(super) fn says_last(&mut self, reply_to: Option<&str>, ticket: u64) {
        if reply_to.is_some_and(|message| self.is_next(message)) {
            // It began anew with what came last, so nothing follows.
            self.next = None;
        }
        if self.known { self.may_end(ticket) } else { self.ends(ticket) }
    }

    /// The request under `ticket` may be the last: another mark may follow, a round later.
    pub(super) fn may_end(&mut self, ticket: u64) {
        let rest = (2 * self.round).clamp(REST, LONGEST_REST);
        self.stage = Stage::Ending { ticket, rest };
    }

    /// The answer to a request was written.
    pub(super) fn answered(&mut self, ticket: u64, now: Mono) {
        if let Stage::Ending { ticket: last, rest } = self.stage
            && last == ticket
        {
            self.stage = Stage::Over(now + rest);
        }
    }

    /// When it is over if nothing else happens; `None` while its last sign is being answered.
    pub(super) fn over_at(&self, signs: Signs, reading_since: Mono, limit: Duration) -> Option<Mono> {
        let limit = self.opened_at + limit;
        let quiet = match self.stage {
            Stage::Over(at) => return Some(at.min(limit)),
            Stage::Ending { .. } => return Some(limit),
            Stage::Running if self.lives_until.is_some() => self.lives_until,
            Stage::Running if self.seen => None,
            Stage::Running if signs.reacts && !self.known && self.typed_at.is_none() => {
                self.acked_at.map(|at| at + SEEN_WITHIN)
            }
            // Whoever asked on another socket may have forgotten it since.
            Stage::Running if self.asked.is_some() && self.left => Some(self.active_at() + ASKS),
            Stage::Running if self.asked.is_some() => None,
            // Its first mark went elsewhere. It marks its end as well, so it asks something.
            Stage::Running if signs.reacts && self.known && self.said_last && self.typed_at.is_some() => {
                Some(self.active_at() + ASKS)
            }
            Stage::Running => {
                let silence = if signs.types { SILENCE_TYPING } else { SILENCE };
                Some(self.active_at().max(reading_since) + silence)
            }
        };
        Some(quiet.map_or(limit, |at| at.min(limit)))
    }

    /// When something last happened in it: one that is to end may be about to.
    fn active_at(&self) -> Mono {
        self.acted_at.max(self.interrupted_at.unwrap_or_default())
    }

    /// Whether the last of it were words, and nothing marked them as such.
    pub(super) fn ended_with_words(&self) -> bool {
        self.stage == Stage::Running && self.said_last
    }

    /// Whether somebody is still typing the question it works on.
    pub(super) fn is_young(&self, now: Mono) -> bool {
        now.since(self.opened_at) < YOUNG
    }

    /// Whether it shows that it works.
    pub(super) fn is_typing(&self, now: Mono) -> bool {
        self.typed_at.is_some_and(|at| now.since(at) < TYPES)
    }

    /// From when on it is known whether its gateway reacts: one that does shows it right behind
    /// its acknowledgement.
    pub(super) fn is_known_at(&self, signs: Signs) -> Option<Mono> {
        if signs.notifies { Some(self.opened_at) } else { self.acked_at.map(|at| at + REACTS_WITHIN) }
    }

    /// From when on words reach it instead of waiting for its end; `None` if they do not.
    pub(super) fn hears_at(&self, signs: Signs) -> Option<Mono> {
        // Whoever was asked to end has no ears for more, as long as that may still come.
        let not_before = self.interrupted_at.map_or(self.opened_at, |at| at + ENDS_WITHIN);
        let hears = self.hears(signs)?;
        Some(hears.max(not_before))
    }

    /// From when on it is known that an interrupt did not end it.
    pub(super) fn unmoved_at(&self) -> Option<Mono> {
        self.interrupted_at.map(|at| at + ENDS_WITHIN)
    }

    /// Whether an interrupt reached it while it may have asked something in words, and it has done
    /// nothing since. It goes on waiting for the answer then, and would drop it.
    pub(super) fn is_unanswered(&self) -> bool {
        self.unanswered && self.stage == Stage::Running
    }

    fn hears(&self, signs: Signs) -> Option<Mono> {
        match self.asked {
            Some(Asked::Clarify) => Some(self.acted_at),
            Some(Asked::Approval) => None,
            None if self.stage != Stage::Running || !signs.types || self.typed_at.is_none() => None,
            None if self.said_last && self.interrupted_at.is_none() => Some(self.acted_at + ASKED_SILENCE),
            // It was asked to end: only one that hangs is written to all the same.
            None => Some(self.active_at() + STRANGE_SILENCE),
        }
    }
}
