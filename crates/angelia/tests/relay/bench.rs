//! The bench measures, and every message of it arrives: its figures are worth something.

use angelia_bench::report::Report;
use angelia_bench::run::{Plan, names, run};
use angelia_bench::stage::Stage;
use std::path::Path;

/// Few sockets and short loads: what it takes is not judged here.
const PLAN: Plan = Plan { sockets: 20, at_once: 8, rate: 100.0, seconds: 0.5 };

#[tokio::test]
async fn the_bench_has_figures_for_every_load_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_angelia"));
    let stage = Stage::set(binary, &folder.path().join("stage"), PLAN.sockets).await;
    let done = run(&stage, &folder.path().join("run"), &PLAN, |_| {}).await.unwrap();
    for (figures, name) in done.loads.iter().zip(names(&PLAN)) {
        assert!(figures.operations >= 20, "{name}: {figures:?}");
        assert!(figures.server_cpu > 0.0 && figures.rate > 0.0, "{name}: {figures:?}");
        assert!(0.0 < figures.p50 && figures.p50 <= figures.p99, "{name}: {figures:?}");
    }
    // Fifty each are due in half a second, whether or not the server keeps up.
    assert_eq!((done.loads[1].operations, done.loads[3].operations), (50, 50));
    assert!(done.idle_memory > 1.0 && done.peak_memory >= done.idle_memory, "{done:?}");

    let mut report = Report::new(PLAN);
    report.runs.push(done);
    println!("{}", report.table());
}
