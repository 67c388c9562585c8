//! The contract, tested from outside: vectors, examples, laws, hostility.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod bounds;
mod compat;
mod examples;
mod framing;
mod hostile;
mod keys;
mod schema;
mod splitter;
mod support;
mod tokens;
