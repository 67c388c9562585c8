//! What a gateway asks to be spared.

use super::fixture::{Fixture, credentials};
use angelia_contract::token;
use angelia_testkit::connector::Credentials;
use angelia_testkit::socket::{Socket, now};
use serde_json::{Value, json};

/// Posts a line as a person of a room and tells why it reached nobody, if it did not.
async fn say(fixture: &Fixture, key: &str, text: &str) -> Option<String> {
    let url = format!("{}/chat/api/rooms/lab/messages", fixture.connector.url());
    let answer = fixture.http.post(url).bearer_auth(key).json(&json!({ "text": text })).send().await.unwrap();
    let answer: Value = answer.json().await.unwrap();
    answer["undelivered"].as_str().map(str::to_owned)
}

async fn invite(fixture: &Fixture, user: &str) -> String {
    let invited = fixture.run(&["webchat", "invite", "--room", "lab", "--user", user]).await;
    invited["key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_policy_is_enforced_at_once_and_survives_a_restart() {
    let mut fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    fixture.run(&["route", "add", "--tenant", "acme", "--allow", "any", "webchat:lab"]).await;
    let (ann, _bob) = (invite(&fixture, "ann").await, invite(&fixture, "bob").await);
    let gateway = credentials(&fixture.provision(&bearer, &json!({ "gatewayId": "gw" })).await.1);
    let _socket = Socket::join(&fixture.connector.url(), &gateway).await;
    let declare = async |fixture: &Fixture, body: Value| {
        let bearer = token::mint(&gateway.gateway_id, &gateway.secret, now(), 300);
        fixture.post("/relay/policy", &bearer, &body).await.0
    };
    assert_eq!(say(&fixture, &ann, "plain").await.as_deref(), Some("not_addressed"));
    assert_eq!(say(&fixture, &ann, "@agent hello").await, None);
    let free = json!({ "platform": "webchat", "requireAddress": false });
    assert_eq!(declare(&fixture, free).await, 200);
    assert_eq!(say(&fixture, &ann, "plain").await, None);
    fixture.connector.stop(std::time::Duration::from_secs(10)).await;
    fixture.connector.restart().await;
    assert_eq!(say(&fixture, &ann, "plain").await, None, "it was kept");
    let gated = json!({ "platform": "webchat", "requireAddress": true });
    assert_eq!(declare(&fixture, gated).await, 200);
    assert_eq!(say(&fixture, &ann, "plain").await.as_deref(), Some("not_addressed"), "a full replace");
    let scoped =
        json!({ "platform": "webchat", "requireAddress": true, "freeResponseScopes": ["web-lab"], "new": 1 });
    assert_eq!(declare(&fixture, scoped).await, 200);
    assert_eq!(say(&fixture, &ann, "plain").await, None);
    let side_effect =
        json!({ "platform": "webchat", "requireAddress": false, "freeResponseScopes": ["elsewhere"] });
    assert_eq!(declare(&fixture, side_effect).await, 200);
    let told = say(&fixture, &ann, "plain").await;
    assert_eq!(told.as_deref(), Some("not_addressed"), "naming what is free leaves the rest as it was");
    let free = json!({ "platform": "webchat", "requireAddress": false });
    assert_eq!(declare(&fixture, free).await, 200);
    let other = json!({ "platform": "discord", "requireAddress": true });
    assert_eq!(declare(&fixture, other).await, 200);
    assert_eq!(say(&fixture, &ann, "plain").await, None, "another platform's policy is another");
}

/// Declares a gateway's policy for the web chat.
async fn declare(fixture: &Fixture, gateway: &Credentials, body: Value) {
    let bearer = token::mint(&gateway.gateway_id, &gateway.secret, now(), 300);
    assert_eq!(fixture.post("/relay/policy", &bearer, &body).await.0, 200);
}

#[tokio::test]
async fn a_gateway_that_moves_takes_its_policy_along_unless_one_is_there() {
    let mut fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    fixture.run(&["route", "add", "--tenant", "acme", "--allow", "any", "webchat:lab"]).await;
    let (ann, _bob) = (invite(&fixture, "ann").await, invite(&fixture, "bob").await);
    let gateway = credentials(&fixture.provision(&bearer, &json!({ "gatewayId": "gw" })).await.1);
    declare(&fixture, &gateway, json!({ "platform": "webchat", "requireAddress": false })).await;

    fixture.run(&["gateway", "set", "gw", "--instance", "new"]).await;
    let told = say(&fixture, &ann, "moved").await;
    assert_eq!(told, None, "an instance that declared nothing has what its gateway declared");
    fixture.restart().await;
    assert_eq!(say(&fixture, &ann, "kept").await, None, "the store says the same");
    let mut socket = Socket::join(&fixture.connector.url(), &gateway).await;
    assert_eq!([socket.take_text().await, socket.take_text().await], ["moved", "kept"]);

    let home = json!({ "gatewayId": "gw-2", "instanceId": "home" });
    let other = credentials(&fixture.provision(&bearer, &home).await.1);
    declare(&fixture, &other, json!({ "platform": "webchat", "requireAddress": true })).await;
    until_settled(&fixture).await;
    let moved = fixture.run(&["gateway", "set", "gw", "--instance", "home"]).await;
    assert_eq!(moved["instance"], "home", "{moved}");
    let told = say(&fixture, &ann, "joined").await;
    assert_eq!(told.as_deref(), Some("not_addressed"), "the policy is that of where it is");
    fixture.restart().await;
    assert_eq!(
        say(&fixture, &ann, "joined").await.as_deref(),
        Some("not_addressed"),
        "the store says the same"
    );
}

/// Waits until nothing waits for the tenant: a gateway does not move away from that.
async fn until_settled(fixture: &Fixture) {
    let waits = |row: &Value| row["waiting"] != 0;
    while fixture.run(&["inbox", "list"]).await["inboxes"].as_array().unwrap().iter().any(waits) {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn only_a_gateway_declares_and_only_for_itself() {
    let fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    let gateway = credentials(&fixture.provision(&bearer, &json!({ "gatewayId": "gw" })).await.1);
    let body =
        json!({ "platform": "webchat", "requireAddress": false, "instanceId": "other", "tenant": "evil" });
    assert_eq!(
        fixture.post("/relay/policy", &bearer, &body).await.0,
        401,
        "an identity token is no upgrade token"
    );
    let forged = token::mint("gw", "not the secret", now(), 300);
    assert_eq!(fixture.post("/relay/policy", &forged, &body).await.0, 401);
    let old = token::mint("gw", &gateway.secret, now() - 3_600, 300);
    assert_eq!(fixture.post("/relay/policy", &old, &body).await.0, 401);
    let good = token::mint("gw", &gateway.secret, now(), 300);
    assert_eq!(fixture.post("/relay/policy", &good, &json!({ "platform": "" })).await.0, 400);
    let many: Vec<String> = (0..1_001).map(|n| n.to_string()).collect();
    let many = json!({ "platform": "webchat", "freeResponseScopes": many });
    assert_eq!(fixture.post("/relay/policy", &good, &many).await.0, 400);
    assert_eq!(fixture.post("/relay/policy", &good, &body).await.0, 200);
    fixture.run(&["gateway", "revoke", "--tenant", "acme", "gw"]).await;
    assert_eq!(fixture.post("/relay/policy", &good, &body).await.0, 403);
}
