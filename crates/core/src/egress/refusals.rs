//! How many refused calls one tenant may cause.
//!
//! Providers ban a bot that keeps calling where it may not, and a ban hits
//! every tenant of the bot.

use crate::clock::Mono;
use crate::limit::SlidingWindow;
use std::collections::HashMap;
use std::time::Duration;

/// Refused calls of one tenant within [`REFUSED_WINDOW`]. The strictest provider
/// bans at 10,000 in ten minutes: ten tenants at their worst stay below.
pub const MAX_REFUSED: usize = 100;
/// See [`MAX_REFUSED`].
pub const REFUSED_WINDOW: Duration = Duration::from_secs(60);

/// Whether a tenant may make a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes. Its end is to be told with [`RefusalCounts::done`].
    Go,
    /// Calls under way could already use up what is left: ask again when one is done.
    Wait,
    /// No: too many were refused.
    No,
}

#[derive(Clone, Debug)]
struct Tally {
    refused: SlidingWindow,
    under_way: usize,
}

impl Default for Tally {
    fn default() -> Self {
        Self { refused: SlidingWindow::new(MAX_REFUSED, REFUSED_WINDOW), under_way: 0 }
    }
}

/// The refused calls of the last minute, tenant by tenant.
///
/// A call under way counts as one that may be refused, so that many at once
/// cannot get past the limit together.
#[derive(Clone, Debug, Default)]
pub struct RefusalCounts {
    tenants: HashMap<String, Tally>,
    swept_at: Mono,
}

impl RefusalCounts {
    /// Asks for permission to make one call.
    pub fn ask(&mut self, tenant: &str, now: Mono) -> Decision {
        self.sweep(now);
        if !self.tenants.contains_key(tenant) {
            self.tenants.insert(tenant.to_owned(), Tally::default());
        }
        let Some(tally) = self.tenants.get_mut(tenant) else { return Decision::Wait };
        let refused = tally.refused.count(now);
        if refused >= MAX_REFUSED {
            return Decision::No;
        }
        if refused + tally.under_way >= MAX_REFUSED {
            return Decision::Wait;
        }
        tally.under_way += 1;
        Decision::Go
    }

    /// A call is over.
    pub fn done(&mut self, tenant: &str, refused: bool, now: Mono) {
        let Some(tally) = self.tenants.get_mut(tenant) else { return };
        tally.under_way = tally.under_way.saturating_sub(1);
        if refused {
            // There is room: it was among those under way.
            let _ = tally.refused.take(now);
        }
    }

    /// Forgets tenants that have not been heard of for a window.
    fn sweep(&mut self, now: Mono) {
        if now.since(self.swept_at) < REFUSED_WINDOW {
            return;
        }
        self.swept_at = now;
        self.tenants.retain(|_, tally| tally.under_way > 0 || tally.refused.count(now) > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    #[test]
    fn the_hundred_and_first_is_not_made() {
        let mut refusals = RefusalCounts::default();
        for n in 0..100 {
            assert_eq!(refusals.ask("loud", at(n / 2)), Decision::Go);
            refusals.done("loud", true, at(n / 2));
        }
        assert_eq!(refusals.ask("loud", at(59)), Decision::No);
        assert_eq!(refusals.ask("quiet", at(59)), Decision::Go, "others are not touched");
        assert_eq!(refusals.ask("loud", at(60)), Decision::Go, "the first two are a minute old");
        assert_eq!(refusals.ask("loud", at(60)), Decision::Go);
        assert_eq!(refusals.ask("loud", at(60)), Decision::Wait, "those two may still be refused");
        refusals.done("loud", false, at(60));
        assert_eq!(refusals.ask("loud", at(60)), Decision::Go);
    }

    #[test]
    fn tenants_are_forgotten() {
        let mut refusals = RefusalCounts::default();
        for n in 0..1_000 {
            let tenant = format!("t{n}");
            assert_eq!(refusals.ask(&tenant, at(1)), Decision::Go);
            refusals.done(&tenant, n % 2 == 0, at(1));
        }
        refusals.ask("t", at(62));
        assert_eq!(refusals.tenants.len(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        /// Whatever calls end when, no minute holds more than a hundred refusals.
        #[test]
        fn no_minute_holds_more(steps in prop::collection::vec((0u8..4, 0u64..12, any::<bool>()), 1..1_500)) {
            let (mut refusals, mut now, mut under_way) = (RefusalCounts::default(), 0, 0);
            let mut refused: Vec<u64> = Vec::new();
            for (kind, pass, bad) in steps {
                now += pass / 11;
                if kind < 3 {
                    let decision = refusals.ask("a", at(now));
                    let recent = refused.iter().filter(|then| **then + 60 > now).count();
                    prop_assert_eq!(decision == Decision::No, recent >= 100);
                    under_way += usize::from(decision == Decision::Go);
                }
                if (kind == 3 || under_way > 90) && under_way > 0 {
                    under_way -= 1;
                    refusals.done("a", bad, at(now));
                    if bad {
                        refused.push(now);
                    }
                }
                let recent = refused.iter().filter(|then| **then + 60 > now).count();
                prop_assert!(recent <= 100);
            }
        }
    }
}
