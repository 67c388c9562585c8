//! What an action may answer with: claimed when it is accepted, opened for one
//! call at a time.

use super::Egress;
use angelia_contract::action::{Action, Metadata};
use angelia_core::clock;
use angelia_core::error::Result;
use angelia_core::store::VaultStore;
use angelia_core::vault::{Answering, Capability, CapabilityId, Use};
use angelia_platforms::Answer;
use serde_json::Value;
use std::time::Duration;

/// What is this close to its end is not used any more: the call has to get there.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// What an action may claim of the vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claims {
    /// Nothing: it was claimed before, or nobody waits for it.
    Nothing,
    /// What fits, as a `send` does.
    Fitting,
    /// This one, as a `follow_up` does: without it there is nothing to do.
    Named(CapabilityId),
}

impl Claims {
    /// What the vault chooses by, for an action that writes to `chat_id`.
    pub(super) fn answering(self, action: &Action, chat_id: String) -> Option<Answering> {
        let Action::Send { reply_to, metadata, .. } = action else { return None };
        match self {
            Self::Nothing => None,
            Self::Named(id) => Some(Answering { chat_id, named: Some(id), ..Answering::default() }),
            Self::Fitting => {
                let reply_to = reply_to.clone().filter(|answered| !answered.is_empty());
                let notify = metadata.get("notify").is_some_and(|notify| notify == true);
                // What names no message and is for nobody answers nothing.
                let may_answer = reply_to.is_some() || notify;
                may_answer.then(|| Answering {
                    chat_id,
                    named: None,
                    reply_to,
                    notify,
                    user_id: user_id(metadata),
                })
            }
        }
    }
}

/// The person a message is for, if it says so.
fn user_id(metadata: &Metadata) -> Option<String> {
    match metadata.get("user_id")? {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

impl Egress {
    /// What answers by way of `used` at this moment; `None` if its time is over, it
    /// is gone, it does not open, or `is_meant` says that it is another's.
    pub(crate) async fn open(
        &self,
        used: Use,
        is_meant: impl Fn(&Capability) -> bool,
    ) -> Result<Option<Answer>> {
        let kept = self.records.capability(used.capability).await?;
        let at_arrival = clock::wall().after(LAST_MOMENT);
        let Some(kept) = kept.filter(|it| it.is_live(at_arrival) && is_meant(it)) else { return Ok(None) };
        match self.keys.open(&kept.sealed, &kept.bound_to()) {
            Ok(credential) => Ok(Some(Answer { way: used.way, credential, expires_at: kept.expires_at })),
            Err(error) => {
                tracing::error!(capability = used.capability.0, %error, "an interaction cannot be answered in its place");
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answering(claims: Claims, reply_to: Value, metadata: Value) -> Option<Answering> {
        let action = json!({"op": "send", "chat_id": "1", "reply_to": reply_to, "metadata": metadata});
        claims.answering(&Action::from_value(action), "2".into())
    }

    #[test]
    fn a_send_answers_by_name_or_for_somebody() {
        let fitting = |reply_to, metadata| answering(Claims::Fitting, reply_to, metadata);
        let base = Answering { chat_id: "2".into(), ..Answering::default() };
        assert_eq!(
            fitting(json!("9"), json!({})),
            Some(Answering { reply_to: Some("9".into()), ..base.clone() })
        );
        for user in [json!("42"), json!(42)] {
            let user_id = Some("42".into());
            assert_eq!(
                fitting(Value::Null, json!({"notify": true, "user_id": user})),
                Some(Answering { notify: true, user_id, ..base.clone() })
            );
        }
        let anybody = Some(Answering { notify: true, ..base.clone() });
        for user in [json!(""), json!(null), json!(true)] {
            assert_eq!(fitting(json!(""), json!({"notify": true, "user_id": user})), anybody);
        }
        for remark in [json!({}), json!({"notify": false}), json!({"notify": "true"}), json!({"notify": 1})] {
            assert_eq!(fitting(Value::Null, remark), None);
        }
        assert_eq!(answering(Claims::Nothing, json!("9"), json!({"notify": true})), None);
        let named = Some(Answering { named: Some(CapabilityId(7)), ..base });
        assert_eq!(answering(Claims::Named(CapabilityId(7)), json!("9"), json!({"notify": true})), named);
        let edit = json!({"op": "edit", "chat_id": "1", "message_id": "9", "metadata": {"notify": true}});
        assert_eq!(Claims::Fitting.answering(&Action::from_value(edit), "1".into()), None);
    }
}
