//! Leases, as they are kept.

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
        /// When it ends; `None` for one without an end.
        until: Option<UnixMillis>,
        /// Whether it was given back.
        released: bool,
    }
}
