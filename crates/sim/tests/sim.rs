//! A short run of the simulation, and what it must catch.

use angelia_sim::{Variant, Violation, run};

/// Seeds that failed once, and why is in the history.
const FAILED_ONCE: [u64; 0] = [];

#[test]
fn nothing_is_lost_or_out_of_order_or_someone_elses() {
    for seed in (0..120).chain(FAILED_ONCE) {
        assert_eq!(run(seed, 3_000, Variant::Sound), Ok(()), "seed {seed}");
    }
}

/// Whether some of these seeds show what is wrong with a variant.
fn caught(variant: Variant, is_it: impl Fn(&Violation) -> bool) -> bool {
    (0..200).any(|seed| run(seed, 3_000, variant).is_err_and(|violation| is_it(&violation)))
}

#[test]
fn a_fence_left_out_is_caught() {
    assert!(caught(Variant::NoFence, |it| matches!(it, Violation::PastTheFence(_))));
}

#[test]
fn a_watermark_without_gap_detection_is_caught() {
    assert!(caught(Variant::Watermark, |it| matches!(it, Violation::Lost(..))));
}
