//! A chat through everything that can happen to it: providers that do not
//! answer, a store that does not commit, crashes at any moment, and processes
//! that were believed dead and go on. What is judged is in `simulated_tests.rs`.

use super::simulated_tests::{Variant, World};
use proptest::prelude::*;
use proptest::test_runner::{TestRng, TestRunner};

/// Things that happen in one case.
const STEPS: usize = 160;

const CONFIG: fn(u32) -> ProptestConfig =
    |cases| ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };

fn steps() -> impl Strategy<Value = Vec<(u8, u64)>> {
    prop::collection::vec((0u8..100, any::<u64>()), 1..=STEPS)
}

fn run(steps: Vec<(u8, u64)>, variant: Variant) {
    let mut world = World::new(variant);
    for (kind, dice) in steps {
        world.step(kind, dice);
    }
    world.settle();
}

proptest! {
    #![proptest_config(CONFIG(5_000))]

    #[test]
    fn whatever_happens_nothing_is_said_twice_or_out_of_order_or_forgotten(steps in steps()) {
        run(steps, Variant::Sound);
    }
}

/// What is judged first of a broken variant.
fn judged(variant: Variant) -> String {
    let config = ProptestConfig { max_shrink_iters: 0, ..CONFIG(5_000) };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let judged = TestRunner::new_with_rng(config, rng).run(&steps(), |steps| {
        run(steps, variant);
        Ok(())
    });
    judged.unwrap_err().to_string()
}

#[test]
fn without_the_fence_something_is_said_twice() {
    let judged = judged(Variant::NoFence);
    assert!(judged.contains("may be"), "the world does not judge that: {judged}");
}

#[test]
fn a_remark_that_is_written_down_after_the_end_may_be_lost() {
    assert!(judged(Variant::EndsFirst).contains("passed over in silence"));
}

#[test]
fn a_remark_that_is_written_down_before_the_end_may_be_made_twice() {
    assert!(judged(Variant::RemarksFirst).contains("remarked upon 2 times"));
}
