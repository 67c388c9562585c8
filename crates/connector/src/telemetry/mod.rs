//! Counting what happens.

mod metrics;

pub use metrics::{BotReading, Counter, Gauges, Metrics, NodeGauges};
