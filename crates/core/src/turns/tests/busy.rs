//! What passes, waits, or ends a turn.

use super::*;

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
    turns.acts(&typing(), None, 5, at(3_040));
    assert_eq!(turns.heard(&line(4, "ann", "oh"), false, at(4_000)), Verdict::Hold, "not every ten seconds");
}

#[test]
fn others_late_lines_and_commands_do_not_interrupt() {
    for (line, now) in [
        (Line { conversation: line(1, "ann", "").conversation, ..line(2, "bob", "hi") }, 2_000),
        (line(2, "ann", "how is it going?"), 25_000),
    ] {
        let mut turns = one_seen();
        turns.acts(&typing(), None, 3, at(now - 100));
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
        turns.acts(&typing(), None, 3, at(now));
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
    turns.acts(&send(None, false), None, 3, at(3_000));
    let answer = line(2, "ann", "blue");
    assert_eq!(turns.consider(&answer, false, at(3_700)), Verdict::Hold, "no interrupt: it may have asked");
    assert_eq!(turns.next_to_read(at(6_999)), None);
    assert_eq!(turns.next_to_read(at(7_000)), Some(answer.conversation.clone()));
    let plan = turns.read(&answer.conversation, std::slice::from_ref(&answer), false, false, at(7_010));
    assert_eq!(plan, Plan::Push(0..1));
    turns.pushed(&answer, at(7_010));
    assert_eq!(
        turns.consider(&line(3, "ann", "or red"), false, at(8_000)),
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
    turns.acts(&asks, None, 3, at(3_000));
    turns.answered(3, true, at(3_000));
    assert_eq!(turns.consider(&line(2, "ann", "hm"), false, at(4_000)), Verdict::Hold);
    assert_eq!(turns.next_to_read(at(120_000)), None);
    assert!(is_open_at(&mut turns, at(600_000)));
    // One that the platform did not show is none.
    let mut turns = one_seen();
    turns.acts(&asks, None, 3, at(3_000));
    turns.answered(3, false, at(3_000));
    assert_eq!(turns.consider(&line(2, "ann", "hm"), false, at(40_000)), Verdict::Push);
}

#[test]
fn a_stop_ends_what_was_asked() {
    let mut turns = one_open(OLDER);
    turns.acts(&typing(), None, 1, at(1_000));
    let Action::Send { chat_id, reply_to, metadata, .. } = send(None, false) else { unreachable!("a send") };
    let content = "Reply /approve".into();
    turns.acts(&Action::Send { chat_id, content, reply_to, metadata }, None, 2, at(2_000));
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
fn one_that_reacts_acts_on_interrupts_whatever_its_hello_said() {
    let mut turns = one_open(OLDER);
    assert!(!turns.acts_on_interrupts("telegram", false));
    act(&mut turns, &react("m1", "👀", false), 1, at(10));
    turns.acts(&typing(), None, 2, at(20));
    assert!(turns.acts_on_interrupts("telegram", false));
    assert_eq!(turns.consider(&line(2, "ann", "and"), false, at(1_000)), Verdict::Interrupt);
}

#[test]
fn a_reset_that_ends_nothing_goes_in() {
    let mut turns = one_seen();
    let reset = line(2, "ann", "/new");
    assert_eq!(turns.consider(&reset, false, at(1_000)), Verdict::Interrupt);
    assert_eq!(turns.next_to_read(at(5_999)), None);
    assert!(turns.next_to_read(at(6_000)).is_some(), "the turn had its time to end");
    let plan = turns.read(&reset.conversation, std::slice::from_ref(&reset), false, false, at(6_000));
    assert_eq!(plan, Plan::Push(0..1));
}

#[test]
fn whoever_asks_in_words_is_known_and_an_interrupt_in_vain_too() {
    let mut turns = one_seen();
    turns.acts(&send(None, false), None, 3, at(3_000));
    let reset = line(2, "ann", "/new");
    assert_eq!(turns.consider(&reset, false, at(7_000)), Verdict::Interrupt);
    assert!(turns.is_unanswered(&reset.conversation), "it may wait on for its answer");
    turns.acts(&typing(), None, 4, at(7_500));
    assert!(!turns.is_unanswered(&reset.conversation), "it did not");
    let mut stopped = one_seen();
    stopped.stopped("k:ann", at(1_000));
    assert!(!stopped.is_unanswered(&reset.conversation), "it works");
    assert!(!stopped.is_unmoved(&reset.conversation, at(5_999)));
    assert!(stopped.is_unmoved(&reset.conversation, at(6_000)), "a second stop is said in words");
}

#[test]
fn what_was_told_to_end_in_words_may_be_gone_without_a_mark() {
    let mut turns = one_seen();
    turns.stopped("k:ann", at(1_000));
    let mut stop = line(2, "ann", "/stop");
    stop.sort = Sort::Stop;
    turns.pushed(&stop, at(9_000));
    assert!(is_open_at(&mut turns, at(18_999)));
    assert!(!is_open_at(&mut turns, at(19_000)));
}

#[test]
fn whose_turns_are_open_in_a_chat_is_known_thread_by_thread() {
    let mut turns = one_open(NEWER);
    let bob = Line { thread_id: Some("7".into()), ..line(2, "bob", "hi") };
    turns.pushed(&bob, at(10));
    assert_eq!(turns.people_in("c", None), ["ann"]);
    assert_eq!(turns.people_in("c", Some("7")), ["bob"]);
    assert!(turns.people_in("c", Some("8")).is_empty() && turns.people_in("d", None).is_empty());
}
