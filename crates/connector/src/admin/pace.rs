//! How often a gateway may change what is kept of it.
//!
//! Each change is a commit and a line of the audit log that stays for more
//! than a year, and a gateway makes them without anybody looking.

use angelia_core::clock::{self, Mono};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::identity::GatewayRecord;
use angelia_core::limit::{SlidingWindow, SlidingWindowOf, WhenCrowded};
use parking_lot::Mutex;
use std::time::Duration;

/// Changes of one gateway within [`CHANGES_IN`]: a start makes one for each of
/// its platforms at the most, and a crash loop starts every half minute.
const CHANGES: usize = 30;
const CHANGES_IN: Duration = Duration::from_secs(600);
/// Gateways whose changes are remembered. Beyond it the one that changed
/// something longest ago is forgotten.
const GATEWAYS: usize = 4_096;

/// What gateways changed lately, by tenant and gateway id.
pub(crate) struct Pace(Mutex<SlidingWindowOf<(String, String)>>);

impl Default for Pace {
    fn default() -> Self {
        let of_one = SlidingWindow::new(CHANGES, CHANGES_IN);
        Self(Mutex::new(SlidingWindowOf::new(GATEWAYS, WhenCrowded::ForgetOne, of_one)))
    }
}

impl Pace {
    /// Whether a gateway, or whoever enrolled it, may change something of it
    /// now; counts the change. Ask right before it is stored.
    pub(super) fn may_change(&self, record: &GatewayRecord) -> Result<()> {
        self.note(record, clock::mono())
    }

    fn note(&self, record: &GatewayRecord, now: Mono) -> Result<()> {
        let who = (record.tenant.clone(), record.gateway_id.clone());
        let noted = self.0.lock().take(&who, now);
        noted.map_err(|room_at| {
            let minutes = room_at.since(now).as_secs().div_ceil(60).max(1);
            Error::new(
                Kind::TooMany,
                format!(
                    "this gateway changed its settings {CHANGES} times within {} minutes; \
                     try again in {minutes} min and send only what has changed",
                    CHANGES_IN.as_secs() / 60
                ),
            )
        })
    }
}
