//! What a gateway is told that names no platform of its own: what leads to it, and no more.

use super::shared_stage::Stage;
use angelia_testkit::connector::Credentials;
use angelia_testkit::socket::Socket;
use serde_json::{Value, json};
use std::path::Path;

/// Two bots that nobody answers at their providers: hellos need none.
fn bots(folder: &Path) -> String {
    let token = folder.join("token");
    std::fs::write(&token, "77:abcdefghijklmnopqrstuvwxyz0123456789").unwrap();
    let bot = |platform: &str, more: &str| {
        format!(
            "[[bots]]\nplatform = {platform:?}\nid = \"77\"\nname = {platform:?}\ntoken = {{ file = {:?} }}\n\
             api_url = \"http://127.0.0.1:9\"\n{more}",
            token.display().to_string()
        )
    };
    bot("telegram", "") + &bot("discord", "gateway_url = \"ws://127.0.0.1:9\"\n")
}

async fn told(stage: &Stage, credentials: &Credentials) -> (Value, Value, Value) {
    let mut socket = Socket::dial(&stage.connector.url(), credentials).await.unwrap();
    socket.hello("relay", "").await;
    let frame = socket.frame().await;
    let of = |key: &str| frame["descriptor"][key].clone();
    (of("platform"), of("max_message_length"), of("len_unit"))
}

#[tokio::test]
async fn a_relay_is_told_of_its_own_tenants_platforms() {
    let stage = Stage::new(bots).await;
    let acme = stage.connector.gateway("acme", "gw-acme").await;
    let beta = stage.connector.gateway("beta", "gw-beta").await;
    let sibling = stage.connector.gateway("beta", "gw-sibling").await;
    stage.route("acme", None, "discord:5").await;
    let nothing_yet = (json!("relay"), json!(2000), json!("utf16"));
    assert_eq!(told(&stage, &beta).await, nothing_yet, "whatever may come");
    stage.route("beta", None, "telegram:*").await;
    let telegram = (json!("telegram"), json!(4096), json!("utf16"));
    assert_eq!(told(&stage, &beta).await, telegram, "Discord is another tenant's");
    stage.route("beta", Some("gw-beta"), "discord:6").await;
    assert_eq!(told(&stage, &beta).await, (json!("relay"), json!(2000), json!("utf16")), "fits both");
    assert_eq!(told(&stage, &sibling).await, telegram, "and Discord is another instance's");
    stage.unroute("telegram:*").await;
    assert_eq!(told(&stage, &beta).await, (json!("discord"), json!(2000), json!("chars")));
    assert_eq!(told(&stage, &acme).await.1, json!(2000));
}
