//! Databases that implement the ports: SQLite.

pub mod sqlite;
