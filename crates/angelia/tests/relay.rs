//! The relay, seen from outside: the real binary, sockets by hand.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests: a failed expectation is a panic")]

mod relay {
    mod admission;
    mod alone;
    mod bench;
    mod bots;
    mod command;
    mod delivery;
    mod demo;
    mod docs;
    mod edits;
    mod files;
    mod first;
    mod hands;
    mod idle;
    mod interrupt;
    mod key_rotation;
    mod letters;
    mod linking;
    mod mending;
    mod outbound;
    mod people;
    mod story;
    mod supervised;
    mod takeover;
    mod tls;
    mod tree;
    mod upgrade;
    pub(crate) mod world;
}
