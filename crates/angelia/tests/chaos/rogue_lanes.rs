//! A platform that does not answer, and one tenant's agent that goes on writing to
//! it: what waits for the bot's turn is bounded in memory, over reconnects and over a
//! restart, and nobody else notices.

use crate::peer::{PLAIN, Peer};
use crate::rogue_gateway::{ONE_GIB, Stage};
use crate::server::{Server, fresh_folder};
use crate::stage::busy;
use angelia_engines::inspect::Inspect;
use angelia_testkit::telegram::{FakeTelegram, Options};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use std::time::Duration;
use tokio_tungstenite::tungstenite::Message;

/// Sockets one after the other, and what each sends: together more than an instance may
/// have held, with as much beside the texts as a frame may carry.
const SOCKETS: usize = 6;
const SENDS: usize = 100;
const TEXT: usize = 50_000;
const HINTS: usize = 58 * 1024;
const SOON: Duration = Duration::from_secs(30);

#[test]
fn a_platform_that_does_not_answer() {
    busy(async {
        let folder = fresh_folder("rogue_lanes");
        let telegram = FakeTelegram::start(&folder, &Options::default()).await;
        std::fs::write(folder.join("token"), telegram.token()).expect("write the token");
        let bot = format!(
            "[[bots]]\nplatform = \"telegram\"\nid = \"{}\"\ntoken = {{ file = \"token\" }}\napi_url = {:?}\n",
            telegram.bot_id(),
            telegram.url()
        );
        std::fs::write(folder.join("angelia.toml"), bot).expect("write angelia.toml");
        let data = folder.join("data");
        let mut stage = Stage::over(Server::start_in(folder, data, &ONE_GIB).await).await;
        let (code, said) =
            stage.server.command(&["route", "add", "--tenant", "evil", "--allow", "any", "telegram:*"]).await;
        assert_eq!(code, Some(0), "{said}");
        let ann = telegram.person("ann").await;
        telegram.say(ann, ann, "hello").await;
        telegram.wait_for_state("everything confirmed", SOON, |state| state["pending"] == 0).await;
        telegram.hang_next("sendMessage", 10 * SOCKETS * SENDS).await;

        for socket in 0..SOCKETS {
            let evil = Peer::greet(&stage.server, &stage.evil, PLAIN).await;
            let (mut sink, mut stream) = evil.socket.split();
            let reads = tokio::spawn(async move { while let Some(Ok(_)) = stream.next().await {} });
            for number in 0..SENDS {
                let action = json!({
                    "op": "send", "chat_id": ann.to_string(), "content": "y".repeat(TEXT),
                    "reply_to": "1".repeat(512), "metadata": {"notify": true, "padding": "x".repeat(HINTS)},
                });
                let id = format!("{socket}-{number}");
                let frame = format!("{}\n", json!({"type": "outbound", "requestId": id, "action": action}));
                sink.send(Message::Text(frame.into())).await.expect("the socket takes it");
                if number % 25 == 0 {
                    stage.others_are_served(&id).await;
                }
            }
            reads.abort();
        }
        let waiting = waiting(&stage.server);
        stage.check_memory(&format!("{waiting} of 600 sends wait for a platform that does not answer"));
        assert!(waiting > 200, "they wait: {waiting}");
        let stage = stage.starts_again().await;
        stage.check_memory("a start over what waits of them");
        stage.ends_the_culprit().await;
    });
}

/// Actions that are not finished.
fn waiting(server: &Server) -> usize {
    Inspect::of(server.data()).actions().iter().filter(|action| !action.state.is_over()).count()
}
