//! Who is let in, and how the others are told.

use super::world::{World, credentials};
use angelia_contract::token;
use angelia_core::clock::UnixMillis;
use angelia_core::records::rows::SecretRow;
use angelia_engines::inspect::Inspect;
use angelia_testkit::socket::{Next, Socket, now};
use serde_json::json;
use std::time::Duration;

async fn status(world: &World, authorization: Option<&str>) -> u16 {
    match Socket::dial_with(&world.connector.url(), authorization, "test").await {
        Ok(_) => 101,
        Err(refused) => refused.status,
    }
}

#[tokio::test]
async fn everything_that_is_not_proven_is_a_401() {
    let world = World::new().await;
    let (id, secret) = (world.gateway.gateway_id.as_str(), world.gateway.secret.as_str());
    let bearer = |token: String| format!("Bearer {token}");
    let good = token::mint(id, secret, now(), 300);
    let padded = format!("{good:=<width$}", width = good.len().div_ceil(4) * 4);
    let cases = [
        (None, 401),
        (Some("Bearer ".into()), 401),
        (Some("Basic abc".into()), 401),
        (Some(bearer("nonsense".into())), 401),
        (Some(bearer(token::mint("nobody", secret, now(), 300))), 401),
        (Some(bearer(token::mint(id, "wrong", now(), 300))), 401),
        (Some(bearer(token::mint(id, secret, now(), 0))), 401),
        (Some(bearer(token::mint(id, secret, now(), 25 * 3600))), 401),
        (Some(bearer(token::mint(id, secret, now() - 7200, 300))), 401),
        (Some(bearer(token::mint(id, secret, now() - 400, 300))), 101),
        (Some(bearer(good)), 101),
        (Some(bearer(padded)), 101),
    ];
    for (authorization, expected) in cases {
        assert_eq!(status(&world, authorization.as_deref()).await, expected, "{authorization:?}");
    }
    let plain = world.http.get(format!("{}/relay", world.connector.url())).send().await.unwrap();
    assert!(plain.status().is_client_error(), "a GET without an upgrade: {}", plain.status());
}

#[tokio::test]
async fn a_revoked_gateway_is_let_in_to_be_told() {
    let mut world = World::new().await;
    let mut live = world.join().await;
    let mut in_reserve = Socket::dial(&world.connector.url(), &world.gateway).await.unwrap();
    let revoking = world.connector.command(&["gateway", "revoke", "gw"]);
    let (closed, shown) = tokio::join!(live.next(Duration::from_secs(5)), revoking);
    assert_eq!(closed, Next::Closed(4401, "unauthorized".into()), "the live socket is closed at once");
    assert!(shown["revoked_at"].is_i64(), "{shown}");
    let closed = in_reserve.next(Duration::from_secs(5)).await;
    assert_eq!(
        closed,
        Next::Closed(4401, "unauthorized".into()),
        "one that was let in before is no way around"
    );
    world.restart_with("").await;
    let mut socket = Socket::dial(&world.connector.url(), &world.gateway).await.unwrap();
    let began = tokio::time::Instant::now();
    let told = socket.next(Duration::from_secs(8)).await;
    assert_eq!(told, Next::Closed(4401, "unauthorized".into()));
    assert!(began.elapsed() > Duration::from_secs(2), "repeats are slowed down");
    let expired = token::mint("gw", &world.gateway.secret, now() - 7200, 300);
    assert_eq!(
        status(&world, Some(&format!("Bearer {expired}"))).await,
        401,
        "an old token is never a revocation"
    );
}

#[tokio::test]
async fn a_rotated_secret_stays_good_for_a_day() {
    let mut world = World::new().await;
    let old = world.gateway.clone();
    let rotated = credentials(&world.connector.command(&["gateway", "rotate", "gw"]).await);
    assert_ne!(rotated.secret, old.secret);
    for restarted in [false, true] {
        if restarted {
            world.restart_with("").await;
        }
        for secret in [&old, &rotated] {
            assert!(Socket::dial(&world.connector.url(), secret).await.is_ok());
        }
    }
    world.connector.stop(Duration::from_secs(10)).await;
    let long_ago = |secret: &mut SecretRow| secret.valid_until = Some(UnixMillis(1));
    Inspect::of(&world.folder.path().join("data")).rewrite(|secret| secret.valid_until.is_some(), long_ago);
    world.connector.restart().await;
    let refused = Socket::dial(&world.connector.url(), &old).await.err().expect("past its window");
    assert_eq!(refused.status, 401, "a secret past its window is no revocation");
    assert!(Socket::dial(&world.connector.url(), &rotated).await.is_ok());
}

#[tokio::test]
async fn every_hello_is_answered_and_the_primary_is_repeated() {
    let world = World::new().await;
    let mut socket = Socket::dial(&world.connector.url(), &world.gateway).await.unwrap();
    world.post("first").await;
    socket.hello("webchat", "webchat").await;
    socket.hello("discord", "bot1").await;
    socket.hello("relay", "").await;
    let mut platforms = Vec::new();
    for _ in 0..4 {
        let frame = socket.frame().await;
        assert_eq!(frame["type"], "descriptor", "nothing is pushed before the descriptors: {frame}");
        let descriptor = frame["descriptor"].as_object().unwrap();
        for key in angelia_contract::descriptor::REQUIRED_KEYS {
            assert!(descriptor.contains_key(key), "{key}");
        }
        platforms.push(frame["descriptor"]["platform"].as_str().unwrap().to_owned());
    }
    assert_eq!(platforms, ["webchat", "discord", "webchat", "webchat"]);
    assert_eq!(socket.take_text().await, "first");
}

#[tokio::test]
async fn a_socket_without_a_hello_gets_nothing() {
    let world = World::new().await;
    world.post("waits").await;
    let mut socket = Socket::dial(&world.connector.url(), &world.gateway).await.unwrap();
    socket
        .send(
            &json!({"type": "outbound", "requestId": "1", "action": {"op": "typing", "chat_id": "web-lab"}}),
        )
        .await;
    socket.send(&json!({"type": "inbound_ack", "bufferId": "b1"})).await;
    assert_eq!(socket.next(Duration::from_millis(500)).await, Next::Silence);
    assert_eq!(world.waiting().await, 1);
}

#[tokio::test]
async fn malformed_input_is_counted_and_harms_nobody() {
    let world = World::new().await;
    let mut socket = world.join().await;
    for text in [
        "not json\n",
        "[1,2]\n",
        "{}\n",
        "{\"type\":1}\n",
        "{\"type\":\"new_thing\",\"x\":1}\n",
        "\n\n\r\n",
        "{\"type\":\"outbound\"}\n",
        "{\"type\":\"inbound_ack\"}\n",
        "{\"type\":\"inbound_ack\",\"bufferId\":\"b99\"}\n",
        "{\"type\":\"interrupt\",\"session_key\":\"\\ud800\"}\n",
        "{\"type\":\"hello\",\"platform\":null}\n",
    ] {
        socket.send_text(text.into()).await;
    }
    socket.send_text("{\"type\":\"outbound\",\"requestId\":\"q\",\"action\":{\"op\":\"se".into()).await;
    socket.send_text("nd\",\"chat_id\":\"web-lab\",\"content\":\"split\"}}\n".into()).await;
    let mut answers = Vec::new();
    while answers.len() < 3 {
        answers.push(socket.frame().await);
    }
    assert!(
        answers.iter().any(|a| a["type"] == "outbound_result" && a["result"]["success"] == true),
        "{answers:?}"
    );
    world.post("still here").await;
    assert_eq!(socket.take_text().await, "still here");
    let url = std::fs::read_to_string(world.folder.path().join("data/admin-url")).unwrap();
    let metrics =
        world.http.get(format!("{}/metrics", url.trim())).send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("angelia_relay_frames_unknown_total 1"), "{metrics}");
    assert!(metrics.contains("angelia_relay_frames_malformed_total 6"), "{metrics}");
}
