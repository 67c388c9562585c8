//! What an earlier socket left.

use super::*;

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
    after.restore(vec![left.clone()], Seq(1), at(10_000));
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
    answered.restore(vec![left.clone()], Seq(1), at(10_000));
    answered.acts(&typing(), None, 1, at(12_000));
    assert!(is_open_at(&mut answered, at(20_000)), "the process works on");
    act(&mut answered, &send(Some("m1"), true), 2, at(21_000));
    assert!(answered.tick(at(200_000)).lost.is_empty());
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
    turns.restore(rows.collect(), Seq(1), at(0));
    turns.consider(&line(2, "ann", "and"), false, at(1));
    turns.tick(at(5_000));
    turns.next_to_read(at(6_000)).unwrap();
    let plan =
        turns.read(&left.conversation, &[left.clone(), line(2, "ann", "and")], false, false, at(6_000));
    assert_eq!(plan, Plan::Push(0..1));
}

#[test]
fn what_waited_before_may_have_been_pushed_although_no_row_says_so() {
    let mut turns = turns(NEWER);
    turns.restore(Vec::new(), Seq(2), at(0));
    let lines = [line(1, "ann", "one"), line(2, "ann", "two"), line(3, "ann", "three")];
    assert_eq!(turns.together(&lines), 0, "the first of them goes alone, as it was");
    turns.pushed(&lines[0], at(1));
    assert_eq!(turns.together(&lines[1..]), 2, "there was one turn at a time");
}

#[test]
fn a_turn_that_said_its_last_is_owed_nothing_when_its_socket_ends() {
    let mut turns = one_seen();
    turns.acts(&react("m1", "👀", true), None, 3, at(1_000));
    turns.take_notes();
    turns.socket_ends();
    assert!(matches!(turns.take_notes()[..], [TurnNote::Closed(_)]));
    let mut runs = one_seen();
    runs.take_notes();
    runs.socket_ends();
    assert!(runs.take_notes().is_empty(), "what runs may still be lost");
}

#[test]
fn one_that_asked_before_its_socket_ended_is_waited_for_longer() {
    let mut before = one_seen();
    let asks = Action::Send {
        chat_id: "c".into(),
        content: "Reply /approve or /deny".into(),
        reply_to: None,
        metadata: Metadata::new(),
    };
    before.take_notes();
    before.acts(&asks, None, 3, at(3_000));
    let notes = before.take_notes();
    let [TurnNote::Opened(row)] = &notes[..] else { panic!("{notes:?}") };
    assert!(row.asks);
    let mut after = turns(NEWER);
    after.restore(vec![row.clone()], Seq(1), at(10_000));
    assert_eq!(after.consider(&line(2, "ann", "hm"), false, at(20_000)), Verdict::Hold);
    assert_eq!(after.consider(&line(3, "ann", "/approve"), false, at(20_000)), Verdict::Push);
    assert!(is_open_at(&mut after, at(69_999)));
    assert!(!is_open_at(&mut after, at(70_000)), "it may be another process");
}

#[test]
fn a_turn_that_a_gateway_begins_by_itself_is_waited_for() {
    let mut turns = turns(NEWER);
    act(&mut turns, &react("m0", "👀", false), 1, at(0));
    turns.acts(&typing(), None, 2, at(2_000));
    let first = line(1, "ann", "hello");
    assert_eq!(turns.consider(&first, false, at(3_000)), Verdict::Hold);
    act(&mut turns, &react("m0", "👀", true), 3, at(9_000));
    act(&mut turns, &react("m0", "✅", false), 4, at(9_100));
    assert!(turns.next_to_read(at(9_300)).is_none());
    assert!(!is_open_at(&mut turns, at(9_350)));
    assert_eq!(turns.next_to_read(at(9_350)), Some(first.conversation.clone()));
    let plan = turns.read(&first.conversation, std::slice::from_ref(&first), false, false, at(9_350));
    assert_eq!(plan, Plan::Push(0..1));
    assert!(turns.take_notes().iter().all(|note| note.opens().is_none()), "it is no row");
}

#[test]
fn marks_of_a_gateway_that_never_waits_begin_nothing() {
    let mut turns = turns(Peer::default());
    act(&mut turns, &react("m0", "👀", false), 1, at(0));
    assert!(!turns.is_any_open());
}

#[test]
fn what_a_gateway_makes_up_takes_no_memory() {
    let mut turns = turns(NEWER);
    for number in 0..1_000 {
        let chat_id = format!("c{number}");
        let mark = Action::React {
            chat_id,
            message_id: "m".into(),
            emoji: "👀".into(),
            remove: false,
            metadata: Metadata::new(),
        };
        turns.acts(&mark, Some(&format!("platform {number}")), number, at(number));
    }
    assert_eq!((turns.unasked.len(), turns.signs().len()), (64, 0));
    act(&mut turns, &react(&"m".repeat(10_000), "👀", false), 2_000, at(2_000));
    assert!(turns.unasked.values().all(|turn| turn.row.message_id.len() < 10));
}
