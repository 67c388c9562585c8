//! How a turn ends.

use super::*;

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
    turns.acts(&react("m1", "✅", false), None, 3, at(1_000));
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
    turns.acts(&typing(), None, 1, at(1_000));
    assert!(is_open_at(&mut turns, at(10_999)));
    turns.not_reading(at(10_999));
    assert!(is_open_at(&mut turns, at(20_998)));
    assert!(!is_open_at(&mut turns, at(20_999)));

    let mut turns = one_open(OLDER);
    turns.acts(&typing(), None, 1, at(1_000));
    let asks = Action::Send {
        chat_id: "c".into(),
        content: "Run it? Say /approve or /deny.".into(),
        reply_to: None,
        metadata: json!({"notify": false}).as_object().unwrap().clone(),
    };
    turns.acts(&asks, None, 2, at(2_000));
    assert!(is_open_at(&mut turns, at(600_000)), "it waits for an answer");
    turns.acts(&typing(), None, 3, at(600_000));
    assert!(is_open_at(&mut turns, at(610_000)), "that one may have been on its way");
    turns.acts(&typing(), None, 4, at(610_000));
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
fn one_that_stalls_on_two_people_of_a_chat_is_found_out() {
    let mut turns = one_seen();
    turns.pushed(&line(2, "bob", "hi"), at(1_000));
    turns.acts(&typing(), None, 3, at(4_500));
    assert!(!turns.is_stalled_by_others(Some(Seq(2)), at(5_999)));
    assert!(!turns.is_stalled_by_others(Some(Seq(9)), at(6_000)), "it is stuck on something else");
    assert!(turns.is_stalled_by_others(Some(Seq(2)), at(6_000)));
    turns.acknowledged(Seq(2), at(6_000));
    assert!(!turns.is_stalled_by_others(Some(Seq(2)), at(9_000)));
}

#[test]
fn one_that_reacts_no_more_is_believed_while_it_types() {
    let mut turns = one_seen();
    act(&mut turns, &react("m1", "✅", false), 3, at(1_000));
    assert!(!is_open_at(&mut turns, at(1_250)));
    turns.pushed(&line(2, "ann", "more"), at(2_000));
    turns.acknowledged(Seq(2), at(2_005));
    for (ticket, now) in [(4, 4_000), (5, 6_000), (6, 8_000)] {
        turns.acts(&typing(), None, ticket, at(now));
    }
    assert!(is_open_at(&mut turns, at(17_999)));
    assert!(!is_open_at(&mut turns, at(18_000)));
}

#[test]
fn a_gateway_that_comes_back_older_is_found_out() {
    let mut turns = one_seen();
    turns.met(OLDER);
    assert_eq!(turns.signs_on("telegram"), Signs::default());
    turns.met(NEWER);
    assert!(turns.never_waits("telegram", false, WhileBusy::Pass));
}

#[test]
fn what_an_older_gateway_kept_for_afterwards_is_its_next_turn() {
    let mut turns = one_open(OLDER);
    turns.acts(&typing(), None, 1, at(1_000));
    let more = line(2, "ann", "and this");
    assert_eq!(turns.consider(&more, false, at(3_000)), Verdict::Push);
    turns.pushed(&more, at(3_000));
    act(&mut turns, &send(Some("m1"), true), 2, at(6_000));
    assert!(is_open_at(&mut turns, at(6_250)), "it works on the second now");
    assert_eq!(turns.consider(&line(3, "ann", "/help"), false, at(6_500)), Verdict::Hold);
    let opened: Vec<_> = turns.take_notes().iter().filter_map(TurnNote::opens).collect();
    assert_eq!(opened, [Seq(1), Seq(2)]);
    act(&mut turns, &send(Some("m2"), true), 3, at(12_000));
    assert!(!is_open_at(&mut turns, at(12_250)));
}

#[test]
fn an_older_gateway_that_begins_anew_with_the_second_line_answers_once() {
    let mut turns = one_open(OLDER);
    turns.acts(&typing(), None, 1, at(1_000));
    turns.pushed(&line(2, "ann", "no, this"), at(3_000));
    act(&mut turns, &send(Some("m2"), true), 2, at(9_000));
    assert!(!is_open_at(&mut turns, at(9_250)));
}
