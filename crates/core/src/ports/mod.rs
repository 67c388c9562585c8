//! The ports: what the decisions need from outside, each small enough to be
//! written for a database, for memory, or for a test that breaks it.

pub mod log;
