//! Stories of processes that were believed dead: what others work on is not called.

use super::queue_tests::{Chat, asks_leave, is_call, n, send};
use super::{ActionAnswer, Begun, Claimed, Effect, Event, Permission};
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
