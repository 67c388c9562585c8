//! Counting what happens.

mod metrics;

pub use metrics::{Counter, Metrics};
