//! What strangers and gateways cannot fill up.

use super::fixture::{Client, Fixture, credentials};
use angelia_contract::token;
use angelia_testkit::connector::Credentials;
use angelia_testkit::issuer::Issuer;
use angelia_testkit::portal::Portal;
use angelia_testkit::socket::{Socket, now};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const REFUSED: &str = "angelia_access_refused_total";

/// The lines of the audit log with this action, newest first, as `tenant target outcome`.
async fn lines(fixture: &Fixture, action: &str) -> Vec<String> {
    let audit = fixture.run(&["audit", "list", "--limit", "10000"]).await;
    let lines = audit["audit"].as_array().unwrap().iter().filter(|line| line["action"] == action);
    let word = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    lines.map(|line| ["tenant", "target", "outcome"].map(|name| word(line, name)).join(" ")).collect()
}

#[tokio::test]
async fn strangers_do_not_blind_the_audit_log() {
    let mut fixture = Fixture::new().await;
    let (ann, bob) = (fixture.bearer("acme").await, fixture.bearer("acme").await);
    assert_eq!(fixture.provision(&ann, &json!({ "gatewayId": "gw" })).await.0, 200);
    for number in 0..100 {
        let nobody = Client { id: format!("client-{number}"), secret: "guess".into() };
        assert_eq!(fixture.ask_token(&nobody).await.0, 401);
    }
    assert_eq!(lines(&fixture, "client.token").await.len(), 60, "the strangers' share of a minute");
    assert_eq!(fixture.provision(&bob, &json!({ "gatewayId": "gw" })).await.0, 403);
    assert_eq!(lines(&fixture, "gateway.provision").await.len(), 1, "a tenant has a share of its own");
    let admin = std::fs::read_to_string(fixture.folder.path().join("data/admin-url")).unwrap();
    let url = format!("{}/admin/status", admin.trim());
    assert_eq!(fixture.http.get(url).bearer_auth("guess").send().await.unwrap().status(), 401);
    assert_eq!(lines(&fixture, "admin.enter").await.len(), 1, "and so has the admin API");
    assert_eq!(fixture.connector.counter(REFUSED).await, 102, "all are counted");

    fixture.connector.stop(Duration::from_secs(10)).await;
    fixture.connector.restart().await;
    let swallowed = lines(&fixture, "audit.swallowed").await;
    assert_eq!(swallowed.len(), 1, "{swallowed:?}");
    assert!(swallowed[0].starts_with(" strangers 40 refusals were not written in "), "{swallowed:?}");
}

#[tokio::test]
async fn the_same_refusal_again_and_again_is_one_line_and_a_number() {
    let mut fixture = Fixture::new().await;
    let thief = Credentials { gateway_id: "gw".into(), secret: "0".repeat(64) };
    for _ in 0..38 {
        assert!(Socket::dial(&fixture.connector.url(), &thief).await.is_err());
    }
    assert_eq!(lines(&fixture, "gateway.dial").await.len(), 1);
    fixture.connector.stop(Duration::from_secs(10)).await;
    fixture.connector.restart().await;
    let told = lines(&fixture, "gateway.dial").await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("(37 more in "), "{told:?}");
}

#[tokio::test]
async fn a_gateway_changes_its_policy_so_often_and_no_more() {
    let fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    let mut gateways = Vec::new();
    for id in ["busy", "calm"] {
        gateways.push(credentials(&fixture.provision(&bearer, &json!({ "gatewayId": id })).await.1));
    }
    let declare = async |gateway: &Credentials, bots: bool| {
        let bearer = token::mint(&gateway.gateway_id, &gateway.secret, now(), 300);
        let body = json!({ "platform": "webchat", "requireAddress": true, "allowOtherBots": bots });
        fixture.post("/relay/policy", &bearer, &body).await
    };
    let mut answers = Vec::new();
    for number in 0..60 {
        answers.push(declare(&gateways[0], number % 2 == 0).await);
    }
    let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
    assert_eq!((&statuses[..30], &statuses[30..]), (&[200; 30][..], &alternating(30)[..]));
    let told = answers[30].1["error"].as_str().unwrap();
    assert!(told.contains("30 times within 10 minutes") && told.contains("try again in"), "{told}");
    let written = lines(&fixture, "policy.set").await;
    assert_eq!(written.iter().filter(|line| line.ends_with("done")).count(), 30, "{written:?}");
    assert_eq!(written.len(), 31, "and one line about the others: {written:?}");
    assert_eq!(declare(&gateways[1], true).await.0, 200, "another gateway of the tenant");
}

/// After the last change every second request asks for what is set already, which changes nothing.
fn alternating(count: usize) -> Vec<u16> {
    [429, 200].into_iter().cycle().take(count).collect()
}

#[tokio::test]
async fn a_gateway_changes_what_it_is_called_so_often_and_no_more() {
    let fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    let provision = async |id: &str, name: usize| {
        fixture.provision(&bearer, &json!({ "gatewayId": id, "displayName": name.to_string() })).await.0
    };
    assert_eq!(provision("gw", 0).await, 200);
    for number in 1..=40 {
        assert_eq!(provision("gw", number).await, 200, "it gets its secret, or it could not come in");
    }
    let shown = fixture.run(&["gateway", "show", "--tenant", "acme", "gw"]).await;
    assert_eq!(shown["display_name"], "30", "what it asked for after that was not done");
    assert_eq!(provision("gw-2", 1).await, 200, "another gateway");
    let set = lines(&fixture, "gateway.set").await;
    assert_eq!(set.len(), 30, "{set:?}");
}

#[tokio::test]
async fn the_account_service_is_not_asked_more_than_needed() {
    let portal = Portal::start().await;
    let fixture = Fixture::with(&portal.config()).await;
    let good = portal.log_in("acme", "ann@example.org");
    let attempt =
        async |bearer: &str, id: &str| fixture.provision(bearer, &json!({ "gatewayId": id })).await.0;
    for number in 0..5 {
        assert_eq!(attempt(&good, &format!("gw-{number}")).await, 200);
        assert_eq!(attempt("made-up", "gw").await, 401);
    }
    assert_eq!((portal.vouched(), portal.refused()), (1, 1), "the same bearer is asked about once");
    // Claims of {"exp":1}, which is long ago.
    assert_eq!(attempt("e30.eyJleHAiOjF9.x", "gw").await, 401);
    assert_eq!(portal.refused(), 1, "an expired token is turned away without asking");

    let mut statuses = Vec::new();
    for number in 0..130 {
        statuses.push(attempt(&format!("made-up-{number}"), "gw").await);
    }
    assert_eq!((&statuses[..88], &statuses[88..]), (&[401; 88][..], &[503; 42][..]));
    assert_eq!(portal.refused(), 89, "what is left is for bearers that were good before");
    assert_eq!(attempt(&good, "gw-0").await, 200, "who was vouched for is not in that line");
}

#[tokio::test]
async fn a_token_that_demands_what_we_do_not_understand_is_not_taken() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("demands");
    let _ = std::fs::remove_dir_all(&folder);
    let issuer = Issuer::start(&folder).await;
    let fixture = Fixture::with(&format!(
        "\n[[identity.oidc]]\nissuer = {:?}\njwks_url = {:?}\naudience = \"angelia\"\n",
        issuer.name(),
        issuer.jwks_url()
    ))
    .await;
    issuer.make_key("k", "ES256").await;
    let claims = json!({
        "iss": issuer.name(), "aud": "angelia", "exp": now() + 600, "sub": "ann", "tid": "acme",
    });
    for (header, expected) in
        [(json!({}), 200), (json!({ "crit": ["bound"], "bound": true }), 401), (json!({ "other": 1 }), 200)]
    {
        let token = issuer.sign("k", &claims, &header).await;
        let (status, answer) = fixture.provision(&token, &json!({ "gatewayId": "gw" })).await;
        assert_eq!(status, expected, "{header}: {answer}");
    }
}

/// What a provision is answered: the status, when to try again, and the words.
async fn provision(fixture: &Fixture, bearer: &str, id: &str) -> (u16, Option<u64>, String) {
    let url = format!("{}/relay/provision", fixture.connector.url());
    let body = json!({ "gatewayId": id });
    let answer = fixture.http.post(url).bearer_auth(bearer).json(&body).send().await.unwrap();
    let wait = answer.headers().get("retry-after").map(|wait| wait.to_str().unwrap().parse().unwrap());
    (answer.status().as_u16(), wait, answer.text().await.unwrap())
}

#[tokio::test]
async fn a_tenant_makes_so_many_gateways_at_once() {
    let fixture = Fixture::with("\n[limits]\nnew_gateways_at_once = 3\n").await;
    let (bearer, evil) = (fixture.bearer("acme").await, fixture.bearer("evil").await);
    assert_eq!(
        fixture.enroll(&bearer, "no-such-token", "gw").await.0,
        403,
        "what is refused counts for nothing"
    );
    for number in 0..3 {
        assert_eq!(provision(&fixture, &bearer, &format!("gw-{number}")).await.0, 200);
    }
    let (status, wait, told) = provision(&fixture, &bearer, "gw-3").await;
    assert_eq!(status, 429, "{told}");
    assert!(wait.is_some_and(|wait| (1..=60).contains(&wait)), "{wait:?}");
    assert!(told.contains("limits.new_gateways_at_once"), "{told}");
    let token = fixture.enroll_token(&["--tenant", "acme"]).await;
    assert_eq!(fixture.enroll(&bearer, &token, "gw-3").await.0, 429, "nor by a token");
    assert_eq!(provision(&fixture, &bearer, "gw-0").await.0, 200, "one that is known is not new");
    assert_eq!(provision(&fixture, &evil, "gw-0").await.0, 200, "another tenant");
    fixture.run(&["gateway", "create", "--tenant", "acme", "operators"]).await;
}

#[tokio::test]
async fn a_tenant_makes_so_many_gateways_at_all() {
    let fixture = Fixture::with("\n[limits]\ngateways_per_tenant = 3\n").await;
    let bearer = fixture.bearer("acme").await;
    for number in 0..3 {
        assert_eq!(provision(&fixture, &bearer, &format!("gw-{number}")).await.0, 200);
    }
    let (status, _, told) = provision(&fixture, &bearer, "gw-new").await;
    assert_eq!(status, 409, "{told}");
    assert!(told.contains("limits.gateways_per_tenant"), "{told}");
    fixture.run(&["gateway", "create", "--tenant", "acme", "operators"]).await;
    fixture.run(&["gateway", "revoke", "--tenant", "acme", "gw-0"]).await;
    assert_eq!(provision(&fixture, &bearer, "gw-new").await.0, 409, "the operator's counts too");
    fixture.run(&["gateway", "revoke", "--tenant", "acme", "gw-1"]).await;
    assert_eq!(provision(&fixture, &bearer, "gw-new").await.0, 200);
}

#[tokio::test]
async fn a_client_gets_so_many_tokens_and_others_theirs() {
    let fixture = Fixture::new().await;
    let (greedy, calm) = (fixture.client("acme").await, fixture.client("acme").await);
    let mut given = 0;
    let refused = loop {
        let (status, answer) = fixture.ask_token(&greedy).await;
        if status != 200 {
            break (status, answer);
        }
        given += 1;
        assert!(given < 1_000, "nothing holds it up");
    };
    assert!(given >= 300, "{given}");
    assert_eq!(refused.0, 429);
    assert_eq!(refused.1["error"], "temporarily_unavailable", "{}", refused.1);
    assert_eq!(fixture.ask_token(&calm).await.0, 200);
}
