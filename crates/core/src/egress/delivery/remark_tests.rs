//! Stories of messages of which nobody knows whether they arrived, and of what is said then.

use super::queue_tests::{Chat, asks_leave, ended, is_call, left, n, send, sent, states, unknown};
use super::{ActionAnswer, Asked, Claimed, Counted, Effect, Event, Left, Repeats, Text};
use crate::egress::{ActionState, Dedupe, Remark};

/// What the remark on a message is asked for as.
fn remark() -> Asked {
    Asked { in_doubt: None, ..send(Dedupe::No) }
}

fn said_of(id: u64, remark_id: u64) -> Event {
    Event::Remarked { id: n(id), remark: n(remark_id), asked: remark() }
}

/// Leaves message 1 in doubt; answers what follows.
fn in_doubt(chat: &mut Chat, asked: Asked) -> Vec<Effect> {
    chat.accept(1, asked, Claimed::default());
    chat.call(1, true);
    chat.called(1, unknown())
}

#[test]
fn what_may_have_arrived_is_told_before_anything_else_is_said() {
    for wants in Remark::ALL {
        let mut chat = Chat::new();
        let effects = in_doubt(&mut chat, Asked { in_doubt: Some(wants), ..send(Dedupe::No) });
        assert!(
            matches!(&effects[..], [
            Effect::Count(Counted::Ambiguous),
            Effect::Answer(_, ActionAnswer::PerhapsSent(_)),
            Effect::LeaveOpen { remark, .. },
        ] if *remark == wants),
            "its gateway hears what it always heard: {effects:?}"
        );
        assert_eq!(chat.accept(2, send(Dedupe::No), Claimed::default()), [], "it waits");
        assert_eq!(chat.on(said_of(1, 3)), [ended(1), asks_leave(3)]);
        assert!(is_call(&chat.call(3, true), 3));
        let effects = chat.called(3, sent("m3"));
        assert_eq!(effects[1..], [ended(3), asks_leave(2)]);
    }
}

#[test]
fn a_remark_in_doubt_is_not_remarked_upon() {
    let mut chat = Chat::new();
    in_doubt(&mut chat, send(Dedupe::No));
    chat.on(said_of(1, 2));
    chat.call(2, true);
    let effects = chat.called(2, unknown());
    assert!(matches!(effects[..], [_, _, Effect::Finish(_)]), "{effects:?}");
    assert_eq!(states(&effects), [ActionState::Ambiguous]);
}

#[test]
fn nothing_is_said_where_the_sender_may_not_write_any_more() {
    let mut chat = Chat::new();
    in_doubt(&mut chat, send(Dedupe::No));
    chat.on(said_of(1, 2));
    chat.on(Event::Permission(n(2), super::Permission::Granted));
    chat.on(Event::Begun(n(2), super::Begun::Ours));
    let effects = chat.on(Event::Authorized(n(2), false));
    assert_eq!(states(&effects), [ActionState::Failed]);
}

#[test]
fn a_store_that_fails_is_told_of_both_again() {
    let mut chat = Chat::new();
    let first = in_doubt(&mut chat, send(Dedupe::No)).pop();
    assert_eq!(chat.on(Event::Finished { ids: vec![n(1)], durable: false }), []);
    assert_eq!(chat.after(1), Vec::from_iter(first));
    assert_eq!(chat.on(Event::Finished { ids: vec![n(1)], durable: true }), [ended(1)], "it had ended");
}

#[test]
fn after_a_crash_the_remark_comes_before_what_waited() {
    let mut chat = Chat::new();
    let said = Left { remark: true, in_doubt: None, ..left(false) };
    let effects = chat.on(Event::Adopted(vec![(n(1), left(false)), (n(2), said)]));
    assert_eq!(effects, [Effect::Read(n(2))]);
}

#[test]
fn of_what_ended_two_processes_nothing_is_read_or_said_again() {
    let mut chat = Chat::new();
    let suspect = Left { suspect: true, in_doubt: Some(Remark::Repeat), ..left(true) };
    let effects = chat.on(Event::Adopted(vec![(n(1), suspect)]));
    assert!(
        effects.iter().any(|it| matches!(it, Effect::LeaveOpen { remark: Remark::Tell, .. })),
        "{effects:?}"
    );
    assert!(!effects.iter().any(|it| matches!(it, Effect::Read(_))));
}

#[test]
fn what_a_crash_cut_off_is_remarked_upon() {
    let mut chat = Chat::new();
    chat.on(Event::Adopted(vec![(n(1), left(true))]));
    let effects = chat.on(Event::Read(n(1), Text::Read(Repeats::always(Dedupe::No))));
    assert!(matches!(effects.last(), Some(Effect::LeaveOpen { remark: Remark::Tell, .. })), "{effects:?}");
}
