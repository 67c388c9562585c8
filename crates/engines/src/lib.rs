//! What implements the ports that core declares.

pub mod local_bus;
pub mod memory;
pub mod sql;
pub mod store;

#[cfg(any(test, feature = "inspect"))]
pub use store::sqlite::inspect;

/// The limits of this crate that operators are told of, by what they are about.
pub const LIMITS: &[angelia_contract::limit::Group] = store::sqlite::LIMITS;
