//! What every store must do, in a real PostgreSQL: the same tests as in `store.rs`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests: a failed expectation is a panic")]

mod store {
    #[path = "../store/actions.rs"]
    mod actions;
    #[path = "../postgres/batches.rs"]
    mod batches;
    #[path = "../store/common.rs"]
    pub(crate) mod common;
    #[path = "../store/directory.rs"]
    pub(crate) mod directory;
    #[path = "../store/identity.rs"]
    pub(crate) mod identity;
    #[path = "../store/inbox.rs"]
    mod inbox;
    #[path = "../store/intake.rs"]
    mod intake;
    #[path = "../store/lines.rs"]
    mod lines;
    #[path = "../store/marks.rs"]
    mod marks;
    #[path = "../store/moves.rs"]
    mod moves;
    #[path = "../postgres/nodes.rs"]
    mod nodes;
    #[path = "../store/notices.rs"]
    mod notices;
    #[path = "../postgres/open.rs"]
    pub(crate) mod open;
    #[path = "../store/openings.rs"]
    mod openings;
    #[path = "../store/people.rs"]
    pub(crate) mod people;
    #[path = "../postgres/posts.rs"]
    mod posts;
    #[path = "../store/prompts.rs"]
    mod prompts;
    #[path = "../store/seals.rs"]
    mod seals;
    #[path = "../postgres/statements.rs"]
    mod statements;
    #[path = "../store/tenant_disk.rs"]
    mod tenant_disk;
    #[path = "../store/turns.rs"]
    mod turns;
    #[path = "../store/vault.rs"]
    pub(crate) mod vault;
}

#[path = "ports/mod.rs"]
mod ports;

#[path = "postgres/connecting.rs"]
mod connecting;
#[path = "postgres/transfer.rs"]
mod transfer;
