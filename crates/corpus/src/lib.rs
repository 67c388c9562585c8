//! The corpus of a fuzz target, replayed as a plain test.
//!
//! A target's body is one function over bytes, next to what it tries. The
//! fuzzer calls it with bytes it makes up, a test with those in `fuzz/corpus`:
//! what the fuzzer found once is tried in every run of the tests from then on.

use std::path::Path;

/// Calls a target with every input of its corpus, and with prefixes of each:
/// whoever reads from outside is also given half of something.
pub fn replay(target: &str, body: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
    let mut tried = 0;
    for entry in entries {
        let path = entry.expect("the corpus can be listed").path();
        let input = std::fs::read(&path).expect("an input can be read");
        let whole = || body(&input);
        let half = || body(&input[..input.len() / 2]);
        let outcome = std::panic::catch_unwind(|| (whole(), half()));
        assert!(outcome.is_ok(), "{target} fails on {}", path.display());
        tried += 1;
    }
    assert!(tried > 0, "{target} has no corpus");
}
