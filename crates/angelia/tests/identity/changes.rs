//! Changes of who may: that fail, that meet another one, or that nobody waits for.
//!
//! What is in memory is what the store says: a restart, which reads the store,
//! shows nothing new.

use super::fixture::{Fixture, credentials};
use super::issuers::{claims, desk_with, folder};
use angelia_testkit::issuer::Issuer;
use angelia_testkit::socket::{Next, Socket};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Until a request is sure to wait for its commit.
const A_WHILE: Duration = Duration::from_millis(300);

/// The gateways that the server knows, as `tenant/id`.
async fn gateways(fixture: &Fixture) -> Vec<String> {
    let listed = fixture.run(&["gateway", "list"]).await;
    let name =
        |row: &Value| format!("{}/{}", row["tenant"].as_str().unwrap(), row["gateway_id"].as_str().unwrap());
    listed["gateways"].as_array().unwrap().iter().map(name).collect()
}

/// Asks the admin API, and tells the status.
async fn ask(fixture: &Fixture, path: &str, body: &Value) -> u16 {
    let read = |name: &str| std::fs::read_to_string(fixture.folder.path().join("data").join(name)).unwrap();
    let request = fixture.http.post(format!("{}{path}", read("admin-url").trim()));
    request.bearer_auth(read("admin-token").trim()).json(body).send().await.unwrap().status().as_u16()
}

#[tokio::test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
async fn a_tenant_whose_removal_is_not_committed_keeps_its_sockets_and_its_routes() {
    let mut fixture = Fixture::new().await;
    let gateway = fixture.connector.gateway("acme", "gw").await;
    let ann = fixture.connector.private("acme", "ann").await;
    let mut socket = Socket::join(&fixture.connector.url(), &gateway).await;
    let remove = json!({ "confirm": "acme" });

    let refused = fixture.refuse_commits();
    assert_eq!(ask(&fixture, "/admin/tenants/acme/remove", &remove).await, 503);
    assert_eq!(socket.next(A_WHILE).await, Next::Silence, "it is not told that it was revoked");
    drop(refused);
    ann.say("still here").await;
    assert_eq!(socket.take_text().await, "still here");
    socket.close().await;
    let mut socket = Socket::join(&fixture.connector.url(), &gateway).await;

    assert_eq!(ask(&fixture, "/admin/tenants/acme/remove", &remove).await, 200);
    assert!(matches!(socket.next(A_WHILE * 10).await, Next::Closed(4401, _)), "now it is");
    assert_eq!(gateways(&fixture).await, Vec::<String>::new());
    fixture.restart().await;
    assert_eq!(gateways(&fixture).await, Vec::<String>::new());
}

#[tokio::test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
async fn whoever_hangs_up_while_a_gateway_is_made_finds_it_made_or_not_there_at_all() {
    let mut fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    let mut requests = Vec::new();
    for number in 0..3 {
        let id = format!("provisioned-{number}");
        requests.push(("/relay/provision", json!({ "gatewayId": id })));
        let token = fixture.enroll_token(&["--tenant", "acme"]).await;
        let id = format!("enrolled-{number}");
        requests.push(("/relay/enroll", json!({ "gatewayId": id, "enrollmentToken": token })));
    }
    let held = fixture.hold_commits();
    let mut callers = Vec::new();
    for (path, body) in &requests {
        callers.push(begin(&fixture, path, &bearer, body).await);
    }
    held.until_met().await;
    drop(callers);
    tokio::time::sleep(A_WHILE).await;
    drop(held);

    // One change at a time: behind this one nothing of theirs is under way.
    fixture.run(&["gateway", "create", "--tenant", "evil", "last"]).await;
    let known = gateways(&fixture).await;
    fixture.restart().await;
    let stored = gateways(&fixture).await;
    assert!(stored.len() > 1, "some got that far: {stored:?}");
    assert_eq!(known, stored, "what is committed was known at once");
    for (_, body) in &requests {
        let (status, answer) = fixture.provision(&bearer, &json!({ "gatewayId": body["gatewayId"] })).await;
        assert_eq!(status, 200, "{answer}");
        Socket::join(&fixture.connector.url(), &credentials(&answer)).await.close().await;
    }
}

/// Sends a request and waits for no answer.
async fn begin(fixture: &Fixture, path: &str, bearer: &str, body: &Value) -> TcpStream {
    let url = fixture.connector.url();
    let (address, body) = (url.trim_start_matches("http://"), body.to_string());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {bearer}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Provisions while a change waits for its commit. The bearer is still good when
/// the request comes, and is not when its turn comes.
async fn provision_meanwhile(fixture: Fixture, bearer: &str, path: String, body: Value) {
    let fixture = Arc::new(fixture);
    let held = fixture.hold_commits();
    let change = tokio::spawn({
        let fixture = fixture.clone();
        async move { ask(&fixture, &path, &body).await }
    });
    held.until_met().await;
    let provision = tokio::spawn({
        let (fixture, bearer) = (fixture.clone(), bearer.to_owned());
        async move { fixture.provision(&bearer, &json!({ "gatewayId": "late" })).await }
    });
    tokio::time::sleep(A_WHILE).await;
    drop(held);
    assert_eq!(change.await.unwrap(), 200);
    let (status, answer) = provision.await.unwrap();
    assert_eq!(status, 403, "{answer}");
    assert_eq!(gateways(&fixture).await, Vec::<String>::new());
    let mut fixture = Arc::into_inner(fixture).unwrap();
    fixture.restart().await;
    assert_eq!(gateways(&fixture).await, Vec::<String>::new(), "the store says the same");
}

#[tokio::test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
async fn nobody_provisions_beside_the_revocation_of_its_client() {
    let fixture = Fixture::new().await;
    let client = fixture.client("acme").await;
    let bearer = fixture.ask_token(&client).await.1["access_token"].as_str().unwrap().to_owned();
    provision_meanwhile(fixture, &bearer, format!("/admin/clients/{}/revoke", client.id), json!({})).await;
}

#[tokio::test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
async fn nobody_provisions_beside_the_unlinking_of_its_tenant() {
    let issuer = Issuer::start(&folder("unlinking")).await;
    let fixture = desk_with(&issuer).await;
    issuer.make_key("k", "ES256").await;
    let bearer = issuer.sign("k", &claims(&issuer, "acme", "ann"), &json!({})).await;
    let link = json!({ "issuer": issuer.name(), "claim": "acme" });
    provision_meanwhile(fixture, &bearer, "/admin/tenants/acme/unlink".into(), link).await;
}
