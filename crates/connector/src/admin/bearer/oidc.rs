//! Signed tokens of a configured issuer, proven with the keys it publishes.

use super::jwt::{Key, Unproven, claims};
use super::unproven;
use angelia_core::clock::{self, Mono};
use angelia_core::error::{Error, Result};
use angelia_core::identity::{MAX_NAME, Proof, Subject};
use angelia_core::limit_per_address::{Address, LimitPerAddress, Shares};
use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// How far the issuer's clock may be off, in seconds.
const LEEWAY: f64 = 60.0;
angelia_contract::limits! {
    /// A key that nobody here knows makes us ask the issuer for its keys again, and strangers name keys as they
    /// like. Until then such a token is refused with 401.
    const ASK_AGAIN: Duration = Duration::from_secs(60), time "between two fetches of an issuer's keys";
    /// Strangers use up the one fetch in a minute; an address that was good before may have the keys fetched too,
    /// once each: its token may be signed with a new one.
    const FURTHER: usize = 2, count "further fetches a minute, for addresses that were good before";
    /// Without any keys nobody gets in, so it is tried sooner.
    const ASK_AGAIN_WITHOUT: Duration = Duration::from_secs(5), time "between two fetches while there are no keys";
    /// So that keys which the issuer has withdrawn go.
    const STALE: Duration = Duration::from_secs(3600), time "until an issuer's keys are fetched anew";
    /// More than any issuer publishes. A larger set is not taken, and the one before stays.
    const MAX_KEYS: usize = 512 * 1024, bytes "of an issuer's set of keys";
}

/// An issuer, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcIssuer {
    /// What its tokens name as `iss`, letter by letter.
    pub issuer: String,
    /// Where its keys are published.
    pub jwks_url: String,
    /// What its tokens must name as `aud`.
    pub audience: String,
    /// The claim that names the tenant.
    pub tenant_claim: String,
}

impl Default for OidcIssuer {
    fn default() -> Self {
        let (issuer, jwks_url, audience) = Default::default();
        Self { issuer, jwks_url, audience, tenant_claim: "tid".into() }
    }
}

/// An issuer with the keys it published.
pub(super) struct Oidc {
    settings: OidcIssuer,
    client: reqwest::Client,
    known: RwLock<Known>,
    /// Held while the keys are fetched: everybody else waits for that one answer.
    fetching: tokio::sync::Mutex<()>,
    /// Fetches beside the one in [`ASK_AGAIN`], by those who were good before.
    further: Mutex<LimitPerAddress>,
}

#[derive(Clone, Default)]
struct Known {
    keys: Option<Arc<[Key]>>,
    asked_at: Option<Mono>,
    fetched_at: Option<Mono>,
}

impl Known {
    /// Whether it is time to ask the issuer: strangers name keys as they like.
    fn may_ask(&self, now: Mono) -> bool {
        let pause = if self.keys.is_some() { ASK_AGAIN } else { ASK_AGAIN_WITHOUT };
        self.asked_at.is_none_or(|at| now.since(at) >= pause)
    }
}

impl Oidc {
    pub(super) fn new(settings: OidcIssuer, client: reqwest::Client) -> Self {
        let shares = Shares { all: FURTHER, span: ASK_AGAIN, each: 1, kept: FURTHER };
        let further = Mutex::new(LimitPerAddress::new(shares));
        Self { settings, client, known: RwLock::default(), fetching: tokio::sync::Mutex::default(), further }
    }

    pub(super) fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    pub(super) async fn prove(&self, bearer: &str, from: Address) -> Result<Proof> {
        let token = Unproven::read(bearer).ok_or_else(unproven)?;
        let keys = self.keys_for(&token, from).await?;
        let key = token.find(&keys).ok_or_else(unproven)?;
        let claims = token.prove(key).ok_or_else(unproven)?;
        let proof = self.read(&claims, clock::wall().seconds() as f64).ok_or_else(unproven)?;
        self.further.lock().note_good(from, clock::mono());
        Ok(proof)
    }

    /// Who a proven token is for, if it is meant for us and good now. A claim of
    /// the wrong type is no claim.
    fn read(&self, claims: &Map<String, Value>, now: f64) -> Option<Proof> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let fits = |text: &&str| !text.is_empty() && text.len() <= MAX_NAME;
        let for_us = match claims.get("aud")? {
            Value::Array(all) => all.iter().any(|one| *one == *self.settings.audience),
            one => *one == *self.settings.audience,
        };
        let not_before = match claims.get("nbf") {
            None | Some(Value::Null) => f64::MIN,
            Some(from) => from.as_f64()?,
        };
        let expires = claims.get("exp")?.as_f64()?;
        let in_time = now <= expires + LEEWAY && not_before <= now + LEEWAY;
        if !for_us || !in_time || text("iss")? != self.settings.issuer {
            return None;
        }
        let subject = Subject::new(&self.settings.issuer, text("sub").filter(fits)?);
        let claim = text(&self.settings.tenant_claim).filter(fits)?.to_owned();
        Some(Proof { issuer: self.settings.issuer.clone(), claim, subject })
    }

    /// The published keys, asking the issuer for them if they do not have the one that is meant.
    async fn keys_for(&self, token: &Unproven<'_>, from: Address) -> Result<Arc<[Key]>> {
        let fresh = || {
            let known = self.known();
            let in_time = known.fetched_at.is_some_and(|at| clock::mono().since(at) < STALE);
            known.keys.filter(|keys| in_time && token.find(keys).is_some())
        };
        if let Some(keys) = fresh() {
            return Ok(keys);
        }
        let _turn = self.fetching.lock().await;
        // Somebody else may have fetched the one that is meant meanwhile.
        if fresh().is_none() && self.may_ask(from, clock::mono()) {
            self.fetch().await;
        }
        self.known().keys.ok_or_else(|| {
            Error::unavailable(format!(
                "the keys of {} cannot be fetched; try again later",
                self.settings.issuer
            ))
        })
    }

    /// Whether to ask the issuer for its keys on behalf of this caller.
    fn may_ask(&self, from: Address, now: Mono) -> bool {
        // Behind a proxy everybody has the same address, so nobody is known by it.
        self.known().may_ask(now) || (from != Address::Unknown && self.further.lock().take(from, now).is_ok())
    }

    /// Fetches the keys; those we have stay if that fails.
    async fn fetch(&self) {
        let fetched = self.download().await;
        let mut known = self.known.write();
        known.asked_at = Some(clock::mono());
        match fetched {
            Ok(keys) => {
                known.keys = Some(keys.into());
                known.fetched_at = known.asked_at;
            }
            Err(why) => {
                tracing::warn!(issuer = %self.settings.issuer, why, "the issuer's keys could not be fetched");
            }
        }
    }

    async fn download(&self) -> Result<Vec<Key>, &'static str> {
        let answer = self.client.get(&self.settings.jwks_url).send().await.map_err(|_| "no answer")?;
        if !answer.status().is_success() {
            return Err("an answer that is no success");
        }
        let body = super::portal::capped(answer, MAX_KEYS).await.ok_or("no answer of a sensible size")?;
        // One key of a sort we do not know must not hide the others.
        let set: Value = serde_json::from_slice(&body).map_err(|_| "no JSON")?;
        let keys = set["keys"].as_array().ok_or("no set of keys")?;
        Ok(keys.iter().filter_map(Key::read).collect())
    }

    fn known(&self) -> Known {
        self.known.read().clone()
    }
}

/// The issuer a token names, before anything is proven: only to choose who proves it.
pub(super) fn issuer_of(bearer: &str) -> Option<String> {
    claims(bearer)?["iss"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_issuer_is_asked_once_a_minute_at_most() {
        let at = |seconds| Mono(Duration::from_secs(seconds));
        let mut known = Known::default();
        assert!(known.may_ask(at(100)));
        known.asked_at = Some(at(100));
        assert!(!known.may_ask(at(104)) && known.may_ask(at(105)), "without any keys, soon again");
        known.keys = Some(Arc::new([]));
        assert!(!known.may_ask(at(159)) && known.may_ask(at(160)));
    }

    #[test]
    fn the_issuer_of_a_token_is_read_without_trust() {
        assert_eq!(issuer_of("a.eyJpc3MiOiJodHRwczovL2lkcCJ9.c").as_deref(), Some("https://idp"));
        for nothing in ["", "a", "a.b.c", "a.e30.c", "..", "a.eyJpc3MiOjF9.c"] {
            assert_eq!(issuer_of(nothing), None, "{nothing:?}");
        }
    }
}
