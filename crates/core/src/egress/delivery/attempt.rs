//! The way of an action to its provider: as often as needed, never doubly.

use super::action::{Delivery, FirstCall, Moment, State};
use super::law::{self, Call, End, Step};
use super::{ActionAnswer, Begun, Effect, Opened, Outcome, Permission, Text};
use crate::clock::Mono;
use crate::egress::{ANSWER_WITHIN, ActionState, NO_CAPABILITY, Remark, Resume, after_crash};
use crate::limit::doubled;
use crate::vault::Way;
use std::time::Duration;

/// The shortest pause between two calls for one action, whatever a provider says.
const LEAST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause after calls whose outcome is not known.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How soon an answer that somebody waits for asks for permission again, if too many
/// calls of its tenant were refused: given up, "thinking…" would stay there.
const DENIED_AGAIN: Duration = Duration::from_secs(5);

const STORE_FAILS: &str = "the connector's store does not answer";
const NOT_NOW: &str = "this node did not know whether the bot is its own";
const SET_ASIDE: &str = "set aside: it was under way at two crashes";
const STOPPED_WHILE_SENDING: &str = "the connector stopped while it was sending";
const ENDED_IN_PART: &str = "only a part was sent: its interaction ended";
const ENDED_UNKNOWN: &str = "its interaction ended before it was known whether it was answered";

impl Delivery {
    /// Its turn has come.
    pub(super) fn start(&mut self, at: &mut Moment<'_>) {
        if at.stopping {
            self.close(End::Parked, at);
        } else if self.suspect {
            // Its text is not looked at, so it is not said again either.
            self.in_doubt = self.in_doubt.map(|_| Remark::Tell);
            self.close(End::Ambiguous(SET_ASIDE.into()), at);
        } else if self.repeats.is_some() {
            self.attempt(at);
        } else if self.overtaken {
            self.close(End::Superseded, at);
        } else {
            self.state = State::Reading;
            at.effects.push(Effect::Read(self.id));
        }
    }

    pub(super) fn read(&mut self, text: Text, at: &mut Moment<'_>) {
        if self.state != State::Reading {
            return;
        }
        match text {
            Text::Gone => self.state = State::Over { untold: false },
            Text::Unreadable => {
                self.perhaps_sent = false;
                self.close(End::Refused("it cannot be read".into()), at);
            }
            Text::Read(repeats) => {
                self.repeats = Some(repeats);
                let state = if self.cut_off { ActionState::Sending } else { ActionState::Accepted };
                // What nobody wrote down may be any time ago.
                let since = self.since_first_call(at.now, Duration::MAX);
                match after_crash(state, self.dedupe(), since) {
                    Resume::ShowAmbiguous => self.close(End::Ambiguous(STOPPED_WHILE_SENDING.into()), at),
                    Resume::Send | Resume::Nothing => self.attempt(at),
                }
            }
        }
    }

    /// Tries to get a call, if there is anything left to try.
    fn attempt(&mut self, at: &mut Moment<'_>) {
        if let Some(end) = self.over(false, at) {
            return self.close(end, at);
        }
        if self.takes_place() && self.aside_at.is_none() {
            self.aside_at = Some(at.now + at.timings.aside);
        }
        self.state = State::AskingPermission;
        at.effects.push(Effect::AskPermission { id: self.id, paced: self.way.is_none() });
    }

    /// `comes_first`: the answer is under way behind which this one would be. Said
    /// first, it would take the place and be written over.
    pub(super) fn permission(&mut self, permission: Permission, comes_first: bool, at: &mut Moment<'_>) {
        if self.state != State::AskingPermission {
            return;
        }
        match permission {
            Permission::StoreFails => self.store_fails(at),
            Permission::Denied if self.way == Some(Way::Original) => self.rest(DENIED_AGAIN, at),
            Permission::Denied => self.close(End::Denied, at),
            Permission::Granted => match self.uses {
                None => self.begin(at),
                // As a message it may be there: an answer would be a second one.
                Some(_) if self.way.is_none() && self.may_be_out() => self.begin(at),
                Some(_) if comes_first => self.without_capability(true, at),
                Some(used) => {
                    self.state = State::Opening;
                    at.effects.push(Effect::Open(self.id, used));
                }
            },
        }
    }

    pub(super) fn opened(&mut self, opened: Opened, at: &mut Moment<'_>) {
        if self.state != State::Opening {
            return;
        }
        match opened {
            Opened::StoreFails => self.store_fails(at),
            Opened::Over => self.without_capability(false, at),
            Opened::Live => {
                self.way = self.uses.map(|it| it.way);
                self.begin(at);
            }
        }
    }

    /// An answer whose capability is over is a message like any other, unless it
    /// may be there already: a message would be a second one.
    fn without_capability(&mut self, comes_first: bool, at: &mut Moment<'_>) {
        if self.may_be_out() {
            let why = if self.first_part.is_some() { ENDED_IN_PART } else { ENDED_UNKNOWN };
            return self.close(End::Ambiguous(why.into()), at);
        }
        if self.follow_up && !comes_first {
            return self.close(End::Refused(NO_CAPABILITY.into()), at);
        }
        match self.way.take() {
            // A message like any other waits for its chat like any other.
            Some(_) => self.rest(Duration::ZERO, at),
            None => self.begin(at),
        }
    }

    /// Tells the ledger, where it has to know.
    fn begin(&mut self, at: &mut Moment<'_>) {
        if self.is_noted() {
            self.state = State::Beginning;
            self.noted = true;
            self.calls_from(at.now);
            at.effects.push(Effect::Begin(self.id));
        } else {
            self.authorize(at);
        }
    }

    pub(super) fn begun(&mut self, begun: Begun, at: &mut Moment<'_>) {
        if self.state != State::Beginning {
            return;
        }
        match begun {
            // Whoever took it up since may have sent it, so long ago that it is not recognised.
            Begun::Ours if self.is_note_old(at.now) => self.postpone(Some(Duration::ZERO), at),
            Begun::Ours => self.authorize(at),
            Begun::NotOurs => self.close(End::NotOurs, at),
            Begun::StoreFails => self.store_fails(at),
        }
    }

    /// What others make of it counts from when the ledger is told, not from when it answers.
    fn calls_from(&mut self, now: Mono) {
        self.first_call.get_or_insert(FirstCall { at: now, before: Duration::ZERO });
    }

    fn authorize(&mut self, at: &mut Moment<'_>) {
        self.calls_from(at.now);
        self.state = State::Authorizing;
        at.effects.push(Effect::Authorize(self.id));
    }

    /// The last moment: much may have changed while it waited.
    pub(super) fn authorized(&mut self, allowed: bool, at: &mut Moment<'_>) {
        if self.state != State::Authorizing {
            return;
        }
        if let Some(end) = self.over(!allowed, at) {
            return self.close(end, at);
        }
        self.state = State::Calling;
        // Whatever is begun in time gets as long as a gateway waits.
        let within = self.until.max(at.now + ANSWER_WITHIN).since(at.now);
        let earlier = self.earlier(at.now);
        at.effects.push(Effect::Call { id: self.id, way: self.way, earlier, within });
    }

    /// It is tried again, unless it is another node's by then.
    pub(super) fn not_now(&mut self, at: &mut Moment<'_>) {
        if self.state != State::Authorizing {
            return;
        }
        self.why = NOT_NOW.into();
        if self.noted && !self.may_be_out() {
            self.postpone(Some(at.timings.again), at);
        } else {
            self.rest(at.timings.again, at);
        }
    }

    pub(super) fn first_part(&mut self, message_id: String, at: &mut Moment<'_>) {
        if self.state == State::Calling && self.first_part.is_none() {
            self.first_part = Some(message_id.clone());
            self.answer(ActionAnswer::Sent { message_id }, at);
        }
    }

    pub(super) fn called(&mut self, outcome: Outcome, withdrawn: bool, at: &mut Moment<'_>) {
        if self.state != State::Calling {
            return;
        }
        let call = Call {
            in_parts: self.first_part.is_some(),
            may_repeat: self.may_repeat(at.now),
            withdrawn,
            way: self.way,
        };
        match law::after_call(outcome, call) {
            Step::End(end) => self.close(end, at),
            Step::NothingThere(end) => {
                self.perhaps_sent = false;
                self.close(end, at);
            }
            Step::Later { after, reach, why } => {
                self.why = why;
                at.effects.push(Effect::Pause { id: self.id, reach, after });
                let pause = after.max(LEAST_PAUSE);
                // Unless an earlier call left something there, the provider has nothing of it.
                if self.noted && !self.may_be_out() {
                    self.postpone(Some(pause), at);
                } else {
                    self.rest(pause, at);
                }
            }
            Step::Repeat { why } => {
                self.why = why;
                self.perhaps_sent = true;
                let pause = doubled(at.timings.again, LONGEST_PAUSE, self.unknown.min(5));
                self.unknown += 1;
                self.rest(pause, at);
            }
        }
    }

    pub(super) fn postpone(&mut self, then: Option<Duration>, at: &mut Moment<'_>) {
        self.state = State::Postponing(then);
        at.effects.push(Effect::Postpone(self.id));
    }

    /// Should the ledger not know, a crash shows it as ambiguous, which is no harm.
    pub(super) fn postponed(&mut self, at: &mut Moment<'_>) {
        let State::Postponing(then) = self.state else { return };
        self.noted = false;
        self.first_call = None;
        match then {
            Some(pause) => self.rest(pause, at),
            None => self.state = State::Over { untold: false },
        }
    }

    fn store_fails(&mut self, at: &mut Moment<'_>) {
        self.why = STORE_FAILS.into();
        self.rest(at.timings.again, at);
    }

    /// Tries it again after a while, if that is in time.
    fn rest(&mut self, pause: Duration, at: &mut Moment<'_>) {
        if at.now + pause >= self.until {
            return self.close(End::Expired, at);
        }
        at.effects.push(Effect::Release(self.id));
        if pause.is_zero() || self.overtaken || at.stopping {
            return self.attempt(at);
        }
        self.state = State::Resting(at.now + pause);
    }

    /// Time passed, a newer edit came, or the server stops: what only waits looks again.
    pub(super) fn look(&mut self, at: &mut Moment<'_>) {
        match &mut self.state {
            State::Resting(then) if *then <= at.now => self.attempt(at),
            State::AskingPermission | State::Resting(_) => {
                if let Some(end) = self.over(false, at) {
                    self.close(end, at);
                }
            }
            State::Reading if at.stopping => self.close(End::Parked, at),
            State::Recording(recording) if recording.again_at.is_some_and(|then| then <= at.now) => {
                recording.again_at = None;
                at.effects.push(recording.effect(self.id));
            }
            _ => {}
        }
    }

    /// When it has to look again.
    pub(super) fn wakes_at(&self) -> Option<Mono> {
        match &self.state {
            State::AskingPermission => Some(self.until),
            State::Resting(then) => Some(*then),
            State::Recording(recording) => recording.again_at,
            _ => None,
        }
    }
}
