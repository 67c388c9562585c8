//! A database of the previous release, opened by this one while people write
//! and the gateway dials.

use super::desk::binary;
use angelia_testkit::connector::{Connector, Credentials};
use angelia_testkit::socket::{Next, Socket};
use serde_json::json;
use std::time::Duration;

/// Of the server that wrote `release-1.sql`; it exists nowhere else.
const MASTER_KEY: &str = "0222f6f6acde2637c333a7120a2cd6f744d1e776e0239db7293f4054fa08dea9";
const SECRET: &str = "b83e319e09cbda51861de1b57cb7f9cb1ede19b86c44b284d624a15f9585e4a5";
const ANNS_KEY: &str = "9bf8f32731e991fd7bd4a60c381531110ac73342b1ea37552195a89def302e06";
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

#[tokio::test]
async fn an_upgrade_loses_nothing_while_people_write() {
    angelia_connector::edge::install_tls_provider();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("master.key"), MASTER_KEY).unwrap();
    let old = rusqlite::Connection::open(data.join("angelia.db")).unwrap();
    old.execute_batch(include_str!("../../../engines/tests/store/release-1.sql")).unwrap();
    drop(old);
    // As the server did that made them.
    for (name, mode) in [("", 0o700), ("master.key", 0o600), ("angelia.db", 0o600)] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(data.join(name), mode).unwrap();
    }
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
