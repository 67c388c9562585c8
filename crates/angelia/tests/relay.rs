//! The relay, seen from outside: the real binary, sockets by hand.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests: a failed expectation is a panic")]

mod relay {
    mod admission;
    mod bench;
    mod bots;
    mod command;
    mod dead_letters;
    mod delivery;
    mod demo;
    mod docs;
    mod edits;
    mod files;
    mod first;
    mod guesses;
    mod idle;
    mod interrupt;
    mod key_rotation;
    mod linking;
    mod media;
    mod operator;
    mod outbound;
    mod pauses;
    mod people;
    mod postgres;
    mod renewal;
    mod rich;
    mod room_files;
    mod several_nodes;
    mod story;
    mod supervised;
    mod takeover;
    mod tls;
    mod tree;
    mod troubles;
    mod turns;
    mod upgrade;
    mod without_server;
    pub(crate) mod world;
}
