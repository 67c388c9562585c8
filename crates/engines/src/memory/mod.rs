//! Engines that keep everything in memory, for tests and simulation: the same
//! rules as on disk, and nothing that outlives the process.

mod log;

pub use log::MemoryLog;
