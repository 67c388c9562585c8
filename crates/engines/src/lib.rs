//! What implements the ports that core declares.

pub mod blobs;
pub mod deaf_bus;
pub mod late_bus;
pub mod local_bus;
pub mod memory;
pub mod redis_bus;
pub mod sql;
pub mod store;

#[cfg(any(test, feature = "inspect"))]
pub use store::sqlite::inspect;

/// The limits of this crate that operators are told of, by what they are about.
pub const LIMITS: &[angelia_contract::limit::Group] = store::LIMITS;
