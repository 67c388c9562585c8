//! Stores: where the log lives.

pub mod sqlite;
