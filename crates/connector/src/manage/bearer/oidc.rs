//! Signed tokens of a configured issuer, proven with the keys it publishes.

use super::{peek, unproven};
use angelia_core::clock::{self, Mono};
use angelia_core::error::{Error, Result};
use angelia_core::identity::{MAX_NAME, Proof, Subject};
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// The only algorithms taken: never `none`, never one with a shared secret.
const ALGORITHMS: [Algorithm; 3] = [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];
/// How far the issuer's clock may be off, in seconds.
const LEEWAY: u64 = 60;
/// A key we do not know makes us ask for the keys again, but not more often than this.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// Without any keys we try sooner.
const ASK_AGAIN_WITHOUT: Duration = Duration::from_secs(5);
/// Keys are asked for again after this long, so that withdrawn ones go.
const STALE: Duration = Duration::from_secs(3600);
/// Largest set of keys taken.
const MAX_KEYS: usize = 512 * 1024;

/// An issuer, as configured.
#[derive(Clone, Debug)]
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

/// An issuer with the keys it published.
pub(super) struct Oidc {
    settings: OidcIssuer,
    client: reqwest::Client,
    known: RwLock<Known>,
    /// Held while the keys are fetched: everybody else waits for that one answer.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Clone, Default)]
struct Known {
    keys: Option<Arc<JwkSet>>,
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

/// What every token must say. A claim of the wrong type is no claim.
#[derive(Deserialize)]
struct Claims {
    sub: String,
    #[serde(rename = "exp")]
    _exp: f64,
    #[serde(rename = "nbf", default)]
    _nbf: Option<f64>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl Oidc {
    pub(super) fn new(settings: OidcIssuer, client: reqwest::Client) -> Self {
        Self { settings, client, known: RwLock::default(), fetching: tokio::sync::Mutex::default() }
    }

    pub(super) fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    pub(super) async fn prove(&self, bearer: &str) -> Result<Proof> {
        let header = jsonwebtoken::decode_header(bearer).map_err(|_| unproven())?;
        if !ALGORITHMS.contains(&header.alg) || has_demands(bearer) {
            return Err(unproven());
        }
        let key = self.key_for(&header).await?.ok_or_else(unproven)?;
        let claims = self.verify(bearer, &header, &key).ok_or_else(unproven)?;
        let tenant = claims.others.get(&self.settings.tenant_claim).and_then(Value::as_str);
        let fits = |text: &&str| !text.is_empty() && text.len() <= MAX_NAME;
        let (Some(claim), Some(sub)) = (tenant.filter(fits), Some(claims.sub.as_str()).filter(fits)) else {
            return Err(unproven());
        };
        Ok(Proof {
            issuer: self.settings.issuer.clone(),
            claim: claim.to_owned(),
            subject: Subject::new(&self.settings.issuer, sub),
        })
    }

    fn verify(&self, bearer: &str, header: &Header, key: &Jwk) -> Option<Claims> {
        let mut rules = Validation::new(header.alg);
        rules.leeway = LEEWAY;
        rules.validate_nbf = true;
        rules.set_issuer(&[&self.settings.issuer]);
        rules.set_audience(&[&self.settings.audience]);
        rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        let key = DecodingKey::from_jwk(key).ok()?;
        jsonwebtoken::decode::<Claims>(bearer, &key, &rules).ok().map(|token| token.claims)
    }

    /// The published key that a header names, asking the issuer if we do not know it.
    async fn key_for(&self, header: &Header) -> Result<Option<Jwk>> {
        let known = self.known();
        let fresh = known.fetched_at.is_some_and(|at| clock::mono().since(at) < STALE);
        if fresh && let Some(key) = find(known.keys.as_deref(), header) {
            return Ok(Some(key));
        }
        let _turn = self.fetching.lock().await;
        if self.known().may_ask(clock::mono()) {
            self.fetch().await;
        }
        match self.known().keys {
            Some(keys) => Ok(find(Some(&keys), header)),
            None => Err(Error::unavailable(format!(
                "the keys of {} cannot be fetched; try again later",
                self.settings.issuer
            ))),
        }
    }

    /// Fetches the keys; those we have stay if that fails.
    async fn fetch(&self) {
        let fetched = self.download().await;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.asked_at = Some(clock::mono());
        match fetched {
            Ok(keys) => {
                known.keys = Some(Arc::new(keys));
                known.fetched_at = known.asked_at;
            }
            Err(why) => {
                tracing::warn!(issuer = %self.settings.issuer, why, "the issuer's keys could not be fetched");
            }
        }
    }

    async fn download(&self) -> Result<JwkSet, &'static str> {
        let answer = self.client.get(&self.settings.jwks_url).send().await.map_err(|_| "no answer")?;
        if !answer.status().is_success() {
            return Err("an answer that is no success");
        }
        let body = super::portal::capped(answer, MAX_KEYS).await.ok_or("no answer of a sensible size")?;
        // One key of a sort we do not know must not hide the others.
        let set: Value = serde_json::from_slice(&body).map_err(|_| "no JSON")?;
        let keys = set["keys"].as_array().ok_or("no set of keys")?;
        let keys = keys.iter().filter_map(|key| serde_json::from_value(key.clone()).ok()).collect();
        Ok(JwkSet { keys })
    }

    fn known(&self) -> Known {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The key a header names. Without a name there must be no choice.
fn find(keys: Option<&JwkSet>, header: &Header) -> Option<Jwk> {
    let mut fitting = keys?.keys.iter().filter(|key| fits(key, header.alg));
    match &header.kid {
        Some(kid) => fitting.find(|key| key.common.key_id.as_ref() == Some(kid)).cloned(),
        None => fitting.next().filter(|_| fitting.next().is_none()).cloned(),
    }
}

/// Whether a key is one for signatures of this algorithm: what a header says never decides alone.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let sort = matches!(
        (&key.algorithm, algorithm),
        (AlgorithmParameters::RSA(_), Algorithm::RS256)
            | (AlgorithmParameters::EllipticCurve(_), Algorithm::ES256)
            | (AlgorithmParameters::OctetKeyPair(_), Algorithm::EdDSA)
    );
    let for_signing = key.common.public_key_use.as_ref().is_none_or(|it| *it == PublicKeyUse::Signature);
    let named = key.common.key_algorithm.is_none_or(|named| named.to_string() == format!("{algorithm:?}"));
    sort && for_signing && named
}

/// The issuer a token names, before anything is proven: only to choose who proves it.
pub(super) fn issuer_of(bearer: &str) -> Option<String> {
    peek::claims(bearer)?["iss"].as_str().map(str::to_owned)
}

/// Whether a token says that it must not be taken by those who do not
/// understand its extensions (RFC 7515, 4.1.11). We understand none.
fn has_demands(bearer: &str) -> bool {
    peek::header(bearer).is_none_or(|header| header.get("crit").is_some())
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
        known.keys = Some(Arc::new(JwkSet { keys: Vec::new() }));
        assert!(!known.may_ask(at(159)) && known.may_ask(at(160)));
    }

    #[test]
    fn a_token_with_demands_is_known() {
        use base64::Engine;
        let token = |header: &str| {
            format!("{}.e30.c", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(header))
        };
        assert!(!has_demands(&token(r#"{"alg":"ES256","kid":"k"}"#)));
        for crit in [r#"["exp"]"#, "[]", "null", "7"] {
            assert!(has_demands(&token(&format!(r#"{{"alg":"ES256","crit":{crit}}}"#))), "{crit}");
        }
    }

    #[test]
    fn the_issuer_of_a_token_is_read_without_trust() {
        assert_eq!(issuer_of("a.eyJpc3MiOiJodHRwczovL2lkcCJ9.c").as_deref(), Some("https://idp"));
        for nothing in ["", "a", "a.b.c", "a.e30.c", "..", "a.eyJpc3MiOjF9.c"] {
            assert_eq!(issuer_of(nothing), None, "{nothing:?}");
        }
    }
}
