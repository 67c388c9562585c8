//! One suite for each port, run on every engine.

mod ledger;
mod log;
mod records;
