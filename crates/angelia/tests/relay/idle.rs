//! Going idle, being woken, going away.

use super::interrupt::join_as;
use super::world::{World, binary, credentials};
use angelia_testkit::connector::Connector;
use angelia_testkit::socket::{Next, Socket};
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn going_idle_waits_for_acks_and_the_next_handshake_wakes() {
    let world = World::new().await;
    let mut socket = world.join().await;
    world.post("in flight").await;
    let frame = socket.frame().await;
    socket.send(&json!({"type": "going_idle"})).await;
    assert_eq!(socket.next(Duration::from_millis(500)).await, Next::Silence, "an ack is awaited");
    world.post("after the flip").await;
    socket.ack(&frame).await;
    assert_eq!(socket.frame().await["type"], "going_idle_ack", "and nothing is pushed any more");
    let status = world.connector.command(&["status"]).await;
    assert_eq!(status["gateways"][0]["idle"], true);
    socket.close().await;
    let mut socket = world.join().await;
    assert_eq!(socket.take_text().await, "after the flip");
    world.until_waiting(0).await;
    let status = world.connector.command(&["status"]).await;
    assert_eq!(status["gateways"][0]["idle"], false);
}

#[tokio::test]
async fn going_idle_does_not_wait_longer_than_a_gateway_does() {
    let world = World::new().await;
    let mut socket = world.join().await;
    world.post("never acknowledged").await;
    socket.frame().await;
    socket.send(&json!({"type": "going_idle"})).await;
    let Next::Frame(frame) = socket.next(Duration::from_millis(1_950)).await else {
        panic!("no ack within 2 s")
    };
    assert_eq!(frame["type"], "going_idle_ack");
    assert_eq!(world.waiting().await, 1, "what was not acknowledged stays");
}

#[tokio::test]
async fn nothing_is_pushed_twice_on_one_socket_that_slept() {
    let world = World::new().await;
    let mut socket = join_as(&world, "angelia-gateway/0.1").await;
    world.post("one").await;
    world.post("/stop").await;
    let mut pushed = [socket.frame().await, socket.frame().await];
    pushed.sort_by_key(|frame| frame["type"].to_string());
    assert_eq!((&pushed[0]["type"], &pushed[1]["type"]), (&json!("inbound"), &json!("interrupt_inbound")));
    // Longer than it takes the interrupt to settle by its pong.
    for _ in 0..30 {
        socket.send(&json!({"type": "going_idle"})).await;
        socket.hello("webchat", "webchat").await;
        while let Next::Frame(frame) = socket.next(Duration::from_millis(200)).await {
            assert_ne!(frame["type"], "inbound", "{frame}");
            assert_ne!(frame["type"], "interrupt_inbound", "{frame}");
        }
    }
    socket.ack(&pushed[0]).await;
    world.post("two").await;
    let mut next = socket.frame().await;
    while next["type"] != "inbound" {
        assert_ne!(next["type"], "interrupt_inbound", "{next}");
        next = socket.frame().await;
    }
    assert_eq!(next["event"]["text"], "two", "and it goes on");
}

#[tokio::test]
async fn a_socket_without_a_hello_is_told_as_well() {
    let mut world = World::new().await;
    let mut socket = Socket::dial(&world.connector.url(), &world.gateway).await.unwrap();
    let stop = world.connector.stop(Duration::from_secs(10));
    let (closed, status) = tokio::join!(socket.next(Duration::from_secs(5)), stop);
    assert!(matches!(closed, Next::Closed(1001, _)), "{closed:?}");
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn requests_under_way_are_answered_before_the_close() {
    let mut world = World::new().await;
    let mut socket = world.join().await;
    let batch: String = (0..50)
        .map(|n| {
            json!({"type": "outbound", "requestId": format!("r{n}"), "action":
            {"op": "send", "chat_id": "web-lab", "content": format!("n{n}")}})
            .to_string()
                + "\n"
        })
        .collect();
    socket.send_text(batch).await;
    let first = socket.frame().await;
    assert_eq!(first["type"], "outbound_result");
    let stop = world.connector.stop(Duration::from_secs(10));
    let rest = async {
        let mut results = vec![first["requestId"].clone()];
        loop {
            match socket.next(Duration::from_secs(5)).await {
                Next::Frame(frame) => results.push(frame["requestId"].clone()),
                Next::Closed(1001, _) => return results,
                other => panic!("{other:?}"),
            }
        }
    };
    let (results, _) = tokio::join!(rest, stop);
    let expected: Vec<_> = (0..50).map(|n| json!(format!("r{n}"))).collect();
    assert_eq!(results, expected, "each once, none forgotten");
}

#[tokio::test]
async fn a_stopping_server_closes_with_1001() {
    let mut world = World::new().await;
    let mut socket = world.join().await;
    let stop = world.connector.stop(Duration::from_secs(10));
    let (closed, status) = tokio::join!(socket.next(Duration::from_secs(5)), stop);
    assert!(matches!(closed, Next::Closed(1001, _)), "{closed:?}");
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn a_sleeping_gateway_is_poked_and_only_through_the_guard() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let wake_url = format!("http://{}/wake", listener.local_addr().unwrap());
    for allowed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let lines = "[wake]\nallow = [\"127.0.0.0/8\"]\n";
        let mut connector = Connector::start_with(binary(), folder.path(), lines).await;
        let made = connector.command(&["gateway", "create", "gw", "--wake-url", &wake_url]).await;
        if !allowed {
            // It was given when it could be called.
            let config = folder.path().join("angelia.toml");
            let text = std::fs::read_to_string(&config).unwrap().replace(lines, "");
            std::fs::write(&config, text).unwrap();
            connector.stop(Duration::from_secs(10)).await;
            connector.restart().await;
        }
        let person = connector.command(&["webchat", "invite", "--room", "lab", "--user", "ann"]).await;
        let url = format!("{}/chat/api/rooms/lab/messages", connector.url());
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let key = person["key"].as_str().unwrap();
        http.post(url).bearer_auth(key).json(&json!({ "text": "wake up" })).send().await.unwrap();
        let poked = tokio::time::timeout(Duration::from_secs(3), listener.accept()).await;
        assert_eq!(poked.is_ok(), allowed);
        if let Ok(Ok((mut stream, _))) = poked {
            let mut request = vec![0; 2048];
            let read = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..read]).to_string();
            assert!(request.starts_with("GET /wake HTTP/1.1"), "{request}");
            assert!(!request.contains("wake up"), "the poke carries nothing");
            stream.write_all(b"HTTP/1.1 204 x\r\n\r\n").await.unwrap();
            let mut socket = Socket::join(&connector.url(), &credentials(&made)).await;
            assert_eq!(socket.take_text().await, "wake up");
        }
    }
}
