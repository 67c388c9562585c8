//! How many gateways a tenant makes by itself, and how fast.

use crate::clock::Mono;
use crate::error::{Error, Kind, Result};
use crate::limit::{GcraOf, Rate};

angelia_contract::limits! {
    /// More agents than a tenant runs. Beyond it enrolling and provisioning new ones is refused with 409, until
    /// some are revoked or the operator raises `limits.gateways_per_tenant`.
    pub const GATEWAYS_PER_TENANT: u64 = 1_000, count "gateways of one tenant that enrolled themselves, unless configured";
    /// All gateways are kept in memory. Beyond it nobody makes one, the operator included, and revoked ones count
    /// for the 90 days they are remembered.
    pub const MAX_GATEWAYS_PER_TENANT: u64 = 10_000, count "gateways of one tenant, the operator's and revoked ones included";
    /// A fleet that starts for the first time. Beyond it new ones are refused with 429 and come at the pace below;
    /// those that are known already are not new. `limits.new_gateways_at_once` sets it.
    pub const NEW_GATEWAYS_AT_ONCE: u32 = 20, count "new gateways of one tenant at once, unless configured";
    /// Sixty an hour is as many as somebody installs, and few for somebody who makes them in a loop.
    /// `limits.new_gateways_per_minute` sets it.
    pub const NEW_GATEWAYS_PER_MINUTE: u32 = 1, count "new gateways of one tenant in a minute after that, unless configured";
    /// Beyond it the tenant that has rested longest is forgotten, and may make as many at once as a new one.
    pub const PACED_TENANTS: usize = 1_024, count "tenants whose new gateways are remembered";
}

/// What an operator can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayLimits {
    /// Most living gateways of a tenant that come by self-service.
    pub per_tenant: u64,
    /// How fast new ones come.
    pub pace: Rate,
}

impl Default for GatewayLimits {
    fn default() -> Self {
        let pace = Rate::a_minute(NEW_GATEWAYS_PER_MINUTE, NEW_GATEWAYS_AT_ONCE);
        Self { per_tenant: GATEWAYS_PER_TENANT, pace }
    }
}

/// Who made how many lately.
#[derive(Debug)]
pub struct Making {
    pace: Rate,
    tenants: GcraOf<String>,
}

impl Making {
    /// Nobody made any.
    pub fn new(limits: GatewayLimits) -> Self {
        Self { pace: limits.pace, tenants: GcraOf::new(PACED_TENANTS) }
    }

    /// Whether a tenant may make one more now. That alone counts for nothing:
    /// what is refused for another reason must not hold up the others.
    pub fn check(&self, tenant: &str, now: Mono) -> Result<()> {
        let wait = self.tenants.wait(tenant, self.pace, now);
        if wait.is_zero() {
            return Ok(());
        }
        let message = format!(
            "tenant {tenant:?} makes new gateways too fast; try again in {} s, or use a gateway id that \
             exists already. The operator can set limits.new_gateways_at_once and \
             limits.new_gateways_per_minute",
            wait.as_secs().max(1)
        );
        Err(Error::new(Kind::TooMany, message).retry_in(wait))
    }

    /// Counts one that was made.
    pub fn made(&mut self, tenant: &str, now: Mono) {
        self.tenants.note(tenant, self.pace, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    #[test]
    fn a_fleet_at_once_and_then_one_by_one() {
        let mut making = Making::new(GatewayLimits::default());
        for _ in 0..NEW_GATEWAYS_AT_ONCE {
            making.check("acme", at(0)).unwrap();
            making.check("acme", at(0)).unwrap();
            making.made("acme", at(0));
        }
        let refused = making.check("acme", at(0)).unwrap_err();
        assert_eq!((refused.kind(), refused.retry_after()), (Kind::TooMany, Some(Duration::from_secs(60))));
        assert!(making.check("evil", at(0)).is_ok(), "another tenant");
        assert!(making.check("acme", at(59)).is_err() && making.check("acme", at(60)).is_ok());
        making.made("acme", at(60));
        assert!(making.check("acme", at(60)).is_err());
    }
}
