//! Watches a server through an hour of ordinary life: see `angelia_testkit::soak`.
//!
//! ```text
//! soak --binary PATH [MINUTES] [--rate POSTS_PER_SECOND] [--folder PATH] [--table]
//! ```
//!
//! Exits with 1 if memory grew beyond the stated bound, something was lost, or the server
//! panicked. `--table` prints the figures as a Markdown table at the end. The folder with the
//! server's data and log is kept only if one was named.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its output is what it is for")]

use angelia_testkit::soak::{Plan, run};
use std::path::PathBuf;
use std::process::ExitCode;

/// The pace unless another is wanted: lively, and a tenth of a core for a release build.
const POSTS_PER_SECOND: f64 = 6.0;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut minutes = 60;
    let mut posts_per_second = POSTS_PER_SECOND;
    let (mut binary, mut folder, mut table) = (None, None, false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
        match arg.as_str() {
            "--binary" => binary = Some(PathBuf::from(value())),
            "--rate" => posts_per_second = value().parse().expect("--rate is a number"),
            "--folder" => folder = Some(PathBuf::from(value())),
            "--table" => table = true,
            number => minutes = number.parse().unwrap_or_else(|_| panic!("unknown argument {number}")),
        }
    }
    assert!(minutes > 0, "at least a minute");
    let own = std::env::temp_dir().join(format!("angelia-soak-{}", std::process::id()));
    let plan = Plan {
        binary: binary.expect("--binary is needed"),
        folder: folder.clone().unwrap_or_else(|| own.clone()),
        minutes,
        posts_per_second,
    };
    let report = run(&plan, |line| println!("{line}")).await;
    if folder.is_none() {
        let _ = std::fs::remove_dir_all(&own);
    }
    println!("{}", report.verdict());
    if table {
        println!("\n{}", report.markdown());
    }
    if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
