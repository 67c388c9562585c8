//! What every store must do. Written against the ports, so that each engine
//! runs the same tests.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests: a failed expectation is a panic")]

mod store {
    mod actions;
    mod bench;
    mod clock;
    pub(crate) mod common;
    pub(crate) mod directory;
    mod footprint;
    mod full_disk;
    pub(crate) mod identity;
    pub(crate) mod inbox;
    mod intake;
    mod lines;
    mod marks;
    mod moves;
    mod notices;
    pub(crate) mod open;
    mod openings;
    mod people;
    mod prompts;
    mod seals;
    mod space;
    mod sqlite_only;
    pub(crate) mod tenant_disk;
    mod turns;
    mod upgrade;
    pub(crate) mod vault;
}

#[path = "ports/mod.rs"]
mod ports;
