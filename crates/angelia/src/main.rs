//! The open connector between chat platforms and AI agents.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    angelia::cli::run(angelia::cli::Cli::parse())
}
