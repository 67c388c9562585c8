//! Stores: what is kept, written once for every database, and the databases
//! (docs/decisions/0045).

mod budget;
mod clock;
mod db;
mod engine;
mod footprint;
mod inbox;
mod intake;
mod ledger;
mod openings;
mod outbox;
pub mod postgres;
mod prune;
mod records;
mod removal;
mod room;
pub mod sqlite;
mod tenant_bytes;
pub mod transfer;
mod txn;
mod vault;
mod webchat;

pub use engine::Store;

use angelia_contract::limit::Group;

/// What bounds a store.
pub(crate) const LIMITS: &[Group] = &[
    ("Disk", sqlite::COMMIT_LIMITS),
    ("Disk", room::LIMITS),
    ("Disk", sqlite::READ_LIMITS),
    ("Disk", postgres::COMMIT_LIMITS),
];
