//! Which gateway is dialling, and whether it may: its token against the secrets that are still good.

use super::Subject;
use crate::clock::UnixMillis;
use crate::inbox::InstanceId;
use crate::problems::TurnedAway;
use crate::secret::Secret;
use crate::turns::WhileBusy;
use angelia_contract::token::{DEFAULT_TTL_SECONDS, Token};

/// One secret of a gateway's rotation list.
#[derive(Clone, Debug)]
pub struct GatewaySecret {
    /// The secret itself.
    pub secret: Secret,
    /// Until when it is good; `None` for the current one.
    pub valid_until: Option<UnixMillis>,
    /// When it was made.
    pub created_at: UnixMillis,
}

/// The stored record of an enrolled gateway: where identity comes from.
#[derive(Clone, Debug)]
pub struct GatewayRecord {
    /// Its tenant.
    pub tenant: String,
    /// Its id; unique within the tenant only.
    pub gateway_id: String,
    /// The instance it serves.
    pub instance: InstanceId,
    /// That instance's name; the gateway id unless set otherwise.
    pub instance_name: String,
    /// Secrets that may sign its tokens, newest first.
    pub secrets: Vec<GatewaySecret>,
    /// When it was revoked.
    pub revoked_at: Option<UnixMillis>,
    /// Where to poke it when it sleeps.
    pub wake_url: Option<String>,
    /// What people see it called.
    pub display_name: Option<String>,
    /// Who enrolled it; `None` for the operator.
    pub subject: Option<Subject>,
    /// What becomes of messages while it is busy, where their route says nothing.
    pub while_busy: Option<WhileBusy>,
    /// Whether it is set to share sessions in groups: all people of a group are one
    /// conversation with it.
    pub shared_groups: bool,
}

impl GatewayRecord {
    /// Whether both are records of the same gateway, however old.
    pub fn is_same_gateway(&self, other: &Self) -> bool {
        self.tenant == other.tenant && self.gateway_id == other.gateway_id
    }

    /// Whether a secret that was good when `earlier` was read is good in this
    /// record too. If not, all of them were made void meanwhile.
    pub fn shares_secret(&self, earlier: &Self) -> bool {
        let still =
            |old: &GatewaySecret| self.secrets.iter().any(|s| s.secret.expose() == old.secret.expose());
        earlier.secrets.iter().any(still)
    }
}

/// What becomes of an upgrade.
#[derive(Debug, PartialEq, Eq)]
pub enum UpgradeVerdict {
    /// Let in, as the record at this position.
    Admit(usize),
    /// The record at this position was revoked: accept, then close with 4401.
    Revoked(usize),
    /// Not proven: 401, which every gateway retries.
    Refuse(Unproven),
}

/// Why a token proves nothing. Whoever sent it hears only that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unproven {
    /// In a word.
    pub why: TurnedAway,
    /// The record it may be of: whose secret signed it, or the only one with that id.
    pub record: Option<usize>,
    /// How many seconds the clock is ahead by which it was made, if that is what is wrong.
    pub clock_off: Option<i64>,
}

/// Judges a token against every record that carries its gateway id; the
/// matching secret decides, so tenants may share an id.
pub fn judge_upgrade(
    records: &[impl AsRef<GatewayRecord>],
    token: &Token,
    now: UnixMillis,
) -> UpgradeVerdict {
    let signed_by = |record: &GatewayRecord| {
        let live = |s: &&GatewaySecret| s.valid_until.is_none_or(|until| now <= until);
        let secrets = record.secrets.iter().filter(live).map(|s| s.secret.expose());
        token.first_match(secrets).is_some()
    };
    let refuse = |why, record, clock_off| UpgradeVerdict::Refuse(Unproven { why, record, clock_off });
    let signer = records.iter().position(|record| signed_by(record.as_ref()));
    let is_timely = token.check_time(now.seconds()).is_ok();
    match (signer, records.len()) {
        (Some(index), _) if !is_timely => refuse(TurnedAway::WrongClock, Some(index), clock_off(token, now)),
        (Some(index), _) if records[index].as_ref().revoked_at.is_some() => UpgradeVerdict::Revoked(index),
        (Some(index), _) => UpgradeVerdict::Admit(index),
        (None, 0) => refuse(TurnedAway::UnknownGateway, None, None),
        // Where tenants share an id, nobody knows which of them it is.
        (None, count) => refuse(TurnedAway::WrongSecret, (count == 1).then_some(0), None),
    }
}

/// How far ahead the clock is by which a token was made, if it was made as gateways make theirs.
fn clock_off(token: &Token, now: UnixMillis) -> Option<i64> {
    let made = token.exp().checked_sub(DEFAULT_TTL_SECONDS)?;
    i64::try_from(made).ok()?.checked_sub(i64::try_from(now.seconds()).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_contract::token;
    use std::sync::Arc;

    const NOW: UnixMillis = UnixMillis(1_750_000_000_000);

    fn record(tenant: &str, secrets: &[(&str, Option<i64>)], revoked: bool) -> Arc<GatewayRecord> {
        let secrets = secrets
            .iter()
            .map(|(text, until)| GatewaySecret {
                secret: Secret::new(*text),
                valid_until: until.map(UnixMillis),
                created_at: UnixMillis(0),
            })
            .collect();
        Arc::new(GatewayRecord {
            tenant: tenant.into(),
            gateway_id: "gw".into(),
            instance: InstanceId(1),
            instance_name: "gw".into(),
            secrets,
            revoked_at: revoked.then_some(NOW),
            wake_url: None,
            display_name: None,
            subject: None,
            while_busy: None,
            shared_groups: false,
        })
    }

    fn refused(why: TurnedAway, clock_off: Option<i64>) -> UpgradeVerdict {
        UpgradeVerdict::Refuse(Unproven { why, record: Some(0), clock_off })
    }

    fn judge(records: &[Arc<GatewayRecord>], secret: &str, ttl: u64, minted_at: u64) -> UpgradeVerdict {
        let text = token::mint("gw", secret, minted_at, ttl);
        judge_upgrade(records, &token::parse(&text).unwrap(), NOW)
    }

    #[test]
    fn the_matching_secret_decides() {
        let records = [record("a", &[("sa", None)], false), record("b", &[("sb", None)], false)];
        let now = NOW.seconds();
        assert_eq!(judge(&records, "sa", 300, now), UpgradeVerdict::Admit(0));
        assert_eq!(judge(&records, "sb", 300, now), UpgradeVerdict::Admit(1));
        let shared = Unproven { why: TurnedAway::WrongSecret, record: None, clock_off: None };
        assert_eq!(
            judge(&records, "sc", 300, now),
            UpgradeVerdict::Refuse(shared),
            "whose it is nobody knows"
        );
        let nobody = Unproven { why: TurnedAway::UnknownGateway, record: None, clock_off: None };
        assert_eq!(judge(&[], "sa", 300, now), UpgradeVerdict::Refuse(nobody));
        assert_eq!(
            judge(&records, "sa", 0, now),
            refused(TurnedAway::WrongClock, None),
            "a token without end"
        );
        assert_eq!(
            judge(&records, "sa", 90_000, now),
            refused(TurnedAway::WrongClock, Some(89_700)),
            "too far ahead"
        );
        assert_eq!(judge(&records, "sa", 300, now - 550), UpgradeVerdict::Admit(0), "within leeway");
        assert_eq!(
            judge(&records, "sa", 300, now - 7_200),
            refused(TurnedAway::WrongClock, Some(-7_200)),
            "expired is never a revocation"
        );
    }

    #[test]
    fn rotation_and_revocation() {
        let past = NOW.0 - 1;
        let rotated = [record("a", &[("new", None), ("old", Some(NOW.0)), ("older", Some(past))], false)];
        let now = NOW.seconds();
        assert_eq!(judge(&rotated, "old", 300, now), UpgradeVerdict::Admit(0));
        assert_eq!(
            judge(&rotated, "older", 300, now),
            refused(TurnedAway::WrongSecret, None),
            "past its window is 401"
        );
        assert!(record("a", &[("next", None), ("new", Some(1))], false).shares_secret(&rotated[0]));
        assert!(!record("a", &[("next", None)], false).shares_secret(&rotated[0]), "void at once");
        let revoked = [record("a", &[("s", None)], true)];
        assert_eq!(judge(&revoked, "s", 300, now), UpgradeVerdict::Revoked(0));
        assert_eq!(judge(&revoked, "x", 300, now), refused(TurnedAway::WrongSecret, None));
        assert_eq!(judge(&revoked, "s", 300, now - 7_000), refused(TurnedAway::WrongClock, Some(-7_000)));
    }
}
