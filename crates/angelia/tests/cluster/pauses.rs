//! A node that stood still for longer than it is believed to be there.

use super::stage::{AT_ONCE, BEYOND_THE_LEASE, BUSY, SECOND, SOON, Stage, dial, end_of, setup, until};
use angelia_testkit::socket::Socket;
use serde_json::json;
use tokio::time::{Instant, sleep};

#[tokio::test]
async fn a_node_that_stood_still_learns_what_happened_before_it_admits_anybody() {
    let mut stage = Stage::new("paused", 2).await;
    let mut socket = stage.join(0).await;
    stage.cluster.freeze(0);
    let mut frozen = Box::pin(async {
        // Whoever dials meanwhile is heard when it goes on.
        dial(&stage.cluster[0].url(), &stage.gateway).await
    });
    stage.cluster[1].command(&["gateway", "revoke", "gw"]).await;
    let early = tokio::time::timeout(BEYOND_THE_LEASE, &mut frozen).await;
    assert!(early.is_err(), "a frozen node answers nobody");
    drop(frozen);
    let dialled = tokio::spawn({
        let (url, gateway) = (stage.cluster[0].url(), stage.gateway.clone());
        async move {
            match Socket::dial(&url, &gateway).await {
                Ok(mut socket) => end_of(&mut socket).await,
                Err(refused) => refused.status,
            }
        }
    });
    sleep(AT_ONCE).await;
    let began = Instant::now();
    stage.cluster.thaw(0);
    let answer = dialled.await.unwrap();
    assert!(answer == 503 || answer == 4401, "it must not be let in: {answer}");
    assert_eq!(end_of(&mut socket).await, 4401, "its own socket ends");
    let took = began.elapsed();
    println!("cluster: a socket on a paused node ends {} ms after the pause", took.as_millis());
    assert!(took < SECOND + BUSY, "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_does_not_reach_the_store_admits_nobody() {
    let mut stage = Stage::on(setup("cut-store").proxied().start(2).await).await;
    assert_eq!(dial(&stage.cluster[1].url(), &stage.gateway).await, 101);
    stage.cluster.node(1).to_store.as_ref().unwrap().stall();
    let closed = until("it admits nobody", BEYOND_THE_LEASE + SECOND + BUSY, async || {
        dial(&stage.cluster[1].url(), &stage.gateway).await == 503
    })
    .await;
    println!("cluster: a node without its store admits nobody after {} ms", closed.as_millis());
    for path in ["/oauth/token", "/relay/policy", "/chat/api/rooms/lab/messages"] {
        let post = stage.http.post(format!("{}{path}", stage.cluster[1].url()));
        let answer = post.bearer_auth(&stage.key).json(&json!({ "text": "?" })).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers()["retry-after"].as_bytes()), (503, &b"1"[..]));
    }
    let page = stage.http.get(format!("{}/chat", stage.cluster[1].url())).send().await.unwrap();
    assert_eq!(page.status(), 200, "it is the same for everybody");
    assert_eq!(dial(&stage.cluster[0].url(), &stage.gateway).await, 101, "the other goes on");
    stage.cluster.node(1).to_store.as_ref().unwrap().heal();
    let open =
        until("it admits again", SOON, async || dial(&stage.cluster[1].url(), &stage.gateway).await == 101)
            .await;
    println!("cluster: it admits again {} ms after its store is back", open.as_millis());
}
