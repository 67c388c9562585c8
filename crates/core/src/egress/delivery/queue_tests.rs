//! Stories of one chat, told step by step.

use super::{
    ActionAnswer, Asked, Begun, ChatQueue, Claimed, DeliveryId, Earlier, Edited, Effect, EgressTimings,
    Event, Left, MAX_WAITING, Opened, Outcome, Permission, Reach, Repeats, Text,
};
use crate::clock::Mono;
use crate::egress::{ActionState, Dedupe, Remark, Target};
use crate::vault::{CapabilityId, Use, Way};
use std::time::Duration;

pub(super) const TIMINGS: EgressTimings = EgressTimings {
    queued_for: Duration::from_secs(600),
    again: Duration::from_secs(1),
    aside: Duration::from_secs(10),
};

pub(super) fn send(dedupe: Dedupe) -> Asked {
    let (repeats, in_doubt) = (Repeats::always(dedupe), Some(Remark::Tell));
    Asked { edits: None, follow_up: false, repeats, in_doubt }
}

pub(super) fn edit(message_id: &str, dedupe: Dedupe) -> Asked {
    let edited = Edited { message_id: message_id.into(), target: Target::chat("lab") };
    Asked { edits: Some(edited), in_doubt: None, ..send(dedupe) }
}

/// A queue, and the time.
pub(super) struct Chat {
    queue: ChatQueue,
    pub(super) now: Mono,
}

impl Chat {
    pub(super) fn new() -> Self {
        Self { queue: ChatQueue::new(TIMINGS), now: Mono(Duration::from_secs(1_000)) }
    }

    pub(super) fn on(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.queue.on(event, self.now, &mut effects);
        effects
    }

    pub(super) fn after(&mut self, seconds: u64) -> Vec<Effect> {
        self.now = self.now + Duration::from_secs(seconds);
        self.on(Event::Time)
    }

    /// Accepts an action, and answers what follows.
    pub(super) fn accept(&mut self, id: u64, asked: Asked, claimed: Claimed) -> Vec<Effect> {
        assert_eq!(self.on(Event::Arrived(vec![(n(id), asked)])), [Effect::Accept(vec![n(id)])]);
        self.on(Event::Accepted(vec![claimed]))
    }

    /// Brings an action that asked for permission to its call; answers that.
    pub(super) fn call(&mut self, id: u64, noted: bool) -> Vec<Effect> {
        let mut effects = self.on(Event::Permission(n(id), Permission::Granted));
        if noted {
            assert_eq!(effects, [Effect::Begin(n(id))]);
            effects = self.on(Event::Begun(n(id), Begun::Ours));
        }
        assert_eq!(effects, [Effect::Authorize(n(id))]);
        self.on(Event::Authorized(n(id), true))
    }

    pub(super) fn called(&mut self, id: u64, outcome: Outcome) -> Vec<Effect> {
        self.on(Event::Called { id: n(id), outcome, withdrawn: false })
    }
}

pub(super) fn n(id: u64) -> DeliveryId {
    DeliveryId(id)
}

pub(super) fn asks_leave(id: u64) -> Effect {
    Effect::AskPermission { id: n(id), paced: true }
}

pub(super) fn ended(id: u64) -> Effect {
    Effect::Ended { id: n(id), untold: false }
}

pub(super) fn sent(message_id: &str) -> Outcome {
    Outcome::Sent { message_id: message_id.into(), recorded: true }
}

pub(super) fn unknown() -> Outcome {
    Outcome::Unknown { why: "no answer came".into() }
}

pub(super) fn states(effects: &[Effect]) -> Vec<ActionState> {
    let ends = effects.iter().map(|effect| match effect {
        Effect::Finish(ends) => ends.iter().map(|(_, outcome)| outcome.state).collect(),
        Effect::LeaveOpen { outcome, .. } => vec![outcome.state],
        _ => Vec::new(),
    });
    ends.flatten().collect()
}

pub(super) fn is_call(effects: &[Effect], id: u64) -> bool {
    matches!(effects, [Effect::Call { id: called, .. }] if *called == n(id))
}

#[test]
fn a_send_is_accepted_noted_called_and_answered() {
    let mut chat = Chat::new();
    assert_eq!(chat.accept(1, send(Dedupe::No), Claimed::default()), [asks_leave(1)]);
    assert!(is_call(&chat.call(1, true), 1));
    let effects = chat.called(1, Outcome::Sent { message_id: "m1".into(), recorded: false });
    let answer = ActionAnswer::Sent { message_id: "m1".into() };
    assert_eq!(effects[0], Effect::Answer(n(1), answer));
    assert_eq!(states(&effects), [ActionState::Sent]);
    assert_eq!(chat.on(Event::Finished { ids: vec![n(1)], durable: true }), [ended(1)]);
    assert!(chat.queue.is_idle() && chat.queue.wakes_at().is_none());
}

#[test]
fn what_the_ledger_does_not_take_was_never_sent() {
    let mut chat = Chat::new();
    chat.on(Event::Arrived(vec![(n(1), send(Dedupe::No)), (n(2), send(Dedupe::No))]));
    chat.on(Event::Arrived(vec![(n(3), send(Dedupe::No))]));
    let effects = chat.on(Event::NotAccepted("full".into()));
    let never = |id| Effect::Answer(n(id), ActionAnswer::NeverSent("full".into()));
    assert_eq!(effects, [never(1), ended(1), never(2), ended(2), Effect::Accept(vec![n(3)])]);
}

#[test]
fn a_chat_waits_for_its_first_and_accepts_meanwhile() {
    let mut chat = Chat::new();
    chat.accept(1, send(Dedupe::Yes), Claimed::default());
    assert_eq!(chat.accept(2, send(Dedupe::Yes), Claimed::default()), []);
    assert!(is_call(&chat.call(1, false), 1));
    assert_eq!(chat.called(1, sent("m1"))[1..], [ended(1), asks_leave(2)]);
}

#[test]
fn what_may_not_be_written_any_more_is_not_called() {
    let mut chat = Chat::new();
    chat.accept(1, send(Dedupe::No), Claimed::default());
    chat.on(Event::Permission(n(1), Permission::Granted));
    chat.on(Event::Begun(n(1), Begun::Ours));
    let effects = chat.on(Event::Authorized(n(1), false));
    assert_eq!(states(&effects), [ActionState::Failed]);
    assert!(!effects.iter().any(|it| matches!(it, Effect::Answer(..))), "not before it is durable");
    let effects = chat.on(Event::Finished { ids: vec![n(1)], durable: true });
    assert_eq!(effects, [Effect::Answer(n(1), ActionAnswer::Declined), ended(1)]);
}

#[test]
fn an_end_that_is_not_durable_is_told_again_and_then_given_up() {
    let mut chat = Chat::new();
    chat.accept(1, send(Dedupe::Yes), Claimed::default());
    chat.call(1, false);
    chat.called(1, Outcome::Sent { message_id: "m1".into(), recorded: false });
    let mut tries = 0;
    let end = loop {
        let effects = chat.on(Event::Finished { ids: vec![n(1)], durable: false });
        if !effects.is_empty() {
            break effects;
        }
        assert_eq!(states(&chat.after(1)), [ActionState::Sent]);
        tries += 1;
    };
    assert_eq!((tries, end), (600, vec![Effect::Ended { id: n(1), untold: true }]));
}

#[test]
fn later_is_told_to_the_ledger_and_tried_again() {
    let mut chat = Chat::new();
    chat.accept(1, send(Dedupe::No), Claimed::default());
    chat.call(1, true);
    let (after, reach) = (Duration::from_secs(3), Reach::Bot);
    let effects = chat.called(1, Outcome::Later { after, reach, why: "slow down".into() });
    assert_eq!(effects, [Effect::Pause { id: n(1), reach, after }, Effect::Postpone(n(1))]);
    assert_eq!(chat.on(Event::Postponed(n(1))), [Effect::Release(n(1))]);
    assert_eq!(chat.queue.wakes_at(), Some(chat.now + after));
    assert_eq!(chat.after(2), []);
    assert_eq!(chat.after(1), [asks_leave(1)]);
    let effects = chat.call(1, true);
    assert!(matches!(effects[..], [Effect::Call { earlier: Earlier::Nothing, .. }]), "{effects:?}");
}

#[test]
fn unknown_is_repeated_only_for_as_long_as_it_is_recognised() {
    let mut chat = Chat::new();
    chat.accept(1, send(Dedupe::For(Duration::from_secs(5))), Claimed::default());
    chat.call(1, true);
    assert_eq!(chat.called(1, unknown()), [Effect::Release(n(1))]);
    assert_eq!(chat.after(1), [asks_leave(1)]);
    let effects = chat.call(1, true);
    assert!(matches!(effects[..], [Effect::Call { earlier: Earlier::Perhaps, .. }]), "{effects:?}");
    chat.called(1, unknown());
    chat.after(2);
    // Its turn comes too late.
    chat.now = chat.now + Duration::from_secs(3);
    chat.on(Event::Permission(n(1), Permission::Granted));
    chat.on(Event::Begun(n(1), Begun::Ours));
    assert_eq!(states(&chat.on(Event::Authorized(n(1), true))), [ActionState::Ambiguous]);
}

#[test]
fn a_newer_edit_takes_the_place_of_those_that_wait() {
    let mut chat = Chat::new();
    chat.accept(1, send(Dedupe::No), Claimed::default());
    chat.accept(2, edit("m", Dedupe::Yes), Claimed::default());
    chat.accept(3, edit("other", Dedupe::Yes), Claimed::default());
    let effects = chat.accept(4, edit("m", Dedupe::Yes), Claimed::default());
    assert!(effects.contains(&Effect::Answer(n(2), ActionAnswer::Sent { message_id: "m".into() })));
    assert_eq!(states(&effects), [ActionState::Superseded]);
    assert_eq!(chat.on(Event::Finished { ids: vec![n(2)], durable: true }), [ended(2)]);
    chat.call(1, true);
    assert_eq!(chat.called(1, sent("m1")).last(), Some(&asks_leave(3)));
}

#[test]
fn an_edit_whose_end_is_not_durable_stays_before_the_newer_one() {
    let mut chat = Chat::new();
    chat.accept(1, send(Dedupe::No), Claimed::default());
    chat.accept(2, edit("m", Dedupe::Yes), Claimed::default());
    chat.accept(3, edit("m", Dedupe::Yes), Claimed::default());
    assert_eq!(chat.on(Event::Finished { ids: vec![n(2)], durable: false }), []);
    chat.call(1, true);
    let effects = chat.called(1, sent("m1"));
    assert_eq!(states(&effects), [ActionState::Superseded], "told again, and waited for");
    assert!(!effects.contains(&asks_leave(3)));
    assert_eq!(chat.on(Event::Finished { ids: vec![n(2)], durable: true }), [ended(2), asks_leave(3)]);
}

#[test]
fn an_edit_that_waits_for_leave_gives_way_at_once() {
    let mut chat = Chat::new();
    chat.accept(1, edit("m", Dedupe::No), Claimed::default());
    let effects = chat.accept(2, edit("m", Dedupe::No), Claimed::default());
    assert_eq!(states(&effects), [ActionState::Superseded]);
    assert_eq!(chat.on(Event::Finished { ids: vec![n(1)], durable: true }), [ended(1), asks_leave(2)]);
}

fn original(capability: i64) -> Claimed {
    let uses = Some(Use { capability: CapabilityId(capability), way: Way::Original });
    Claimed { uses, lasts: Some(Duration::from_secs(900)) }
}

fn further(capability: i64) -> Claimed {
    let uses = Some(Use { capability: CapabilityId(capability), way: Way::Further });
    Claimed { uses, lasts: Some(Duration::from_secs(900)) }
}

#[test]
fn an_answer_that_takes_long_goes_on_aside() {
    let mut chat = Chat::new();
    let effects = chat.accept(1, send(Dedupe::Yes), original(7));
    assert_eq!(effects, [Effect::AskPermission { id: n(1), paced: false }], "answers wait for no chat");
    chat.accept(2, send(Dedupe::Yes), further(7));
    assert_eq!(chat.queue.wakes_at(), Some(chat.now + TIMINGS.aside));
    assert_eq!(chat.after(10), [Effect::AskPermission { id: n(2), paced: false }]);
    // What would be behind it must not come first: it is a message like any other.
    let effects = chat.on(Event::Permission(n(2), Permission::Granted));
    assert_eq!(effects, [Effect::Release(n(2)), asks_leave(2)]);
    let effects = chat.on(Event::Permission(n(2), Permission::Granted));
    assert_eq!(effects, [Effect::Begin(n(2))]);
    // The other goes on meanwhile.
    let used = original(7).uses.unwrap();
    assert_eq!(chat.on(Event::Permission(n(1), Permission::Granted)), [Effect::Open(n(1), used)]);
    assert_eq!(chat.on(Event::Opened(n(1), Opened::Live)), [Effect::Begin(n(1))]);
}

#[test]
fn what_may_be_there_as_a_message_does_not_become_an_answer() {
    let mut chat = Chat::new();
    chat.accept(1, send(Dedupe::Yes), original(7));
    chat.accept(2, send(Dedupe::Yes), further(7));
    chat.after(10);
    chat.on(Event::Permission(n(2), Permission::Granted));
    assert!(matches!(chat.call(2, true)[..], [Effect::Call { way: None, .. }]), "the other comes first");
    assert_eq!(chat.called(2, unknown()), [Effect::Release(n(2))]);
    // Now that is there, and the capability could be used behind it.
    chat.on(Event::Permission(n(1), Permission::Granted));
    chat.on(Event::Opened(n(1), Opened::Live));
    chat.on(Event::Begun(n(1), Begun::Ours));
    chat.on(Event::Authorized(n(1), true));
    assert_eq!(chat.called(1, sent("m1"))[1..], [ended(1)]);
    assert_eq!(chat.after(1), [asks_leave(2)]);
    assert!(matches!(chat.call(2, true)[..], [Effect::Call { way: None, earlier: Earlier::Perhaps, .. }]));
}

#[test]
fn an_answer_whose_time_is_over_is_a_message_unless_it_may_be_there() {
    for may_be_there in [false, true] {
        let mut chat = Chat::new();
        chat.accept(1, send(Dedupe::Yes), original(7));
        if may_be_there {
            chat.on(Event::Permission(n(1), Permission::Granted));
            chat.on(Event::Opened(n(1), Opened::Live));
            chat.on(Event::Begun(n(1), Begun::Ours));
            chat.on(Event::Authorized(n(1), true));
            chat.called(1, unknown());
            chat.after(1);
        }
        chat.on(Event::Permission(n(1), Permission::Granted));
        let effects = chat.on(Event::Opened(n(1), Opened::Over));
        if may_be_there {
            assert_eq!(states(&effects), [ActionState::Ambiguous])
        } else {
            assert_eq!(effects, [Effect::Release(n(1)), asks_leave(1)])
        }
    }
}

#[test]
fn the_first_part_is_answered_before_the_rest_and_is_not_given_again() {
    let mut chat = Chat::new();
    chat.accept(1, send(Dedupe::No), Claimed::default());
    chat.call(1, true);
    let answer = ActionAnswer::Sent { message_id: "m1".into() };
    assert_eq!(chat.on(Event::FirstPart(n(1), "m1".into())), [Effect::Answer(n(1), answer)]);
    let later = Outcome::Later { after: Duration::ZERO, reach: Reach::Action, why: "slow down".into() };
    let effects = chat.called(1, later);
    assert_eq!(states(&effects), [ActionState::Ambiguous]);
    assert!(!effects.iter().any(|it| matches!(it, Effect::Answer(..))), "answered once");
}

#[test]
fn a_server_that_stops_ends_what_it_began_and_begins_nothing() {
    let mut chat = Chat::new();
    chat.accept(1, send(Dedupe::No), Claimed::default());
    chat.accept(2, send(Dedupe::No), Claimed::default());
    chat.call(1, true);
    assert_eq!(chat.on(Event::Stopping), []);
    assert_eq!(chat.called(1, sent("m1"))[1..], [ended(1), ended(2)], "it goes on at the next start");
    assert_eq!(chat.accept(3, send(Dedupe::No), Claimed::default()), [ended(3)]);
    assert!(chat.queue.is_idle());
}

#[test]
fn what_was_noted_and_not_called_when_the_server_stops_is_as_if_not_begun() {
    let mut chat = Chat::new();
    chat.accept(1, send(Dedupe::No), Claimed::default());
    chat.on(Event::Permission(n(1), Permission::Granted));
    chat.on(Event::Stopping);
    assert_eq!(chat.on(Event::Begun(n(1), Begun::Ours)), [Effect::Authorize(n(1))]);
    assert_eq!(chat.on(Event::Authorized(n(1), true)), [Effect::Postpone(n(1))]);
    assert_eq!(chat.on(Event::Postponed(n(1))), [ended(1)]);
}

pub(super) fn left(sending: bool) -> Left {
    Left {
        edits: None,
        follow_up: false,
        claimed: Claimed::default(),
        in_doubt: Some(Remark::Tell),
        remark: false,
        suspect: false,
        sending,
        begun: sending.then_some(Duration::from_secs(60)),
        left: Duration::from_secs(300),
        untouched: false,
    }
}

#[test]
fn what_a_crash_cut_off_is_repeated_only_where_it_is_recognised() {
    for (dedupe, sending, repeated) in [
        (Dedupe::No, false, true),
        (Dedupe::No, true, false),
        (Dedupe::Yes, true, true),
        (Dedupe::For(Duration::from_secs(61)), true, true),
        (Dedupe::For(Duration::from_secs(60)), true, false),
    ] {
        let mut chat = Chat::new();
        assert_eq!(chat.on(Event::Adopted(vec![(n(1), left(sending))])), [Effect::Read(n(1))]);
        let effects = chat.on(Event::Read(n(1), Text::Read(Repeats::always(dedupe))));
        if !repeated {
            assert_eq!(states(&effects), [ActionState::Ambiguous], "{dedupe:?}");
            continue;
        }
        assert_eq!(effects, [asks_leave(1)], "{dedupe:?} {sending}");
        // What others left is always noted.
        let effects = chat.call(1, true);
        let earlier = if sending { Earlier::CutOff(Duration::from_secs(60)) } else { Earlier::Nothing };
        assert!(
            matches!(effects[..], [Effect::Call { earlier: told, .. }] if told == earlier),
            "{effects:?}"
        );
    }
}

#[test]
fn an_edit_that_was_left_and_overtaken_is_not_even_read() {
    let mut chat = Chat::new();
    let older = Left { edits: edit("m", Dedupe::No).edits, ..left(true) };
    let newer = Left { edits: edit("m", Dedupe::No).edits, ..left(false) };
    let effects = chat.on(Event::Adopted(vec![(n(1), older), (n(2), newer)]));
    assert_eq!(states(&effects), [ActionState::Superseded]);
    assert!(!effects.contains(&Effect::Read(n(1))));
    let effects = chat.on(Event::Finished { ids: vec![n(1)], durable: true });
    assert_eq!(effects, [ended(1), Effect::Read(n(2))]);
}

#[test]
fn typing_is_shown_where_nothing_is_on_its_way() {
    let mut chat = Chat::new();
    assert_eq!(chat.on(Event::TypingAsked(n(1))), [Effect::ShowTyping(n(1))]);
    let left_out = |id| [Effect::Answer(n(id), ActionAnswer::Shown), ended(id)];
    assert_eq!(chat.on(Event::TypingAsked(n(2))), left_out(2));
    assert_eq!(chat.accept(3, send(Dedupe::Yes), Claimed::default()), [], "in the chat's order");
    assert_eq!(chat.on(Event::TypingShown(n(1))), [ended(1), asks_leave(3)]);
    assert_eq!(chat.on(Event::TypingAsked(n(4))), left_out(4));
}

#[test]
fn a_full_chat_takes_no_more() {
    let mut chat = Chat::new();
    chat.accept(1, send(Dedupe::Yes), Claimed::default());
    let most = (2..).take(MAX_WAITING).map(|id| (n(id), send(Dedupe::Yes))).collect();
    chat.on(Event::Arrived(most));
    let effects = chat.on(Event::Arrived(vec![(n(9_999), send(Dedupe::Yes))]));
    assert!(matches!(&effects[..], [Effect::Answer(_, ActionAnswer::NeverSent(_)), Effect::Ended { .. }]));
}

#[test]
fn what_cannot_be_sent_in_time_has_failed() {
    let mut chat = Chat::new();
    chat.accept(1, send(Dedupe::No), Claimed::default());
    assert_eq!(chat.queue.wakes_at(), Some(chat.now + TIMINGS.queued_for));
    let effects = chat.after(600);
    assert_eq!(states(&effects), [ActionState::Failed], "its turn did not come");
    let effects = chat.on(Event::Finished { ids: vec![n(1)], durable: true });
    assert!(matches!(&effects[0], Effect::Answer(_, ActionAnswer::NeverSent(_))), "{effects:?}");
}
