//! Secrets that leaked: what is void, and when.

use super::fixture::{Fixture, credentials};
use angelia_testkit::connector::Credentials;
use angelia_testkit::socket::{Next, Socket};
use serde_json::json;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(5);

async fn rotate(fixture: &Fixture, args: &[&str]) -> Credentials {
    let rotated = fixture.run(&[&["gateway", "rotate", "gw"], args].concat()).await;
    let text = |name: &str| rotated[name].as_str().unwrap_or_else(|| panic!("{rotated}")).to_owned();
    Credentials { gateway_id: text("gateway_id"), secret: text("secret") }
}

/// The status that refuses a dial; 101 if it is let in.
async fn dial(fixture: &Fixture, secret: &Credentials) -> u16 {
    match Socket::dial(&fixture.connector.url(), secret).await {
        Ok(socket) => {
            socket.close().await;
            101
        }
        Err(refused) => refused.status,
    }
}

#[tokio::test]
async fn a_leaked_secret_is_void_at_once_and_its_sockets_end() {
    let mut fixture = Fixture::new().await;
    let bearer = fixture.bearer("acme").await;
    let first = credentials(&fixture.provision(&bearer, &json!({ "gatewayId": "gw" })).await.1);
    let second = rotate(&fixture, &[]).await;
    let mut thief = Socket::join(&fixture.connector.url(), &first).await;
    let mut early = Socket::dial(&fixture.connector.url(), &second).await.unwrap();
    let third = rotate(&fixture, &["--now"]).await;
    for socket in [&mut thief, &mut early] {
        let ended = loop {
            match socket.next(SOON).await {
                Next::Frame(_) => {}
                other => break other,
            }
        };
        let Next::Closed(code, _) = ended else { panic!("{ended:?}") };
        assert_eq!(code, 1001, "who has the new secret comes back, so nobody is told 4401");
    }
    for restarted in [false, true] {
        if restarted {
            fixture.connector.stop(Duration::from_secs(10)).await;
            fixture.connector.restart().await;
        }
        assert_eq!(dial(&fixture, &first).await, 401, "the one of an earlier rotation");
        assert_eq!(dial(&fixture, &second).await, 401);
        assert_eq!(dial(&fixture, &third).await, 101);
    }
    let again = credentials(&fixture.provision(&bearer, &json!({ "gatewayId": "gw" })).await.1);
    assert_eq!(again.secret, third.secret, "its owner is given the new one");
    let audit = fixture.run(&["audit", "list"]).await;
    let line = audit["audit"].as_array().unwrap().iter().find(|line| line["action"] == "gateway.rotate");
    assert_eq!(line.unwrap()["detail"], "now: every old secret is void", "{audit}");
}

#[tokio::test]
async fn two_secrets_work_at_a_time_and_no_third() {
    let fixture = Fixture::new().await;
    let made = fixture.run(&["gateway", "create", "gw"]).await;
    let first = Credentials { gateway_id: "gw".into(), secret: made["secret"].as_str().unwrap().to_owned() };
    let mut socket = Socket::join(&fixture.connector.url(), &first).await;
    let second = rotate(&fixture, &[]).await;
    assert_eq!((dial(&fixture, &first).await, dial(&fixture, &second).await), (101, 101));
    let third = rotate(&fixture, &[]).await;
    assert_eq!(dial(&fixture, &first).await, 401);
    assert_eq!((dial(&fixture, &second).await, dial(&fixture, &third).await), (101, 101));
    let answer = socket.ask(json!({ "op": "typing", "chat_id": "nowhere" })).await;
    assert!(answer.is_object(), "without --now nobody is disconnected: {answer}");
}
