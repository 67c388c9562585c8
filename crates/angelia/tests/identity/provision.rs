//! Gateways that provision themselves.

use super::fixture::{Fixture, credentials};
use angelia_core::records::rows::SecretRow;
use angelia_engines::inspect::Inspect;
use angelia_testkit::socket::{Next, Socket};
use serde_json::{Value, json};
use std::time::Duration;

/// And a little more.
const A_DAY: Duration = Duration::from_secs(25 * 3600);

fn ask(id: &str, platform: &str) -> Value {
    json!({
        "gatewayId": id, "platform": platform, "botId": "b1", "gatewayEndpoint": "https://evil.example",
        "routeKeys": ["webchat:lab", "discord:*"], "instanceId": "inst", "wakeUrl": "https://wake.example/x",
        "displayName": "Ann's agent", "somethingNew": { "x": 1 },
    })
}

#[tokio::test]
async fn three_platforms_get_one_secret() {
    let fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    let mut secrets = Vec::new();
    for platform in ["discord", "telegram", "slack"] {
        let (status, answer) = fixture.provision(&bearer, &ask("gw", platform)).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["routeKeys"], json!([]), "what a body asks for grants nothing");
        secrets.push(answer["secret"].as_str().unwrap().to_owned());
    }
    secrets.dedup();
    assert_eq!(secrets.len(), 1);
    let shown = fixture.run(&["gateway", "show", "gw"]).await;
    assert_eq!(shown["instance"], "inst");
    assert_eq!(shown["wake_url"], "https://wake.example/x");
    assert_eq!(shown["display_name"], "Ann's agent");
    assert_eq!(shown["fronts"].as_array().unwrap().len(), 3, "{shown}");
    assert_eq!(
        fixture.run(&["route", "list"]).await["routes"].as_array().unwrap().len(),
        1,
        "only the first one"
    );
}

#[tokio::test]
async fn the_first_that_provisions_gets_what_waited_and_owns_it() {
    let fixture = Fixture::new().await;
    let (ann, bob) = (fixture.bearer("acme").await, fixture.bearer("acme").await);
    let evil = fixture.bearer("evil").await;
    let zoe = fixture.connector.person("acme", "porch", "zoe").await;
    for text in ["one", "two"] {
        zoe.say(text).await;
    }
    assert_eq!(fixture.provision(&evil, &ask("gw", "webchat")).await.0, 200, "the first of another tenant");
    let anns = fixture.provision(&ann, &ask("gw", "webchat")).await.1;
    let joins = json!({ "gatewayId": "gw-bob", "instanceId": "inst" });
    assert_eq!(fixture.provision(&bob, &joins).await.0, 403, "it is hers as if she had made it");
    let (status, bobs) = fixture.provision(&bob, &json!({ "gatewayId": "gw-bob" })).await;
    assert_eq!(status, 200, "{bobs}");
    let url = fixture.connector.url();
    let mut hers = Socket::join(&url, &credentials(&anns)).await;
    for text in ["one", "two"] {
        assert_eq!(hers.take_text().await, text);
    }
    let mut his = Socket::join(&url, &credentials(&bobs)).await;
    assert_eq!(his.next(std::time::Duration::from_millis(300)).await, Next::Silence);
}

#[tokio::test]
async fn a_secret_is_given_again_only_to_whom_it_was_made_for() {
    let fixture = Fixture::new().await;
    let (ann, bob) = (fixture.bearer("acme").await, fixture.bearer("acme").await);
    let evil = fixture.bearer("evil").await;
    let first = fixture.provision(&ann, &ask("gw", "discord")).await.1;
    assert_eq!(fixture.provision(&bob, &ask("gw", "discord")).await.0, 403, "another subject of the tenant");
    let theirs = fixture.provision(&evil, &ask("gw", "discord")).await.1;
    assert_eq!(theirs["tenant"], "evil", "another tenant gets a gateway of its own");
    assert_ne!(theirs["secret"], first["secret"]);
    let same_instance = json!({ "gatewayId": "gw-bob", "instanceId": "inst" });
    assert_eq!(fixture.provision(&bob, &same_instance).await.0, 403, "another subject's instance");
    let same_name = json!({ "gatewayId": "inst" });
    assert_eq!(fixture.provision(&bob, &same_name).await.0, 403, "also by the name of a gateway");
    fixture.run(&["gateway", "create", "--tenant", "acme", "operators"]).await;
    assert_eq!(fixture.provision(&ann, &ask("operators", "discord")).await.0, 403, "the operator's");
    let again = json!({ "gatewayId": "gw-other", "instanceId": "inst" });
    assert_eq!(fixture.provision(&ann, &again).await.0, 200, "its own instance under another id");
    let refused = fixture.refusals().await;
    assert_eq!(refused.len(), 4, "{refused:?}");
}

#[tokio::test]
async fn after_a_day_there_is_a_new_secret_and_the_old_one_still_works() {
    let mut fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    let first = fixture.provision(&bearer, &ask("gw", "discord")).await.1;
    fixture.connector.stop(Duration::from_secs(10)).await;
    let a_day_ago = |secret: &mut SecretRow| secret.created_at = secret.created_at.before(A_DAY);
    Inspect::of(&fixture.folder.path().join("data")).rewrite(|_| true, a_day_ago);
    fixture.connector.restart().await;
    let second = fixture.provision(&bearer, &ask("gw", "discord")).await.1;
    assert_ne!(first["secret"], second["secret"]);
    let third = fixture.provision(&bearer, &ask("gw", "telegram")).await.1;
    assert_eq!(second["secret"], third["secret"]);
    for answer in [&first, &second] {
        Socket::join(&fixture.connector.url(), &credentials(answer)).await.close().await;
    }
}

#[tokio::test]
async fn a_bad_body_is_told_and_changes_nothing() {
    let fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    for body in [
        json!({}),
        json!({ "gatewayId": 7 }),
        json!({ "gatewayId": "" }),
        json!({ "gatewayId": "gw", "instanceId": "a b" }),
        json!({ "gatewayId": "gw", "wakeUrl": "ftp://x" }),
        json!({ "gatewayId": "gw", "displayName": "x".repeat(65) }),
        json!([]),
    ] {
        let (status, answer) = fixture.provision(&bearer, &body).await;
        assert_eq!(status, 400, "{body}: {answer}");
        assert!(answer["error"].is_string());
    }
    assert_eq!(fixture.run(&["gateway", "list"]).await["gateways"], json!([]));
}

#[tokio::test]
async fn a_wake_url_that_could_never_be_called_is_refused_when_it_is_given() {
    let fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    let never = [
        "http://wake.example/x",
        "https://10.0.0.7/x",
        "https://[::1]/x",
        "https://localhost/x",
        "https://ann:hunter2@wake.example/x",
        "https://wake.example:0/x",
    ];
    let wake = |url: &str| json!({ "gatewayId": "gw", "wakeUrl": url });
    for url in never {
        let (status, answer) = fixture.provision(&bearer, &wake(url)).await;
        assert_eq!(status, 400, "{url}: {answer}");
        let told = answer["error"].as_str().unwrap();
        assert!(told.contains("could never be called") && !told.contains("hunter2"), "{told}");
    }
    let good = "https://wake.example/good";
    let secret = fixture.provision(&bearer, &wake(good)).await.1["secret"].clone();
    for url in never {
        let (status, answer) = fixture.provision(&bearer, &wake(url)).await;
        assert_eq!((status, &answer["secret"]), (200, &secret), "who is known gets its secret: {url}");
    }
    let admin = std::fs::read_to_string(fixture.folder.path().join("data/admin-url")).unwrap();
    let token = std::fs::read_to_string(fixture.folder.path().join("data/admin-token")).unwrap();
    for (path, body) in [
        ("gateways", json!({ "tenant": "acme", "gateway_id": "new", "wake_url": never[0] })),
        ("gateways/gw/set", json!({ "wake_url": never[1] })),
    ] {
        let url = format!("{}/admin/{path}", admin.trim());
        let answer = fixture.http.post(url).bearer_auth(token.trim()).json(&body).send().await.unwrap();
        assert_eq!(answer.status(), 400, "{path}");
    }
    let shown = fixture.run(&["gateway", "show", "gw"]).await;
    assert_eq!(shown["wake_url"], good, "the one that was good stays");
    let told = fixture.refusals().await;
    assert!(told.iter().any(|line| line.starts_with("gateway.set: refused: the wake URL")), "{told:?}");
}
