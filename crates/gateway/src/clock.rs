//! The only place that reads the wall clock.
//!
//! Only token expiry needs it; every timeout runs on the runtime's own clock,
//! which tests can stop and move.

/// Seconds since the Unix epoch.
#[allow(clippy::disallowed_methods)]
pub(crate) fn unix_seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs()
}
