//! A gateway against a connector made of nothing but a socket.
//!
//! Most tests run on a stopped clock that jumps to the next timer whenever
//! nothing else can happen, so waits of minutes cost nothing.

// Test helpers stand outside of test functions, where the lint looks away.
#![allow(clippy::unwrap_used)]

mod acks;
mod calls;
mod delivery;
mod dependencies;
mod files;
mod handshake;
mod idle;
mod interrupts;
mod passthrough;
mod questions;
mod rich;
mod streams;
mod support;
