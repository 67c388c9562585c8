//! One suite for each port, run on every engine.

mod leases;
mod ledger;
mod log;
mod records;
