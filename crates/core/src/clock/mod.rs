//! The only place that reads a clock.
//!
//! Decisions take the time as an argument. Two clocks are kept apart on
//! purpose: windows and timeouts must not jump when someone sets the wall
//! clock, while stored times and token expiry must follow it. How old something
//! is that was stored, also across leaps of the wall clock, is in [`ClockState`].

mod state;

pub use state::{Age, ClockState, ClockVerdict, LIMITS, Leap, MAX_OFF, MAX_STEP, Old};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use std::time::Duration;

/// Milliseconds since the Unix epoch, for what is stored or compared with the outside.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct UnixMillis(pub i64);

impl UnixMillis {
    /// Whole seconds, as upgrade tokens count them.
    pub fn seconds(self) -> u64 {
        u64::try_from(self.0 / 1000).unwrap_or(0)
    }

    /// The moment `span` earlier.
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.as_millis() as i64))
    }

    /// The moment `span` later.
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.as_millis() as i64))
    }
}

/// A moment on a clock that never goes back, for windows and timeouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub Duration);

impl Mono {
    /// How long ago `earlier` was.
    pub fn since(self, earlier: Mono) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// So long before; the start of the clock if that is earlier.
    pub fn before(self, span: Duration) -> Mono {
        Mono(self.0.saturating_sub(span))
    }
}

impl std::ops::Add<Duration> for Mono {
    type Output = Mono;

    fn add(self, span: Duration) -> Mono {
        Mono(self.0 + span)
    }
}

/// The wall clock now.
#[allow(clippy::disallowed_methods)]
pub fn wall() -> UnixMillis {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    UnixMillis(since_epoch.as_millis() as i64)
}

/// The monotonic clock now.
#[allow(clippy::disallowed_methods)]
pub fn mono() -> Mono {
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    Mono(START.get_or_init(std::time::Instant::now).elapsed())
}

/// How long the machine is up, the time it slept included, where it tells:
/// the monotonic clock stands still while a machine sleeps.
pub fn uptime() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = text.split(' ').next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
