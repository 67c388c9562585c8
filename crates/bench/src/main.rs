//! `angelia-bench`: see the library, and `--help`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its output is what it is for")]

use angelia_bench::anchor;
use angelia_bench::report::Report;
use angelia_bench::run::{self, Plan, run};
use angelia_bench::stage::Stage;
use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Measures what one message costs the server.
///
/// Starts the named binary in a temporary folder, opens the sockets of a thousand gateways, and
/// measures delivery from the web chat to a gateway and the round trip of what a gateway sends:
/// as fast as it goes, and at a fixed rate. With --beside a second binary is measured in turn
/// with the first (A B A B …), and the medians stand beside each other.
///
/// Judge by the processor time of the server. Rates and times depend on the disk and on whatever
/// else runs on this machine, which is why both are told. A figure's ± is half the width of the
/// middle half of its runs. A difference is within the spread unless nine in ten of all pairs, a
/// run of A and one of B, agree on it; on a busy machine that takes more runs.
#[derive(Debug, Parser)]
#[command(name = "angelia-bench", after_help = EXAMPLES)]
struct Arguments {
    /// The server to measure: A.
    #[arg(long, value_name = "PATH", value_parser = file)]
    binary: PathBuf,
    /// Another one to put beside it: B. Usually A is what was, and B what is to be.
    #[arg(long, value_name = "PATH", value_parser = file)]
    beside: Option<PathBuf>,
    /// Gateways whose sockets are open.
    #[arg(long, default_value_t = 1000, value_parser = at_least_one)]
    sockets: usize,
    /// Runs of each binary.
    #[arg(long, default_value_t = 5, value_parser = at_least_one)]
    runs: usize,
    /// How long each of the four measurements of a run takes.
    #[arg(long, default_value_t = 5.0, value_name = "N", value_parser = positive)]
    seconds: f64,
    /// Operations under way at the same time, as fast as it goes.
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = at_least_one)]
    at_once: usize,
    /// Operations a second, at a fixed rate.
    #[arg(long, default_value_t = 1000.0, value_name = "N", value_parser = positive)]
    rate: f64,
    /// End with 1 if B is worse than A by more than so many percent, beyond the spread, in
    /// processor time or in the median of the time.
    #[arg(long, value_name = "PERCENT", requires = "beside")]
    at_most: Option<f64>,
    /// Where the temporary folders are made: the disk that is measured.
    #[arg(long, value_name = "PATH", default_value_os_t = std::env::temp_dir())]
    folder: PathBuf,
}

const EXAMPLES: &str = "Examples:
  Against the release before, as a check:
      cargo build --release -p angelia
      cargo run --release -p angelia-bench -- --binary old/angelia \\
          --beside target/release/angelia --at-most 5
  The software without the disk:
      cargo run --release -p angelia-bench -- --binary target/release/angelia --folder /dev/shm

Ends with 2 if a message was refused, lost or out of order: such a server has no figures.";

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    raise_descriptor_limit();
    // One thread: what it takes is easily told, and the server keeps the other cores.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    match runtime.block_on(measure(&arguments)) {
        Ok(report) => tell(&arguments, &report),
        Err(error) => {
            eprintln!("angelia-bench: {error}");
            ExitCode::from(2)
        }
    }
}

/// All runs, those of two builds in turn.
async fn measure(arguments: &Arguments) -> Result<Report, run::Error> {
    let &Arguments { sockets, at_once, rate, seconds, .. } = arguments;
    let plan = Plan { sockets, at_once, rate, seconds };
    let mut report = Report::new(plan);
    let stages = folder(arguments)?;
    let mut builds = Vec::new();
    for (letter, binary) in [("A", Some(&arguments.binary)), ("B", arguments.beside.as_ref())] {
        let Some(binary) = binary else { continue };
        eprintln!("{letter}: {}: making {sockets} gateways", binary.display());
        builds.push((letter, Stage::set(binary, &stages.path().join(letter), sockets).await));
    }
    for number in 1..=arguments.runs {
        for (letter, stage) in &builds {
            let folder = folder(arguments)?;
            report.anchors.push(anchor::measure(folder.path())?);
            let tell = |what: &str| eprintln!("run {number} of {}, {letter}: {what}", arguments.runs);
            let done = run(stage, folder.path(), &plan, tell).await?;
            let runs = if *letter == "A" { &mut report.runs } else { &mut report.beside };
            runs.push(done);
        }
    }
    Ok(report)
}

fn tell(arguments: &Arguments, report: &Report) -> ExitCode {
    let &Arguments { sockets, runs, seconds, .. } = arguments;
    println!("{sockets} sockets, runs of each binary: {runs}, seconds of each load: {seconds}.");
    println!("{}\n", report.machine());
    println!("A: {}", arguments.binary.display());
    if let Some(beside) = &arguments.beside {
        println!("B: {}", beside.display());
    }
    println!("\n{}", report.table());
    let Some(at_most) = arguments.at_most else { return ExitCode::SUCCESS };
    let worse = report.worse_than(at_most);
    if worse.is_empty() {
        println!("B is nowhere worse than A by more than {at_most} % beyond the spread.");
        return ExitCode::SUCCESS;
    }
    println!("B is worse than A by more than {at_most} %:\n  {}", worse.join("\n  "));
    ExitCode::FAILURE
}

fn folder(arguments: &Arguments) -> std::io::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix("angelia-bench-").tempdir_in(&arguments.folder)
}

/// Both this process and the servers it starts need a descriptor for each socket.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // What cannot be raised shows when a dial fails, with the number of sockets.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

fn file(path: &str) -> Result<PathBuf, String> {
    let path = Path::new(path);
    if path.is_file() {
        // Servers are started in folders of their own.
        path.canonicalize().map_err(|error| error.to_string())
    } else {
        Err("there is no such file; cargo build --release -p angelia makes target/release/angelia".to_owned())
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| "a whole number above 0 is needed".to_owned())
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "a number above 0 is needed".to_owned())
}
