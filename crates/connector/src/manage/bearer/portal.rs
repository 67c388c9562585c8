//! Bearers we cannot read: an account URL tells whose they are.

use super::unproven;
use angelia_core::error::{Error, Result};
use angelia_core::identity::{MAX_NAME, Proof, Subject};
use axum::http::StatusCode;
use serde_json::Value;
use tokio::sync::Semaphore;

/// Largest answer taken.
const MAX_ANSWER: usize = 64 * 1024;
/// Questions at the same time: strangers decide how many are asked.
const AT_ONCE: usize = 8;

/// The place that knows whose a bearer is.
pub(super) struct Portal {
    account_url: String,
    client: reqwest::Client,
    turns: Semaphore,
}

impl Portal {
    pub(super) fn new(account_url: String, client: reqwest::Client) -> Self {
        Self { account_url, client, turns: Semaphore::new(AT_ONCE) }
    }

    /// What its tenants are linked to.
    pub(super) fn issuer(&self) -> &str {
        &self.account_url
    }

    pub(super) async fn prove(&self, bearer: &str) -> Result<Proof> {
        let away = || Error::unavailable("the account service does not answer; try again later");
        let Ok(_turn) = self.turns.try_acquire() else {
            return Err(Error::unavailable("too many identities are being checked; try again"));
        };
        let question = self.client.get(&self.account_url).bearer_auth(bearer);
        let answer = question.send().await.map_err(|_| away())?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(unproven()),
            status => {
                tracing::warn!(%status, "the account service answers strangely");
                return Err(away());
            }
        }
        let body = capped(answer, MAX_ANSWER).await.ok_or_else(away)?;
        let account: Value = serde_json::from_slice(&body).map_err(|_| away())?;
        self.read(&account).ok_or_else(unproven)
    }

    /// The organisation is the tenant; the person in it is the subject.
    fn read(&self, account: &Value) -> Option<Proof> {
        let organisation = text(&account["organisation"]["id"])
            .or_else(|| text(&account["paid_service_access"]["organisation_id"]))?;
        let user = &account["user"];
        let person = ["id", "privy_did", "email"].into_iter().find_map(|name| text(&user[name]));
        let person = person.unwrap_or_else(|| format!("organisation {organisation}"));
        Some(Proof {
            issuer: self.account_url.clone(),
            claim: organisation,
            subject: Subject::new(&self.account_url, &person),
        })
    }
}

fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!text.is_empty() && text.len() <= MAX_NAME).then_some(text)
}

/// A body up to a size; `None` if it is larger or breaks off.
pub(super) async fn capped(mut answer: reqwest::Response, most: usize) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.ok()? {
        if body.len() + chunk.len() > most {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_organisation_is_the_tenant() {
        let portal = Portal::new("https://portal/account".into(), reqwest::Client::new());
        let proof = portal.read(&json!({ "organisation": { "id": "o1" }, "user": { "email": "a@b" } }));
        let proof = proof.unwrap();
        assert_eq!((proof.claim.as_str(), proof.issuer.as_str()), ("o1", "https://portal/account"));
        assert_eq!(proof.subject, Subject::new("https://portal/account", "a@b"));
        let paid = portal.read(&json!({ "paid_service_access": { "organisation_id": 7 } })).unwrap();
        assert_eq!(paid.claim, "7");
        for nobody in [json!({}), json!({ "organisation": { "id": "" } }), json!({ "organisation": "o1" })] {
            assert_eq!(portal.read(&nobody), None);
        }
    }
}
