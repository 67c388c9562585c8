//! Several nodes on one PostgreSQL and one Redis, seen from outside: real processes, real
//! servers, sockets by hand. Every story says how long things take.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests: a failed expectation is a panic")]

mod cluster {
    mod auditor;
    mod changes;
    mod failover;
    mod fault_run;
    mod files;
    mod hints;
    mod interrupts;
    mod linking;
    mod pauses;
    mod plan;
    mod pollers;
    mod replies;
    mod rolling;
    mod scene;
    pub(crate) mod stage;
    mod starting;
    mod takeover;
    mod traffic;
    mod webchat;
}
