//! The relay, seen from outside: the real binary, sockets by hand.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests: a failed expectation is a panic")]

mod relay {
    mod command;
    mod delivery;
    mod idle;
    mod interrupt;
    mod outbound;
    mod takeover;
    mod upgrade;
    pub(crate) mod world;
}
