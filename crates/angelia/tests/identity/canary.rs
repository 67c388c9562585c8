//! No secret is ever seen where it does not belong.
//!
//! A server at its chattiest log level is used in every way there is. Every
//! secret that appears is noted, and everything that could carry one is kept:
//! logs, answers, frames, metrics, command output, the raw files. Only the one
//! answer that hands a secret out may hold it, and only that secret.

use super::fixture::{Client, Fixture, binary, credentials};
use angelia_contract::token;
use angelia_engines::store::sqlite::DATABASE;
use angelia_testkit::canary::{Aviary, files_below};
use angelia_testkit::connector::Credentials;
use angelia_testkit::issuer::Issuer;
use angelia_testkit::socket::{Next, Socket, now};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Words that are no secret and must be found, or the search finds nothing.
const CONTROL: &str = "canary-control";
const CONTROL_TEXT: &str = "the canary sings in the inbox";

#[tokio::test]
async fn no_secret_is_seen_where_it_does_not_belong() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("canary");
    let _ = std::fs::remove_dir_all(&folder);
    let issuer = Issuer::start(&folder).await;
    issuer.make_key("k", "ES256").await;
    let lines = format!(
        "\n[log]\nlevel = \"trace\"\n[[identity.oidc]]\nissuer = {:?}\njwks_url = {:?}\naudience = \"a\"\n\
         [identity.portal]\naccount_url = {:?}\n",
        issuer.name(),
        issuer.jwks_url(),
        issuer.account_url()
    );
    let mut fixture = Fixture::with(&lines).await;
    let mut birds = Aviary::default();
    plant_files(&fixture, &mut birds);
    let gateway = identities(&fixture, &issuer, &mut birds).await;
    conversation(&fixture, &gateway, &mut birds).await;
    strangers(&fixture, &mut birds).await;
    operator(&fixture, &mut birds).await;
    // The log may still hold what was written last; the store folds it in when it closes.
    see_files(&fixture, &mut birds, "running");
    fixture.connector.stop(Duration::from_secs(10)).await;
    see_files(&fixture, &mut birds, "stopped");
    let log = std::fs::read(fixture.folder.path().join("angelia.log")).unwrap();
    birds.see("log", log);

    println!("{} secrets searched for in {} places", birds.secrets.len(), birds.seen.len());
    assert!(birds.secrets.len() >= 20, "{}", birds.secrets.len());
    let database = format!("running/{DATABASE}");
    for place in ["log", "command", &database, "frame", "backup"] {
        assert!(birds.holds(place, CONTROL), "the control canary is not found in {place}");
    }
    assert!(birds.holds(&database, CONTROL_TEXT), "nor the text that waits");
    let escaped = birds.escaped();
    assert!(escaped.is_empty(), "{escaped:#?}");
}

/// The two files that hold secrets as they are.
fn plant_files(fixture: &Fixture, birds: &mut Aviary) {
    for name in ["master.key", "admin-token"] {
        let text = std::fs::read_to_string(fixture.folder.path().join("data").join(name)).unwrap();
        birds.plant(name, text.trim());
    }
}

/// Everything else in the data directory, byte by byte.
fn see_files(fixture: &Fixture, birds: &mut Aviary, when: &str) {
    for path in files_below(&fixture.folder.path().join("data")) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name != "master.key" && name != "admin-token" {
            birds.see(&format!("{when}/{name}"), std::fs::read(&path).unwrap());
        }
    }
}

/// Enrols in every way there is.
async fn identities(fixture: &Fixture, issuer: &Issuer, birds: &mut Aviary) -> Credentials {
    fixture.run(&["tenant", "create", CONTROL, "--issuer", &issuer.name(), "--claim", "t1"]).await;
    fixture.run(&["tenant", "link", CONTROL, "--issuer", &issuer.account_url(), "--claim", "o1"]).await;
    let client = fixture.run(&["client", "create", "--tenant", CONTROL]).await;
    birds.handed_out("client create", &client, &["client_secret"]);
    let id = client["client_id"].as_str().unwrap().to_owned();
    let client = Client { id, secret: client["client_secret"].as_str().unwrap().to_owned() };
    let answer = fixture.ask_token(&client).await.1;
    birds.handed_out("oauth token", &answer, &["access_token"]);
    let bearer = answer["access_token"].as_str().unwrap().to_owned();

    let token = fixture.run(&["enroll-token", "--tenant", CONTROL]).await;
    birds.handed_out("enroll-token", &token, &["token"]);
    let unused = fixture.run(&["enroll-token", "--tenant", CONTROL, "--gateway", "later"]).await;
    birds.handed_out("enroll-token", &unused, &["token"]);
    let enrolled = fixture.enroll(&bearer, token["token"].as_str().unwrap(), "gw").await.1;
    birds.handed_out("enroll", &enrolled, &["secret", "deliveryKey"]);

    let claims = json!({ "iss": issuer.name(), "aud": "a", "exp": now() + 600, "sub": "ann", "tid": "t1" });
    let signed = issuer.sign("k", &claims, &json!({})).await;
    birds.plant("an issuer's token", &signed);
    let provisioned = fixture.provision(&signed, &json!({ "gatewayId": "gw-oidc" })).await.1;
    birds.handed_out("provision", &provisioned, &["secret", "deliveryKey"]);
    let account = "account-bearer-0123456789abcdef";
    birds.plant("an account's bearer", account);
    issuer.know(account, &json!({ "organisation": { "id": "o1" }, "user": { "email": "ann@x" } })).await;
    let vouched = fixture.provision(account, &json!({ "gatewayId": "gw-portal" })).await.1;
    birds.handed_out("provision", &vouched, &["secret", "deliveryKey"]);

    let created = fixture.run(&["gateway", "create", "--tenant", CONTROL, "gw-made"]).await;
    birds.handed_out("gateway create", &created, &["secret"]);
    let rotated = fixture.run(&["gateway", "rotate", "gw-made"]).await;
    birds.handed_out("gateway rotate", &rotated, &["secret"]);
    let code = fixture.run(&["route", "code", "--tenant", CONTROL]).await;
    birds.handed_out("route code", &code, &["code"]);
    credentials(&enrolled)
}

/// People and an agent talk.
async fn conversation(fixture: &Fixture, gateway: &Credentials, birds: &mut Aviary) {
    let invited = fixture
        .run(&[
            "webchat",
            "invite",
            "--room",
            CONTROL,
            "--user",
            "ann",
            "--tenant",
            CONTROL,
            "--gateway",
            "gw",
        ])
        .await;
    birds.handed_out("webchat invite", &invited, &["key"]);
    let key = invited["key"].as_str().unwrap();
    let upgrade = token::mint(&gateway.gateway_id, &gateway.secret, now(), 300);
    birds.plant("an upgrade token", &upgrade);
    let policy = fixture.post("/relay/policy", &upgrade, &json!({ "platform": "discord" })).await;
    birds.see("policy", policy.1.to_string());
    let url = format!("{}/chat/api/rooms/{CONTROL}/messages", fixture.connector.url());
    let say = async |text: &str| {
        let answer =
            fixture.http.post(&url).bearer_auth(key).json(&json!({ "text": text })).send().await.unwrap();
        answer.text().await.unwrap()
    };
    birds.see("post", say("hello").await);
    let code = fixture.run(&["route", "code", "--tenant", CONTROL]).await;
    birds.handed_out("route code", &code, &["code"]);
    birds.see("post", say(&format!("/link {}", code["code"].as_str().unwrap())).await);
    let used = fixture.run(&["route", "code", "--tenant", CONTROL]).await;
    birds.handed_out("route code", &used, &["code"]);
    birds.see("post", say(&format!("@agent /link {}", used["code"].as_str().unwrap())).await);
    let mut socket = Socket::join(&fixture.connector.url(), gateway).await;
    let frame = socket.frame().await;
    birds.see("frame", frame.to_string());
    socket.ack(&frame).await;
    let chat = format!("web-{CONTROL}");
    for action in [
        json!({ "op": "send", "chat_id": chat, "content": "hi" }),
        json!({ "op": "send", "chat_id": "web-elsewhere", "content": "hi" }),
        json!({ "op": "get_chat_info", "chat_id": chat }),
        json!({ "op": "follow_up", "session_key": "agent:main:relay:group:x", "kind": "discord.interaction_token" }),
        json!({ "op": "nonsense" }),
    ] {
        birds.see("frame", socket.ask(action).await.to_string());
    }
    socket.close().await;
    say(CONTROL_TEXT).await;
    let read = fixture.http.get(&url).bearer_auth(key).send().await.unwrap();
    birds.see("room", read.text().await.unwrap());
    if let Ok(mut dialled) = Socket::dial_with(&fixture.connector.url(), Some(&upgrade), "canary").await
        && let Next::Closed(_, reason) = dialled.next(Duration::from_millis(200)).await
    {
        birds.see("frame", reason);
    }
}

/// People who guess, and the secrets they guess with.
async fn strangers(fixture: &Fixture, birds: &mut Aviary) {
    let admin = std::fs::read_to_string(fixture.folder.path().join("data/admin-url")).unwrap();
    let wrong = "wrong-secret-9f8e7d6c5b4a3210";
    birds.plant("a wrong secret", wrong);
    let public = fixture.connector.url();
    for (method, url) in [
        ("GET", format!("{}/admin/status", admin.trim())),
        ("GET", format!("{}/admin/gateways", admin.trim())),
        ("POST", format!("{public}/relay/enroll")),
        ("POST", format!("{public}/relay/provision")),
        ("POST", format!("{public}/relay/policy")),
        ("GET", format!("{public}/chat/api/rooms/{CONTROL}/messages")),
        ("GET", format!("{public}/relay")),
    ] {
        let method = method.parse().unwrap();
        let answer = fixture.http.request(method, &url).bearer_auth(wrong).body("{}").send().await.unwrap();
        let head = format!("{:?}", answer.headers());
        birds.see(&url, head + &answer.text().await.unwrap());
    }
    let nobody = Client { id: "client-x".into(), secret: wrong.into() };
    birds.see("oauth", fixture.ask_token(&nobody).await.1.to_string());
    if let Err(refused) = Socket::dial_with(&public, Some(wrong), "canary").await {
        birds.see("upgrade", format!("{:?}", refused.headers));
    }
}

/// Everything an operator can have shown.
async fn operator(fixture: &Fixture, birds: &mut Aviary) {
    let backup = fixture.folder.path().join("backup.db").display().to_string();
    let commands: &[&[&str]] = &[
        &["tenant", "list"],
        &["route", "list"],
        &["route", "list", "--unrouted"],
        &["gateway", "list"],
        &["gateway", "show", "gw"],
        &["gateway", "set", "gw", "--display-name", "Ann's", "--wake-url", "https://wake.example/"],
        &["client", "list"],
        &["inbox", "list"],
        &["inbox", "show"],
        &["audit", "list", "--limit", "1000"],
        &["status"],
        &["key", "check"],
        &["explain", "b1"],
        &["backup", &backup],
        &["key", "rotate"],
        &["admin-token", "rotate"],
        &["gateway", "revoke", "gw-made"],
    ];
    for command in commands {
        birds.see(&format!("command {}", command.join(" ")), fixture.run(command).await.to_string());
    }
    plant_files(fixture, birds);
    birds.see("backup", std::fs::read(&backup).unwrap());
    let config = fixture.folder.path().join("angelia.toml").display().to_string();
    for args in [["config", "print"], ["config", "check"]] {
        let output =
            std::process::Command::new(binary()).args(["--config", &config]).args(args).output().unwrap();
        birds.see("command config", [output.stdout, output.stderr].concat());
    }
    let admin = std::fs::read_to_string(fixture.folder.path().join("data/admin-url")).unwrap();
    let token = std::fs::read_to_string(fixture.folder.path().join("data/admin-token")).unwrap();
    for path in ["/metrics", "/admin/status", "/admin/openapi.json", "/admin/nothing"] {
        let url = format!("{}{path}", admin.trim());
        let answer = fixture.http.get(url).bearer_auth(token.trim()).send().await.unwrap();
        birds.see(path, answer.text().await.unwrap());
    }
}
