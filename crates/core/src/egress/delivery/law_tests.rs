//! The tables, row by row: every combination there is.

use super::law::{Before, Call, Closing, End, Ending, Step, after_call, answer_of, before_call, closing};
use super::{ActionAnswer, Counted, Outcome, Reach};
use crate::egress::{ActionState, NO_CAPABILITY, Remark};
use crate::ports::ActionOutcome;
use crate::vault::Way;
use std::time::Duration;

/// Every combination of so many facts.
fn all<const N: usize>() -> impl Iterator<Item = [bool; N]> {
    (0..1u32 << N).map(|bits| std::array::from_fn(|n| bits >> n & 1 == 1))
}

#[test]
fn before_a_call_the_first_reason_counts() {
    for facts in all::<7>() {
        let [may_be_out, may_repeat, stopping, no_capability, overtaken, expired, forbidden] = facts;
        let is = Before { may_be_out, may_repeat, stopping, no_capability, overtaken, expired, forbidden };
        let reasons = [
            (may_be_out && !may_repeat, End::Ambiguous("why".into())),
            (stopping, End::Parked),
            (no_capability, End::Refused(NO_CAPABILITY.into())),
            (overtaken, End::Superseded),
            (expired, End::Expired),
            (forbidden, End::Declined),
        ];
        let expected = reasons.into_iter().find(|(holds, _)| *holds).map(|(_, end)| end);
        assert_eq!(before_call(is, "why"), expected, "{is:?}");
    }
}

fn outcomes() -> [Outcome; 6] {
    let why = || "why".to_owned();
    [
        Outcome::Sent { message_id: "m".into(), recorded: false },
        Outcome::Sent { message_id: "m".into(), recorded: true },
        Outcome::Refused { why: why() },
        Outcome::Later { after: Duration::from_secs(3), reach: Reach::Chat, why: why() },
        Outcome::Unknown { why: why() },
        Outcome::Open { why: why() },
    ]
}

/// What the outcome of a call means, said in another way than the table says it.
fn expected(outcome: &Outcome, call: Call) -> Step {
    let open = |why: &str| Step::End(End::Ambiguous(why.to_owned()));
    let part = "only a part was sent: why";
    let (sure, repeatable) = (!call.in_parts, call.may_repeat);
    match outcome {
        Outcome::Sent { recorded, .. } => {
            Step::End(End::Sent { message_id: "m".into(), recorded: *recorded })
        }
        Outcome::Refused { .. } if !sure => open(part),
        Outcome::Refused { .. } => match (call.withdrawn, call.way) {
            (true, _) => Step::End(End::Declined),
            (false, Some(Way::Original)) => Step::NothingThere(End::Refused("why".into())),
            (false, _) => Step::End(End::Refused("why".into())),
        },
        Outcome::Later { after, reach, why } if sure || repeatable => {
            Step::Later { after: *after, reach: *reach, why: why.clone() }
        }
        Outcome::Later { .. } => open(part),
        Outcome::Unknown { why } if repeatable => Step::Repeat { why: why.clone() },
        Outcome::Unknown { .. } => open("why"),
        Outcome::Open { .. } => open(if sure { "why" } else { part }),
    }
}

#[test]
fn after_a_call_nothing_is_repeated_that_could_double() {
    for [in_parts, may_repeat, withdrawn] in all::<3>() {
        for way in [None, Some(Way::Original), Some(Way::Further)] {
            let call = Call { in_parts, may_repeat, withdrawn, way };
            for outcome in outcomes() {
                let step = after_call(outcome.clone(), call);
                assert_eq!(step, expected(&outcome, call), "{outcome:?} {call:?}");
                let again = matches!(step, Step::Later { .. } | Step::Repeat { .. });
                let written = in_parts || matches!(outcome, Outcome::Unknown { .. } | Outcome::Open { .. });
                assert!(!again || !written || may_repeat, "{outcome:?} {call:?}");
            }
        }
    }
}

fn ends() -> [End; 9] {
    [
        End::Sent { message_id: "m".into(), recorded: false },
        End::Sent { message_id: "m".into(), recorded: true },
        End::Superseded,
        End::Refused("why".into()),
        End::Declined,
        End::Denied,
        End::Expired,
        End::Ambiguous("why".into()),
        End::NotOurs,
    ]
}

#[test]
fn an_end_says_no_more_than_is_known() {
    for [may_be_out, unsure, follow_up] in all::<3>() {
        let first_part = may_be_out.then(|| "first".to_owned());
        let of = Ending {
            may_be_out,
            unsure,
            follow_up,
            edits: Some("e".into()),
            first_part: first_part.clone(),
            why: String::new(),
            in_doubt: Some(Remark::Repeat),
        };
        for end in ends() {
            let Closing { outcome, answer, once_durable, counted, remark } = closing(end.clone(), of.clone());
            let state = outcome.as_ref().map(|it| it.state);
            let in_doubt = state == Some(ActionState::Ambiguous) && end != End::Declined;
            assert_eq!(remark, in_doubt.then_some(Remark::Repeat), "{end:?} {of:?}");
            let answer = answer.unwrap();
            let failed = state == Some(ActionState::Failed);
            assert!(!failed || !may_be_out, "{end:?} {of:?}: it may be there");
            let again = matches!(answer, ActionAnswer::NeverSent(_));
            assert!(!again || (failed && once_durable), "{end:?}: told only when it is durable");
            assert_eq!(
                counted == Some(Counted::Ambiguous),
                matches!(answer, ActionAnswer::PerhapsSent(_)) && end != End::NotOurs
            );
            let expected = match end {
                End::Sent { recorded, .. } => (!recorded).then_some(ActionState::Sent),
                End::NotOurs => None,
                End::Superseded => Some(ActionState::Superseded),
                End::Ambiguous(_) => Some(ActionState::Ambiguous),
                End::Expired | End::Declined | End::Denied if may_be_out || unsure => {
                    Some(ActionState::Ambiguous)
                }
                End::Refused(_) if may_be_out => Some(ActionState::Ambiguous),
                _ => Some(ActionState::Failed),
            };
            assert_eq!(state, expected, "{end:?} {of:?}");
            let words = match end {
                End::Sent { .. } => ActionAnswer::Sent { message_id: "m".into() },
                End::Superseded => ActionAnswer::Sent { message_id: "e".into() },
                End::Declined if follow_up => ActionAnswer::Failed(NO_CAPABILITY.into()),
                End::Declined => ActionAnswer::Declined,
                End::Refused(_) if !may_be_out => ActionAnswer::Failed("why".into()),
                _ => continue,
            };
            assert_eq!(answer, words, "{end:?} {of:?}");
        }
    }
}

/// Whoever asked hears the same, whether the hint arrives or the ledger is asked.
#[test]
fn what_ended_elsewhere_is_told_in_the_same_words() {
    for [may_be_out, unsure, follow_up] in all::<3>() {
        for (end, first) in ends().into_iter().flat_map(|end| [(end.clone(), false), (end, true)]) {
            let first_part = (may_be_out && first).then(|| "first".to_owned());
            let edits = Some("e".to_owned());
            let of = Ending { may_be_out, unsure, follow_up, edits, first_part, ..Ending::default() };
            let Closing { outcome, answer, .. } = closing(end.clone(), of.clone());
            let Some(outcome) = outcome else { continue };
            // Of what was sent in part the first part was the answer, before it ended.
            let told = match &outcome.message_id {
                Some(first) if outcome.state == ActionState::Ambiguous => {
                    Some(ActionAnswer::Sent { message_id: first.clone() })
                }
                _ => answer,
            };
            assert_eq!(answer_of(outcome, follow_up), told, "{end:?} {of:?}");
        }
    }
    let open = ActionOutcome { state: ActionState::Sending, message_id: None, error: None };
    assert_eq!(answer_of(open, false), None);
}

#[test]
fn what_stops_here_is_told_nothing_of() {
    assert_eq!(closing(End::Parked, Ending::default()), Closing::default());
}
