//! The end of an action: its answer, and what the ledger is told.

use super::action::{Delivery, Moment, Recording, State};
use super::law::{self, End};
use super::{ActionAnswer, Counted, DeliveryId, Effect};
use crate::ports::ActionOutcome;

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
                at.effects.push(Effect::Finish(vec![(self.id, outcome.clone())]));
                self.record(outcome, answer, at);
            }
        }
    }

    fn record(&mut self, outcome: ActionOutcome, answer: Option<ActionAnswer>, at: &Moment<'_>) {
        let until = at.now + at.timings.queued_for;
        self.state = State::Recording(Recording { outcome, answer, until, again_at: None });
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
        self.record(outcome.clone(), None, at);
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

    /// Only the first answer counts.
    pub(super) fn answer(&mut self, answer: ActionAnswer, at: &mut Moment<'_>) {
        if !std::mem::replace(&mut self.answered, true) {
            at.effects.push(Effect::Answer(self.id, answer));
        }
    }
}
