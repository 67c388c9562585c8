use super::*;
use proptest::prelude::*;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// A day in 2026.
const BASE: i64 = 1_794_700_000_000;

fn at(offset: i64) -> UnixMillis {
    UnixMillis(BASE + offset)
}

fn span(ms: i64) -> Duration {
    Duration::from_millis(ms.unsigned_abs())
}

/// A clock that was looked at for long enough after the start.
fn settled() -> ClockState {
    let mut state = ClockState::first(at(-HOUR), None);
    state.look(at(0), span(HOUR));
    state
}

fn leapt(verdict: ClockVerdict) -> Option<i64> {
    if let ClockVerdict::Leapt(leap) = verdict { Some(leap.ahead_ms) } else { None }
}

#[test]
fn at_a_start_only_what_cannot_be_explained_is_a_leap() {
    for (shown, expected) in [
        (0, None),
        (HOUR, None),
        (2 * DAY, None),
        (2 * DAY + 1, Some(2 * DAY + 1)),
        (7 * DAY, Some(7 * DAY)),
        (402 * DAY, Some(402 * DAY)),
        (-5 * MINUTE, None),
        (-5 * MINUTE - 1, Some(-5 * MINUTE - 1)),
        (-7 * DAY, Some(-7 * DAY)),
        (-BASE, Some(-BASE)),
    ] {
        let mut state = ClockState::first(at(0), None);
        assert_eq!(leapt(state.start(at(shown))), expected, "{shown}");
        assert_eq!(state.leap().map(|leap| leap.ahead_ms), expected, "{shown}");
    }
}

#[test]
fn while_it_runs_minutes_are_a_leap() {
    for (passed, shown, expected) in [
        (1_000, 1_000, None),
        (1_000, 4 * MINUTE, None),
        (10 * HOUR, 10 * HOUR + 4 * MINUTE, None),
        (1_000, 6 * MINUTE, Some(6 * MINUTE - 1_000)),
        (1_000, -6 * MINUTE, Some(-6 * MINUTE - 1_000)),
        (10 * HOUR, 1_000, Some(1_000 - 10 * HOUR)),
    ] {
        let mut state = settled();
        assert_eq!(leapt(state.look(at(shown), span(passed))), expected, "{passed} {shown}");
    }
}

#[test]
fn a_store_without_a_clock_goes_by_its_newest_row() {
    assert_eq!(ClockState::first(at(0), Some(at(-90 * DAY))).leap(), None, "nobody wrote for long");
    let behind = ClockState::first(at(-7 * DAY), Some(at(0)));
    assert_eq!(behind.leap(), Some(Leap { ahead_ms: -7 * DAY }));
}

#[test]
fn a_week_behind_and_mended_nothing_has_waited_a_week() {
    let mut state = ClockState::first(at(-7 * DAY), None);
    let stamp = at(-7 * DAY + 1_000);
    state.look(at(-7 * DAY + MINUTE), span(MINUTE));
    assert_eq!(leapt(state.start(at(MINUTE))), Some(7 * DAY));
    for confirmed in [false, true] {
        let age = state.age(stamp, at(MINUTE));
        assert_eq!(age, Age { at_least: span(MINUTE - 1_000), at_most: span(MINUTE - 1_000) }, "{confirmed}");
        assert!(!state.older_than(span(7 * DAY), at(MINUTE)).is(stamp.0));
        assert!(!state.older_than(span(HOUR), at(HOUR)).is(stamp.0));
        assert!(
            state.older_than(span(HOUR), at(HOUR + MINUTE)).is(stamp.0),
            "an hour later it is an hour old"
        );
        state.accept();
    }
    assert_eq!(state.leap(), None);
    state.look(at(8 * DAY), span(8 * DAY - MINUTE));
    assert!(state.older_than(span(7 * DAY), at(8 * DAY)).is(stamp.0), "in the end it has waited a week");
}

#[test]
fn a_start_behind_what_was_seen_leaves_what_it_accepts_young() {
    let mut state = ClockState::first(at(0), None);
    assert_eq!(leapt(state.start(at(-7 * DAY))), Some(-7 * DAY));
    let stamp = at(-7 * DAY + 1_000);
    state.look(at(-7 * DAY + HOUR), span(HOUR));
    // Mended: an hour and a little after what was seen before.
    assert_eq!(state.start(at(HOUR + 2_000)), ClockVerdict::Back);
    assert_eq!(state.leap(), None);
    let age = state.age(stamp, at(HOUR + 2_000));
    assert_eq!(age.at_least, span(HOUR + 1_000));
    assert_eq!(age.at_most, span(7 * DAY + HOUR + 1_000), "the same stamp may be of a week ago");
    assert!(!state.older_than(span(DAY), at(HOUR + 2_000)).is(stamp.0));
    assert!(state.older_than(span(DAY), at(HOUR + 2_000)).is(at(-9 * DAY).0), "what is older stays old");
}

#[test]
fn one_start_far_ahead_leaves_no_trace() {
    let mut state = ClockState::first(at(0), None);
    let before = state.clone();
    assert_eq!(leapt(state.start(at(402 * DAY))), Some(402 * DAY));
    assert_eq!(state.look(at(402 * DAY + HOUR), span(HOUR)), ClockVerdict::Steady);
    let stamp = at(402 * DAY + HOUR);
    assert!(
        !state.older_than(span(401 * DAY), at(402 * DAY + HOUR)).is(BASE),
        "what is from before is not old"
    );
    // Restarted as it is, it is still not confirmed.
    assert_eq!(state.start(at(402 * DAY + 2 * HOUR)), ClockVerdict::Steady);
    assert!(state.leap().is_some());
    assert_eq!(state.start(at(3 * HOUR)), ClockVerdict::Back);
    assert_eq!(state.leap(), before.leap());
    let age = state.age(stamp, at(3 * HOUR));
    assert_eq!((age.at_least, age.at_most), (span(2 * HOUR), span(2 * HOUR)));
    assert!(state.older_than(span(HOUR), at(3 * HOUR)).is(BASE));
    assert!(!state.older_than(span(HOUR), at(3 * HOUR)).is(stamp.0), "stamps ahead are never old");
}

#[test]
fn a_machine_that_learns_the_time_after_its_start_is_no_leap() {
    // Off for ten hours; it begins where it stopped, and then hears of the hours.
    let mut state = settled();
    assert_eq!(state.start(at(1_000)), ClockVerdict::Steady);
    assert_eq!(state.look(at(10 * HOUR), span(MINUTE)), ClockVerdict::Steady);
    assert_eq!(leapt(state.look(at(60 * HOUR), span(1_000))), Some(50 * HOUR - 1_000), "two days in all");
    // The same with a clock that begins in 1970, or far ahead, and is set right hours later.
    for wrong in [-BASE, 402 * DAY] {
        let mut state = settled();
        assert_eq!(leapt(state.start(at(wrong))), Some(wrong));
        assert_eq!(state.look(at(wrong + 3 * HOUR), span(3 * HOUR)), ClockVerdict::Steady);
        assert_eq!(state.look(at(13 * HOUR), span(1_000)), ClockVerdict::Back, "it was off for ten hours");
        assert_eq!(state.leap(), None);
    }
    // Later than that nothing explains such a jump.
    let mut state = settled();
    assert!(leapt(state.look(at(11 * HOUR), span(HOUR))).is_some());
}

#[test]
fn a_short_leap_is_not_taken_for_time_off_at_the_next_start() {
    let mut state = settled();
    assert_eq!(leapt(state.look(at(30 * HOUR), span(1_000))), Some(30 * HOUR - 1_000));
    assert_eq!(
        state.start(at(30 * HOUR + MINUTE)),
        ClockVerdict::Steady,
        "it is where it was when it stopped"
    );
    assert!(state.leap().is_some());
    assert_eq!(state.start(at(2 * MINUTE)), ClockVerdict::Back);
}

#[test]
fn only_so_many_leaps_are_remembered() {
    let mut state = ClockState::first(at(0), None);
    for n in 1..50 {
        state.start(at(n * 10 * DAY));
        if n % 3 == 0 {
            state.accept();
        }
        assert!(state.stretches.len() <= MAX_STRETCHES);
        assert_eq!(state.leap().is_some(), n % 3 != 0);
    }
    assert_eq!(state.leap(), Some(Leap { ahead_ms: 10 * DAY }), "the confirmed one is never forgotten");
}

#[test]
fn words_for_people() {
    for (ms, words) in [
        (7 * DAY, "7 days ahead"),
        (-3 * HOUR, "3 hours behind"),
        (6 * MINUTE, "6 minutes ahead"),
        (DAY, "24 hours ahead"),
        (1_000 - 100 * DAY, "100 days behind"),
    ] {
        assert_eq!(Leap { ahead_ms: ms }.words(), words);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Run(i64),
    Restart(i64),
    Set(i64),
    Accept,
    Write,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1i64..20 * HOUR).prop_map(Step::Run),
        (0i64..40 * HOUR).prop_map(Step::Restart),
        // Far enough from each other not to be taken for a time off after a restart.
        (-100i64..100).prop_map(|n| Step::Set(n * 5 * DAY)),
        Just(Step::Set(0)),
        Just(Step::Accept),
        Just(Step::Write),
    ]
}

proptest! {
    /// However a clock is set: what was stored is as old as it is, or the range
    /// around it is wider, and nothing is called old too soon. A clock is only
    /// set while the server runs, so that it can be known what it waited.
    #[test]
    fn nothing_is_old_too_soon(steps in prop::collection::vec(step(), 1..60)) {
        let (mut truth, mut error) = (0, 0);
        let mut state = ClockState::first(at(0), None);
        let (mut rows, mut leaps): (Vec<(i64, i64)>, usize) = (Vec::new(), 0);
        for step in steps {
            match step {
                Step::Run(ms) => {
                    truth += ms;
                    state.look(at(truth + error), span(ms));
                }
                Step::Restart(off) => {
                    truth += off;
                    state.start(at(truth + error));
                }
                Step::Set(to) => {
                    leaps += usize::from(to != error);
                    error = to;
                    state.look(at(truth + error), Duration::ZERO);
                }
                Step::Accept => drop(state.accept()),
                Step::Write => rows.push((truth, BASE + truth + error)),
            }
            if leaps >= MAX_STRETCHES - 1 {
                break;
            }
            for (written, stamp) in &rows {
                let (age, known) = (truth - written, state.age(UnixMillis(*stamp), at(truth + error)));
                prop_assert!(known.at_least <= span(age) && span(age) <= known.at_most, "{age} {known:?} {state:?}");
                let old = state.older_than(span(age), at(truth + error));
                prop_assert!(!old.is(*stamp), "{age} {old:?} {state:?}");
                let never = state.older_than(span(age) + span(900 * DAY), at(truth + error));
                prop_assert!(!never.is(*stamp));
            }
        }
    }
}

/// Decision 0036: what decides is told what time it is.
#[test]
fn nothing_in_this_crate_asks_a_clock() {
    fn sources(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if !path.is_dir() {
                found.push(path);
            } else if !path.ends_with("clock") {
                sources(&path, found);
            }
        }
    }
    let mut files = Vec::new();
    sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    assert!(files.len() > 50, "{} files", files.len());
    for file in files.iter().filter(|file| !file.ends_with("tests.rs") && !file.ends_with("fail.rs")) {
        let text = std::fs::read_to_string(file).unwrap();
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        for call in [
            "clock::wall",
            "clock::mono",
            "{wall",
            "{mono",
            ", mono}",
            "Instant::now",
            "SystemTime::now",
            "sleep(",
        ] {
            assert!(!product.contains(call), "{} in {}: hand the time in", call, file.display());
        }
    }
}
