//! Bearers of others: signed by an issuer, or vouched for by an account service.

use super::fixture::Fixture;
use angelia_testkit::issuer::Issuer;
use angelia_testkit::socket::now;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const AUDIENCE: &str = "angelia-test";

pub(super) fn folder(story: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(story);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

pub(super) async fn desk_with(issuer: &Issuer) -> Fixture {
    let lines = format!(
        "\n[[identity.oidc]]\nissuer = {:?}\njwks_url = {:?}\naudience = {AUDIENCE:?}\n",
        issuer.name(),
        issuer.jwks_url()
    );
    Fixture::with(&lines).await
}

/// Good claims for the tenant that `tid` names.
pub(super) fn claims(issuer: &Issuer, tid: &str, sub: &str) -> Value {
    json!({ "iss": issuer.name(), "aud": AUDIENCE, "exp": now() + 600, "sub": sub, "tid": tid })
}

async fn attempt(fixture: &Fixture, bearer: &str, gateway: &str) -> (u16, Value) {
    fixture.provision(bearer, &json!({ "gatewayId": gateway })).await
}

#[tokio::test]
async fn every_algorithm_proves_its_tenant_and_no_other() {
    let issuer = Issuer::start(&folder("algorithms")).await;
    let fixture = desk_with(&issuer).await;
    for alg in ["RS256", "ES256", "EdDSA"] {
        issuer.make_key(alg, alg).await;
    }
    for (number, alg) in ["RS256", "ES256", "EdDSA"].into_iter().enumerate() {
        let token = issuer.sign(alg, &claims(&issuer, "acme", "ann"), &json!({})).await;
        let (status, answer) = attempt(&fixture, &token, &format!("gw-{number}")).await;
        assert_eq!((status, &answer["tenant"]), (200, &json!("acme")), "{alg}: {answer}");
    }
    let unknown = issuer.sign("RS256", &claims(&issuer, "nobody", "ann"), &json!({})).await;
    let (status, answer) = attempt(&fixture, &unknown, "gw").await;
    assert_eq!(status, 403, "a tenant we do not have: {answer}");
    assert!(answer["error"].as_str().unwrap().contains("tenant link"), "{answer}");
    fixture.run(&["tenant", "link", "evil", "--issuer", &issuer.name(), "--claim", "nobody"]).await;
    assert_eq!(attempt(&fixture, &unknown, "gw").await.1["tenant"], "evil", "linked by the operator");
    assert_eq!(issuer.fetched().await, 1, "the keys are asked for once");
}

#[tokio::test]
async fn what_a_token_must_say() {
    let issuer = Issuer::start(&folder("claims")).await;
    let fixture = desk_with(&issuer).await;
    issuer.make_key("k", "ES256").await;
    let cases: &[(&str, Value, u16)] = &[
        ("good", json!({}), 200),
        ("audience in a list", json!({ "aud": ["other", AUDIENCE] }), 200),
        ("within leeway", json!({ "exp": now() - 30 }), 200),
        ("expired", json!({ "exp": now() - 120 }), 401),
        ("no expiry", json!({ "exp": null }), 401),
        ("expiry as a text", json!({ "exp": "9999999999" }), 401),
        ("not yet", json!({ "nbf": now() + 600 }), 401),
        ("not yet, as a text", json!({ "nbf": "9999999999" }), 401),
        ("soon enough", json!({ "nbf": now() + 30 }), 200),
        ("another audience", json!({ "aud": "other" }), 401),
        ("no audience", json!({ "aud": null }), 401),
        ("another issuer", json!({ "iss": "https://elsewhere/" }), 401),
        ("no issuer", json!({ "iss": null }), 401),
        ("no tenant", json!({ "tid": null }), 401),
        ("a tenant that is no text", json!({ "tid": ["acme"] }), 401),
        ("an empty tenant", json!({ "tid": "" }), 401),
        ("no subject", json!({ "sub": null }), 401),
    ];
    for (number, (what, changed, expected)) in cases.iter().enumerate() {
        let mut claims = claims(&issuer, "acme", "ann");
        for (name, value) in changed.as_object().unwrap() {
            match value {
                Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
                value => claims[name] = value.clone(),
            }
        }
        let token = issuer.sign("k", &claims, &json!({})).await;
        let (status, answer) = attempt(&fixture, &token, &format!("gw-{number}")).await;
        assert_eq!(status, *expected, "{what}: {answer}");
    }
}

#[tokio::test]
async fn forged_tokens_are_not_taken() {
    let issuer = Issuer::start(&folder("forged")).await;
    let fixture = desk_with(&issuer).await;
    let mut refused = 0;
    for alg in ["RS256", "ES256", "EdDSA"] {
        issuer.make_key(alg, alg).await;
        let claims = claims(&issuer, "acme", "ann");
        for how in [
            "none",
            "public-key-as-hmac",
            "own-key",
            "embedded-key",
            "altered",
            "no-signature",
            "renamed-alg",
        ] {
            let token = issuer.forge(alg, &claims, how).await;
            let (status, answer) = attempt(&fixture, &token, "gw").await;
            assert_eq!(status, 401, "{alg} {how}: {answer}");
            refused += 1;
        }
    }
    assert_eq!(fixture.run(&["gateway", "list"]).await["gateways"], json!([]));
    assert_eq!(fixture.connector.counter("angelia_access_refused_total").await, refused, "each is counted");
    let lines = fixture.refusals().await;
    assert_eq!(lines.len(), 1, "the same of a stranger again and again is one line: {lines:?}");
    assert!(lines[0].starts_with("gateway.provision: refused: the identity token"), "{lines:?}");
}

#[tokio::test]
async fn strangers_cannot_make_us_ask_the_issuer_again_and_again() {
    let issuer = Issuer::start(&folder("kids")).await;
    let fixture = desk_with(&issuer).await;
    issuer.make_key("old", "ES256").await;
    let good = issuer.sign("old", &claims(&issuer, "acme", "ann"), &json!({})).await;
    assert_eq!(attempt(&fixture, &good, "gw").await.0, 200);
    issuer.make_key("new", "ES256").await;
    for number in 0..50 {
        let kid = json!({ "kid": format!("made-up-{number}") });
        let token = issuer.sign("new", &claims(&issuer, "acme", "ann"), &kid).await;
        assert_eq!(attempt(&fixture, &token, "gw").await.0, 401);
    }
    assert_eq!(issuer.fetched().await, 1, "within a minute");
    assert_eq!(attempt(&fixture, &good, "gw").await.0, 200, "a known key goes on");
    let unnamed = issuer.sign("old", &claims(&issuer, "acme", "ann"), &json!({ "kid": null })).await;
    assert_eq!(
        attempt(&fixture, &unnamed, "gw").await.0,
        200,
        "without a name, as long as there is no choice"
    );
}

#[tokio::test]
async fn an_account_service_vouches_for_bearers() {
    let issuer = Issuer::start(&folder("portal")).await;
    let url = issuer.account_url();
    let fixture = Fixture::with(&format!("\n[identity.portal]\naccount_url = {url:?}\n")).await;
    let account = |org: &str, mail: &str| json!({ "organisation": { "id": org }, "user": { "email": mail } });
    issuer.know("bearer-ann", &account("acme", "ann@acme")).await;
    issuer.know("bearer-bob", &account("acme", "bob@acme")).await;
    issuer.know("bearer-eve", &account("unknown-org", "eve@evil")).await;
    let (status, answer) = attempt(&fixture, "bearer-ann", "gw").await;
    assert_eq!((status, &answer["tenant"]), (200, &json!("acme")), "{answer}");
    assert_eq!(attempt(&fixture, "bearer-bob", "gw").await.0, 403, "another person of the organisation");
    assert_eq!(attempt(&fixture, "bearer-eve", "gw").await.0, 403, "an organisation we do not have");
    assert_eq!(attempt(&fixture, "made-up", "gw").await.0, 401);
    issuer.know("bearer-zoe", &account("acme", "zoe@acme")).await;
    drop(issuer);
    assert_eq!(
        attempt(&fixture, "bearer-zoe", "gw-z").await.0,
        503,
        "nobody to ask is not the bearer's fault"
    );
    assert_eq!(attempt(&fixture, "bearer-ann", "gw").await.0, 200, "who was vouched for just now goes on");
}
