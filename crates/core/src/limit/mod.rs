//! How often something may happen. There are three ways to say it, and everything that limits,
//! paces or waits is made of them:
//!
//! - [`SlidingWindow`]: so many within any stretch of that length, and when there is room again.
//! - [`Gcra`]: a burst, and then a steady [`Rate`]; one moment is all that is remembered.
//! - [`Backoff`]: a pause that doubles with every failure.
//!
//! [`SlidingWindowOf`] and [`GcraOf`] keep one for each of many, within bounds, and
//! [`LogThrottle`] tells a warning once and then counts. None of them reads a clock.

mod backoff;
mod gcra;
mod log_throttle;
mod window;

pub use backoff::{Backoff, doubled, spread};
pub use gcra::{Gcra, GcraOf, Rate};
pub use log_throttle::LogThrottle;
pub use window::{SlidingWindow, SlidingWindowOf, WhenCrowded};
