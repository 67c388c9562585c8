//! Whether somebody with a proven tenant gets a gateway's secret, and which.

use super::{GatewayRecord, ROTATION_WINDOW, Subject};
use crate::clock::UnixMillis;
use crate::error::{Error, Result};

/// How long a fresh secret is given again to the subject it was made for. A
/// gateway that fronts three platforms provisions three times at each start
/// and keeps the first answer.
pub const SAME_SECRET_FOR: std::time::Duration = ROTATION_WINDOW;

/// Longest life of an enrolment token.
pub const MAX_ENROLL_TOKEN: std::time::Duration = std::time::Duration::from_secs(7 * 24 * 3600);

/// What a provision request comes to.
#[derive(Debug, PartialEq, Eq)]
pub enum Provision {
    /// There is no such gateway: make it.
    Create,
    /// It has a fresh secret: give that one.
    Same,
    /// Its secret is old: make a new one, the old one goes on for the rotation window.
    Renew,
}

/// Decides over a provision request of `subject` for a gateway id of its own
/// tenant. `record` is the gateway with that id, if there is one.
pub fn judge_provision(
    record: Option<&GatewayRecord>,
    subject: &Subject,
    now: UnixMillis,
) -> Result<Provision> {
    let Some(record) = record else { return Ok(Provision::Create) };
    if record.subject.as_ref() != Some(subject) {
        return Err(Error::forbidden(
            "this gateway id was enrolled by somebody else; choose another id (GATEWAY_RELAY_ID)",
        ));
    }
    if record.revoked_at.is_some() {
        return Err(Error::forbidden(
            "this gateway was revoked; ask the operator, or choose another id (GATEWAY_RELAY_ID)",
        ));
    }
    let current = record.secrets.iter().find(|secret| secret.valid_until.is_none());
    Ok(match current {
        Some(secret) if secret.created_at > now.before(SAME_SECRET_FOR) => Provision::Same,
        _ => Provision::Renew,
    })
}

/// Decides whether `subject` may let a gateway of its own serve an instance
/// that exists already. `owner` made that instance, `None` is the operator;
/// `revoked` if every gateway that served it was revoked.
pub fn judge_instance(owner: Option<&Subject>, revoked: bool, subject: &Subject) -> Result<()> {
    let refuse = |why: &str| Err(Error::forbidden(why));
    match owner {
        Some(owner) if owner == subject && revoked => {
            refuse("this instance was revoked; ask the operator, or choose another instance id")
        }
        Some(owner) if owner == subject => Ok(()),
        _ => refuse("this gateway or instance id belongs to somebody else; choose another"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::GatewaySecret;
    use super::*;
    use crate::Kind;
    use crate::inbox::InstanceId;
    use crate::secret::Secret;

    const NOW: UnixMillis = UnixMillis(1_750_000_000_000);
    const HOUR: i64 = 3_600_000;

    fn record(subject: Option<&Subject>, created_at: i64, revoked: bool) -> GatewayRecord {
        GatewayRecord {
            tenant: "acme".into(),
            gateway_id: "gw".into(),
            instance: InstanceId(1),
            instance_name: "gw".into(),
            secrets: vec![GatewaySecret {
                secret: Secret::new("s"),
                valid_until: None,
                created_at: UnixMillis(created_at),
            }],
            revoked_at: revoked.then_some(NOW),
            wake_url: None,
            display_name: None,
            subject: subject.cloned(),
            while_busy: None,
            shared_groups: false,
        }
    }

    #[test]
    fn the_subject_that_made_it_gets_it_again() {
        let (ann, bob) = (Subject::new("https://idp", "ann"), Subject::new("https://idp", "bob"));
        assert_eq!(judge_provision(None, &ann, NOW).unwrap(), Provision::Create);
        let fresh = record(Some(&ann), NOW.0 - 23 * HOUR, false);
        assert_eq!(judge_provision(Some(&fresh), &ann, NOW).unwrap(), Provision::Same);
        let old = record(Some(&ann), NOW.0 - 25 * HOUR, false);
        assert_eq!(judge_provision(Some(&old), &ann, NOW).unwrap(), Provision::Renew);
        let forbidden = |record: &GatewayRecord, subject: &Subject| {
            judge_provision(Some(record), subject, NOW).unwrap_err().kind() == Kind::Forbidden
        };
        assert!(forbidden(&fresh, &bob), "another subject of the tenant");
        assert!(forbidden(&record(None, NOW.0, false), &ann), "one the operator made");
        assert!(forbidden(&record(Some(&ann), NOW.0, true), &ann), "a revoked one");
        let namesake = Subject::new("https://other", "ann");
        assert!(forbidden(&fresh, &namesake), "the same name at another issuer");
    }

    #[test]
    fn an_instance_is_shared_only_by_its_maker() {
        let (ann, bob) = (Subject::new("i", "ann"), Subject::new("i", "bob"));
        assert!(judge_instance(Some(&ann), false, &ann).is_ok());
        assert!(judge_instance(Some(&ann), true, &ann).is_err(), "revoked under another gateway id");
        assert!(judge_instance(Some(&ann), false, &bob).is_err());
        assert!(judge_instance(None, false, &ann).is_err(), "the operator's");
    }
}
