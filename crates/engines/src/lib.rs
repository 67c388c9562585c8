//! What implements the ports that core declares.

pub mod store;

/// Every limit of this crate that operators are told of.
pub fn limits() -> impl Iterator<Item = &'static angelia_contract::limit::Limit> {
    store::sqlite::LIMITS.into_iter().flatten()
}
