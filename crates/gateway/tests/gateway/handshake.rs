//! Dialing, greeting, and dialing again.

use std::time::Duration;

use angelia_contract::{ConnectorFrame, GatewayFrame, close, token};
use angelia_gateway::{BuildError, Gateway, GatewayError};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::support::{SECRET, Server, deaf, descriptor, run};

#[tokio::test(start_paused = true)]
async fn greets_with_a_fresh_token_and_every_identity() {
    let server = Server::start().await;
    let builder = server
        .builder()
        .identity("telegram", "7")
        .identity("discord", "bot1")
        .identity("discord", "bot1")
        .command_manifest(vec![json!({"name": "help"})]);
    let (handle, _running) = run(builder, deaf);
    let mut peer = server.accept().await;

    assert_eq!(peer.path, "/relay");
    let token = token::parse(peer.bearer.strip_prefix("Bearer ").unwrap()).unwrap();
    assert_eq!(token.gateway_id(), "gw:1");
    assert!(token.signed_by(SECRET));
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    assert!((now + 290..=now + 300).contains(&token.exp()));

    let GatewayFrame::Hello(first) = peer.next().await else { panic!() };
    assert_eq!((first.platform.as_str(), first.bot_id.as_str()), ("telegram", "7"));
    assert_eq!(first.command_manifest, None);
    let GatewayFrame::Hello(second) = peer.next().await else { panic!() };
    assert_eq!((second.platform.as_str(), second.bot_id.as_str()), ("discord", "bot1"));
    assert_eq!(second.command_manifest, Some(vec![json!({"name": "help"})]));

    assert!(!handle.is_connected());
    assert_eq!(handle.descriptor(), None);
    for platform in ["telegram", "discord"] {
        peer.send(&ConnectorFrame::Descriptor { descriptor: descriptor(platform) }).await;
    }
    sleep(Duration::from_millis(10)).await;
    assert!(handle.is_connected());
    assert_eq!(handle.descriptor().unwrap().platform, "telegram");
    assert_eq!(handle.descriptors().len(), 2);

    // A later one is adopted at once, without a new handshake.
    let mut changed = descriptor("telegram");
    changed.max_message_length = 77;
    peer.send(&ConnectorFrame::Descriptor { descriptor: changed }).await;
    sleep(Duration::from_millis(10)).await;
    assert_eq!(handle.descriptor().unwrap().max_message_length, 77);
    assert_eq!(handle.stats().handshakes, 1);
}

#[tokio::test(start_paused = true)]
async fn without_an_identity_it_takes_what_there_is() {
    let server = Server::start().await;
    let (_handle, _running) = run(server.builder(), deaf);
    let mut peer = server.accept().await;
    let GatewayFrame::Hello(hello) = peer.next().await else { panic!() };
    assert_eq!((hello.platform.as_str(), hello.bot_id.as_str()), ("relay", ""));
}

#[tokio::test(start_paused = true)]
async fn dials_again_when_the_connector_goes_away() {
    let server = Server::start().await;
    let (handle, _running) = run(server.builder(), deaf);
    for _ in 0..4 {
        let peer = server.greet().await;
        sleep(Duration::from_millis(10)).await;
        let closed = Instant::now();
        assert!(handle.is_connected());
        peer.close(close::GOING_AWAY, close::REASON_RESTART).await;
        sleep(Duration::from_millis(10)).await;
        assert!(!handle.is_connected());
        let _broken = server.accept_tcp().await;
        // A completed handshake resets the wait, so it does not grow here.
        let wait = closed.elapsed().as_secs_f64();
        assert!((0.4..1.6).contains(&wait), "{wait}");
    }
}

#[tokio::test(start_paused = true)]
async fn revocation_is_final_once_it_was_accepted() {
    let server = Server::start().await;
    let (handle, running) = run(server.builder(), deaf);
    let peer = server.greet().await;
    peer.close(close::UNAUTHORIZED, close::REASON_UNAUTHORIZED).await;
    assert_eq!(running.await.unwrap(), Err(GatewayError::Revoked));
    assert!(!handle.is_connected());
}

#[tokio::test(start_paused = true)]
async fn revocation_is_also_final_on_a_later_dial() {
    let server = Server::start().await;
    let (_handle, running) = run(server.builder(), deaf);
    server.greet().await.close(close::GOING_AWAY, "").await;
    let peer = server.accept().await;
    peer.close(close::UNAUTHORIZED, close::REASON_UNAUTHORIZED).await;
    assert_eq!(running.await.unwrap(), Err(GatewayError::Revoked));
}

#[tokio::test(start_paused = true)]
async fn before_any_handshake_revocation_is_only_a_refusal() {
    let server = Server::start().await;
    let (handle, _running) = run(server.builder(), deaf);
    let begun = Instant::now();
    for _ in 0..6 {
        let peer = server.accept().await;
        peer.close(close::UNAUTHORIZED, close::REASON_UNAUTHORIZED).await;
    }
    let _peer = server.greet().await;
    // 1 + 2 + 4 + 8 + 16 + 30 seconds, each spread by half of itself.
    let waited = begun.elapsed().as_secs();
    assert!((30..=92).contains(&waited), "{waited}");
    sleep(Duration::from_millis(10)).await;
    assert!(handle.is_connected());
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_is_no_revocation() {
    let server = Server::start().await;
    let (_handle, _running) = run(server.builder(), deaf);
    let peer = server.greet().await;
    peer.close(close::UNAUTHORIZED, close::REASON_EXPIRED).await;
    let _again = server.greet().await;
}

#[tokio::test(start_paused = true)]
async fn refusals_over_http_are_tried_again() {
    let server = Server::start().await;
    let (handle, _running) = run(server.builder(), deaf);
    server.refuse("401 Unauthorized", "").await;
    server.refuse("503 Service Unavailable", "").await;
    let refused = Instant::now();
    server.refuse("503 Service Unavailable", "retry-after: 100\r\n").await;
    assert!(refused.elapsed() < Duration::from_secs(4));
    let refused = Instant::now();
    let _peer = server.greet().await;
    let waited = refused.elapsed().as_secs();
    assert!((100..=111).contains(&waited), "{waited}");
    sleep(Duration::from_millis(10)).await;
    assert!(handle.is_connected());
    assert_eq!(handle.stats().dials, 4);
}

#[tokio::test(start_paused = true)]
async fn a_connector_that_never_greets_is_left() {
    let server = Server::start().await;
    let (_handle, _running) = run(server.builder(), deaf);
    let begun = Instant::now();
    let _mute = server.accept().await;
    let _next = server.accept_tcp().await;
    let waited = begun.elapsed().as_secs();
    assert!((30..34).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn a_connector_that_fell_silent_is_left() {
    let server = Server::start().await;
    let (_handle, _running) = run(server.builder(), deaf);
    let _frozen = server.greet().await;
    let begun = Instant::now();
    let _next = server.accept_tcp().await;
    let waited = begun.elapsed().as_secs();
    assert!((75..78).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn pongs_keep_a_quiet_connection_alive() {
    let server = Server::start().await;
    let (handle, _running) = run(server.builder(), deaf);
    let mut peer = server.greet().await;
    // Reading answers the gateway's pings, and nothing else is said.
    peer.silence(Duration::from_secs(300)).await;
    assert!(handle.is_connected());
    assert_eq!(handle.stats().dials, 1);
}

#[tokio::test(start_paused = true)]
async fn pings_are_answered_while_nothing_is_written() {
    let server = Server::start().await;
    let (_handle, _running) = run(server.builder(), deaf);
    let mut peer = server.greet().await;
    let ping = Message::Ping(Bytes::from_static(b"there?"));
    peer.ws.send(ping).await.unwrap();
    let pong = timeout(Duration::from_secs(5), peer.ws.next()).await.unwrap();
    assert_eq!(pong.unwrap().unwrap(), Message::Pong(Bytes::from_static(b"there?")));
}

#[tokio::test(start_paused = true)]
async fn secure_urls_are_dialed_with_tls() {
    let server = Server::start().await;
    let url = server.url().replace("http:", "https:");
    let builder = Gateway::builder(url).id("gw").secret(SECRET);
    let (_handle, _running) = run(builder, deaf);
    let mut first = [0; 2];
    server.accept_tcp().await.read_exact(&mut first).await.unwrap();
    // A TLS handshake record; in clear text it would be the G of GET.
    assert_eq!(first, [0x16, 0x03]);
    // The broken handshake is a failed dial like any other.
    let _again = server.accept_tcp().await;
}

#[test]
fn settings_are_checked_and_secrets_kept() {
    let builder = || Gateway::builder("https://host").id("gw").secret("hush-hush");
    assert_eq!(Gateway::builder("host").build().unwrap_err(), BuildError::BadUrl);
    assert_eq!(builder().id("").build().unwrap_err(), BuildError::NoId);
    assert_eq!(builder().secret("").build().unwrap_err(), BuildError::NoSecret);
    let bad = builder().trust_root(vec![1, 2, 3]).build();
    assert_eq!(bad.unwrap_err(), BuildError::BadCertificate);
    let gateway = builder().build().unwrap();
    let shown = format!("{:?} {gateway:?} {:?}", builder(), gateway.handle());
    assert!(shown.contains("gw") && !shown.contains("hush"), "{shown}");
}
