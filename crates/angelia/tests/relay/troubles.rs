//! What an operator is told when something is wrong: in the log, by `status` and by `explain`, each with
//! the step that mends it.

use super::world::World;
use angelia_contract::token;
use angelia_testkit::connector::Credentials;
use angelia_testkit::process::until;
use angelia_testkit::socket::{Socket, now};
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

impl World {
    /// The lines of the log that tell of an event, as objects.
    fn events(&self, event: &str) -> Vec<Value> {
        let lines = self.connector.whole_log();
        let objects = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        objects.filter(|line| line["event"] == event).collect()
    }

    async fn until_told(&self, event: &str) -> Value {
        until(event, SOON, async || !self.events(event).is_empty()).await;
        self.events(event).pop().unwrap()
    }

    async fn status_of(&self, gateway: &str) -> Value {
        let status = self.connector.command(&["status"]).await;
        let all = status["gateways"].as_array().unwrap();
        all.iter().find(|row| row["gateway_id"] == gateway).cloned().unwrap()
    }

    /// Dials with a token of somebody's making.
    async fn dials(&self, gateway: &str, secret: &str, made_at: u64) -> Option<u16> {
        let bearer = format!("Bearer {}", token::mint(gateway, secret, made_at, 300));
        Socket::dial_with(&self.connector.url(), Some(&bearer), "test")
            .await
            .err()
            .map(|refused| refused.status)
    }
}

async fn world() -> World {
    World::with("[log]\nformat = \"json\"\n").await
}

#[tokio::test]
async fn who_is_turned_away_hears_little_and_the_operator_why() {
    let world = world().await;
    let Credentials { gateway_id, secret } = &world.gateway;
    let two_hours = 7_200;
    for (id, secret, made_at, reason, known) in [
        ("nobody", "x", now(), "unknown_gateway", false),
        (gateway_id.as_str(), "not the secret", now(), "wrong_secret", true),
        (gateway_id.as_str(), secret.as_str(), now() - two_hours, "wrong_clock", true),
    ] {
        for _ in 0..3 {
            assert_eq!(world.dials(id, secret, made_at).await, Some(401), "the same to all of them");
        }
        let told: Vec<_> =
            world.events("gateway_refused").into_iter().filter(|it| it["reason"] == reason).collect();
        assert_eq!(told.len(), 1, "once, and then counted: {told:?}");
        assert_eq!((&told[0]["gateway"], &told[0]["level"]), (&json!(id), &json!("WARN")));
        assert!(told[0]["next"].as_str().unwrap().len() > 10, "{told:?}");
        if known {
            let refused = &world.status_of(gateway_id).await["refused"];
            assert_eq!(refused["reason"], reason);
            assert!(!refused["means"].as_str().unwrap().is_empty(), "{refused}");
        }
    }
    let off = &world.events("gateway_refused").pop().unwrap()["clock_off_seconds"];
    assert!((off.as_i64().unwrap() + 7_200).abs() < 60, "{off}");
    let log = world.connector.whole_log();
    assert!(!log.contains(secret) && !log.contains("not the secret"), "no secret is told");
    assert!(log.contains("angelia gateway rotate --tenant default gw"), "{log}");
    // Once it is there, what kept it out is over.
    let _socket = world.join().await;
    let connected = async || world.status_of(gateway_id).await["connected"] == true;
    until("it is connected", SOON, connected).await;
    assert_eq!(world.status_of(gateway_id).await["refused"], Value::Null);
}

#[tokio::test]
async fn the_log_tells_who_comes_and_goes_and_status_since_when() {
    let world = world().await;
    let before = world.status_of("gw").await;
    assert_eq!((&before["connected"], &before["since"]), (&json!(false), &Value::Null), "nobody saw it yet");
    let first = world.join().await;
    let connected = world.until_told("gateway_connected").await;
    assert_eq!((&connected["tenant"], &connected["gateway"]), (&json!("default"), &json!("gw")));
    assert!(world.status_of("gw").await["since"].as_i64().is_some());
    let second = world.join().await;
    assert_eq!(world.until_told("gateway_replaced").await["reason"], "replaced");
    let both = async || world.events("gateway_connected").len() == 2;
    until("the second is served as well", SOON, both).await;
    drop(first);
    second.close().await;
    assert_eq!(world.until_told("gateway_left").await["reason"], "closed");
    let away = async || world.status_of("gw").await["connected"] == false;
    until("it is away", SOON, away).await;
    assert!(world.status_of("gw").await["since"].as_i64().is_some(), "since it left");
    world.connector.command(&["gateway", "create", "gw-b"]).await;
    world.connector.command(&["gateway", "create", "gw-c"]).await;
    let revoked = world.connector.command(&["gateway", "revoke", "gw"]).await;
    let next = revoked["next"].as_str().unwrap();
    assert!(
        revoked["gateway_id"] == "gw" && next.contains("gateway default --tenant default gw-b"),
        "{revoked}"
    );
    let other = world.connector.command(&["gateway", "revoke", "gw-b"]).await;
    assert_eq!(other["next"], Value::Null, "it was no default");
    assert!(world.status_of("gw").await["revoked_at"].as_i64().is_some());
    let config = world.folder.path().join("angelia.toml");
    let status = super::world::binary();
    let shown =
        std::process::Command::new(status).arg("--config").arg(config).arg("status").output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.lines().any(|line| line.contains("gw") && line.contains("revoked")), "{shown}");
}

#[tokio::test]
async fn a_message_that_reaches_nobody_is_explained_with_the_step_that_mends_it() {
    let world = world().await;
    world.connector.command(&["route", "remove", "webchat:*"]).await;
    let posted = world.post_as(&world.key, "lab", &json!({ "text": "canary-text" })).await;
    let id = posted["message_id"].as_str().unwrap();
    let drop = world.connector.command(&["explain", id]).await["drops"][0].clone();
    assert_eq!((&drop["reason"], &drop["place"]), (&json!("no_route"), &json!("webchat:lab")));
    let next = drop["next"].as_str().unwrap();
    assert!(next.contains("angelia route add --tenant TENANT --allow any webchat:lab"), "{next}");
    let told = world.until_told("message_dropped").await;
    assert_eq!((&told["reason"], &told["platform"]), (&json!("no_route"), &json!("webchat")));
    assert!(told["next"].as_str().unwrap().contains("angelia messages"), "{told}");
    assert!(!told.to_string().contains("lab"), "a chat may be a telephone number: {told}");
    assert!(!world.connector.whole_log().contains("canary-text"), "never what it says");
    // The step is taken as it stands there, with the tenant's name.
    world.connector.command(&["route", "add", "--tenant", "default", "--allow", "bob", "webchat:lab"]).await;
    let posted = world.post_as(&world.key, "lab", &json!({ "text": "again" })).await;
    let id = posted["message_id"].as_str().unwrap();
    let drop = world.connector.command(&["explain", id]).await["drops"][0].clone();
    let next = drop["next"].as_str().unwrap();
    assert!(drop["reason"] == "author_not_allowed" && next.contains("--allow ann,… webchat:lab"), "{drop}");
    // The step is taken as it stands there; at no moment the place has no route.
    let refused = ["route", "add", "--tenant", "default", "--allow", "ann,bob", "webchat:lab"];
    let told = world.connector.command(&refused).await;
    assert!(told["error"].as_str().is_none_or(|error| error.contains("--replace")), "{told}");
    let step = ["route", "add", "--replace", "--tenant", "default", "--allow", "ann,bob", "webchat:lab"];
    assert_eq!(world.connector.command(&step).await["allow"], json!(["ann", "bob"]));
    let posted = world.post_as(&world.key, "lab", &json!({ "text": "@agent once more" })).await;
    assert!(posted["undelivered"].is_null(), "{posted}");

    let listed = world.connector.command(&["messages", "webchat:lab"]).await;
    let all = listed["messages"].as_array().unwrap();
    let states: Vec<_> = all.iter().map(|one| one["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["dropped", "dropped", "waiting"], "{listed}");
    assert_eq!((&all[0]["note"], &all[0]["person"]), (&json!("no_route"), &json!("ann")));
    assert_eq!((&all[2]["gateway"], &all[2]["message_id"]), (&json!("gw"), &posted["message_id"]));
    let dropped = world.connector.command(&["messages", "--state", "dropped", "--limit", "1"]).await;
    assert_eq!(
        (&dropped["messages"][0]["note"], &dropped["more"]),
        (&json!("author_not_allowed"), &json!(true))
    );
    assert_eq!(world.connector.command(&["messages", "telegram:1"]).await["messages"], json!([]));
    let last = world.connector.command(&["explain", "--last", "webchat:lab"]).await;
    assert_eq!(last["messages"][0]["message_id"], posted["message_id"], "{last}");
}
