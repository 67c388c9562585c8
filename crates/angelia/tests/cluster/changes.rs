//! What is changed on one node counts on all of them within a second, with Redis and without.

use super::stage::{AT_ONCE, BUSY, POLL, SECOND, Stage, dial, end_of, timed, until};
use angelia_contract::token;
use angelia_testkit::connector::Credentials;
use angelia_testkit::socket::{Socket, now};
use serde_json::{Value, json};
use std::time::Duration;

/// Once with the Redis, then without; what a change may take is told along.
async fn with_and_without(stage: &Stage, story: impl AsyncFn(&str, Duration)) {
    story("with Redis", AT_ONCE + BUSY / 2).await;
    stage.without_redis().await;
    story("without Redis", SECOND + BUSY).await;
}

#[tokio::test]
async fn a_revocation_ends_sockets_on_every_node() {
    let stage = Stage::new("revoke", 3).await;
    with_and_without(&stage, async |how, limit| {
        let id = format!("gw-{}", how.replace(' ', "-").to_lowercase());
        let gateway = stage.cluster[0].gateway("acme", &id).await;
        stage.until_known(1, &gateway).await;
        let mut socket = stage.join_as(1, &gateway).await;
        stage.cluster[0].command(&["gateway", "revoke", &id]).await;
        let code = timed(&format!("a revocation, {how}"), limit, end_of(&mut socket)).await;
        assert_eq!(code, 4401);
        // It is turned away with 4401 by every node, after an upgrade; never with a status.
        for node in 0..3 {
            let mut again = Socket::dial(&stage.cluster[node].url(), &gateway).await.expect("let in first");
            assert_eq!(end_of(&mut again).await, 4401, "node {node}");
        }
    })
    .await;
    stage.cluster.assert_never_panicked();
}

#[tokio::test]
async fn a_rotation_voids_the_old_secret_everywhere() {
    let stage = Stage::new("rotate", 2).await;
    let mut current = stage.gateway.clone();
    for (how, limit) in [("with Redis", AT_ONCE + BUSY / 2), ("without Redis", SECOND + BUSY)] {
        if how == "without Redis" {
            stage.without_redis().await;
        }
        let mut socket = stage.join_as(1, &current).await;
        let made = stage.cluster[0].command(&["gateway", "rotate", "gw", "--now"]).await;
        let secret = made["secret"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
        let new = Credentials { gateway_id: "gw".into(), secret };
        let code = timed(&format!("a rotation, {how}"), limit, end_of(&mut socket)).await;
        assert_eq!(code, 1001, "who has the new secret comes back");
        assert_eq!(dial(&stage.cluster[1].url(), &current).await, 401);
        until("the new secret", limit, async || dial(&stage.cluster[1].url(), &new).await == 101).await;
        current = new;
    }
}

#[tokio::test]
async fn routes_count_everywhere() {
    let stage = Stage::new("routes", 2).await;
    // What has no route of its own would go there.
    stage.cluster[0].command(&["route", "remove", "webchat:*"]).await;
    let _socket = stage.join(1).await;
    let undelivered = async |node| stage.post(node, "hello").await["undelivered"].as_str().map(str::to_owned);
    with_and_without(&stage, async |how, limit| {
        assert_eq!(undelivered(1).await, None);
        stage.cluster[0].command(&["route", "remove", "webchat:lab"]).await;
        let gone = async {
            while undelivered(1).await.is_none() {
                tokio::time::sleep(POLL).await;
            }
        };
        timed(&format!("a route that is removed, {how}"), limit, gone).await;
        let add = ["route", "add", "--tenant", "acme", "--allow", "any", "--free", "webchat:lab"];
        stage.cluster[0].command(&add).await;
        let back = async {
            while undelivered(1).await.is_some() {
                tokio::time::sleep(POLL).await;
            }
        };
        timed(&format!("a route that is added, {how}"), limit, back).await;
    })
    .await;
}

#[tokio::test]
async fn a_policy_counts_everywhere() {
    let stage = Stage::new("policy", 2).await;
    // Free routes need no policy; this one is not, and two people are in the room.
    for place in ["webchat:lab", "webchat:*"] {
        stage.cluster[0].command(&["route", "remove", place]).await;
    }
    stage.cluster[0].command(&["route", "add", "--tenant", "acme", "--allow", "any", "webchat:lab"]).await;
    stage.cluster[0].command(&["webchat", "invite", "--room", "lab", "--user", "bob"]).await;
    let _socket = stage.join(1).await;
    let addressed = async || stage.post(1, "plain").await["undelivered"] == "not_addressed";
    until("the route", SECOND + BUSY, async || addressed().await).await;
    let declare = async |require: bool| {
        let bearer = token::mint(&stage.gateway.gateway_id, &stage.gateway.secret, now(), 300);
        let body: Value = json!({ "platform": "webchat", "requireAddress": require });
        let url = format!("{}/relay/policy", stage.cluster[0].url());
        assert_eq!(stage.http.post(url).bearer_auth(bearer).json(&body).send().await.unwrap().status(), 200);
    };
    with_and_without(&stage, async |how, limit| {
        for require in [false, true] {
            declare(require).await;
            let counts = async {
                while addressed().await != require {
                    tokio::time::sleep(POLL).await;
                }
            };
            timed(&format!("a policy, {how}"), limit, counts).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_tenant_that_is_removed_is_gone_everywhere() {
    let stage = Stage::new("removed", 2).await;
    let other = stage.cluster[0].gateway("other", "theirs").await;
    stage.until_known(1, &other).await;
    let mut theirs = stage.join_as(1, &other).await;
    let mut ours = stage.join(1).await;
    stage.cluster[0].command(&["tenant", "remove", "other", "--confirm", "other"]).await;
    let code = timed("the removal of a tenant", SECOND + BUSY, end_of(&mut theirs)).await;
    assert_eq!(code, 4401);
    stage.post(0, "still here").await;
    assert_eq!(ours.take_text().await, "still here");
}
