//! Secrets that leaked: what is void, and when.

use super::desk::{Desk, credentials};
use angelia_testkit::connector::Credentials;
use angelia_testkit::socket::{Next, Socket};
use serde_json::json;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(5);

async fn rotate(desk: &Desk, args: &[&str]) -> Credentials {
    let rotated = desk.run(&[&["gateway", "rotate", "gw"], args].concat()).await;
    let text = |name: &str| rotated[name].as_str().unwrap_or_else(|| panic!("{rotated}")).to_owned();
    Credentials { gateway_id: text("gateway_id"), secret: text("secret") }
}

/// The status that refuses a dial; 101 if it is let in.
async fn dial(desk: &Desk, secret: &Credentials) -> u16 {
    match Socket::dial(&desk.connector.url(), secret).await {
        Ok(socket) => {
            socket.close().await;
            101
        }
        Err(refused) => refused.status,
    }
}

#[tokio::test]
async fn a_leaked_secret_is_void_at_once_and_its_sockets_end() {
    let mut desk = Desk::new().await;
    let bearer = desk.bearer("acme").await;
    let first = credentials(&desk.provision(&bearer, &json!({ "gatewayId": "gw" })).await.1);
    let second = rotate(&desk, &[]).await;
    let mut thief = Socket::join(&desk.connector.url(), &first).await;
    let mut early = Socket::dial(&desk.connector.url(), &second).await.unwrap();
    let third = rotate(&desk, &["--now"]).await;
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
            desk.connector.process().terminate(Duration::from_secs(10)).await;
            desk.connector.restart().await;
        }
        assert_eq!(dial(&desk, &first).await, 401, "the one of an earlier rotation");
        assert_eq!(dial(&desk, &second).await, 401);
        assert_eq!(dial(&desk, &third).await, 101);
    }
    let again = credentials(&desk.provision(&bearer, &json!({ "gatewayId": "gw" })).await.1);
    assert_eq!(again.secret, third.secret, "its owner is given the new one");
    let audit = desk.run(&["audit", "list"]).await;
    let line = audit["audit"].as_array().unwrap().iter().find(|line| line["action"] == "gateway.rotate");
    assert_eq!(line.unwrap()["detail"], "now: every old secret is void", "{audit}");
}

#[tokio::test]
async fn two_secrets_work_at_a_time_and_no_third() {
    let desk = Desk::new().await;
    let made = desk.run(&["gateway", "create", "gw"]).await;
    let first = Credentials { gateway_id: "gw".into(), secret: made["secret"].as_str().unwrap().to_owned() };
    let mut socket = Socket::join(&desk.connector.url(), &first).await;
    let second = rotate(&desk, &[]).await;
    assert_eq!((dial(&desk, &first).await, dial(&desk, &second).await), (101, 101));
    let third = rotate(&desk, &[]).await;
    assert_eq!(dial(&desk, &first).await, 401);
    assert_eq!((dial(&desk, &second).await, dial(&desk, &third).await), (101, 101));
    let answer = socket.ask(json!({ "op": "typing", "chat_id": "nowhere" })).await;
    assert!(answer.is_object(), "without --now nobody is disconnected: {answer}");
}
