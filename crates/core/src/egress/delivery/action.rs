//! One action: where it is, what is known of it, and how it ends.

use super::law::{self, Before, End, Ending};
use super::{
    ActionAnswer, Asked, Claimed, Counted, DeliveryId, Earlier, Edited, Effect, EgressTimings, Left, Repeats,
};
use crate::clock::Mono;
use crate::egress::{ANSWER_WITHIN, Dedupe, Remark};
use crate::ports::ActionOutcome;
use crate::vault::{LIVES_FOR, Use, Way};
use std::time::Duration;

/// Where an action is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is written down yet.
    Arrived,
    /// It is on its way into the ledger.
    Accepting,
    /// It is in the ledger; its turn has not come.
    Queued,
    /// Its text is being read.
    Reading,
    /// It waits for the permission to call.
    AskingPermission,
    /// Its capability is being opened.
    Opening,
    /// The ledger is being told that it is called.
    Beginning,
    /// It is about to be called, if its sender may still write there.
    Authorizing,
    /// The provider has been called.
    Calling,
    /// The ledger is being told that nothing was written; then it rests for so
    /// long, or has ended for this process.
    Postponing(Option<Duration>),
    /// It is tried again then.
    Resting(Mono),
    /// The ledger is being told how it ended.
    Recording(Recording),
    /// Nothing more comes of it.
    Over {
        /// The ledger could not be told.
        untold: bool,
    },
}

/// An end on its way into the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recording {
    pub(super) outcome: ActionOutcome,
    /// What its chat hears of it.
    pub(super) remark: Option<Remark>,
    /// What is told once it is there.
    pub(super) answer: Option<ActionAnswer>,
    /// How long that is tried.
    pub(super) until: Mono,
    /// When it is tried again; `None` while it is being tried.
    pub(super) again_at: Option<Mono>,
}

impl Recording {
    /// What tells the ledger.
    pub(super) fn effect(&self, id: DeliveryId) -> Effect {
        let outcome = self.outcome.clone();
        match self.remark {
            Some(remark) => Effect::LeaveOpen { id, outcome, remark },
            None => Effect::Finish(vec![(id, outcome)]),
        }
    }
}

/// When a provider was first called, also by a process whose clock is gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstCall {
    pub(super) at: Mono,
    pub(super) before: Duration,
}

/// What is so at the moment something is decided, and what follows from it.
pub(super) struct Moment<'a> {
    pub(super) now: Mono,
    pub(super) timings: EgressTimings,
    pub(super) stopping: bool,
    pub(super) effects: &'a mut Vec<Effect>,
}

/// An action.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub(super) id: DeliveryId,
    pub(super) state: State,
    pub(super) edits: Option<Edited>,
    pub(super) follow_up: bool,
    /// What its chat hears if nobody knows whether it arrived.
    pub(super) in_doubt: Option<Remark>,
    /// Not known of an adopted one before its text is read.
    pub(super) repeats: Option<Repeats>,
    /// What it answers with.
    pub(super) uses: Option<Use>,
    /// How it answers; nothing once its capability is over.
    pub(super) way: Option<Way>,
    /// How long it is tried for.
    pub(super) until: Mono,
    /// Whether an earlier process left it.
    pub(super) adopted: bool,
    /// Whether an earlier process ended in the middle of calling.
    pub(super) cut_off: bool,
    /// Whether it may be what ended earlier processes.
    pub(super) suspect: bool,
    /// Whether an earlier call may have written it.
    pub(super) perhaps_sent: bool,
    /// The first part, if the provider has it.
    pub(super) first_part: Option<String>,
    pub(super) first_call: Option<FirstCall>,
    /// Whether the ledger may say that its provider is being called.
    pub(super) noted: bool,
    /// Whether a newer edit takes its place.
    pub(super) overtaken: bool,
    /// Whether it was counted as overtaken.
    pub(super) counted_overtaken: bool,
    /// Calls whose outcome is not known.
    pub(super) unknown: u32,
    /// Why the last attempt did not get through.
    pub(super) why: String,
    pub(super) answered: bool,
    /// When its chat goes on without it, if it takes a place of its own.
    pub(super) aside_at: Option<Mono>,
}

impl Delivery {
    pub(super) fn arrived(id: DeliveryId, asked: Asked) -> Self {
        let Asked { edits, follow_up, repeats, in_doubt } = asked;
        Self {
            id,
            state: State::Arrived,
            edits,
            follow_up,
            in_doubt,
            repeats: Some(repeats),
            uses: None,
            way: None,
            until: Mono::default(),
            adopted: false,
            cut_off: false,
            suspect: false,
            perhaps_sent: false,
            first_part: None,
            first_call: None,
            noted: false,
            overtaken: false,
            counted_overtaken: false,
            unknown: 0,
            why: String::new(),
            answered: false,
            aside_at: None,
        }
    }

    pub(super) fn adopted(id: DeliveryId, left: Left, now: Mono) -> Self {
        let asked = Asked {
            edits: left.edits,
            follow_up: left.follow_up,
            repeats: Repeats::always(Dedupe::No),
            in_doubt: left.in_doubt,
        };
        let mut delivery = Self {
            repeats: None,
            adopted: !left.untouched,
            cut_off: left.sending,
            suspect: left.suspect,
            perhaps_sent: left.sending,
            noted: left.sending,
            first_call: left.begun.map(|before| FirstCall { at: now, before }),
            ..Self::arrived(id, asked)
        };
        delivery.accepted(left.claimed, left.left, now);
        delivery
    }

    /// It is in the ledger, and tried for so long. What takes the place of
    /// "thinking…" is tried until that ends at least: given up sooner, it would
    /// stay there. After the end it is given to the chat.
    pub(super) fn accepted(&mut self, claimed: Claimed, tried_for: Duration, now: Mono) {
        let Claimed { uses, lasts } = claimed;
        self.uses = uses;
        self.way = uses.map(|it| it.way);
        let place = match (self.way, lasts) {
            (Some(Way::Original), Some(lasts)) => lasts.min(LIVES_FOR) + ANSWER_WITHIN,
            _ => Duration::ZERO,
        };
        self.until = now + tried_for.max(place);
        self.state = State::Queued;
    }

    pub(super) fn over(&self, forbidden: bool, at: &Moment<'_>) -> Option<End> {
        let is = Before {
            may_be_out: self.may_be_out(),
            may_repeat: self.may_repeat(at.now),
            stopping: at.stopping,
            no_capability: self.follow_up && self.uses.is_none(),
            overtaken: self.overtaken,
            expired: at.now >= self.until,
            forbidden,
        };
        law::before_call(is, &self.why)
    }

    pub(super) fn ending(&self) -> Ending {
        Ending {
            may_be_out: self.may_be_out(),
            unsure: self.adopted && !self.had_to_be_noted(),
            follow_up: self.follow_up,
            edits: self.edits.as_ref().map(|it| it.message_id.clone()),
            first_part: self.first_part.clone(),
            why: self.why.clone(),
            in_doubt: self.in_doubt,
        }
    }

    /// Whether it takes the place of what somebody sees meanwhile. Where it is to
    /// be seen is settled, so its chat does not wait for it for long.
    pub(super) fn takes_place(&self) -> bool {
        self.uses.is_some_and(|it| it.way == Way::Original)
    }

    /// What earlier calls may have left at the provider.
    pub(super) fn earlier(&self, now: Mono) -> Earlier {
        match (self.may_be_out(), self.cut_off) {
            (false, _) => Earlier::Nothing,
            (true, false) => Earlier::Perhaps,
            (true, true) => Earlier::CutOff(self.since_first_call(now, Duration::ZERO)),
        }
    }

    pub(super) fn dedupe(&self) -> Dedupe {
        self.repeats.map_or(Dedupe::No, |repeats| repeats.by(self.way))
    }

    /// Whether the ledger is told before the provider is called. What others left is
    /// always noted: it may be what ended them, and whoever comes next has to know.
    pub(super) fn is_noted(&self) -> bool {
        self.adopted || self.had_to_be_noted()
    }

    /// Whether whoever had it first noted it. What answers an interaction is always
    /// noted: should that end, it has to be known whether a message may take its place.
    fn had_to_be_noted(&self) -> bool {
        self.uses.is_some() || self.dedupe() != Dedupe::Yes
    }

    /// Whether giving it to the provider once more cannot say it twice.
    pub(super) fn may_repeat(&self, now: Mono) -> bool {
        self.dedupe().holds(self.since_first_call(now, Duration::ZERO))
    }

    /// Whether the ledger's answer that it may be called was so long in coming that
    /// another may have called for it meanwhile, and the provider have forgotten that.
    pub(super) fn is_note_old(&self, now: Mono) -> bool {
        matches!(self.dedupe(), Dedupe::For(_)) && !self.may_be_out() && !self.may_repeat(now)
    }

    pub(super) fn since_first_call(&self, now: Mono, otherwise: Duration) -> Duration {
        self.first_call.map_or(otherwise, |first| now.since(first.at).saturating_add(first.before))
    }

    /// Whether some of it may be at the provider.
    pub(super) fn may_be_out(&self) -> bool {
        self.perhaps_sent || self.first_part.is_some()
    }
}

/// Its end: its answer, and what the ledger is told.
impl Delivery {
    /// Ends it, as the law says.
    pub(super) fn close(&mut self, end: End, at: &mut Moment<'_>) {
        if end == End::Parked && self.noted && !self.may_be_out() {
            return self.postpone(None, at);
        }
        let closing = law::closing(end, self.ending());
        let counted = closing.counted.filter(|it| *it != Counted::Superseded || !self.counted_overtaken);
        at.effects.extend(counted.map(Effect::Count));
        let mut answer = closing.answer;
        if !closing.once_durable
            && let Some(answer) = answer.take()
        {
            self.answer(answer, at);
        }
        match closing.outcome {
            None => self.state = State::Over { untold: false },
            Some(outcome) => {
                let until = at.now + at.timings.queued_for;
                let recording = Recording { outcome, remark: closing.remark, answer, until, again_at: None };
                at.effects.push(recording.effect(self.id));
                self.state = State::Recording(recording);
            }
        }
    }

    /// A newer edit took its place before its turn came; what the ledger is to
    /// be told of that.
    pub(super) fn overtake(&mut self, at: &mut Moment<'_>) -> Option<(DeliveryId, ActionOutcome)> {
        if std::mem::replace(&mut self.overtaken, true) || self.state != State::Queued {
            return None;
        }
        let closing = law::closing(End::Superseded, self.ending());
        at.effects.extend(closing.counted.map(Effect::Count));
        self.counted_overtaken = true;
        if let Some(answer) = closing.answer {
            self.answer(answer, at);
        }
        let outcome = closing.outcome?;
        let until = at.now + at.timings.queued_for;
        let (remark, answer, again_at) = (None, None, None);
        self.state =
            State::Recording(Recording { outcome: outcome.clone(), remark, answer, until, again_at });
        Some((self.id, outcome))
    }

    /// The ledger knows how it ended, or not. One whose turn has not come waits for that.
    pub(super) fn finished(&mut self, durable: bool, its_turn: bool, at: &mut Moment<'_>) {
        let State::Recording(recording) = &mut self.state else { return };
        if durable {
            let answer = recording.answer.take();
            self.state = State::Over { untold: false };
            if let Some(answer) = answer {
                self.answer(answer, at);
            }
        } else if !its_turn {
            self.state = State::Queued;
        } else if at.now < recording.until {
            recording.again_at = Some(at.now + at.timings.again);
        } else {
            self.state = State::Over { untold: true };
        }
    }

    /// Whoever works on it now may send it, whatever was to be told.
    pub(super) fn disowned(&mut self, at: &mut Moment<'_>) {
        if matches!(self.state, State::Recording(_)) {
            self.close(End::NotOurs, at);
        }
    }

    /// Another node goes on with it, and answers.
    pub(super) fn given_up(&mut self) {
        self.state = State::Over { untold: false };
    }

    /// Only the first answer counts.
    pub(super) fn answer(&mut self, answer: ActionAnswer, at: &mut Moment<'_>) {
        if !std::mem::replace(&mut self.answered, true) {
            at.effects.push(Effect::Answer(self.id, answer));
        }
    }
}
