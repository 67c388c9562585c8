//! Stories of processes that were believed dead: what others work on is not called.

use super::queue_tests::{Chat, asks_leave, ended, is_call, left, n, send, sent};
use super::{ActionAnswer, Begun, Claimed, Effect, Event, Left, Permission, Repeats, Text};
use crate::egress::Dedupe;
use std::time::Duration;

const A_MINUTE: Duration = Duration::from_secs(60);

#[test]
fn what_somebody_else_works_on_is_not_called() {
    let mut chat = Chat::new();
    chat.accept(1, send(Dedupe::No), Claimed::default());
    chat.on(Event::Permission(n(1), Permission::Granted));
    let effects = chat.on(Event::Begun(n(1), Begun::NotOurs));
    assert!(matches!(&effects[..], [Effect::Answer(_, ActionAnswer::PerhapsSent(_)), Effect::Ended { .. }]));
}

/// Others count from when the ledger was told, and repeat it for a minute: whoever hears
/// after that that it may call does not know whether they did, and asks again.
#[test]
fn a_note_that_was_long_in_coming_is_made_anew() {
    let mut chat = Chat::new();
    chat.accept(1, send(Dedupe::For(A_MINUTE)), Claimed::default());
    assert_eq!(chat.on(Event::Permission(n(1), Permission::Granted)), [Effect::Begin(n(1))]);
    chat.now = chat.now + A_MINUTE;
    assert_eq!(chat.on(Event::Begun(n(1), Begun::Ours)), [Effect::Postpone(n(1))]);
    assert_eq!(chat.on(Event::Postponed(n(1))), [Effect::Release(n(1)), asks_leave(1)]);
    assert!(is_call(&chat.call(1, true), 1), "it was its own after all");
}

#[test]
fn a_note_is_good_for_as_long_as_a_repetition_is_recognised() {
    for (dedupe, waits) in [(Dedupe::For(A_MINUTE), A_MINUTE / 2), (Dedupe::No, 2 * A_MINUTE)] {
        let mut chat = Chat::new();
        chat.accept(1, send(dedupe), Claimed::default());
        chat.on(Event::Permission(n(1), Permission::Granted));
        chat.now = chat.now + waits;
        assert_eq!(chat.on(Event::Begun(n(1), Begun::Ours)), [Effect::Authorize(n(1))], "{dedupe:?}");
    }
}

/// Whoever waits for it is answered by whoever goes on with it.
#[test]
fn what_another_node_goes_on_with_ends_here_without_a_word() {
    let mut chat = Chat::new();
    chat.accept(1, send(Dedupe::No), Claimed::default());
    chat.accept(2, send(Dedupe::No), Claimed::default());
    chat.on(Event::Permission(n(1), Permission::Granted));
    assert_eq!(chat.on(Event::GivenUp(vec![n(1)])), [ended(1), asks_leave(2)]);
    assert!(is_call(&chat.call(2, true), 2));
    assert_eq!(chat.on(Event::GivenUp(vec![n(2)])), [ended(2)]);
    assert_eq!(chat.called(2, sent("m2")), [], "nobody listens any more");
}

/// It neither ends nor is declined: its sender has done nothing wrong.
#[test]
fn a_node_that_does_not_know_whether_it_has_the_bot_tries_again() {
    for (dedupe, noted) in [(Dedupe::No, true), (Dedupe::Yes, false)] {
        let mut chat = Chat::new();
        chat.accept(1, send(dedupe), Claimed::default());
        chat.on(Event::Permission(n(1), Permission::Granted));
        if noted {
            chat.on(Event::Begun(n(1), Begun::Ours));
            assert_eq!(chat.on(Event::NotNow(n(1))), [Effect::Postpone(n(1))]);
            assert_eq!(chat.on(Event::Postponed(n(1))), [Effect::Release(n(1))]);
        } else {
            assert_eq!(chat.on(Event::NotNow(n(1))), [Effect::Release(n(1))]);
        }
        assert_eq!(chat.after(1), [asks_leave(1)]);
        assert!(is_call(&chat.call(1, noted), 1));
    }
}

/// What another node accepted for this one was called by nobody: it costs no note more.
#[test]
fn what_nobody_worked_on_is_not_taken_for_what_was_left() {
    for untouched in [true, false] {
        let mut chat = Chat::new();
        chat.on(Event::Adopted(vec![(n(1), Left { untouched, ..left(false) })]));
        chat.on(Event::Read(n(1), Text::Read(Repeats::always(Dedupe::Yes))));
        let next = if untouched { Effect::Authorize(n(1)) } else { Effect::Begin(n(1)) };
        assert_eq!(chat.on(Event::Permission(n(1), Permission::Granted)), [next]);
    }
}
