//! `cargo run --release -p angelia-sim -- [SEEDS] [FIRST]`: so many seeds of each
//! part, each with ten thousand things that happen, and how fast that went.
//!
//! A seed that fails is named. Alone (`1 SEED`) its story is told, too.

#![allow(clippy::print_stdout, reason = "it is a program that tells")]

use angelia_core::clock;
use angelia_sim::{duties, inbound, outbound, turns};
use std::fmt::Display;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

const STEPS: usize = 10_000;

/// How one seed went, and its story if it failed and that is wanted.
type Run = Result<u64, (String, Vec<String>)>;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let (Ok(seeds), Ok(first)) = (numbers.next().unwrap_or(Ok(300)), numbers.next().unwrap_or(Ok(0))) else {
        println!("usage: angelia-sim [SEEDS] [FIRST SEED]");
        return ExitCode::FAILURE;
    };
    let inbound = half("what people write", seeds, first, &|seed| {
        let run = inbound::run(seed, STEPS, inbound::Variant::Sound);
        explained(run, seeds == 1, || inbound::replay(seed, STEPS, inbound::Variant::Sound).1)
    });
    let outbound = half("what agents send", seeds, first, &|seed| {
        let run = outbound::run(seed, STEPS, outbound::Variant::Sound);
        explained(run, seeds == 1, || outbound::replay(seed, STEPS, outbound::Variant::Sound).1)
    });
    let turns = half("what waits for a turn", seeds, first, &|seed| {
        let run = turns::run(seed, STEPS, turns::Variant::Sound);
        explained(run, seeds == 1, || turns::replay(seed, STEPS, turns::Variant::Sound).1)
    });
    let duties = half("what one node does", seeds, first, &|seed| {
        let run = duties::run(seed, STEPS, duties::Variant::Sound);
        explained(run, seeds == 1, || duties::replay(seed, STEPS, duties::Variant::Sound).1)
    });
    if inbound && outbound && turns && duties { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn explained(run: Result<u64, impl Display>, alone: bool, story: impl FnOnce() -> Vec<String>) -> Run {
    run.map_err(|violation| (violation.to_string(), if alone { story() } else { Vec::new() }))
}

/// Runs the seeds of one half on all cores; whether none failed.
fn half(name: &str, seeds: u64, first: u64, run: &(impl Fn(u64) -> Run + Sync)) -> bool {
    let (next, told, failed) = (AtomicU64::new(first), AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + seeds {
                return;
            }
            match run(seed) {
                Ok(events) => drop(told.fetch_add(events, Ordering::Relaxed)),
                Err((violation, story)) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                    story.iter().for_each(|line| println!("{line}"));
                    println!("{name}, seed {seed}: {violation}");
                }
            }
        }
    };
    let begun = clock::mono();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
    let (seconds, told, failed) =
        (clock::mono().since(begun).as_secs_f64(), told.into_inner(), failed.into_inner());
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let rate = told as f64 / seconds * 60.0 / 1e6;
    println!(
        "{name}: {seeds} seeds, {told} steps in {seconds:.1} s, {rate:.1} million a minute, {failed} failed"
    );
    failed == 0
}
