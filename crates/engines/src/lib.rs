//! What implements the ports that core declares.

pub mod store;
