//! Stopping one turn and no other.

use std::sync::Arc;
use std::time::Duration;

use angelia_contract::GatewayFrame;
use angelia_gateway::{Agent, Conversation, Event, Interrupted};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::support::{Server, deaf, message, run, soon};

/// Tells the test what happens to its turns.
struct Slow(mpsc::Sender<String>);

/// Says on drop whether the turn came to its end.
struct Ending(mpsc::Sender<String>, String, bool);

impl Drop for Ending {
    fn drop(&mut self) {
        let how = if self.2 { "done" } else { "stopped" };
        self.0.try_send(format!("{how} {}", self.1)).unwrap();
    }
}

impl Agent for Slow {
    async fn on_event(&self, event: Event, _: Conversation) {
        let mut ending = Ending(self.0.clone(), event.text, false);
        sleep(Duration::from_secs(30)).await;
        ending.2 = true;
    }

    fn on_interrupt(&self, interrupted: &Interrupted) {
        let note = format!("{} {}", interrupted.session_key, interrupted.turns);
        self.0.try_send(note).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_stops_its_own_turn_and_no_sibling() {
    let server = Server::start().await;
    let (notes, mut noted) = mpsc::channel(64);
    let builder = server.builder().ack_after_handled();
    let (_handle, _running) = run(builder, Slow(notes));
    let mut peer = server.greet().await;
    for (chat, user, text) in [("1", "42", "a"), ("1", "43", "b"), ("2", "42", "c"), ("1", "42", "d")] {
        peer.event(message(chat, user, text, text), text).await;
    }
    sleep(Duration::from_secs(1)).await;
    peer.interrupt("agent:main:discord:group:1:99", "1").await;
    assert_eq!(soon(noted.recv()).await.unwrap(), "agent:main:discord:group:1:99 0");
    peer.interrupt("agent:main:discord:group:1:42", "1").await;
    assert_eq!(soon(noted.recv()).await.unwrap(), "agent:main:discord:group:1:42 1");
    assert_eq!(soon(noted.recv()).await.unwrap(), "stopped a");
    // A stopped turn is a handled one, and the next in line begins.
    assert_eq!(peer.ack().await, "a");
    let mut done = Vec::new();
    for _ in 0..3 {
        done.push(soon(noted.recv()).await.unwrap());
    }
    done[..2].sort();
    assert_eq!(done, ["done b", "done c", "done d"]);
    for text in ["b", "c", "d"] {
        assert_eq!(peer.ack().await, text);
    }
}

#[tokio::test(start_paused = true)]
async fn cooperative_turns_are_told_and_go_on() {
    let server = Server::start().await;
    let (notes, mut noted) = mpsc::channel(64);
    let notes = Arc::new(notes);
    let builder = server.builder().cooperative_interrupts();
    let (_handle, _running) = run(builder, move |_: Event, conversation: Conversation| {
        let notes = Arc::clone(&notes);
        async move {
            assert!(!conversation.is_cancelled());
            conversation.cancelled().await;
            assert!(conversation.is_cancelled());
            sleep(Duration::from_secs(1)).await;
            notes.send(conversation.session_key().to_owned()).await.unwrap();
        }
    });
    let mut peer = server.greet().await;
    peer.event(message("1", "42", "m1", "a"), "").await;
    sleep(Duration::from_secs(1)).await;
    // An older generation's spelling, found by what it says.
    peer.interrupt("agent:main:relay:channel:1:42", "1").await;
    assert_eq!(soon(noted.recv()).await.unwrap(), "agent:main:discord:group:1:42");
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_can_be_sent() {
    let server = Server::start().await;
    let (handle, _running) = run(server.builder(), deaf);
    let mut peer = server.greet().await;
    handle.interrupt("agent:main:discord:dm:5", Some("enough")).await.unwrap();
    let GatewayFrame::Interrupt(interrupt) = peer.next().await else { panic!() };
    assert_eq!(interrupt.session_key, "agent:main:discord:dm:5");
    assert_eq!(interrupt.reason.as_deref(), Some("enough"));
}
