//! What waits: when it is read, what goes together, who is told.

use super::*;
use angelia_contract::event::ContextItem;
use bytes::Bytes;

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
    let before = |text: &str| {
        let mut event: Event = serde_json::from_slice(&entry(1, "ann", text).body).unwrap();
        event.context = vec![ContextItem { text: format!("before {text}"), ..ContextItem::default() }];
        Bytes::from(serde_json::to_vec(&event).unwrap())
    };
    let joined: Event = serde_json::from_slice(&join(&[before("one"), before("two")]).unwrap()).unwrap();
    let lines: Vec<&str> = joined.context.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(lines, ["before one", "before two"], "what was said before each");
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
fn what_is_held_and_what_is_interrupted_is_noted() {
    let mut turns = one_seen();
    let opened = turns.take_notes();
    let Some(TurnNote::Opened(row)) = opened.first() else { panic!("{opened:?}") };
    turns.acts(&typing(), None, 2, at(900));
    assert_eq!(turns.consider(&line(2, "ann", "and"), false, at(1_000)), Verdict::Interrupt);
    assert_eq!(turns.heard(&line(3, "ann", "then"), false, at(1_100)), Verdict::Hold);
    let noted = [TurnNote::Held(Seq(2)), TurnNote::Interrupted(row.clone()), TurnNote::Held(Seq(3))];
    assert_eq!(turns.take_notes(), noted);
    turns.stopped("k:ann", at(1_200));
    assert_eq!(turns.take_notes(), [TurnNote::Interrupted(row.clone())], "by hand");
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
    turns.acts(&send(None, false), None, 3, at(23_000));
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
fn lines_of_two_topics_do_not_go_together() {
    let mut turns = one_seen();
    let lines = [line(2, "ann", "a"), Line { thread_id: Some("7".into()), ..line(3, "ann", "b") }];
    turns.consider(&lines[0], false, at(30_000));
    turns.close_all(at(30_000));
    turns.next_to_read(at(40_000)).unwrap();
    assert_eq!(turns.read(&lines[0].conversation, &lines, false, false, at(40_000)), Plan::Push(0..1));
}

#[test]
fn words_that_wait_are_given_to_a_turn_that_begins_to_listen() {
    let mut turns = one_seen();
    let answer = line(2, "ann", "blue");
    assert_eq!(turns.consider(&answer, false, at(30_000)), Verdict::Hold);
    turns.acts(&send(None, false), None, 3, at(31_000));
    assert!(turns.next_to_read(at(35_000)).is_some());
    turns.acts(&typing(), None, 4, at(35_010));
    let read = turns.read(&answer.conversation, std::slice::from_ref(&answer), false, false, at(35_020));
    assert_eq!(read, Plan::Wait, "it works again");
    turns.acts(&send(None, false), None, 5, at(40_000));
    assert!(turns.next_to_read(at(44_000)).is_some(), "it is asked again, and they still wait");
}

#[test]
fn what_may_not_pass_is_not_read_again_and_again() {
    let mut turns = one_open(OLDER);
    let mut second = line(2, "ann", "and");
    second.while_busy = WhileBusy::Collect;
    assert_eq!(turns.consider(&second, false, at(3_000)), Verdict::Hold);
    assert_eq!(turns.next_to_read(at(5_000)), None);
    assert!(turns.next_deadline(true).is_some_and(|at| at > Mono(Duration::from_secs(5))));
}

#[test]
fn nothing_overtakes_lines_that_are_about_to_go_together() {
    let mut turns = one_seen();
    let lines = [line(2, "ann", "a"), line(3, "ann", "b")];
    turns.consider(&lines[0], false, at(30_000));
    turns.close_all(at(30_000));
    turns.next_to_read(at(40_000)).unwrap();
    assert_eq!(turns.read(&lines[0].conversation, &lines, false, false, at(40_000)), Plan::Push(0..2));
    assert_eq!(turns.consider(&line(1, "ann", "again"), false, at(40_001)), Verdict::Hold);
    assert!(turns.may_go(&lines[1], false, at(40_002)));
}
