//! Engines that keep everything on a disk.

pub mod sqlite;
