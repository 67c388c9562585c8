//! The names a server goes by, and answers that nobody keeps.

use super::fixture::Fixture;
use reqwest::RequestBuilder;
use serde_json::json;

const LINES: &str = "hosts = [\"relay.internal\"]\n[webchat]\nopen_rooms = [\"lobby\"]\n";

fn admin_url(fixture: &Fixture) -> String {
    std::fs::read_to_string(fixture.folder.path().join("data/admin-url")).unwrap().trim().to_owned()
}

#[tokio::test]
async fn other_names_are_sent_elsewhere() {
    let fixture = Fixture::with(LINES).await;
    let (public, admin) = (fixture.connector.url(), admin_url(&fixture));
    let asked = async |base: &str, path: &str, host: &str| {
        let answer = fixture.http.get(format!("{base}{path}")).header("host", host).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    for host in ["127.0.0.1:1", "localhost", "[::1]:8787", "RELAY.internal.", "relay.internal:443"] {
        assert_eq!(asked(&public, "/chat", host).await.0, 200, "{host}");
    }
    for path in ["/chat", "/relay", "/chat/api/open", "/nowhere"] {
        let (status, words) = asked(&public, path, "evil.example").await;
        assert_eq!(status, 421, "{path}");
        assert!(words.contains("server.hosts"), "{words}");
    }
    for path in ["/livez", "/readyz"] {
        assert_eq!(asked(&public, path, "10.2.3.4:8787").await.0, 200);
    }
    assert_eq!(asked(&admin, "/metrics", "localhost:8788").await.0, 200);
    let (status, words) = asked(&admin, "/metrics", "relay.internal").await;
    assert_eq!(status, 421);
    assert!(words.contains("server.admin_listen"), "{words}");
    let metrics = asked(&admin, "/metrics", "localhost").await.1;
    assert!(metrics.lines().any(|line| line == "angelia_http_misdirected_total 5"), "{metrics}");
    let log = fixture.connector.whole_log();
    let told: Vec<_> = log.lines().filter(|line| line.contains("requests for another host name")).collect();
    assert_eq!(told.len(), 2, "once at each address: {told:?}");
    assert!(told[0].contains("evil.example") && told[0].contains("server.hosts"), "{told:?}");
}

#[tokio::test]
async fn answers_with_secrets_are_kept_by_nobody() {
    let fixture = Fixture::with(LINES).await;
    let (public, admin) = (fixture.connector.url(), admin_url(&fixture));
    let token = std::fs::read_to_string(fixture.folder.path().join("data/admin-token")).unwrap();
    let bearer = fixture.bearer("acme").await;
    let enroll = fixture.enroll_token(&["--tenant", "acme"]).await;
    let kept = async |what: &str, request: RequestBuilder| {
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{what}: {}", answer.status());
        assert_eq!(answer.headers()["cache-control"], "no-store", "{what}");
    };
    let post = |path: &str| fixture.http.post(format!("{public}{path}")).bearer_auth(&bearer);
    kept("provision", post("/relay/provision").json(&json!({ "gatewayId": "gw-1" }))).await;
    let enrolled = json!({ "enrollmentToken": enroll, "gatewayId": "gw-2" });
    kept("enroll", post("/relay/enroll").json(&enrolled)).await;
    kept("enter", post("/chat/api/rooms/lobby/enter").json(&json!({ "name": "ann" }))).await;
    let command = |path: &str| fixture.http.post(format!("{admin}{path}")).bearer_auth(token.trim());
    kept("invite", command("/admin/webchat/invites").json(&json!({ "room": "den", "user": "ann" }))).await;
    let made = json!({ "tenant": "acme", "gateway_id": "gw-3" });
    kept("gateway", command("/admin/gateways").json(&made)).await;
}
