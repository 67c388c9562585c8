//! `cargo run --release -p angelia-bench --bin hop -- --binary target/release/angelia`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its output is what it is for")]

use angelia_bench::hop::{Hop, Idle, Plan, measure};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Measures the way of a message from one node to another, durable, over PostgreSQL and Redis.
///
/// Starts both and two nodes of the named binary. People are at the first: they post in its web
/// chat, and then they write to a bot that it reads. All agents are at the second. What is due is
/// counted from when it is due, however late it can begin. Then nodes are added that have nothing to do with it, up to six, and what each hears
/// over the bus is counted. Everything runs on this machine: the two servers and the generator
/// share its cores with the nodes.
#[derive(Debug, Parser)]
#[command(name = "hop")]
struct Arguments {
    /// The server to measure.
    #[arg(long, value_name = "PATH")]
    binary: PathBuf,
    /// Gateways whose sockets are open.
    #[arg(long, default_value_t = 200)]
    sockets: usize,
    /// Operations under way at the same time, as fast as it goes.
    #[arg(long, default_value_t = 64)]
    at_once: usize,
    /// Operations a second, at a fixed rate.
    #[arg(long, default_value_t = 2000.0)]
    rate: f64,
    /// How long each load takes.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
}

fn main() -> ExitCode {
    let Arguments { binary, sockets, at_once, rate, seconds } = Arguments::parse();
    let plan = Plan { sockets, at_once, rate, time: Duration::from_secs_f64(seconds) };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    let tell = |what: &str| eprintln!("hop: {what}");
    match runtime.block_on(measure(&binary, folder.path(), &plan, tell)) {
        Ok((hops, idle)) => {
            show(&hops, &idle);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("hop: {error}");
            ExitCode::from(2)
        }
    }
}

fn show(hops: &[Hop], idle: &[Idle]) {
    println!("| from one node to another | a second | p50 | p99 | processor time of both nodes |");
    println!("|---|---:|---:|---:|---:|");
    for Hop { name, rate, p50, p99, cpu } in hops {
        println!("| {name} | {rate:.0} | {p50:.2} ms | {p99:.2} ms | {cpu:.0} µs |");
    }
    println!("\n| nodes | messages | heard by the node with the sockets, each | by an idle node, each |");
    println!("|---:|---:|---:|---:|");
    for Idle { nodes, delivered, at_sockets, at_idle } in idle {
        println!("| {nodes} | {delivered} | {at_sockets:.3} | {at_idle:.3} |");
    }
}
