//! How nodes begin.

use super::stage::{BUSY, SECOND, SOON, Stage, setup, until};
use angelia_testkit::process::output;
use std::fs;
use tokio::process::Command;

#[tokio::test]
async fn nodes_that_start_at_the_same_instant_on_an_empty_database_agree() {
    let mut cluster = setup("same-instant").empty();
    for _ in 0..3 {
        cluster.spawn().await;
    }
    for node in 0..3 {
        cluster.arrived(node).await;
    }
    let stage = Stage::on(cluster).await;
    let mut socket = stage.join(2).await;
    for node in 0..3 {
        stage.post(node, &format!("from {node}")).await;
        assert_eq!(socket.take_text().await, format!("from {node}"));
    }
    // One key for what nodes say to each other, one for tokens: any node takes what any gave.
    let made = stage.cluster[0].command(&["client", "create", "--tenant", "acme"]).await;
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    let form = format!(
        "grant_type=client_credentials&client_id={}&client_secret={}&scope=relay",
        text("client_id"),
        text("client_secret")
    );
    let answer = stage
        .http
        .post(format!("{}/oauth/token", stage.cluster[0].url()))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form)
        .send()
        .await
        .unwrap();
    let token: serde_json::Value = answer.json().await.unwrap();
    let bearer = token["access_token"].as_str().unwrap_or_else(|| panic!("{token}"));
    for node in 0..3 {
        let url = format!("{}/relay/provision", stage.cluster[node].url());
        let body = serde_json::json!({ "gatewayId": format!("gw-{node}") });
        // The client is new, and may be known a moment later elsewhere.
        until(&format!("node {node} takes the token"), SECOND + BUSY, async || {
            stage.http.post(&url).bearer_auth(bearer).json(&body).send().await.unwrap().status() == 200
        })
        .await;
    }
    let holders = stage.cluster.sql("SELECT count(*) FROM leases WHERE released = 0").await;
    assert_eq!(holders, "3", "each chore has one who does it");
    stage.cluster.assert_never_panicked();
}

#[tokio::test]
async fn a_node_with_another_master_key_is_refused() {
    let mut cluster = setup("wrong-key").start(1).await;
    let (second, folder) = (cluster.folder(1), cluster.folder(0));
    fs::create_dir_all(&second).unwrap();
    let config = fs::read_to_string(folder.join("angelia.toml")).unwrap();
    fs::write(second.join("other.key"), "ab".repeat(32)).unwrap();
    let mut lines: Vec<String> = config
        .lines()
        .map(|line| match line {
            line if line.starts_with("master") => {
                format!("master = {{ file = {:?} }}", second.join("other.key").display().to_string())
            }
            line if line.starts_with("data_dir") => {
                format!("data_dir = {:?}", second.join("data").display().to_string())
            }
            line if line.starts_with("listen") => "listen = \"127.0.0.1:0\"".into(),
            line if line.starts_with("admin_listen") => "admin_listen = \"127.0.0.1:0\"".into(),
            line => line.to_owned(),
        })
        .collect();
    lines.push(String::new());
    fs::write(second.join("angelia.toml"), lines.join("\n")).unwrap();
    let mut command = Command::new(super::stage::binary());
    command.arg("--config").arg(second.join("angelia.toml")).arg("serve");
    let refused = output("a node with another key", command, SOON).await;
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && error.contains("master key"), "{:?} {error}", refused.status);
    assert!(cluster.node(0).connector.process().is_running(), "the one that was there goes on");
}
