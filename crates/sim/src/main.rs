//! `cargo run --release -p angelia-sim -- [SEEDS] [FIRST]`: so many seeds, each with
//! ten thousand steps, and how fast that went. Prints a seed that fails.

#![allow(clippy::print_stdout, reason = "it is a program that tells")]

use angelia_core::clock;
use angelia_sim::{Variant, run};
use std::process::ExitCode;

const STEPS: usize = 10_000;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let (Ok(seeds), Ok(first)) = (numbers.next().unwrap_or(Ok(300)), numbers.next().unwrap_or(Ok(0))) else {
        println!("usage: angelia-sim [SEEDS] [FIRST SEED]");
        return ExitCode::FAILURE;
    };
    let begun = clock::mono();
    let mut failed = 0;
    for seed in first..first + seeds {
        if let Err(violation) = run(seed, STEPS, Variant::Sound) {
            println!("seed {seed}: {violation}");
            failed += 1;
        }
    }
    let seconds = clock::mono().since(begun).as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let rate = (seeds * STEPS as u64) as f64 / seconds * 60.0;
    println!(
        "{seeds} seeds of {STEPS} steps in {seconds:.1} s: {:.1} million steps a minute, {failed} failed",
        rate / 1e6
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
