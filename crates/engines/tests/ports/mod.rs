//! One suite for each port, run on every engine.

mod log;
