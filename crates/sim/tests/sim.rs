//! A short run of the simulation, and what it must catch.

use angelia_sim::{duties, inbound, outbound, turns};
use std::fmt::Debug;

/// Things that happen in each seed.
const STEPS: usize = 3_000;

/// Runs the seeds; one that fails is shown with its story.
fn all_go_well<V: Debug>(
    seeds: impl Iterator<Item = (u64, usize)>,
    run: impl Fn(u64, usize) -> Result<u64, V>,
    replay: impl Fn(u64, usize) -> (Result<u64, V>, Vec<String>),
) {
    for (seed, steps) in seeds {
        if let Err(violation) = run(seed, steps) {
            let (_, story) = replay(seed, steps);
            let last = &story[story.len().saturating_sub(100)..];
            panic!("seed {seed}: {violation:?}\n{}", last.join("\n"));
        }
    }
}

mod what_people_write {
    use super::*;
    use inbound::{Variant, Violation, replay, run};

    /// Seeds that failed once, with their steps, and why is in the history.
    const FAILED_ONCE: [(u64, usize); 0] = [];

    #[test]
    fn nothing_is_lost_or_out_of_order_or_someone_elses() {
        let seeds = (0..120).map(|seed| (seed, STEPS)).chain(FAILED_ONCE);
        let (run, replay) = (
            |seed, steps| run(seed, steps, Variant::Sound),
            |seed, steps| replay(seed, steps, Variant::Sound),
        );
        all_go_well(seeds, run, replay);
    }

    /// Whether some of these seeds show what is wrong with a variant.
    fn caught(variant: Variant, is_it: impl Fn(&Violation) -> bool) -> bool {
        (0..200).any(|seed| run(seed, STEPS, variant).is_err_and(|violation| is_it(&violation)))
    }

    #[test]
    fn a_fence_left_out_is_caught() {
        assert!(caught(Variant::NoFence, |it| matches!(it, Violation::PastTheFence(_))));
    }

    #[test]
    fn a_watermark_without_gap_detection_is_caught() {
        assert!(caught(Variant::Watermark, |it| matches!(it, Violation::Lost(..))));
    }
}

mod what_agents_send {
    use super::*;
    use outbound::{Variant, Violation, replay, run};

    /// Seeds that failed once, with their steps.
    const FAILED_ONCE: [(u64, usize); 6] = [
        // A process that had been replaced accepted what nobody looked for again.
        (2, 10_000),
        (491, 10_000),
        // A process that heard that it may call had stood still until another had called,
        // and the provider forgotten that.
        (3540, 10_000),
        (3956, 10_000),
        // One that had been replaced in part accepted on, as the owner that was left to it.
        (15_136, 10_000),
        (20_416, 10_000),
    ];

    #[test]
    fn nothing_is_lost_or_said_twice_or_out_of_order_or_for_a_revoked_gateway() {
        let seeds = (0..400).map(|seed| (seed, STEPS)).chain(FAILED_ONCE);
        let (run, replay) = (
            |seed, steps| run(seed, steps, Variant::Sound),
            |seed, steps| replay(seed, steps, Variant::Sound),
        );
        all_go_well(seeds, run, replay);
    }

    /// Whether some of these seeds show what is wrong with a variant.
    fn caught(variant: Variant, is_it: impl Fn(&Violation) -> bool) -> bool {
        (0..200).any(|seed| run(seed, STEPS, variant).is_err_and(|violation| is_it(&violation)))
    }

    #[test]
    fn a_fence_left_out_is_caught() {
        assert!(caught(Variant::NoFence, |it| matches!(it, Violation::PastTheFence(_))));
    }

    #[test]
    fn a_start_that_resumes_what_others_work_on_is_caught() {
        assert!(caught(Variant::ResumeEverything, |it| matches!(it, Violation::SaidTwice(_))));
    }

    #[test]
    fn a_remark_that_is_a_commit_of_its_own_is_caught() {
        assert!(caught(Variant::RemarkApart, |it| matches!(it, Violation::PassedOver(_))));
    }

    #[test]
    fn a_seed_tells_the_same_story_again() {
        let story = |seed| replay(seed, STEPS, Variant::Sound);
        assert_eq!(story(7), story(7));
        assert!(story(7).1.iter().any(|line| line.contains("calls for action")));
        assert_ne!(story(7).1, story(8).1);
    }
}

mod what_waits_for_a_turn {
    use super::*;
    use turns::{Variant, Violation, replay, run};

    /// Things that happen in each seed; a second of it is hundreds of conversations.
    const STEPS: usize = 600;

    /// Seeds that failed once, with their steps.
    const FAILED_ONCE: [(u64, usize); 6] = [
        // The answer to a question waited behind a command, which was read again and again.
        (6, 300),
        // What an earlier socket left was over with its answer, before its marks.
        (2, 1_500),
        // A question that nobody can answer while the first line is to begin anew.
        (8, 1_500),
        (20, 1_500),
        (41, 1_500),
        // The press of an old button passed for the answer to a new question.
        (92, 1_000),
    ];

    #[test]
    fn nothing_goes_into_a_turn_or_twice_or_out_of_order_or_waits_for_others() {
        let seeds = (0..200).map(|seed| (seed, STEPS)).chain(FAILED_ONCE);
        let (run, replay) = (
            |seed, steps| run(seed, steps, Variant::Sound),
            |seed, steps| replay(seed, steps, Variant::Sound),
        );
        all_go_well(seeds, run, replay);
    }

    /// Whether some of these seeds show what is wrong with a variant.
    fn caught(variant: Variant, is_it: impl Fn(&Violation) -> bool) -> bool {
        (0..200).any(|seed| run(seed, STEPS, variant).is_err_and(|violation| is_it(&violation)))
    }

    #[test]
    fn a_turn_that_ends_with_its_last_sign_is_caught() {
        assert!(caught(Variant::EndsAtTheSign, |it| matches!(it, Violation::IntoATurn(_))));
    }

    #[test]
    fn lines_that_go_together_before_that_is_committed_are_caught() {
        let changed = |it: &Violation| matches!(it, Violation::Twice(_) | Violation::Changed(_));
        assert!(caught(Variant::JoinsUncommitted, changed));
    }

    #[test]
    fn a_line_that_is_passed_over_and_not_looked_for_is_caught() {
        let missed = |it: &Violation| matches!(it, Violation::Lost(_) | Violation::OutOfOrder(_));
        assert!(caught(Variant::NoSecondLook, missed));
    }

    #[test]
    fn a_conversation_that_waits_for_another_is_caught() {
        assert!(caught(Variant::HeadOfLine, |it| matches!(it, Violation::Waited(_))));
    }

    #[test]
    fn a_seed_tells_the_same_story_again() {
        let story = |seed| replay(seed, STEPS, Variant::Sound);
        assert_eq!(story(7), story(7));
        assert!(story(7).1.iter().any(|line| line.contains("the gateway reads")));
        assert_ne!(story(7).1, story(8).1);
    }
}

mod what_one_node_does {
    use super::*;
    use duties::{Variant, Violation, replay, run};

    #[test]
    fn nobody_does_it_twice_or_leaves_it_undone() {
        let seeds = (0..60).map(|seed| (seed, STEPS));
        let (run, replay) = (
            |seed, steps| run(seed, steps, Variant::Sound),
            |seed, steps| replay(seed, steps, Variant::Sound),
        );
        all_go_well(seeds, run, replay);
    }

    /// Whether some of these seeds show what is wrong with a variant.
    fn caught(variant: Variant, is_it: impl Fn(&Violation) -> bool) -> bool {
        (0..200).any(|seed| run(seed, STEPS, variant).is_err_and(|violation| is_it(&violation)))
    }

    #[test]
    fn a_fence_left_out_is_caught() {
        assert!(caught(Variant::NoFence, |it| matches!(it, Violation::Doubled(..) | Violation::Lost(..))));
    }

    #[test]
    fn a_node_that_does_not_look_at_its_clock_is_caught() {
        assert!(caught(Variant::NoClock, |it| matches!(it, Violation::TwoHolders(_))));
    }

    #[test]
    fn a_term_that_is_counted_from_the_answer_is_caught() {
        assert!(caught(Variant::LateTerm, |it| matches!(it, Violation::TwoHolders(_))));
    }
}
