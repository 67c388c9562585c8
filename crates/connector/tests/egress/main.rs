//! What becomes of the actions of agents: seen from a gateway's socket, from
//! the provider, and from the ledger on disk.

#![allow(clippy::unwrap_used, reason = "tests: a failed expectation is a panic")]

mod asking;
mod capability;
mod chats;
mod decide;
mod drafts;
mod finishing;
mod follow_up;
mod interleaved;
mod key_change;
mod ledger;
mod marks;
mod nodes;
mod outboxes;
mod paces;
mod platform;
mod remarks;
mod rendering;
mod rights;
mod shares;
mod slow_ledger;
mod unanswered;
mod vault;
mod world;
