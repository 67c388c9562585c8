//! Clients, bearers and enrolment tokens.

use super::fixture::{Client, Fixture, credentials};
use angelia_core::clock;
use angelia_testkit::connector::Credentials;
use angelia_testkit::process::until;
use angelia_testkit::socket::{Next, Socket};
use reqwest::StatusCode;
use serde_json::json;
use std::time::Duration;

/// How long something may take that has to happen.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_client_gets_a_token_and_a_wrong_one_does_not() {
    let fixture = Fixture::new().await;
    let client = fixture.client("acme").await;
    let (status, answer) = fixture.ask_token(&client).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!((&answer["token_type"], &answer["expires_in"]), (&json!("Bearer"), &json!(3600)));
    let wrong = Client { secret: "0".repeat(64), ..client.clone() };
    let (status, answer) = fixture.ask_token(&wrong).await;
    assert_eq!((status, &answer["error"]), (StatusCode::UNAUTHORIZED, &json!("invalid_client")));
    let nobody = Client { id: "client-0".into(), ..client.clone() };
    assert_eq!(fixture.ask_token(&nobody).await.0, StatusCode::UNAUTHORIZED);

    let url = format!("{}/oauth/token", fixture.connector.url());
    let basic = fixture.http.post(&url).basic_auth(&client.id, Some(&client.secret));
    let basic = basic.body("grant_type=client_credentials").send().await.unwrap();
    assert_eq!(basic.status(), StatusCode::OK);
    assert_eq!(basic.headers()["cache-control"], "no-store");
    let other = fixture.http.post(&url).body("grant_type=password").send().await.unwrap();
    assert_eq!(other.status(), StatusCode::BAD_REQUEST);

    let listed = fixture.run(&["client", "list"]).await;
    assert_eq!(listed["clients"][0]["client_id"], client.id);
    assert!(!listed.to_string().contains(&client.secret));
    assert_eq!(fixture.refusals().await.len(), 2, "both wrong ones are in the audit log");
}

#[tokio::test]
async fn a_revoked_client_ends_with_its_tokens() {
    let fixture = Fixture::new().await;
    let client = fixture.client("acme").await;
    let bearer = fixture.ask_token(&client).await.1["access_token"].as_str().unwrap().to_owned();
    let body = json!({ "gatewayId": "gw" });
    assert_eq!(fixture.provision(&bearer, &body).await.0, 200);
    fixture.run(&["client", "revoke", &client.id]).await;
    assert_eq!(fixture.provision(&bearer, &body).await.0, 401);
    assert_eq!(fixture.ask_token(&client).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn an_enrolled_gateway_gets_in() {
    let fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    fixture.run(&["route", "add", "--tenant", "acme", "--allow", "any", "webchat:lab"]).await;
    let token = fixture.enroll_token(&["--tenant", "acme"]).await;
    let (status, answer) = fixture.enroll(&bearer, &token, "gw-localhost").await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!((&answer["tenant"], &answer["gatewayId"]), (&json!("acme"), &json!("gw-localhost")));
    assert_eq!(answer["routeKeys"], json!(["webchat:lab"]));
    let delivery_key = answer["deliveryKey"].as_str().unwrap();
    assert_eq!(delivery_key.len(), 64);
    Socket::join(&fixture.connector.url(), &credentials(&answer)).await;
    let shown = fixture.run(&["gateway", "show", "gw-localhost"]).await;
    assert!(shown["subject"].as_str().unwrap().starts_with("builtin client-"), "{shown}");

    let token = fixture.enroll_token(&["--tenant", "acme"]).await;
    let second = fixture.enroll(&bearer, &token, "gw-2").await.1;
    assert_eq!(second["deliveryKey"], delivery_key, "it is the tenant's, and stays");
    let other = fixture.bearer("evil").await;
    let token = fixture.enroll_token(&["--tenant", "evil"]).await;
    let third = fixture.enroll(&other, &token, "gw-localhost").await.1;
    assert_ne!(third["deliveryKey"], delivery_key);
    assert_eq!(third["routeKeys"], json!([]));
}

#[tokio::test]
async fn an_enrolment_token_does_what_it_was_made_for_and_nothing_else() {
    let fixture = Fixture::new().await;
    let (acme, evil) = (fixture.bearer("acme").await, fixture.bearer("evil").await);
    let token = fixture.enroll_token(&["--tenant", "acme"]).await;
    assert_eq!(fixture.enroll("", &token, "gw").await.0, 401, "no bearer");
    assert_eq!(fixture.enroll(&format!("{acme}x"), &token, "gw").await.0, 401, "an altered bearer");
    assert_eq!(fixture.enroll(&evil, &token, "gw").await.0, 403, "another tenant's token");
    assert_eq!(fixture.enroll(&acme, "nonsense", "gw").await.0, 403, "no token");
    assert_eq!(fixture.enroll(&acme, &token, "gw/../x").await.0, 400, "no gateway id");
    let (status, first) = fixture.enroll(&acme, &token, "gw").await;
    assert_eq!(status, 200, "none of these used it up: {first}");
    assert_eq!(fixture.enroll(&acme, &token, "gw-2").await.0, 403, "replayed");

    let token = fixture.enroll_token(&["--tenant", "acme"]).await;
    let (status, answer) = fixture.enroll(&acme, &token, "gw").await;
    assert_eq!(status, 409, "{answer}");
    assert!(answer["error"].as_str().unwrap().contains("--gateway gw"), "{answer}");
    let short = fixture.run(&["enroll-token", "--tenant", "acme", "--expires", "1s"]).await;
    let over = short["expires_at"].as_i64().unwrap();
    until("it has expired", SOON, async || clock::wall().0 > over).await;
    assert_eq!(fixture.enroll(&acme, short["token"].as_str().unwrap(), "gw-3").await.0, 403, "expired");

    let replacing = fixture.enroll_token(&["--tenant", "acme", "--gateway", "gw"]).await;
    assert_eq!(fixture.enroll(&acme, &replacing, "gw-4").await.0, 403, "for another id");
    let (status, second) = fixture.enroll(&acme, &replacing, "gw").await;
    assert_eq!(status, 200, "{second}");
    assert_ne!(first["secret"], second["secret"]);
    for answer in [&first, &second] {
        Socket::join(&fixture.connector.url(), &credentials(answer)).await.close().await;
    }
    let refusals = fixture.refusals().await;
    assert_eq!(refusals.len(), 8, "the two without a good bearer are one line: {refusals:?}");
    assert_eq!(fixture.connector.counter("angelia_access_refused_total").await, 9);
    assert!(refusals.iter().all(|line| !line.contains("nonsense") && !line.contains(&token)));
}

#[tokio::test]
async fn one_id_in_two_tenants_is_two_gateways() {
    let fixture = Fixture::new().await;
    let mut gateways = Vec::new();
    for tenant in ["acme", "evil"] {
        let bearer = fixture.bearer(tenant).await;
        let (status, answer) = fixture.provision(&bearer, &json!({ "gatewayId": "gw-localhost" })).await;
        assert_eq!((status, &answer["tenant"]), (200, &json!(tenant)), "neither learns of the other");
        gateways.push(credentials(&answer));
    }
    let mixed = Credentials { secret: "0".repeat(64), ..gateways[0].clone() };
    assert_eq!(
        Socket::dial(&fixture.connector.url(), &mixed).await.err().map(|refused| refused.status),
        Some(401)
    );
    for gateway in &gateways {
        Socket::join(&fixture.connector.url(), gateway).await;
    }
    let listed = fixture.run(&["gateway", "list"]).await;
    assert_eq!(listed["gateways"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_revocation_is_felt_within_a_second_and_remembered() {
    let mut fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    let body = json!({ "gatewayId": "gw", "instanceId": "inst" });
    let gateway = credentials(&fixture.provision(&bearer, &body).await.1);
    let mut live = Socket::join(&fixture.connector.url(), &gateway).await;
    let mut silent = Socket::dial(&fixture.connector.url(), &gateway).await.unwrap();
    fixture.run(&["gateway", "revoke", "--tenant", "acme", "gw"]).await;
    for socket in [&mut live, &mut silent] {
        assert!(matches!(socket.next(Duration::from_secs(1)).await, Next::Closed(4401, _)));
    }
    assert_eq!(fixture.provision(&bearer, &body).await.0, 403, "it does not provision itself back in");
    let renamed = json!({ "gatewayId": "gw-new", "instanceId": "inst" });
    assert_eq!(fixture.provision(&bearer, &renamed).await.0, 403, "nor under another id");
    fixture.connector.stop(Duration::from_secs(10)).await;
    fixture.connector.restart().await;
    let mut late = Socket::dial(&fixture.connector.url(), &gateway).await.unwrap();
    let told = late.next(Duration::from_secs(8)).await;
    assert!(matches!(told, Next::Closed(4401, _)), "a late dial is told: {told:?}");
}
