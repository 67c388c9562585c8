//! What happens at the same time, or breaks off in the middle.

use super::fixture::{Client, Fixture, credentials};
use angelia_contract::token;
use angelia_core::records::rows::GatewayRow;
use angelia_engines::inspect::Inspect;
use angelia_testkit::process::until;
use angelia_testkit::socket::now;
use angelia_testkit::two_nodes;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The pace of new gateways is in the way of those who want many at once.
const AT_ONCE: &str = "\n[limits]\nnew_gateways_at_once = 1000\n";

/// How long something may take that has to happen.
const SOON: Duration = Duration::from_secs(20);

fn read(fixture: &Fixture, name: &str) -> String {
    std::fs::read_to_string(fixture.folder.path().join("data").join(name)).unwrap().trim().to_owned()
}

/// The database, past the running server.
fn disk(fixture: &Fixture) -> Inspect {
    Inspect::of(&fixture.folder.path().join("data"))
}

/// The ids of revoked gateways, as the database has them.
fn revoked_on_disk(fixture: &Fixture) -> BTreeSet<String> {
    let gateways = disk(fixture).records::<GatewayRow>().into_iter();
    gateways.filter(|gateway| gateway.revoked_at.is_some()).map(|gateway| gateway.gateway_id).collect()
}

/// The ids of revoked gateways, as the running server knows them.
async fn revoked_in_memory(fixture: &Fixture) -> BTreeSet<String> {
    let listed = fixture.run(&["gateway", "list"]).await;
    let rows = listed["gateways"].as_array().unwrap().iter();
    let revoked = rows.filter(|row| row["revoked_at"].is_i64());
    revoked.map(|row| row["gateway_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_caller_who_hangs_up_leaves_nothing_half_done() {
    let fixture = Fixture::new().await;
    for number in 0..40 {
        fixture.run(&["gateway", "create", "--tenant", "acme", &format!("gw-{number}")]).await;
    }
    let (admin, token) = (read(&fixture, "admin-url"), read(&fixture, "admin-token"));
    let address = admin.trim_start_matches("http://");
    for number in 0..40u64 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "POST /admin/gateways/gw-{number}/revoke HTTP/1.1\r\nhost: {address}\r\n\
             authorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_micros(number * 150)).await;
        drop(stream);
    }
    until("most got that far", SOON, async || revoked_on_disk(&fixture).len() > 20).await;
    // Changes take turns: this one comes after those that had begun.
    fixture.run(&["gateway", "create", "--tenant", "acme", "gw-last"]).await;
    let agree = async || revoked_in_memory(&fixture).await == revoked_on_disk(&fixture);
    until("memory and disk agree on who is revoked", SOON, agree).await;
    println!("{} of 40 were committed", revoked_on_disk(&fixture).len());
}

#[tokio::test]
async fn a_removed_tenant_stays_removed_while_its_gateways_provision() {
    let fixture = Arc::new(Fixture::with(AT_ONCE).await);
    let bearer = fixture.bearer("acme").await;
    let provisioned = Arc::new(AtomicUsize::new(0));
    let mut busy = Vec::new();
    for task in 0..4 {
        let (fixture, bearer, provisioned) = (fixture.clone(), bearer.clone(), provisioned.clone());
        busy.push(tokio::spawn(async move {
            let mut statuses = Vec::new();
            for number in 0..60 {
                let body = json!({ "gatewayId": format!("gw-{task}-{number}") });
                statuses.push(fixture.provision(&bearer, &body).await.0);
                provisioned.fetch_add(1, Ordering::Relaxed);
            }
            statuses
        }));
    }
    until("they are at it", SOON, async || provisioned.load(Ordering::Relaxed) >= 8).await;
    let removed = fixture.run(&["tenant", "remove", "acme", "--confirm", "acme"]).await;
    assert_eq!(removed["removed"], "acme", "{removed}");
    let mut statuses = Vec::new();
    for task in busy {
        statuses.extend(task.await.unwrap());
    }
    assert!(statuses.contains(&401) || statuses.contains(&403), "some came too late: {statuses:?}");
    let tenants = fixture.run(&["tenant", "list"]).await;
    assert_eq!(tenants["tenants"], json!(["default", "evil"]));
    assert_eq!(fixture.run(&["gateway", "list"]).await["gateways"], json!([]));
    assert_eq!(disk(&fixture).records::<GatewayRow>().len(), 0);
}

#[tokio::test]
async fn an_operator_is_not_kept_waiting_by_those_who_provision() {
    let fixture = Arc::new(Fixture::with(AT_ONCE).await);
    let (acme, evil) = (fixture.bearer("acme").await, fixture.bearer("evil").await);
    assert_eq!(fixture.provision(&acme, &json!({ "gatewayId": "gw" })).await.0, 200);
    // A flood that does not end before the operator is served.
    let (over, provisioned) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let flood: Vec<_> = (0..200)
        .map(|number| {
            let (fixture, evil) = (fixture.clone(), evil.clone());
            let (over, provisioned) = (over.clone(), provisioned.clone());
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let body = json!({ "gatewayId": format!("gw-{number}") });
                    let status = fixture.provision(&evil, &body).await.0;
                    // In PostgreSQL a turn takes longer, and nobody waits for it without an end.
                    let told_to_come_back = two_nodes::are_asked_for() && status == 503;
                    assert!(status == 200 || told_to_come_back, "they wait their turn: {status}");
                    provisioned.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    until("the flood has begun", SOON, async || provisioned.load(Ordering::Relaxed) > 0).await;
    let before = provisioned.load(Ordering::Relaxed);
    fixture.run(&["gateway", "revoke", "--tenant", "acme", "gw"]).await;
    println!("revoked while {} provisioned", provisioned.load(Ordering::Relaxed) - before);
    over.store(true, Ordering::Relaxed);
    for task in flood {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_secret_in_the_wrong_place_is_not_repeated() {
    let fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    let token = fixture.enroll_token(&["--tenant", "acme"]).await;
    for body in
        [json!(token), json!({ "gatewayId": [token] }), json!({ "enrollmentToken": 7, "gatewayId": {} })]
    {
        let (status, answer) = fixture.post("/relay/enroll", &bearer, &body).await;
        assert_eq!(status, 400);
        assert!(!answer.to_string().contains(&token), "{answer}");
    }
    let audit: Value = fixture.run(&["audit", "list"]).await;
    assert!(!audit.to_string().contains(&token), "{audit}");
}

#[tokio::test]
async fn what_happens_while_a_body_is_on_its_way_counts() {
    let fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    let gateway = credentials(&fixture.provision(&bearer, &json!({ "gatewayId": "gw" })).await.1);
    let upgrade = token::mint("gw", &gateway.secret, now(), 300);
    let url = fixture.connector.url();
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = json!({ "platform": "webchat", "requireAddress": false }).to_string();
    let head = format!(
        "POST /relay/policy HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {upgrade}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{}",
        body.len(),
        &body[..5]
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    fixture.run(&["gateway", "revoke", "--tenant", "acme", "gw"]).await;
    stream.write_all(&body.as_bytes()[5..]).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[tokio::test]
async fn a_refusal_is_written_down_even_if_nobody_waits_for_it() {
    let fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    let url = fixture.connector.url();
    let address = url.trim_start_matches("http://");
    // Long enough to be read and not to be answered; a busy machine takes longer to read.
    for pause in [3, 6, 12].map(Duration::from_millis) {
        let before = fixture.refusals().await.len();
        for number in 0..10 {
            let gateway_id = format!("gw-{before}-{number}");
            let body = json!({ "enrollmentToken": "made up", "gatewayId": gateway_id }).to_string();
            let request = format!(
                "POST /relay/enroll HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {bearer}\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            );
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            tokio::time::sleep(pause).await;
        }
        let all = until("all are written down", SOON, async || fixture.refusals().await.len() >= before + 10);
        if tokio::time::timeout(SOON / 4, all).await.is_ok() {
            return assert_eq!(fixture.refusals().await.len(), before + 10);
        }
    }
    panic!("not all refusals are written down");
}

#[tokio::test]
async fn a_rotated_client_ends_its_old_tokens() {
    let fixture = Fixture::new().await;
    let client = fixture.client("acme").await;
    let old = fixture.ask_token(&client).await.1["access_token"].as_str().unwrap().to_owned();
    assert_eq!(fixture.provision(&old, &json!({ "gatewayId": "gw" })).await.0, 200);
    let rotated = fixture.run(&["client", "rotate", &client.id]).await;
    assert_eq!(fixture.provision(&old, &json!({ "gatewayId": "gw" })).await.0, 401);
    let client = Client { secret: rotated["client_secret"].as_str().unwrap().to_owned(), ..client };
    let new = fixture.ask_token(&client).await.1["access_token"].as_str().unwrap().to_owned();
    assert_eq!(fixture.provision(&new, &json!({ "gatewayId": "gw" })).await.0, 200, "the same subject");
}

#[tokio::test]
async fn a_gateway_that_cannot_move_yet_still_gets_its_secret() {
    let fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    assert_eq!(fixture.provision(&bearer, &json!({ "gatewayId": "gw" })).await.0, 200);
    fixture.run(&["route", "add", "--tenant", "acme", "--allow", "any", "--free", "webchat:lab"]).await;
    let invited = fixture.run(&["webchat", "invite", "--room", "lab", "--user", "ann"]).await;
    let url = format!("{}/chat/api/rooms/lab/messages", fixture.connector.url());
    let post = fixture.http.post(url).bearer_auth(invited["key"].as_str().unwrap());
    post.json(&json!({ "text": "waits" })).send().await.unwrap();
    for _ in 0..35 {
        let (status, answer) =
            fixture.provision(&bearer, &json!({ "gatewayId": "gw", "instanceId": "new" })).await;
        assert_eq!(status, 200, "{answer}");
    }
    assert_eq!(
        fixture.run(&["gateway", "show", "gw"]).await["instance"],
        "gw",
        "what waits is not left behind"
    );
    let audit = fixture.run(&["audit", "list", "--tenant", "acme", "--limit", "1000"]).await;
    let sets = audit["audit"].as_array().unwrap().iter().filter(|line| line["action"] == "gateway.set");
    assert_eq!(sets.count(), 0, "nothing was set");
}

#[tokio::test]
async fn nothing_is_given_to_a_revoked_gateway() {
    let fixture = Fixture::new().await;
    for id in ["gone", "stays"] {
        fixture.run(&["gateway", "create", "--tenant", "acme", id]).await;
    }
    fixture.run(&["gateway", "revoke", "gone"]).await;
    let shown = fixture.run(&["gateway", "show", "stays"]).await;
    assert_eq!(shown["default"], true, "{shown}");
    for args in [
        &["gateway", "default", "gone"] as &[&str],
        &["gateway", "rotate", "gone"],
        &["route", "add", "--tenant", "acme", "--gateway", "gone", "--allow", "any", "webchat:x"],
        &["route", "code", "--tenant", "acme", "--gateway", "gone"],
        &["webchat", "invite", "--room", "x", "--user", "ann", "--gateway", "gone"],
    ] {
        assert_eq!(fixture.run(args).await, Value::Null, "{args:?}: a conflict prints nothing");
    }
    assert_eq!(fixture.run(&["gateway", "show", "stays"]).await["default"], true);
}
