//! What an app's secret is good for.

use super::{NAME, Wecom};
use crate::kit::health::Checkup;
use crate::kit::webhook::path;
use crate::kit::{ApiError, ErrorKind};
use angelia_core::error::Result;
use serde::Deserialize;

/// What WeCom says of an app.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Profile {
    name: String,
    /// Whether somebody switched it off.
    close: u8,
    allow_userinfos: Allowed,
    allow_partys: Allowed,
    allow_tags: Allowed,
}

/// Who may see an app.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Allowed {
    #[serde(alias = "partyid", alias = "tagid")]
    user: Vec<serde_json::Value>,
}

impl Wecom {
    /// Asks WeCom what the app can and cannot do.
    pub(super) async fn look_over(&self, public_url: &str) -> Result<Checkup> {
        let mut checkup = Checkup::default();
        match self.token.get(self.fetch_token()).await {
            Ok(_) => checkup.good("the secret is good"),
            Err(ApiError { kind: ErrorKind::Setup, why }) => {
                bad(&mut checkup, &why);
                return Ok(checkup);
            }
            Err(error) => return Err(error.into()),
        }
        match self.profile().await {
            Ok(profile) => {
                checkup.identity = Some(format!("{} ({})", profile.name, self.account.key.bot));
                profile_findings(&mut checkup, &profile);
            }
            Err(ApiError { kind: ErrorKind::Setup, why }) => bad(&mut checkup, &why),
            Err(error) => {
                checkup.limited(format!("the app is not known: {error}"), "check again later");
            }
        }
        let callback = format!("{public_url}{}", path(NAME, &self.config.name));
        checkup.limited(
            "where WeCom posts to cannot be asked for",
            format!(
                "see that the app's page (Receive Messages, Set API Receiving) has the URL {callback}, and the same \
                 Token and EncodingAESKey as the configuration; WeCom tries it when you save"
            ),
        );
        Ok(checkup)
    }

    /// Asks WeCom about the app.
    pub(super) async fn profile(&self) -> Result<Profile, ApiError> {
        self.call("agent/get", Some(("agentid", &self.config.agent_id)), None, || true).await
    }
}

/// A failure that says what to do about it.
fn bad(checkup: &mut Checkup, why: &str) {
    let (what, next) = why.split_once(": ").unwrap_or((why, "look at the app in the admin console"));
    checkup.bad(what, next);
}

fn profile_findings(checkup: &mut Checkup, profile: &Profile) {
    match profile.close {
        0 => checkup.good("the app is switched on"),
        _ => checkup
            .bad("the app is switched off", "switch it on in the admin console (App Management, the app)"),
    }
    let everybody = [&profile.allow_userinfos, &profile.allow_partys, &profile.allow_tags];
    if everybody.iter().all(|allowed| allowed.user.is_empty()) {
        checkup.limited(
            "nobody can see the app",
            "add people or departments to its visible range in the admin console (App Management, the app, Allowed \
             Users)",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::health::Verdict;
    use serde_json::json;

    #[test]
    fn findings_say_what_to_do_next() {
        let verdicts = |profile: serde_json::Value| -> Vec<Verdict> {
            let mut checkup = Checkup::default();
            profile_findings(&mut checkup, &serde_json::from_value(profile).unwrap());
            checkup.findings.iter().map(|finding| finding.verdict).collect()
        };
        let seen = json!({ "partyid": [1] });
        assert_eq!(verdicts(json!({ "name": "x", "close": 0, "allow_partys": seen })), [Verdict::Good]);
        let people = json!({ "user": [{ "userid": "ann" }] });
        assert_eq!(verdicts(json!({ "close": 1, "allow_userinfos": people })), [Verdict::Bad]);
        assert_eq!(verdicts(json!({})), [Verdict::Good, Verdict::Limited]);
        let mut checkup = Checkup::default();
        bad(&mut checkup, "WeCom does not know the company (errcode 40013): see that");
        assert_eq!(checkup.findings[0].next.as_deref(), Some("see that"));
    }
}
