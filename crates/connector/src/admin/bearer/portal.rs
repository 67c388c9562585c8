//! Bearers we cannot read: an account URL tells whose they are.

use super::jwt::claims;
use super::unproven;
use angelia_core::clock::{self, Mono, UnixMillis};
use angelia_core::error::{Error, Result};
use angelia_core::identity::sign_in::SignIns;
use angelia_core::identity::{MAX_NAME, Proof, Subject};
use angelia_core::limit_per_address::Address;
use angelia_core::secret::fingerprint;
use axum::http::StatusCode;
use hashlink::LruCache;
use parking_lot::Mutex;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Largest answer taken.
const MAX_ANSWER: usize = 64 * 1024;
/// Questions at the same time: strangers decide how many are asked.
const AT_ONCE: usize = 8;
/// How long others wait for their turn; gateways wait 15 s for us.
const TURN: Duration = Duration::from_secs(2);
/// How far the clocks of service and connector may be apart, in seconds.
const LEEWAY: u64 = 60;
/// How long an answer counts: a bearer that was withdrawn is good for so much
/// longer, and one that is repeated is asked about once.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// Answers kept at a time; the oldest goes.
const MOST: usize = 1_024;

/// The place that knows whose a bearer is.
pub(super) struct Portal {
    account_url: String,
    client: reqwest::Client,
    turns: Semaphore,
    answers: Mutex<Answers>,
    asked: Mutex<SignIns>,
}

impl Portal {
    pub(super) fn new(account_url: String, client: reqwest::Client) -> Self {
        let turns = Semaphore::new(AT_ONCE);
        Self { account_url, client, turns, answers: Mutex::default(), asked: Mutex::default() }
    }

    /// What its tenants are linked to.
    pub(super) fn issuer(&self) -> &str {
        &self.account_url
    }

    pub(super) async fn prove(&self, bearer: &str, from: Address) -> Result<Proof> {
        if has_expired(bearer, clock::wall()) {
            return Err(unproven());
        }
        if let Some(known) = self.known(bearer) {
            return known.ok_or_else(unproven);
        }
        let busy = || Error::unavailable("too many identities are being checked; try again in a minute");
        // Counted before the wait, so that those who wait are not too many either.
        let now = clock::mono();
        let taken = self.asked.lock().take(from, &fingerprint(bearer), now);
        taken.map_err(|room_at| busy().retry_in(room_at.since(now)))?;
        let Ok(Ok(_turn)) = tokio::time::timeout(TURN, self.turns.acquire()).await else {
            return Err(busy());
        };
        // Somebody may have asked about the same bearer meanwhile.
        if let Some(known) = self.known(bearer) {
            return known.ok_or_else(unproven);
        }
        let proof = self.ask(bearer).await?;
        let mut asked = self.asked.lock();
        asked.answered(from, fingerprint(bearer), proof.is_some(), clock::mono());
        drop(asked);
        let mut answers = self.answers.lock();
        answers.put(bearer, proof.clone(), clock::mono());
        proof.ok_or_else(unproven)
    }

    /// What the service said of this bearer lately.
    fn known(&self, bearer: &str) -> Option<Option<Proof>> {
        self.answers.lock().get(bearer, clock::mono())
    }

    /// Asks the service; `None` if the bearer is not good.
    async fn ask(&self, bearer: &str) -> Result<Option<Proof>> {
        let away = || Error::unavailable("the account service does not answer; try again later");
        let question = self.client.get(&self.account_url).bearer_auth(bearer);
        let answer = question.send().await.map_err(|_| away())?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Ok(None),
            status => {
                tracing::warn!(%status, "the account service answers strangely");
                return Err(away());
            }
        }
        let body = capped(answer, MAX_ANSWER).await.ok_or_else(away)?;
        let account: Value = serde_json::from_slice(&body).map_err(|_| away())?;
        let proof = self.read(&account, bearer);
        if proof.is_none() {
            tracing::warn!("the account service vouches for a bearer without naming organisation and person");
        }
        Ok(proof)
    }

    /// The organisation is the tenant; the person in it is the subject. Where the
    /// service names none, the bearer it vouches for may. The organisation is
    /// never the subject: everybody in it would get each other's secrets.
    fn read(&self, account: &Value, bearer: &str) -> Option<Proof> {
        let organisation = text(&account["organisation"]["id"])
            .or_else(|| text(&account["paid_service_access"]["organisation_id"]))?;
        let user = &account["user"];
        let person = ["id", "privy_did", "email"].into_iter().find_map(|name| text(&user[name]));
        let person = person.or_else(|| text(&claims(bearer)?["sub"]))?;
        Some(Proof {
            issuer: self.account_url.clone(),
            claim: organisation,
            subject: Subject::new(&self.account_url, &person),
        })
    }
}

/// What the service said of bearers, for a short while. By the bearer's fingerprint: the bearers themselves are not kept.
struct Answers(LruCache<[u8; 32], (Mono, Option<Proof>)>);

impl Default for Answers {
    fn default() -> Self {
        Self(LruCache::new(MOST))
    }
}

impl Answers {
    /// What was said of this bearer lately: who holds it, or that it is not good.
    fn get(&self, bearer: &str, now: Mono) -> Option<Option<Proof>> {
        let (at, proof) = self.0.peek(&fingerprint(bearer))?;
        (now.since(*at) < GOOD_FOR).then(|| proof.clone())
    }

    /// Keeps what was said just now.
    fn put(&mut self, bearer: &str, proof: Option<Proof>, now: Mono) {
        let bearer = fingerprint(bearer);
        if self.0.len() >= MOST && !self.0.contains_key(&bearer) {
            self.0.retain(|_, (at, _)| now.since(*at) < GOOD_FOR);
        }
        self.0.insert(bearer, (now, proof));
    }
}

/// Whether a bearer says itself that it is past its time. That needs no proof.
fn has_expired(bearer: &str, now: UnixMillis) -> bool {
    let expiry = claims(bearer).and_then(|claims| claims["exp"].as_f64());
    expiry.is_some_and(|expiry| expiry < now.seconds().saturating_sub(LEEWAY) as f64)
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
    use base64::Engine;
    use futures_util::FutureExt;
    use serde_json::json;

    fn portal(account_url: &str) -> Portal {
        crate::ssrf_guard::install_tls_provider();
        Portal::new(account_url.to_owned(), reqwest::Client::builder().no_proxy().build().unwrap())
    }

    fn token(claims: &Value) -> String {
        format!("e30.{}.x", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    #[test]
    fn the_organisation_is_the_tenant() {
        let portal = portal("https://portal/account");
        let account = json!({ "organisation": { "id": "o1" }, "user": { "email": "a@b" } });
        let proof = portal.read(&account, &token(&json!({ "sub": "other" }))).unwrap();
        assert_eq!((proof.claim.as_str(), proof.issuer.as_str()), ("o1", "https://portal/account"));
        assert_eq!(proof.subject, Subject::new("https://portal/account", "a@b"));
        let ann = token(&json!({ "sub": "ann" }));
        for nobody in [json!({}), json!({ "organisation": { "id": "" } }), json!({ "organisation": "o1" })] {
            assert_eq!(portal.read(&nobody, &ann), None);
        }
    }

    #[test]
    fn the_organisation_is_never_the_subject() {
        let portal = portal("https://portal/account");
        let paid = json!({ "paid_service_access": { "organisation_id": 7 }, "user": { "id": "" } });
        let proof = portal.read(&paid, &token(&json!({ "sub": "ann" }))).unwrap();
        assert_eq!(proof.claim, "7");
        assert_eq!(proof.subject, Subject::new("https://portal/account", "ann"), "whose bearer it is");
        for bearer in ["opaque", "a.b.c", &token(&json!({})), &token(&json!({ "sub": "" }))] {
            assert_eq!(portal.read(&paid, bearer), None, "{bearer}");
        }
    }

    /// A service that knows nobody and takes its time to say so.
    async fn slow_service() -> String {
        let slow = || async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            StatusCode::UNAUTHORIZED
        };
        let routes = axum::Router::new().route("/", axum::routing::get(slow));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        url
    }

    #[tokio::test]
    async fn those_who_come_together_wait_for_their_turn() {
        let portal = portal(&slow_service().await);
        let bearers: Vec<String> = (0..3 * AT_ONCE).map(|n| format!("bearer-{n}")).collect();
        let outcomes = futures_util::future::join_all(
            bearers.iter().map(|bearer| portal.prove(bearer, Address::Unknown)),
        )
        .await;
        for outcome in outcomes {
            assert_eq!(outcome.unwrap_err().kind(), angelia_core::error::Kind::Unauthorized);
        }
    }

    #[tokio::test]
    async fn a_stranger_uses_up_the_questions_of_its_own_address_only() {
        use angelia_core::error::Kind;
        use angelia_core::identity::sign_in::SIGN_INS_PER_ADDRESS;
        let portal = portal(&slow_service().await);
        let address = |n: u8| Address::of(Some([192, 0, 2, n].into()));
        let mut refused = None;
        for n in 0..=SIGN_INS_PER_ADDRESS {
            // Only that it is asked counts here, and that takes its time.
            let ask = portal.prove(&format!("made-up-{n}"), address(1)).now_or_never();
            refused = ask.and_then(Result::err);
        }
        let refused = refused.expect("the last one is not asked about");
        assert_eq!(refused.kind(), Kind::Unavailable);
        assert!(refused.retry_after().is_some_and(|wait| wait <= Duration::from_secs(60)));
        let other = portal.prove("somebody else's", address(2)).await.unwrap_err();
        assert_eq!(other.kind(), Kind::Unauthorized, "the service was asked, and knows nobody");
    }

    #[test]
    fn an_expired_bearer_is_known_without_asking() {
        let now = UnixMillis(1_750_000_000_000);
        for (expiry, expired) in [
            (json!(1_749_999_939), true),
            (json!(1_749_999_940), false),
            (json!(1_750_000_600), false),
            (json!(17.5), true),
            (json!("17"), false),
        ] {
            assert_eq!(has_expired(&token(&json!({ "exp": expiry })), now), expired, "{expiry}");
        }
        assert!(!has_expired("opaque", now) && !has_expired(&token(&json!({})), now));
    }

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    #[test]
    fn an_answer_counts_for_a_minute() {
        let proof = Proof { issuer: "i".into(), claim: "o".into(), subject: Subject::new("i", "ann") };
        let mut answers = Answers::default();
        answers.put("good", Some(proof.clone()), at(0));
        answers.put("bad", None, at(10));
        assert_eq!(answers.get("good", at(59)), Some(Some(proof)));
        assert_eq!(answers.get("bad", at(59)), Some(None));
        assert_eq!((answers.get("good", at(60)), answers.get("other", at(0))), (None, None));
    }

    #[test]
    fn memory_has_an_end() {
        let mut answers = Answers::default();
        for n in 0..=MOST as u64 {
            answers.put(&n.to_string(), None, at(n / 1_000));
        }
        assert_eq!(answers.0.len(), MOST);
        assert_eq!(answers.get(&MOST.to_string(), at(1)), Some(None), "the newest stays");
        answers.put("late", None, at(1_000));
        assert_eq!(answers.0.len(), 1, "what is past its time goes first");
    }
}
