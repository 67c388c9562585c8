//! What the log says of gateways: that one connected, went idle, left, was replaced or turned away. Each
//! line has the same fields (`tenant`, `gateway`, `event`, `reason`), so that a log can be searched and
//! counted; what one gateway does over and over is told once a minute, with how often.

use super::Relay;
use super::mailbox::Ending;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::identity::GatewayRecord;
use angelia_core::limit::LogThrottle;
use angelia_core::problems::{Place, TurnedAway, fill};
use hashlink::LruCache;
use parking_lot::Mutex;

/// Gateways and reasons whose lines are counted apart.
const REMEMBERED: usize = 512;
/// As much as is shown of an id that may be made up.
const LONGEST_ID: usize = 128;

/// Which dials were told of lately, and which refusal of each gateway was the last.
pub(crate) struct DialLog {
    throttles: Mutex<LruCache<(TurnedAway, String), LogThrottle>>,
    last: Mutex<LruCache<(String, String), (TurnedAway, UnixMillis)>>,
}

impl Default for DialLog {
    fn default() -> Self {
        Self { throttles: Mutex::new(LruCache::new(REMEMBERED)), last: Mutex::new(LruCache::new(REMEMBERED)) }
    }
}

impl DialLog {
    /// How often it happened since it was told last; `None` if it was told a moment ago.
    fn due(&self, why: TurnedAway, gateway: &str) -> Option<u64> {
        let mut throttles = self.throttles.lock();
        let key = (why, gateway.to_owned());
        let throttle = throttles.entry(key).or_insert_with(LogThrottle::default);
        throttle.note(clock::mono())
    }

    /// Why a gateway was turned away the last time, and when, as far as this node knows.
    pub(crate) fn last_refused(&self, record: &GatewayRecord) -> Option<(TurnedAway, UnixMillis)> {
        let key = (record.tenant.clone(), record.gateway_id.clone());
        self.last.lock().peek(&key).copied()
    }
}

impl Relay {
    /// A gateway was turned away: one that is known, or whoever claims its id.
    pub(super) fn log_turned_away(
        &self,
        why: TurnedAway,
        gateway: &str,
        record: Option<&GatewayRecord>,
        clock_off: Option<i64>,
    ) {
        if let Some(record) = record {
            let key = (record.tenant.clone(), record.gateway_id.clone());
            self.dials.last.lock().insert(key, (why, clock::wall()));
        }
        // Strangers make up ids as they like: all of them together have one line in a minute.
        let known = if record.is_some() { gateway } else { "" };
        let Some(times) = self.dials.due(why, known) else { return };
        let gateway: &str = &gateway.chars().take(LONGEST_ID).collect::<String>();
        let problem = why.problem();
        let tenant = record.map(|record| record.tenant.as_str());
        let next = fill(problem.next, &Place { tenant, gateway: Some(gateway), ..Place::default() });
        tracing::warn!(
            event = "gateway_refused",
            tenant = tenant.unwrap_or_default(),
            gateway,
            reason = problem.word,
            times,
            clock_off_seconds = clock_off,
            next,
            "a gateway was turned away: {}",
            problem.means
        );
    }
}

/// A gateway said hello at this address, and gets what waits from now on.
pub(super) fn connected(record: &GatewayRecord, address: &str, waiting: u64) {
    let (tenant, gateway) = (record.tenant.as_str(), record.gateway_id.as_str());
    tracing::info!(event = "gateway_connected", tenant, gateway, address, waiting, "a gateway connected");
}

/// It sleeps until it is woken.
pub(super) fn idle(record: &GatewayRecord) {
    let (tenant, gateway) = (record.tenant.as_str(), record.gateway_id.as_str());
    tracing::info!(event = "gateway_idle", tenant, gateway, "a gateway went idle");
}

/// Its socket ended.
pub(super) fn left(
    record: &GatewayRecord,
    ending: Option<Ending>,
    peer_closed: bool,
    idle: bool,
    seconds: u64,
) {
    let (tenant, gateway) = (record.tenant.as_str(), record.gateway_id.as_str());
    let reason = match ending {
        Some(Ending::Replaced) => "replaced",
        Some(Ending::Revoked) => "revoked",
        Some(Ending::WhenDone | Ending::Shutdown) => "server_stops",
        None if idle => "idle",
        None if peer_closed => "closed",
        None => "lost",
    };
    match reason {
        "replaced" => tracing::info!(
            event = "gateway_replaced",
            tenant,
            gateway,
            reason,
            seconds,
            "a newer connection took a gateway's place"
        ),
        "lost" => tracing::info!(
            event = "gateway_left",
            tenant,
            gateway,
            reason,
            seconds,
            "a gateway's connection was lost; what comes meanwhile waits"
        ),
        _ => tracing::info!(event = "gateway_left", tenant, gateway, reason, seconds, "a gateway left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_over_and_over_is_told_once() {
        let log = DialLog::default();
        assert_eq!(log.due(TurnedAway::WrongSecret, "gw"), Some(1));
        assert_eq!(log.due(TurnedAway::WrongSecret, "gw"), None);
        assert_eq!(log.due(TurnedAway::WrongClock, "gw"), Some(1), "another reason is news");
        assert_eq!(log.due(TurnedAway::WrongSecret, "gw-2"), Some(1), "and so is another gateway");
    }
}
