//! Who is there, and who does what only one node may do, as they are kept.

use crate::clock::UnixMillis;
use crate::records::table::record;

record! {
    /// A lease, held or not.
    pub struct LeaseRow in "leases", key 1 {
        /// What it is for.
        name: String,
        /// Who holds it, or held it last.
        node: String,
        /// The holder's token; grows.
        token: i64,
        /// When it ends; `None` for one without an end. Of one that was given back, when it was.
        until: Option<UnixMillis>,
        /// Whether it was given back.
        released: bool,
        /// As whom the ledger knows whoever works on what waits for this bot; 0 for nobody.
        owner: i64,
    }
}

record! {
    /// A node that is there, or was.
    pub struct NodeRow in "nodes", key 1 {
        /// What it is called.
        node: String,
        /// As whom the ledger knows it.
        owner: i64,
        /// When it came.
        started_at: UnixMillis,
        /// Until when it is believed to be there without another sign of it.
        until: UnixMillis,
        /// Whether it takes leases: one that leaves does not.
        takes: bool,
        /// What it tells of itself, as JSON text.
        facts: String,
    }
}
