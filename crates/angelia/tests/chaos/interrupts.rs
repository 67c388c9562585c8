//! A stop overtakes everything that waits.

use crate::judge::IN_FLIGHT;
use crate::peer::{Peer, RUST_HALF};
use crate::room::Room;
use crate::server::Server;
use crate::stage::{busy, report};
use angelia_contract::frame::{ConnectorFrame, GatewayFrame, Interrupt};
use angelia_contract::session_key::{KeyOptions, Rules, session_key};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

const TEST: &str = "interrupts";
const WAITING: usize = 1_000;

/// With a full window and a thousand entries behind it, an interrupt is the
/// next frame on that socket: one pressed in the room, and one sent by a
/// sibling gateway of the same tenant.
#[test]
fn an_interrupt_is_the_next_frame() {
    busy(async {
        let server = Server::start(TEST).await;
        let credentials = server.gateway("default", "gw-busy").await;
        let sibling = server.gateway("default", "gw-sibling").await;
        let room = Room::enter(&server, "den", "gw-busy").await;
        let mut sibling = Peer::greet(&server, &sibling, RUST_HALF).await;
        let mut posts = JoinSet::new();
        for lane in 0..16 {
            let room = room.clone();
            posts.spawn(async move {
                for number in (lane..WAITING).step_by(16) {
                    let text = format!("den-{number:05}");
                    room.post(&text, &text).await;
                }
            });
        }
        posts.join_all().await;

        // Never acknowledges: the window fills and stays full.
        let mut peer = Peer::greet(&server, &credentials, RUST_HALF).await;
        let mut key = String::new();
        for _ in 0..IN_FLIGHT {
            match peer.next().await {
                ConnectorFrame::Inbound(inbound) => {
                    key = session_key(&inbound.event.source, &KeyOptions::default(), Rules::Published);
                }
                other => panic!("expected an inbound, got {other:?}"),
            }
        }
        assert!(peer.is_silent_for(Duration::from_millis(300)).await, "the window is full");

        let pressed = Instant::now();
        room.interrupt().await;
        let in_room = expect_interrupt(&mut peer, &key, &room.chat()).await - pressed;
        assert!(peer.is_silent_for(Duration::from_millis(300)).await, "the window is still full");

        let sent = Instant::now();
        let interrupt = Interrupt { session_key: key.clone(), reason: None };
        sibling.send(&GatewayFrame::Interrupt(interrupt)).await;
        let by_sibling = expect_interrupt(&mut peer, &key, &room.chat()).await - sent;
        assert!(peer.is_silent_for(Duration::from_millis(300)).await, "the window is still full");
        server.assert_never_panicked();
        report(
            TEST,
            &format!(
                "{WAITING} waiting, {IN_FLIGHT} in flight: next frame after a press in the room {in_room:.1?}, \
                 after a sibling's interrupt {by_sibling:.1?}"
            ),
        );
    });
}

/// The next frame must be the interrupt of that conversation; returns when it came.
async fn expect_interrupt(peer: &mut Peer, key: &str, chat: &str) -> Instant {
    match peer.next().await {
        ConnectorFrame::InterruptInbound { session_key, chat_id } => {
            assert_eq!((session_key.as_str(), chat_id.as_str()), (key, chat));
            Instant::now()
        }
        other => panic!("expected the interrupt next, got {other:?}"),
    }
}
