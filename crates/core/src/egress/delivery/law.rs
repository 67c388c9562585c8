//! The laws of delivery, as three tables: whether a call may be made, what a
//! call's outcome means, and how an action ends.

use super::{ActionAnswer, Counted, Outcome, Reach};
use crate::egress::{ActionState, NO_CAPABILITY, Remark};
use crate::ports::ActionOutcome;
use crate::vault::Way;
use std::time::Duration;

const TOO_MANY_REFUSED: &str = "the platform refused too many messages of this tenant in the last minute";
const NOT_ALLOWED: &str = "its sender may not write there any more";
/// How the reason begins of what could not be sent in time.
pub const OUT_OF_TIME: &str = "it could not be sent in the time it is kept for";
const TAKEN_OVER: &str = "another process works on it";

/// How an action ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The provider has it.
    Sent { message_id: String, recorded: bool },
    /// A newer edit took its place.
    Superseded,
    /// The provider will not take it.
    Refused(String),
    /// The sender may not write there any more.
    Declined,
    /// Too many calls of the tenant were refused.
    Denied,
    /// Its time is over.
    Expired,
    /// Whether the provider has it is not known.
    Ambiguous(String),
    /// Somebody else works on it, or it has ended.
    NotOurs,
    /// The server stops: it goes on at the next start.
    Parked,
}

/// What is so of an action before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Before {
    /// Some of it may be at the provider.
    pub(super) may_be_out: bool,
    /// Giving it to the provider once more cannot say it twice.
    pub(super) may_repeat: bool,
    /// The server stops.
    pub(super) stopping: bool,
    /// It needs a capability, and there was none when it was accepted.
    pub(super) no_capability: bool,
    /// A newer edit of the same message is in the ledger.
    pub(super) overtaken: bool,
    /// Its time is over.
    pub(super) expired: bool,
    /// Its sender may not write there.
    pub(super) forbidden: bool,
}

/// Whether there is nothing left to try: how it ends then, where `why` is what
/// the last call came to.
pub(super) fn before_call(is: Before, why: &str) -> Option<End> {
    if is.may_be_out && !is.may_repeat {
        // It waited for longer than the provider would recognise it.
        Some(End::Ambiguous(why.to_owned()))
    } else if is.stopping {
        Some(End::Parked)
    } else if is.no_capability {
        Some(End::Refused(NO_CAPABILITY.to_owned()))
    } else if is.overtaken {
        Some(End::Superseded)
    } else if is.expired {
        Some(End::Expired)
    } else if is.forbidden {
        Some(End::Declined)
    } else {
        None
    }
}

/// What is so of a call that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// The provider has the first part.
    pub(super) in_parts: bool,
    /// Giving it to the provider once more cannot say it twice.
    pub(super) may_repeat: bool,
    /// The platform was told to make no further call.
    pub(super) withdrawn: bool,
    /// How it answered.
    pub(super) way: Option<Way>,
}

/// What is to be done after a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing more.
    End(End),
    /// The same, and nothing of it is there: what a place does not take now it
    /// did not take before either.
    NothingThere(End),
    /// Nothing was written: again, when the provider wants it.
    Later { after: Duration, reach: Reach, why: String },
    /// It may be there, and may be given again.
    Repeat { why: String },
}

/// What the outcome of a call means.
pub(super) fn after_call(outcome: Outcome, call: Call) -> Step {
    let in_part = |why: String| Step::End(End::Ambiguous(format!("only a part was sent: {why}")));
    match outcome {
        Outcome::Sent { message_id, recorded } => Step::End(End::Sent { message_id, recorded }),
        Outcome::Refused { why } if call.in_parts => in_part(why),
        Outcome::Refused { .. } if call.withdrawn => Step::End(End::Declined),
        Outcome::Refused { why } if call.way == Some(Way::Original) => Step::NothingThere(End::Refused(why)),
        Outcome::Refused { why } => Step::End(End::Refused(why)),
        Outcome::Later { why, .. } if call.in_parts && !call.may_repeat => in_part(why),
        Outcome::Later { after, reach, why } => Step::Later { after, reach, why },
        Outcome::Open { why } if call.in_parts => in_part(why),
        Outcome::Open { why } => Step::End(End::Ambiguous(why)),
        Outcome::Unknown { why } if !call.may_repeat => Step::End(End::Ambiguous(why)),
        Outcome::Unknown { why } => Step::Repeat { why },
    }
}

/// What is so of an action that ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ending {
    /// Some of it may be at the provider.
    pub(super) may_be_out: bool,
    /// An earlier process may have given it to a provider that recognises it, without a note.
    pub(super) unsure: bool,
    /// It was asked for as a `follow_up`.
    pub(super) follow_up: bool,
    /// The message it changes.
    pub(super) edits: Option<String>,
    /// The first part, if the provider has it.
    pub(super) first_part: Option<String>,
    /// What the last call came to.
    pub(super) why: String,
    /// What its chat hears if nobody knows whether it arrived.
    pub(super) in_doubt: Option<Remark>,
}

/// What an end comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Closing {
    /// What the ledger is told; `None` if it knows.
    pub(super) outcome: Option<ActionOutcome>,
    /// What whoever asked is told; `None` if it goes on without this process.
    pub(super) answer: Option<ActionAnswer>,
    /// Whether that is told only once the ledger says so: a restart would
    /// otherwise send what its gateway is sending again.
    pub(super) once_durable: bool,
    /// What operators see counted.
    pub(super) counted: Option<Counted>,
    /// What its chat hears of it. Nothing where its sender may not write any more.
    pub(super) remark: Option<Remark>,
}

/// How an action ends that is not [`End::Parked`].
pub(super) fn closing(end: End, of: Ending) -> Closing {
    match end {
        End::Parked => Closing::default(),
        End::NotOurs => Closing { answer: perhaps(TAKEN_OVER), ..Closing::default() },
        End::Sent { message_id, recorded } => Closing {
            outcome: (!recorded).then(|| ended(ActionState::Sent, Some(message_id.clone()), None)),
            answer: Some(ActionAnswer::Sent { message_id }),
            ..Closing::default()
        },
        End::Superseded => {
            let message_id = of.edits.unwrap_or_default();
            Closing {
                outcome: Some(ended(ActionState::Superseded, Some(message_id.clone()), None)),
                answer: Some(ActionAnswer::Sent { message_id }),
                counted: Some(Counted::Superseded),
                ..Closing::default()
            }
        }
        End::Ambiguous(why) => left_open(why, of),
        End::Refused(why) if of.may_be_out => left_open(why, of),
        End::Refused(why) => failed(why.clone(), ActionAnswer::Failed(why), None),
        End::Denied if of.may_be_out || of.unsure => left_open(TOO_MANY_REFUSED.to_owned(), of),
        End::Denied => never_sent(format!("{TOO_MANY_REFUSED}; nothing was sent"), None),
        End::Expired => {
            let reason = if of.why.is_empty() { "its turn did not come" } else { &of.why };
            let why = format!("{OUT_OF_TIME}: {reason}");
            if of.may_be_out || of.unsure {
                return left_open(why, of);
            }
            never_sent(why, Some(Counted::Expired))
        }
        End::Declined => declined(of),
    }
}

/// What whoever asked is told of an action that ended elsewhere, by what the ledger says of it: the
/// same as [`closing`] tells. `None` if it has not ended.
pub fn answer_of(outcome: ActionOutcome, follow_up: bool) -> Option<ActionAnswer> {
    let ActionOutcome { state, message_id, error } = outcome;
    let why = error.unwrap_or_default();
    Some(match state {
        ActionState::Accepted | ActionState::Sending => return None,
        ActionState::Sent | ActionState::Superseded => {
            ActionAnswer::Sent { message_id: message_id.unwrap_or_default() }
        }
        // Of what was sent in part the first part was the answer.
        ActionState::Ambiguous => match message_id {
            Some(message_id) => ActionAnswer::Sent { message_id },
            None if why.starts_with(NOT_ALLOWED) => not_allowed(follow_up),
            None => ActionAnswer::PerhapsSent(why),
        },
        ActionState::Failed if why.starts_with(NOT_ALLOWED) => not_allowed(follow_up),
        ActionState::Failed if why.starts_with(TOO_MANY_REFUSED) || why.starts_with(OUT_OF_TIME) => {
            ActionAnswer::NeverSent(why)
        }
        ActionState::Failed => ActionAnswer::Failed(why),
    })
}

fn not_allowed(follow_up: bool) -> ActionAnswer {
    if follow_up { ActionAnswer::Failed(NO_CAPABILITY.to_owned()) } else { ActionAnswer::Declined }
}

/// Nobody knows whether it is there.
fn left_open(why: String, of: Ending) -> Closing {
    Closing {
        answer: perhaps(&why),
        outcome: Some(ended(ActionState::Ambiguous, of.first_part, Some(why))),
        once_durable: false,
        counted: Some(Counted::Ambiguous),
        remark: of.in_doubt,
    }
}

/// It is not there and will not be.
fn failed(why: String, answer: ActionAnswer, counted: Option<Counted>) -> Closing {
    let outcome = Some(ended(ActionState::Failed, None, Some(why)));
    Closing { outcome, answer: Some(answer), once_durable: true, counted, remark: None }
}

fn never_sent(why: String, counted: Option<Counted>) -> Closing {
    failed(why.clone(), ActionAnswer::NeverSent(why), counted)
}

/// Whoever asked is told the same, whatever the ledger can say of it.
fn declined(of: Ending) -> Closing {
    let answer = not_allowed(of.follow_up);
    let counted = Some(Counted::Declined);
    if of.unsure {
        let why = format!("{NOT_ALLOWED}; it may have been sent before a restart");
        let outcome = Some(ended(ActionState::Ambiguous, None, Some(why)));
        return Closing { outcome, answer: Some(answer), once_durable: false, counted, remark: None };
    }
    let state = if of.may_be_out { ActionState::Ambiguous } else { ActionState::Failed };
    let outcome = Some(ended(state, of.first_part, Some(NOT_ALLOWED.to_owned())));
    Closing { outcome, answer: Some(answer), once_durable: true, counted, remark: None }
}

fn ended(state: ActionState, message_id: Option<String>, error: Option<String>) -> ActionOutcome {
    ActionOutcome { state, message_id, error }
}

fn perhaps(why: &str) -> Option<ActionAnswer> {
    Some(ActionAnswer::PerhapsSent(why.to_owned()))
}
