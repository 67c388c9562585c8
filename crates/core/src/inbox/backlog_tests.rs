//! What a socket knows of its log, by hints that may get lost and pages that may be old.

use super::*;
use crate::inbox::EntryKind;
use crate::store::Page;

fn entry(seq: i64) -> Entry {
    Entry {
        seq: Seq(seq),
        kind: EntryKind::Message,
        platform: "webchat".into(),
        bot: "webchat".into(),
        chat_id: "web-a".into(),
        session_key: "k".into(),
        body: bytes::Bytes::new(),
        revision: 0,
        while_busy: None,
    }
}

fn mark(tail: i64) -> Mark {
    Mark { tail: Seq(tail), redrives: 0 }
}

/// A backlog of an instance that was claimed when its log went so far, with so much waiting.
fn claimed(tail: i64, waiting: u64) -> Backlog {
    let mut backlog = Backlog::default();
    backlog.claimed(mark(tail), waiting);
    backlog
}

fn hint(backlog: &mut Backlog, seqs: impl IntoIterator<Item = i64>) {
    for seq in seqs {
        backlog.appended(mark(seq), Some(entry(seq)), false);
    }
}

/// A page of a log that goes to `tail`; `more` says whether there is more behind it.
fn page(seqs: impl IntoIterator<Item = i64>, more: bool, tail: i64) -> Option<Stretch> {
    Some(Stretch { page: Page { items: seqs.into_iter().map(entry).collect(), more }, mark: mark(tail) })
}

fn drain(backlog: &mut Backlog) -> Vec<i64> {
    std::iter::from_fn(|| backlog.take_at(0)).map(|entry| entry.seq.0).collect()
}

#[test]
fn hints_that_follow_one_another_need_no_read() {
    let mut backlog = claimed(7, 0);
    assert!(!backlog.is_low(), "nothing waits in the log");
    hint(&mut backlog, 8..=11);
    assert_eq!(backlog.wants_page(), None);
    assert_eq!(drain(&mut backlog), [8, 9, 10, 11]);
}

#[test]
fn a_hint_never_overtakes_what_the_log_still_has() {
    let mut backlog = claimed(69, 69);
    assert_eq!(backlog.wants_page(), Some(Seq(0)));
    hint(&mut backlog, [70, 71]);
    backlog.loaded(page(1..=64, true, 71));
    assert_eq!(drain(&mut backlog), (1..=64).collect::<Vec<_>>());
    assert_eq!(backlog.wants_page(), Some(Seq(64)));
    backlog.loaded(page(65..=71, false, 71));
    assert_eq!(backlog.wants_page(), None, "it has caught up");
    hint(&mut backlog, [71, 72]);
    assert_eq!(drain(&mut backlog), [65, 66, 67, 68, 69, 70, 71, 72]);
}

#[test]
fn a_hint_that_never_came_is_found_by_the_next() {
    let mut backlog = claimed(9, 0);
    hint(&mut backlog, [11]);
    assert!(drain(&mut backlog).is_empty(), "10 comes before");
    assert_eq!(backlog.wants_page(), Some(Seq(9)));
    assert!(backlog.wants_ahead(), "and may have been one that goes ahead");
    backlog.loaded(page([10, 11], false, 11));
    hint(&mut backlog, [12]);
    assert_eq!(drain(&mut backlog), [10, 11, 12]);
}

#[test]
fn a_hint_that_never_came_is_found_by_asking() {
    let mut backlog = claimed(9, 0);
    backlog.told(mark(9));
    assert!(!backlog.is_low());
    backlog.told(mark(10));
    assert_eq!(backlog.wants_page(), Some(Seq(9)));
    backlog.loaded(page([10], false, 10));
    assert_eq!(drain(&mut backlog), [10]);
    let redriven = Mark { redrives: 1, ..mark(10) };
    assert!(backlog.wants_ahead());
    backlog.loaded_ahead(page([], false, 10), |_| false);
    backlog.told(redriven);
    assert!(backlog.wants_ahead(), "a dead letter is in line again");
}

#[test]
fn hints_in_any_order_and_twice_give_each_once_in_order() {
    let mut backlog = claimed(0, 0);
    hint(&mut backlog, [2, 1, 1, 2]);
    assert_eq!(backlog.wants_page(), Some(Seq(0)));
    hint(&mut backlog, [3]);
    backlog.loaded(page([1, 2], false, 2));
    assert_eq!(backlog.wants_page(), Some(Seq(2)), "3 came while the page was read");
    backlog.loaded(page([3], false, 3));
    hint(&mut backlog, [3, 2, 4]);
    assert_eq!(drain(&mut backlog), [1, 2, 3, 4]);
}

#[test]
fn what_is_gone_from_the_log_leaves_no_hole() {
    let mut backlog = claimed(5, 2);
    assert_eq!(backlog.wants_page(), Some(Seq(0)));
    backlog.loaded(page([2, 3], false, 5));
    assert_eq!(backlog.wants_page(), None, "4 and 5 are gone, and nobody asks for them again");
    hint(&mut backlog, [6]);
    assert_eq!(drain(&mut backlog), [2, 3, 6]);
}

#[test]
fn what_goes_ahead_has_a_number_like_any_other() {
    let mut backlog = claimed(3, 0);
    backlog.appended(mark(4), Some(entry(4)), true);
    hint(&mut backlog, [5]);
    assert_eq!(backlog.wants_page(), None);
    assert_eq!(backlog.pop_ahead().unwrap().seq, Seq(4));
    assert_eq!(drain(&mut backlog), [5]);
    backlog.appended(mark(6), None, true);
    assert!(backlog.wants_ahead(), "it did not come along");
}

#[test]
fn a_redriven_letter_goes_ahead_under_its_old_number() {
    let mut backlog = claimed(9, 0);
    backlog.redriven(Mark { redrives: 1, ..mark(9) }, Some(entry(2)));
    assert!(!backlog.wants_ahead(), "there is nothing to ask for");
    assert_eq!(backlog.pop_ahead().unwrap().seq, Seq(2));
    backlog.redriven(Mark { redrives: 3, ..mark(9) }, Some(entry(4)));
    assert!(backlog.wants_ahead(), "one hint never came");
    hint(&mut backlog, []);
    backlog.appended(Mark { redrives: 3, ..mark(10) }, Some(entry(10)), false);
    assert_eq!(drain(&mut backlog), [10]);
}

#[test]
fn what_is_at_hand_that_goes_ahead_does_not_keep_the_log_from_being_asked() {
    let mut backlog = claimed(4, 2);
    backlog.appended(mark(5), Some(entry(5)), true);
    assert!(backlog.wants_ahead(), "earlier ones may wait in the log");
    assert!(!backlog.knows_ahead());
    backlog.loaded_ahead(page([3, 4, 5], false, 5), |entry| entry.seq == Seq(3));
    assert!(backlog.knows_ahead());
    let ahead: Vec<i64> = std::iter::from_fn(|| backlog.pop_ahead()).map(|e| e.seq.0).collect();
    assert_eq!(ahead, [4, 5], "each once, in order");
}

#[test]
fn a_page_that_is_all_under_way_is_not_read_again_at_once() {
    let mut backlog = claimed(2, 2);
    assert!(backlog.wants_ahead());
    // Full by its bytes: a few large ones are enough.
    backlog.loaded_ahead(page([1, 2], true, 2), |_| true);
    assert!(!backlog.wants_ahead() && backlog.knows_ahead(), "others are not held up");
    backlog.look_ahead_again();
    assert!(backlog.wants_ahead());
}

#[test]
fn large_ones_that_go_ahead_are_not_read_over_and_over() {
    let mut backlog = claimed(4, 4);
    assert!(backlog.wants_ahead());
    backlog.loaded_ahead(page([1, 2], true, 4), |_| false);
    assert!(backlog.wants_ahead(), "there is more");
    backlog.loaded_ahead(page([1, 2], true, 4), |_| false);
    assert!(!backlog.wants_ahead() && backlog.knows_ahead(), "what is at hand has to go first");
    backlog.pop_ahead();
    backlog.look_ahead_again();
    assert!(backlog.wants_ahead());
    backlog.look_ahead_again();
    backlog.loaded_ahead(page([1, 2], true, 4), |entry| entry.seq == Seq(1));
    assert!(backlog.wants_ahead(), "something settled while it was read");
}

#[test]
fn a_held_chat_is_skipped_and_keeps_its_order() {
    let mut backlog = claimed(0, 0);
    hint(&mut backlog, [1]);
    backlog.appended(mark(2), Some(Entry { chat_id: "web-b".into(), ..entry(2) }), false);
    hint(&mut backlog, [3]);
    let (place, next) = backlog.first(|entry| &*entry.chat_id == "web-a").unwrap();
    assert_eq!(next.seq, Seq(2));
    backlog.take_at(place);
    assert!(backlog.first(|entry| &*entry.chat_id == "web-a").is_none());
    assert_eq!(drain(&mut backlog), [1, 3]);
}

#[test]
fn a_page_that_is_full_by_its_bytes_is_not_the_last_and_large_entries_do_not_pile_up() {
    let large = |seq| Entry { body: vec![0; 400 * 1024].into(), ..entry(seq) };
    let stretch =
        |seqs: Vec<Entry>, more, tail| Some(Stretch { page: Page { items: seqs, more }, mark: mark(tail) });
    let mut backlog = claimed(8, 8);
    assert_eq!(backlog.wants_page(), Some(Seq(0)));
    backlog.loaded(stretch(vec![large(1), large(2)], true, 8));
    assert_eq!(backlog.wants_page(), None, "there is enough in memory, though it is only two");
    backlog.appended(mark(9), Some(large(9)), false);
    assert_eq!(drain(&mut backlog), [1, 2]);
    assert_eq!(backlog.wants_page(), Some(Seq(2)), "short pages are not taken for the end");
    backlog.loaded(stretch((3..=9).map(large).collect(), false, 9));
    drain(&mut backlog);
    for seq in 10..20 {
        backlog.appended(mark(seq), Some(large(seq)), false);
    }
    assert_eq!(drain(&mut backlog), [10, 11], "as many as fit");
    assert_eq!(backlog.wants_page(), Some(Seq(11)), "the others are read in their turn");
}

fn changed(seq: i64, revision: u32) -> Entry {
    Entry { revision, body: format!("r{revision}").into(), ..entry(seq) }
}

fn edit(backlog: &mut Backlog, entries: impl IntoIterator<Item = Entry>) {
    let mut revised = Revisions::default();
    entries.into_iter().for_each(|entry| revised.put(entry));
    backlog.revise(&mut revised);
}

fn bodies(backlog: &mut Backlog) -> Vec<String> {
    std::iter::from_fn(|| backlog.take_at(0))
        .map(|entry| String::from_utf8(entry.body.to_vec()).unwrap())
        .collect()
}

#[test]
fn an_edit_reaches_the_copy_in_memory_and_only_a_newer_one() {
    let mut backlog = claimed(0, 0);
    hint(&mut backlog, [1, 2, 3]);
    backlog.appended(mark(4), Some(entry(4)), true);
    edit(&mut backlog, [changed(2, 1), changed(9, 1)]);
    edit(&mut backlog, [changed(2, 3), changed(2, 2), changed(4, 1)]);
    assert_eq!(bodies(&mut backlog), ["", "r3", ""]);
    assert_eq!(&backlog.pop_ahead().unwrap().body[..], b"r1");
}

#[test]
fn a_page_that_was_read_before_an_edit_does_not_undo_it() {
    let mut backlog = claimed(5, 3);
    assert!(backlog.wants_page().is_some() && backlog.wants_ahead());
    edit(&mut backlog, [changed(1, 1), changed(2, 1), changed(5, 1)]);
    backlog.loaded_ahead(page([5], false, 5), |_| false);
    // One page is older than the edit, of the other entry the log knows a later one.
    let items = vec![entry(1), changed(2, 2)];
    backlog.loaded(Some(Stretch { page: Page::last(items), mark: mark(5) }));
    assert_eq!(bodies(&mut backlog), ["r1", "r2"]);
    assert_eq!(&backlog.pop_ahead().unwrap().body[..], b"r1");
    assert!(backlog.revised.is_empty(), "nothing is kept once nothing is being read");
}

#[test]
fn a_failed_read_does_not_lose_an_edit_of_the_other() {
    let mut backlog = claimed(1, 1);
    assert!(backlog.wants_page().is_some() && backlog.wants_ahead());
    edit(&mut backlog, [changed(1, 1)]);
    backlog.loaded_ahead(None, |_| false);
    backlog.loaded(page([1], false, 1));
    assert_eq!(bodies(&mut backlog), ["r1"]);
}

#[test]
fn a_failed_read_is_tried_again() {
    let mut backlog = claimed(5, 1);
    assert!(backlog.wants_page().is_some());
    backlog.loaded(None);
    assert!(backlog.wants_page().is_some());
    backlog.loaded(page([], false, 5));
    assert!(backlog.wants_page().is_none());
}

#[path = "backlog_property_tests.rs"]
mod property_tests;
