//! A chat through everything that can happen to it: providers that do not
//! answer, a store that does not commit, crashes at any moment, and processes
//! that were believed dead and go on. What is judged is in `simulated_tests.rs`.

use super::simulated_tests::World;
use proptest::prelude::*;
use proptest::test_runner::{TestRng, TestRunner};

/// Things that happen in one case.
const STEPS: usize = 160;

const CONFIG: fn(u32) -> ProptestConfig =
    |cases| ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };

fn steps() -> impl Strategy<Value = Vec<(u8, u64)>> {
    prop::collection::vec((0u8..100, any::<u64>()), 1..=STEPS)
}

fn run(steps: Vec<(u8, u64)>, fenced: bool) {
    let mut world = World::new(fenced);
    for (kind, dice) in steps {
        world.step(kind, dice);
    }
    world.settle();
}

proptest! {
    #![proptest_config(CONFIG(5_000))]

    #[test]
    fn whatever_happens_nothing_is_said_twice_or_out_of_order_or_forgotten(steps in steps()) {
        run(steps, true);
    }
}

#[test]
fn without_the_fence_something_is_said_twice() {
    let config = ProptestConfig { max_shrink_iters: 0, ..CONFIG(5_000) };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let judged = TestRunner::new_with_rng(config, rng).run(&steps(), |steps| {
        run(steps, false);
        Ok(())
    });
    assert!(judged.unwrap_err().to_string().contains("may be"), "the world does not judge that");
}
