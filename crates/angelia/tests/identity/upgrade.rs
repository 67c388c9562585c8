//! A database of the previous release, opened by this one while people write
//! and the gateway dials.

use super::fixture::binary;
use angelia_engines::inspect::{Inspect, Release, leave_database_of};
use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::socket::{Next, Socket};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// Of the server that wrote the databases of releases one and four; it exists nowhere else.
const MASTER_KEY: &str = "0222f6f6acde2637c333a7120a2cd6f744d1e776e0239db7293f4054fa08dea9";
const SECRET: &str = "b83e319e09cbda51861de1b57cb7f9cb1ede19b86c44b284d624a15f9585e4a5";
/// Of `gw-new` in release four.
const NEW_SECRET: &str = "d1daca7cb4ecd98d2d9b65927735285794e821213812a087d9b19d24d335ac81";
const ANNS_KEY: &str = "9bf8f32731e991fd7bd4a60c381531110ac73342b1ea37552195a89def302e06";
/// How a value begins that has a data key of its own.
const ENVELOPE: [u8; 5] = [0, 0, 0, 0, 2];
const WAITING: usize = 5;
const POSTED: usize = 40;

/// Posts until it is taken, as a client that retries does: the same client id each time.
async fn post(http: &reqwest::Client, url: &str, number: usize) {
    let body = json!({ "text": format!("during the upgrade {number}"), "client_id": format!("u{number}") });
    loop {
        let posted = http.post(url).bearer_auth(ANNS_KEY).json(&body).send().await;
        if posted.is_ok_and(|answer| answer.status().is_success()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Dials until it is let in, and takes texts until there are enough of them.
async fn take(url: String) -> Vec<String> {
    let gateway = Credentials { gateway_id: "gw-old".into(), secret: SECRET.into() };
    let address = url.trim_start_matches("http://").to_owned();
    while tokio::net::TcpStream::connect(&address).await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut socket = loop {
        match Socket::dial(&url, &gateway).await {
            Ok(socket) => break socket,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    socket.hello("webchat", "webchat").await;
    let mut texts = Vec::new();
    while texts.len() < WAITING + POSTED {
        let Next::Frame(frame) = socket.next(Duration::from_secs(20)).await else { break };
        if frame["type"] == "inbound" {
            texts.push(frame["event"]["text"].as_str().unwrap().to_owned());
            socket.ack(&frame).await;
        }
    }
    texts
}

/// What a server of an earlier release left behind.
fn left_by(release: Release) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("master.key"), MASTER_KEY).unwrap();
    leave_database_of(release, &data);
    // As the server did that made them.
    for (name, mode) in [("", 0o700), ("master.key", 0o600)] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(data.join(name), mode).unwrap();
    }
    folder
}

#[tokio::test]
async fn an_upgrade_loses_nothing_while_people_write() {
    angelia_connector::ssrf_guard::install_tls_provider();
    let folder = left_by(Release::One);
    let port = angelia_testkit::process::free_port();
    let url = format!("http://127.0.0.1:{port}");
    let gateway = tokio::spawn(take(url.clone()));
    let room = format!("{url}/chat/api/rooms/lab/messages");
    let people = tokio::spawn(async move {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        for number in 1..=POSTED {
            post(&http, &room, number).await;
        }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    // The messages of the old release are older than any quota by now.
    let lines = "[inbox]\nmax_age = \"3650d\"\n";
    let connector = Connector::start_on(binary(), folder.path(), port, lines).await;
    people.await.unwrap();
    let texts = gateway.await.unwrap();
    let before = (1..=WAITING).map(|number| format!("before the upgrade {number}"));
    let during = (1..=POSTED).map(|number| format!("during the upgrade {number}"));
    assert_eq!(texts, before.chain(during).collect::<Vec<_>>(), "all, once, in order");
    let check = connector.command(&["key", "check"]).await;
    assert_eq!(check["unreadable"], 0, "{check}");
    let routes = connector.command(&["route", "list"]).await;
    assert_eq!(routes["routes"][1]["allow"], json!(["ann", "bob"]), "{routes}");
}

/// How many sealed values are in a database, and how many have a data key of their own.
fn enveloped(data: &Path) -> (usize, usize) {
    let all = Inspect::of(data).sealed_values();
    let enveloped = all.iter().filter(|value| value.sealed.starts_with(&ENVELOPE));
    (all.len(), enveloped.count())
}

#[tokio::test]
async fn what_release_4_sealed_opens_and_gets_data_keys_with_the_next_change() {
    angelia_connector::ssrf_guard::install_tls_provider();
    let folder = left_by(Release::Four);
    let (config, data) = (folder.path().join("angelia.toml"), folder.path().join("data"));
    std::fs::write(&config, format!("[server]\ndata_dir = {data:?}\n")).unwrap();
    let angelia = |args: &[&str]| -> Value {
        let mut command = std::process::Command::new(binary());
        let output = command.arg("--config").arg(&config).args(args).arg("--json").output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let before = angelia(&["key", "check"]);
    assert_eq!((&before["unreadable"], &before["key_id"]), (&json!(0), &json!("42ca3eee")), "{before}");
    assert_eq!(before["sealed"].as_array().unwrap().len(), 6, "of every kind one at least: {before}");
    let (all, none) = enveloped(&data);
    assert_eq!((all, none), (11, 0), "opening them changes nothing");
    let shown = angelia(&["bot", "quarantine", "show", "1"]);
    assert_eq!(shown["raw"], "{\"update_id\": 41}");
    angelia(&["gateway", "create", "--tenant", "acme", "gw-5"]);
    assert_eq!(enveloped(&data), (12, 1), "what is new has one");

    let rotated = angelia(&["key", "rotate"]);
    assert_eq!((&rotated["old_key_id"], &rotated["resealed"]), (&before["key_id"], &json!(12)), "{rotated}");
    assert_eq!(enveloped(&data), (12, 12));
    let after = angelia(&["key", "check"]);
    assert_eq!((&after["unreadable"], &after["retiring_key_id"]), (&json!(0), &Value::Null), "{after}");
    assert_eq!(angelia(&["bot", "quarantine", "show", "1"])["raw"], shown["raw"]);

    let port = angelia_testkit::process::free_port();
    let connector = Connector::start_on(binary(), folder.path(), port, "").await;
    let gateway = Credentials { gateway_id: "gw-new".into(), secret: NEW_SECRET.into() };
    Socket::join(&connector.url(), &gateway).await;
}
