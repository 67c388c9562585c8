//! What every bus must do: within a process, on a real Redis, and on a cluster of them.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests: a failed expectation is a panic")]

#[path = "bus/contract.rs"]
mod contract;
#[path = "bus/redis.rs"]
mod redis;
#[path = "bus/redis_server.rs"]
mod redis_server;
