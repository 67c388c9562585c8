//! Engines that keep everything in memory, for tests and simulation: the same
//! rules as on disk, and nothing that outlives the process.

mod ledger;
mod log;
mod records;

pub use ledger::MemoryLedger;
pub use log::MemoryLog;
pub use records::MemoryRecords;
