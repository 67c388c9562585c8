//! The clock: whether it can be trusted, and the operator's word that it can.

use super::Admin;
use super::types::Nothing;
use angelia_core::audit::Actor;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::error::Result;
use std::sync::Arc;

answered! {
    /// What the clock shows, and the leap that nobody has confirmed.
    pub struct Clock {
        /// The time.
        pub now: UnixMillis,
        /// The leap, in words.
        pub leap: Option<String>,
        /// The leap; negative if the clock is behind.
        pub ahead_ms: Option<i64>,
    }

    /// The clock, taken for right as it is.
    pub struct AcceptedClock {
        /// What it shows.
        #[serde(flatten)]
        pub clock: Clock,
        /// The leap that was accepted, in words.
        pub accepted: Option<String>,
    }
}

pub(super) async fn show(admin: Arc<Admin>, _: Nothing) -> Result<Clock> {
    Ok(describe(&admin))
}

pub(super) async fn accept(admin: Arc<Admin>, _: Nothing) -> Result<AcceptedClock> {
    let accepted = admin.ports.upkeep.accept_clock(&Actor::operator()).await?;
    if let Some(leap) = accepted {
        tracing::info!(leap = leap.words(), "the clock was accepted as it is");
    }
    Ok(AcceptedClock { clock: describe(&admin), accepted: accepted.map(|leap| leap.words()) })
}

/// What the clock shows, and the leap that nobody has confirmed.
pub(super) fn describe(admin: &Admin) -> Clock {
    let leap = admin.ports.upkeep.leap();
    let (words, ahead_ms) = (leap.map(|leap| leap.words()), leap.map(|leap| leap.ahead_ms));
    Clock { now: clock::wall(), leap: words, ahead_ms }
}
