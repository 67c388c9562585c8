//! Counting what happens.

mod metrics;

pub(crate) use metrics::disk_metrics;
pub use metrics::{BotReading, Counter, Gauges, Metrics};
