//! A minute of the soak: too short to see a slow leak, long enough for a fast one, for a thread
//! that stays behind, and for a message that gets lost where loads meet.

use crate::server::fresh_folder;
use crate::stage::{busy, report};
use angelia_testkit::soak::{Plan, run};
use std::path::PathBuf;
use std::thread::available_parallelism;

const TEST: &str = "mixed_load";
/// More than the hour's pace, because there is only a minute.
const POSTS_PER_SECOND: f64 = 10.0;
/// Threads besides those of the runtime: the first, the writer, four that read, and some to look
/// up names, to make pages and to see how full the disk is.
const OTHER_THREADS: usize = 10;
/// What half a minute may add: caches fill in it, by a few MiB.
const MAX_GROWTH_KIB: f64 = 24.0 * 1024.0;

/// Posts, edits, streams that break and gateways that come and go, all at once: every post is
/// answered on every stream, and neither threads nor memory run away.
#[test]
fn a_minute_of_everything_at_once() {
    busy(async {
        let folder = fresh_folder(TEST);
        let plan = Plan {
            binary: PathBuf::from(env!("CARGO_BIN_EXE_angelia")),
            folder: folder.clone(),
            minutes: 1,
            posts_per_second: POSTS_PER_SECOND,
        };
        let soaked = run(&plan, |line| report(TEST, line)).await;
        let verdict = soaked.verdict();
        report(TEST, &verdict);
        assert!(soaked.is_whole(), "{verdict}");
        let cores = available_parallelism().map_or(1, usize::from);
        let threads = soaked.most_threads();
        assert!(threads <= (cores + OTHER_THREADS) as u64, "{threads} threads on {cores} cores");
        let growth = soaked.growth();
        assert!(growth < MAX_GROWTH_KIB, "half a minute added {growth:.0} KiB");
        let _ = std::fs::remove_dir_all(folder);
    });
}
