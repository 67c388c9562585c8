//! Turns, step by step.

use super::*;
use crate::inbox::{Entry, EntryKind};
use angelia_contract::action::{Action, Metadata};
use angelia_contract::event::Event;
use angelia_contract::source::Source;
use serde_json::json;

const NEWER: Peer = Peer { generation: Generation::Newer, interrupts: true };
const OLDER: Peer = Peer { generation: Generation::Older, interrupts: false };

fn at(millis: u64) -> Mono {
    Mono(Duration::from_millis(millis))
}

fn entry(seq: i64, author: &str, text: &str) -> Entry {
    let source = Source { user_id: Some(author.into()), ..Source::default() };
    let event = Event { text: text.into(), message_id: Some(format!("m{seq}")), source, ..Event::default() };
    Entry {
        seq: Seq(seq),
        kind: EntryKind::Message,
        platform: "telegram".into(),
        bot: "1".into(),
        chat_id: "c".into(),
        session_key: format!("k:{author}").into(),
        body: serde_json::to_vec(&event).unwrap().into(),
        revision: 0,
        while_busy: None,
    }
}

fn line(seq: i64, author: &str, text: &str) -> Line {
    Line::read(&entry(seq, author, text), false, WhileBusy::Auto).unwrap()
}

fn turns(peer: Peer) -> Turns {
    Turns::new(peer, TURN_LIMIT, Vec::new())
}

fn react(message: &str, emoji: &str, remove: bool) -> Action {
    Action::React {
        chat_id: "c".into(),
        message_id: message.into(),
        emoji: emoji.into(),
        remove,
        metadata: Metadata::new(),
    }
}

fn typing() -> Action {
    Action::Typing { chat_id: "c".into(), content: None, metadata: Metadata::new() }
}

fn send(reply_to: Option<&str>, notify: bool) -> Action {
    let metadata = if notify { json!({"notify": true}) } else { json!({}) };
    Action::Send {
        chat_id: "c".into(),
        content: "words".into(),
        reply_to: reply_to.map(str::to_owned),
        metadata: metadata.as_object().unwrap().clone(),
    }
}

/// Turns with one opened by ann's first line, acknowledged.
fn one_open(peer: Peer) -> Turns {
    let mut turns = turns(peer);
    let first = line(1, "ann", "hello");
    assert_eq!(turns.consider(&first, false, at(0)), Verdict::Push);
    turns.pushed(&first, at(0));
    turns.acknowledged(Seq(1), at(5));
    turns
}

/// The same, seen by a gateway that reacts and types.
fn one_seen() -> Turns {
    let mut turns = one_open(NEWER);
    act(&mut turns, &react("m1", "👀", false), 1, at(10));
    turns.acts(&typing(), 2, at(20));
    turns
}

/// An action that is answered at once.
fn act(turns: &mut Turns, action: &Action, ticket: u64, now: Mono) {
    turns.acts(action, ticket, now);
    turns.answered(ticket, true, now);
}

fn is_open_at(turns: &mut Turns, now: Mono) -> bool {
    turns.tick(now);
    turns.is_any_open()
}

#[test]
fn a_gateway_that_reacts_ends_its_turn_by_its_marks() {
    let mut turns = one_seen();
    act(&mut turns, &send(Some("m1"), true), 3, at(6_000));
    assert!(is_open_at(&mut turns, at(300_000)), "its answer is not its end, nor is silence");
    act(&mut turns, &react("m1", "👀", true), 4, at(300_010));
    act(&mut turns, &react("m1", "✅", false), 5, at(300_020));
    assert!(is_open_at(&mut turns, at(300_269)));
    assert!(!is_open_at(&mut turns, at(300_270)), "a moment behind the last result");
}

#[test]
fn the_moment_counts_from_the_result_not_from_the_request() {
    let mut turns = one_seen();
    turns.acts(&react("m1", "✅", false), 3, at(1_000));
    assert!(is_open_at(&mut turns, at(9_000)), "nobody has answered it yet");
    turns.answered(3, true, at(9_000));
    assert!(!is_open_at(&mut turns, at(9_250)));
}

#[test]
fn a_turn_that_was_cancelled_has_no_second_mark() {
    let mut turns = one_seen();
    act(&mut turns, &react("m1", "👀\u{fe0f}", true), 3, at(1_000));
    assert!(!is_open_at(&mut turns, at(1_250)));
}

#[test]
fn a_slow_line_is_given_longer_between_the_marks() {
    let mut turns = turns(NEWER);
    let first = line(1, "ann", "hello");
    turns.pushed(&first, at(0));
    turns.acknowledged(Seq(1), at(300));
    act(&mut turns, &react("m1", "👀", false), 1, at(310));
    act(&mut turns, &react("m1", "👀", true), 2, at(5_000));
    assert!(is_open_at(&mut turns, at(5_599)));
    assert!(!is_open_at(&mut turns, at(5_600)));
}

#[test]
fn what_is_not_taken_up_was_no_turn() {
    let mut turns = one_seen();
    act(&mut turns, &react("m1", "✅", false), 3, at(1_000));
    assert!(!is_open_at(&mut turns, at(1_250)));
    // It reacts, so it would have by then.
    let command = line(2, "ann", "/help");
    turns.pushed(&command, at(2_000));
    turns.acknowledged(Seq(2), at(2_005));
    assert!(is_open_at(&mut turns, at(7_000)));
    assert!(!is_open_at(&mut turns, at(7_005)));
    // Or it answered at once.
    turns.pushed(&line(3, "ann", "/help"), at(8_000));
    act(&mut turns, &send(Some("m3"), true), 4, at(8_010));
    assert!(!is_open_at(&mut turns, at(8_260)));
}

#[test]
fn others_answers_and_unsolicited_words_end_no_turn_of_one_that_reacts() {
    let mut turns = one_seen();
    for reply_to in [None, Some("m1"), Some("m9")] {
        act(&mut turns, &send(reply_to, true), 3, at(1_000));
    }
    act(&mut turns, &react("m9", "✅", false), 4, at(1_000));
    assert!(is_open_at(&mut turns, at(60_000)));
}

#[test]
fn one_that_notifies_ends_its_turn_by_the_answer_that_does() {
    let mut turns = one_open(OLDER);
    act(&mut turns, &send(Some("m1"), true), 1, at(1_000));
    assert!(!is_open_at(&mut turns, at(1_250)));
    turns.pushed(&line(2, "ann", "more"), at(2_000));
    act(&mut turns, &send(Some("m2"), false), 2, at(3_000));
    act(&mut turns, &send(Some("m1"), true), 3, at(3_000));
    assert!(is_open_at(&mut turns, at(10_000)), "it said that it says so itself, and of which");
    act(&mut turns, &send(None, true), 4, at(10_000));
    assert!(!is_open_at(&mut turns, at(10_250)), "there is one turn that this can mean");
}

#[test]
fn one_that_never_notifies_ends_its_turn_by_any_words_once_that_is_known() {
    let mut turns = one_open(OLDER);
    act(&mut turns, &send(None, false), 1, at(1_000));
    assert!(is_open_at(&mut turns, at(60_000)), "it may be a word in between");
    assert!(!is_open_at(&mut turns, at(61_000)));
    turns.pushed(&line(2, "ann", "more"), at(70_000));
    act(&mut turns, &send(None, false), 2, at(71_000));
    assert!(!is_open_at(&mut turns, at(71_250)));
    // One that notifies after all is believed.
    turns.pushed(&line(3, "ann", "more"), at(80_000));
    act(&mut turns, &send(None, true), 3, at(81_000));
    assert!(!is_open_at(&mut turns, at(81_250)));
    turns.pushed(&line(4, "ann", "more"), at(90_000));
    act(&mut turns, &send(None, false), 4, at(91_000));
    assert!(is_open_at(&mut turns, at(91_250)));
}

#[test]
fn a_stream_is_not_over_with_its_first_words() {
    let mut turns = one_open(OLDER);
    let Action::Send { chat_id, content, reply_to, mut metadata } = send(Some("m1"), true) else {
        unreachable!("a send")
    };
    metadata.insert("expect_edits".into(), true.into());
    act(&mut turns, &Action::Send { chat_id, content, reply_to, metadata }, 1, at(1_000));
    assert!(is_open_at(&mut turns, at(9_000)));
}

#[test]
fn whoever_says_nothing_for_long_has_ended_unless_it_asks_or_is_not_read() {
    let mut turns = one_open(OLDER);
    assert!(is_open_at(&mut turns, at(60_004)));
    assert!(!is_open_at(&mut turns, at(60_005)));

    let mut turns = one_open(OLDER);
    turns.acts(&typing(), 1, at(1_000));
    assert!(is_open_at(&mut turns, at(10_999)));
    turns.not_reading(at(10_999));
    assert!(is_open_at(&mut turns, at(20_998)));
    assert!(!is_open_at(&mut turns, at(20_999)));

    let mut turns = one_open(OLDER);
    turns.acts(&typing(), 1, at(1_000));
    let asks = Action::Send {
        chat_id: "c".into(),
        content: "Run it? Say /approve or /deny.".into(),
        reply_to: None,
        metadata: json!({"notify": false}).as_object().unwrap().clone(),
    };
    turns.acts(&asks, 2, at(2_000));
    assert!(is_open_at(&mut turns, at(600_000)), "it waits for an answer");
    turns.acts(&typing(), 3, at(600_000));
    assert!(is_open_at(&mut turns, at(610_000)), "that one may have been on its way");
    turns.acts(&typing(), 4, at(610_000));
    assert!(!is_open_at(&mut turns, at(620_000)));
}

#[test]
fn no_turn_is_longer_than_the_limit_and_sleep_ends_all() {
    let mut turns = one_seen();
    assert!(is_open_at(&mut turns, at(3_599_999)));
    assert!(!is_open_at(&mut turns, at(3_600_000)));
    let mut turns = one_seen();
    turns.close_all(at(100));
    assert!(!turns.is_any_open());
    assert_eq!(turns.take_notes().last(), Some(&TurnNote::Closed(line(1, "ann", "").conversation)));
}

#[test]
fn second_thoughts_interrupt_a_young_turn_once_and_wait() {
    let mut turns = one_seen();
    let second = line(2, "ann", "and also");
    assert_eq!(turns.consider(&second, false, at(2_000)), Verdict::Interrupt);
    assert!(turns.is_held(&second.conversation));
    assert_eq!(turns.heard(&line(3, "ann", "and"), false, at(2_500)), Verdict::Hold, "one is enough");
    act(&mut turns, &react("m1", "👀", true), 3, at(2_600));
    assert_eq!(turns.next_to_read(at(2_700)), None);
    turns.tick(at(2_850));
    assert_eq!(turns.next_to_read(at(2_999)), None, "perhaps a third line comes");
    assert_eq!(turns.next_to_read(at(3_000)), Some(second.conversation.clone()));
    assert_eq!(turns.next_to_read(at(3_000)), None, "it is being read");
    let lines = [second.clone(), line(3, "ann", "and")];
    assert_eq!(turns.read(&second.conversation, &lines, false, false, at(3_010)), Plan::Push(0..2));
    turns.pushed(&lines[1], at(3_020));
    turns.put_back(&second.conversation);
    act(&mut turns, &react("m3", "👀", false), 4, at(3_030));
    turns.acts(&typing(), 5, at(3_040));
    assert_eq!(turns.heard(&line(4, "ann", "oh"), false, at(4_000)), Verdict::Hold, "not every ten seconds");
}

#[test]
fn others_late_lines_and_commands_do_not_interrupt() {
    for (line, now) in [
        (Line { conversation: line(1, "ann", "").conversation, ..line(2, "bob", "hi") }, 2_000),
        (line(2, "ann", "how is it going?"), 25_000),
    ] {
        let mut turns = one_seen();
        turns.acts(&typing(), 3, at(now - 100));
        assert_eq!(turns.consider(&line, false, at(now)), Verdict::Hold, "{line:?}");
    }
    // Nor does anything of one whose work is not seen.
    let mut turns = one_open(NEWER);
    assert_eq!(turns.consider(&line(2, "ann", "and"), false, at(2_000)), Verdict::Hold);
}

#[test]
fn what_passes_passes() {
    for text in ["/approve", "/deny@bot", "/always", "/cancel"] {
        assert_eq!(one_seen().consider(&line(2, "ann", text), false, at(2_000)), Verdict::Push, "{text}");
    }
    assert_eq!(one_seen().consider(&line(2, "ann", "/new"), false, at(30_000)), Verdict::Interrupt);
    assert_eq!(one_seen().consider(&line(2, "ann", "/status"), false, at(2_000)), Verdict::Hold);
    let mut turns = one_open(OLDER);
    assert_eq!(turns.consider(&line(2, "ann", "text"), false, at(100)), Verdict::Hold, "is it a newer one?");
    assert_eq!(turns.next_to_read(at(1_504)), None);
    assert_eq!(turns.next_to_read(at(1_505)), Some(line(2, "ann", "").conversation), "its next turn");
    let mut turns = one_open(OLDER);
    assert_eq!(turns.consider(&line(2, "ann", "text"), false, at(1_505)), Verdict::Push);
    assert_eq!(turns.consider(&line(3, "ann", "/help"), false, at(1_505)), Verdict::Hold);
    // What older ones file under `relay` goes as with newer ones.
    assert_eq!(one_open(OLDER).consider(&line(2, "ann", "text"), true, at(100)), Verdict::Hold);
}

#[test]
fn an_operator_may_want_it_otherwise() {
    let says = |mode, now| {
        let mut turns = one_seen();
        turns.acts(&typing(), 3, at(now));
        let line = Line { while_busy: mode, ..line(2, "ann", "and") };
        turns.consider(&line, false, at(now))
    };
    assert_eq!(says(WhileBusy::Collect, 2_000), Verdict::Hold);
    assert_eq!(says(WhileBusy::Followup, 2_000), Verdict::Hold);
    assert_eq!(says(WhileBusy::Interrupt, 90_000), Verdict::Interrupt);
    assert_eq!(says(WhileBusy::Pass, 2_000), Verdict::Push);
    let other = turns(Peer::default());
    assert!(other.never_waits("telegram", false, WhileBusy::Auto));
    assert!(!other.never_waits("telegram", false, WhileBusy::Collect));
}

#[test]
fn a_question_in_words_is_answered_into_the_turn() {
    let mut turns = one_seen();
    turns.acts(&send(None, false), 3, at(3_000));
    let answer = line(2, "ann", "blue");
    // It may go on typing; nobody knows yet that it asks.
    assert_eq!(turns.consider(&answer, false, at(4_000)), Verdict::Interrupt);
    let mut turns = one_seen();
    turns.acts(&send(None, false), 3, at(23_000));
    assert_eq!(turns.consider(&answer, false, at(24_000)), Verdict::Hold);
    assert_eq!(turns.next_to_read(at(25_499)), None);
    assert_eq!(turns.next_to_read(at(25_500)), Some(answer.conversation.clone()));
    let plan = turns.read(&answer.conversation, std::slice::from_ref(&answer), false, false, at(25_510));
    assert_eq!(plan, Plan::Push(0..1));
    turns.pushed(&answer, at(25_510));
    assert_eq!(
        turns.consider(&line(3, "ann", "or red"), false, at(26_000)),
        Verdict::Hold,
        "it has its answer"
    );
}

#[test]
fn while_it_asks_for_leave_nothing_passes_but_the_answer() {
    let mut turns = one_seen();
    let asks = Action::Prompt {
        chat_id: "c".into(),
        prompt_kind: "approval".into(),
        prompt_id: "p".into(),
        content: "Run it?".into(),
        options: Vec::new(),
        timeout_s: None,
        reply_to: None,
        metadata: Metadata::new(),
    };
    turns.acts(&asks, 3, at(3_000));
    turns.answered(3, true, at(3_000));
    assert_eq!(turns.consider(&line(2, "ann", "hm"), false, at(4_000)), Verdict::Hold);
    assert_eq!(turns.next_to_read(at(120_000)), None);
    assert!(is_open_at(&mut turns, at(600_000)));
    // One that the platform did not show is none.
    let mut turns = one_seen();
    turns.acts(&asks, 3, at(3_000));
    turns.answered(3, false, at(3_000));
    assert_eq!(turns.consider(&line(2, "ann", "hm"), false, at(40_000)), Verdict::Push);
}

#[test]
fn lines_of_one_author_go_together_within_bounds() {
    let turns_of = |lines: &[Line]| {
        let mut turns = one_seen();
        turns.consider(&lines[0], false, at(30_000));
        turns.close_all(at(30_000));
        turns.next_to_read(at(40_000)).unwrap();
        turns.read(&lines[0].conversation, lines, false, false, at(40_000))
    };
    let many: Vec<Line> = (2..60).map(|seq| line(seq, "ann", "a line")).collect();
    assert_eq!(turns_of(&many), Plan::Push(0..32));
    let long: Vec<Line> = (2..10).map(|seq| line(seq, "ann", &"x".repeat(5_000))).collect();
    assert_eq!(turns_of(&long), Plan::Push(0..3));
    assert_eq!(turns_of(&[line(2, "ann", "/help"), line(3, "ann", "b")]), Plan::Push(0..1));
    assert_eq!(turns_of(&[line(2, "ann", "a"), line(3, "ann", "/help")]), Plan::Push(0..1));
    let one_by_one = |seq| Line { while_busy: WhileBusy::Followup, ..line(seq, "ann", "a") };
    assert_eq!(turns_of(&[one_by_one(2), one_by_one(3)]), Plan::Push(0..1));
    let reply = Line { joins: false, ..line(3, "ann", "b") };
    assert_eq!(turns_of(&[line(2, "ann", "a"), reply, line(4, "ann", "c")]), Plan::Push(0..1));
}

#[test]
fn what_goes_together_is_the_last_line_with_the_text_of_all() {
    let bodies = [entry(1, "ann", "one").body, entry(2, "ann", "two").body];
    let joined: Event = serde_json::from_slice(&join(&bodies).unwrap()).unwrap();
    assert_eq!((joined.text.as_str(), joined.message_id.as_deref()), ("one\ntwo", Some("m2")));
    assert!(join(&["{".into()]).is_none());
    assert!(join(&[]).is_none());
}

#[test]
fn a_conversation_is_free_when_nothing_of_it_waits_and_nobody_passes_it_over() {
    let mut turns = one_seen();
    let second = line(2, "ann", "/help");
    turns.consider(&second, false, at(100));
    turns.close_all(at(200));
    turns.next_to_read(at(1_000)).unwrap();
    assert_eq!(turns.read(&second.conversation, &[], false, true, at(1_000)), Plan::Wait);
    assert_eq!(turns.next_to_read(at(1_100)), None, "not at once again");
    turns.next_to_read(at(1_500)).unwrap();
    turns.heard_of_some();
    assert_eq!(turns.read(&second.conversation, &[], false, false, at(1_500)), Plan::Wait, "something came");
    turns.next_to_read(at(2_000)).unwrap();
    assert_eq!(turns.read(&second.conversation, &[], false, false, at(2_000)), Plan::Free);
    assert!(!turns.holds_any());
}

#[test]
fn whoever_cannot_read_just_now_is_not_woken_for_it() {
    let mut turns = one_seen();
    turns.consider(&line(2, "ann", "/help"), false, at(100));
    turns.close_all(at(200));
    assert_eq!(turns.next_deadline(true), Some(at(600)));
    assert_eq!(turns.next_deadline(false), None);
    turns.next_to_read(at(600)).unwrap();
    assert_eq!((turns.reading(), turns.next_deadline(true)), (1, None));
}

#[test]
fn what_an_earlier_socket_left_open_is_waited_for_and_told_of() {
    let row = |turns: &mut Turns| {
        turns.take_notes().into_iter().find_map(|note| match note {
            TurnNote::Opened(row) => Some(row),
            _ => None,
        })
    };
    let left = row(&mut one_seen()).unwrap();
    let mut after = turns(NEWER);
    after.restore(vec![left.clone()], at(10_000));
    assert_eq!(after.consider(&line(2, "ann", "hm"), false, at(11_000)), Verdict::Hold);
    assert_eq!(
        after.consider(&line(1, "ann", "hello"), false, at(11_000)),
        Verdict::Push,
        "itself once more"
    );
    assert!(!is_open_at(&mut after, at(15_000)), "it shows no life");
    assert_eq!(after.take_notes(), [TurnNote::Held(Seq(2))], "its answer is still owed");
    let lost = after.tick(at(130_000)).lost;
    assert_eq!(lost.iter().map(|turn| turn.row.seq).collect::<Vec<_>>(), [Seq(1)]);
    assert_eq!(after.take_notes(), [TurnNote::Closed(left.conversation.clone())]);

    let mut answered = turns(NEWER);
    answered.restore(vec![left.clone()], at(10_000));
    answered.acts(&typing(), 1, at(12_000));
    assert!(is_open_at(&mut answered, at(20_000)), "the process works on");
    act(&mut answered, &send(Some("m1"), true), 2, at(21_000));
    assert!(answered.tick(at(200_000)).lost.is_empty());
}

#[test]
fn what_is_held_and_what_is_interrupted_is_noted() {
    let mut turns = one_seen();
    let opened = turns.take_notes();
    let Some(TurnNote::Opened(row)) = opened.first() else { panic!("{opened:?}") };
    turns.acts(&typing(), 2, at(900));
    assert_eq!(turns.consider(&line(2, "ann", "and"), false, at(1_000)), Verdict::Interrupt);
    assert_eq!(turns.heard(&line(3, "ann", "then"), false, at(1_100)), Verdict::Hold);
    let noted = [TurnNote::Held(Seq(2)), TurnNote::Interrupted(row.clone()), TurnNote::Held(Seq(3))];
    assert_eq!(turns.take_notes(), noted);
    turns.stopped("k:ann", at(1_200));
    assert_eq!(turns.take_notes(), [TurnNote::Interrupted(row.clone())], "by hand");
}

#[test]
fn a_line_that_was_pushed_once_is_not_joined() {
    let left = line(1, "ann", "hello");
    let mut turns = turns(NEWER);
    let mut before = one_seen();
    let rows = before.take_notes().into_iter().filter_map(|note| match note {
        TurnNote::Opened(row) => Some(row),
        _ => None,
    });
    turns.restore(rows.collect(), at(0));
    turns.consider(&line(2, "ann", "and"), false, at(1));
    turns.tick(at(5_000));
    turns.next_to_read(at(6_000)).unwrap();
    let plan =
        turns.read(&left.conversation, &[left.clone(), line(2, "ann", "and")], false, false, at(6_000));
    assert_eq!(plan, Plan::Push(0..1));
}

#[test]
fn whoever_waits_for_long_is_named_once_in_a_turn() {
    let mut turns = one_seen();
    turns.consider(&line(2, "ann", "/help"), false, at(1_000));
    assert!(turns.wait_long(at(20_999)).is_empty());
    assert_eq!(turns.next_deadline(true), Some(at(21_000)));
    let told = turns.wait_long(at(21_000));
    assert_eq!(told.iter().map(|it| it.message_id.as_str()).collect::<Vec<_>>(), ["m2"]);
    assert!(turns.wait_long(at(60_000)).is_empty());
}

#[test]
fn nobody_is_told_of_a_line_that_was_taken_out() {
    let mut turns = one_seen();
    turns.consider(&line(2, "ann", "/help"), false, at(1_000));
    turns.removed(Seq(2));
    assert!(turns.wait_long(at(21_000)).is_empty());
    turns.heard(&line(3, "ann", "/status"), false, at(22_000));
    assert!(turns.wait_long(at(41_999)).is_empty());
    let told = turns.wait_long(at(42_000));
    assert_eq!(told.iter().map(|it| it.message_id.as_str()).collect::<Vec<_>>(), ["m3"]);
}

#[test]
fn a_turn_that_is_taken_up_again_was_not_over() {
    let mut turns = one_seen();
    act(&mut turns, &react("m1", "👀", true), 3, at(60));
    act(&mut turns, &react("m1", "✅", false), 4, at(70));
    assert!(!is_open_at(&mut turns, at(320)));
    act(&mut turns, &react("m1", "👀", false), 5, at(700));
    assert!(is_open_at(&mut turns, at(60_000)));
    let opened = turns.take_notes().into_iter().filter(|note| matches!(note, TurnNote::Opened(_))).count();
    assert_eq!(opened, 2);
}

#[test]
fn one_that_reacts_acts_on_interrupts_whatever_its_hello_said() {
    let mut turns = one_open(OLDER);
    assert!(!turns.acts_on_interrupts("telegram", false));
    act(&mut turns, &react("m1", "👀", false), 1, at(10));
    turns.acts(&typing(), 2, at(20));
    assert!(turns.acts_on_interrupts("telegram", false));
    assert_eq!(turns.consider(&line(2, "ann", "and"), false, at(1_000)), Verdict::Interrupt);
}

#[test]
fn one_that_stalls_on_two_people_of_a_chat_is_found_out() {
    let mut turns = one_seen();
    turns.pushed(&line(2, "bob", "hi"), at(1_000));
    turns.acts(&typing(), 3, at(4_500));
    assert!(!turns.is_stalled_by_others(at(5_999)));
    assert!(turns.is_stalled_by_others(at(6_000)));
    turns.acknowledged(Seq(2), at(6_000));
    assert!(!turns.is_stalled_by_others(at(9_000)));
}

#[test]
fn a_stop_ends_what_was_asked() {
    let mut turns = one_open(OLDER);
    turns.acts(&typing(), 1, at(1_000));
    let Action::Send { chat_id, reply_to, metadata, .. } = send(None, false) else { unreachable!("a send") };
    let content = "Reply /approve".into();
    turns.acts(&Action::Send { chat_id, content, reply_to, metadata }, 2, at(2_000));
    let mut stop = line(2, "ann", "/stop");
    stop.sort = Sort::Stop;
    turns.pushed(&stop, at(30_000));
    assert_eq!(
        turns.consider(&line(3, "ann", "hm"), true, at(30_001)),
        Verdict::Hold,
        "it is to end, not to go on"
    );
    assert!(is_open_at(&mut turns, at(39_999)));
    assert!(!is_open_at(&mut turns, at(40_000)), "silence counts again");
}

#[test]
fn whoever_s_line_went_is_not_told_that_it_waits() {
    let mut turns = one_seen();
    let (second, third) = (line(2, "ann", "/help"), line(3, "ann", "/usage"));
    turns.consider(&second, false, at(1_000));
    turns.close_all(at(2_000));
    turns.next_to_read(at(2_500)).unwrap();
    let lines = [second.clone(), third.clone()];
    assert_eq!(turns.read(&second.conversation, &lines, false, false, at(2_500)), Plan::Push(0..1));
    turns.pushed(&second, at(2_500));
    turns.put_back(&second.conversation);
    assert!(turns.wait_long(at(22_499)).is_empty(), "it is what the agent works on");
    let told = turns.wait_long(at(22_500));
    assert_eq!(told.iter().map(|it| it.message_id.as_str()).collect::<Vec<_>>(), ["m3"]);
}

#[test]
fn what_was_looked_at_in_vain_is_left_alone_for_a_while_although_a_turn_listens() {
    let mut turns = one_seen();
    turns.acts(&send(None, false), 3, at(23_000));
    let answer = line(2, "ann", "blue");
    assert_eq!(turns.consider(&answer, false, at(24_000)), Verdict::Hold);
    turns.next_to_read(at(60_000)).unwrap();
    turns.look_again(&answer.conversation, at(60_000));
    turns.wait_long(at(60_000));
    assert_eq!(turns.next_to_read(at(60_499)), None);
    assert_eq!(turns.next_deadline(true), Some(at(60_500)));
    assert!(turns.next_to_read(at(60_500)).is_some());
}

#[test]
fn one_that_reacts_no_more_is_believed_while_it_types() {
    let mut turns = one_seen();
    act(&mut turns, &react("m1", "✅", false), 3, at(1_000));
    assert!(!is_open_at(&mut turns, at(1_250)));
    turns.pushed(&line(2, "ann", "more"), at(2_000));
    turns.acknowledged(Seq(2), at(2_005));
    for (ticket, now) in [(4, 4_000), (5, 6_000), (6, 8_000)] {
        turns.acts(&typing(), ticket, at(now));
    }
    assert!(is_open_at(&mut turns, at(17_999)));
    assert!(!is_open_at(&mut turns, at(18_000)));
}

#[test]
fn lines_of_two_topics_do_not_go_together() {
    let mut turns = one_seen();
    let lines = [line(2, "ann", "a"), Line { thread_id: Some("7".into()), ..line(3, "ann", "b") }];
    turns.consider(&lines[0], false, at(30_000));
    turns.close_all(at(30_000));
    turns.next_to_read(at(40_000)).unwrap();
    assert_eq!(turns.read(&lines[0].conversation, &lines, false, false, at(40_000)), Plan::Push(0..1));
}

#[test]
fn a_gateway_that_comes_back_older_is_found_out() {
    let mut turns = one_seen();
    turns.met(OLDER);
    assert_eq!(turns.signs_on("telegram"), Signs::default());
    turns.met(NEWER);
    assert!(turns.never_waits("telegram", false, WhileBusy::Pass));
}
