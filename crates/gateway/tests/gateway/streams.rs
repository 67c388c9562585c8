//! Replies that grow.

use std::time::Duration;

use angelia_contract::{ActionResult, Descriptor, close};
use angelia_gateway::{CallError, Conversation, ReplyStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::support::{Peer, Running, Server, descriptor, message, run_turns, soon};

/// A conversation on a platform like this.
async fn talk(server: &Server, descriptor: Descriptor) -> (Peer, Conversation, Running) {
    let (_handle, running, mut turns) = run_turns(server.builder());
    let mut peer = server.greet_as(descriptor).await;
    peer.event(message("1", "42", "m1", "go"), "").await;
    let (_, conversation) = soon(turns.recv()).await.unwrap();
    (peer, conversation, running)
}

/// Pushes pieces, each after a pause, then finishes.
fn write(mut stream: ReplyStream, pieces: &[(u64, &str)]) -> JoinHandle<Result<Vec<String>, CallError>> {
    let pieces: Vec<_> = pieces.iter().map(|(ms, text)| (*ms, (*text).to_owned())).collect();
    tokio::spawn(async move {
        for (pause, piece) in pieces {
            sleep(Duration::from_millis(pause)).await;
            stream.push(&piece).await?;
        }
        stream.finish().await
    })
}

#[tokio::test(start_paused = true)]
async fn edits_are_throttled_and_the_last_one_is_whole() {
    let server = Server::start().await;
    let (mut peer, conversation, _running) = talk(&server, descriptor("discord")).await;
    let pieces = [(0, "\n"), (0, "a"), (100, "b"), (100, "c"), (600, "d"), (100, "e"), (100, "f")];
    let writing = write(conversation.stream(), &pieces);
    assert_eq!(peer.take_text("7").await, "send \na");
    assert_eq!(peer.take_text("7").await, "edit 7 \nabcd");
    assert_eq!(peer.take_text("7").await, "edit 7 \nabcdef");
    assert_eq!(writing.await.unwrap().unwrap(), ["7"]);
    peer.silence(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_new_is_not_shown_again_and_nothing_at_all_not_sent() {
    let server = Server::start().await;
    let (mut peer, conversation, _running) = talk(&server, descriptor("discord")).await;
    let writing = write(conversation.stream(), &[(0, "a")]);
    assert_eq!(peer.take_text("7").await, "send a");
    assert_eq!(writing.await.unwrap().unwrap(), ["7"]);
    let writing = write(conversation.stream(), &[(0, " \n")]);
    assert!(writing.await.unwrap().unwrap().is_empty());
    peer.silence(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_text_that_outgrows_its_message_goes_on_in_the_next() {
    let server = Server::start().await;
    let small = Descriptor { max_message_length: 40, ..descriptor("discord") };
    let (mut peer, conversation, _running) = talk(&server, small).await;
    let pieces = [(0, "```\none one one one one\n"), (10, "two two two two two\nthree\n```\nend")];
    let writing = write(conversation.stream(), &pieces);
    // Every message stands on its own: fences are closed and opened again.
    assert_eq!(peer.take_text("1").await, "send ```\none one one one one\n```");
    assert_eq!(peer.take_text("2").await, "send ```\ntwo two two two two\nthree\n```\nend");
    assert_eq!(writing.await.unwrap().unwrap(), ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_long_piece_becomes_several_messages_within_the_limit() {
    let server = Server::start().await;
    let small = Descriptor {
        max_message_length: 40,
        len_unit: angelia_contract::LenUnit::Utf16,
        ..descriptor("discord")
    };
    let (mut peer, conversation, _running) = talk(&server, small).await;
    let text = "😀".repeat(50);
    let writing = write(conversation.stream(), &[(0, &text)]);
    let mut sizes = Vec::new();
    for id in ["1", "2", "3"] {
        let shown = peer.take_text(id).await;
        sizes.push(shown.strip_prefix("send ").unwrap().chars().count());
    }
    assert_eq!(sizes, [20, 20, 10]);
    assert_eq!(writing.await.unwrap().unwrap(), ["1", "2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn without_edits_each_paragraph_is_a_message() {
    let server = Server::start().await;
    let plain = Descriptor { supports_edit: false, ..descriptor("discord") };
    let (mut peer, conversation, _running) = talk(&server, plain).await;
    let pieces = [(0, "one\n"), (0, "\ntwo "), (900, "more\n\n```\na\n\nb\n"), (0, "```\n"), (0, "end")];
    let writing = write(conversation.stream(), &pieces);
    assert_eq!(peer.take_text("1").await, "send one\n\n");
    assert_eq!(peer.take_text("2").await, "send two more\n\n");
    assert_eq!(peer.take_text("3").await, "send ```\na\n\nb\n```\nend");
    assert_eq!(writing.await.unwrap().unwrap(), ["1", "2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_edit_costs_no_text() {
    let server = Server::start().await;
    let (mut peer, conversation, _running) = talk(&server, descriptor("discord")).await;
    let pieces = [(0, "a\n\n"), (800, "b"), (800, "c\n\n"), (800, "d")];
    let writing = write(conversation.stream(), &pieces);
    assert_eq!(peer.take_text("1").await, "send a\n\n");
    let edit = peer.outbound().await;
    peer.answer(&edit, ActionResult::failed("no such message")).await;
    // From here on it is written as on a platform without edits.
    assert_eq!(peer.take_text("2").await, "send bc\n\n");
    assert_eq!(peer.take_text("3").await, "send d");
    assert_eq!(writing.await.unwrap().unwrap(), ["1", "2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_last_edit_is_tried_once_more() {
    let server = Server::start().await;
    let (mut peer, conversation, _running) = talk(&server, descriptor("discord")).await;
    let writing = write(conversation.stream(), &[(0, "a"), (100, "b")]);
    assert_eq!(peer.take_text("7").await, "send a");
    peer.outbound().await;
    peer.close(close::GOING_AWAY, "").await;
    let mut peer = server.greet().await;
    assert_eq!(peer.take_text("7").await, "edit 7 ab");
    assert_eq!(writing.await.unwrap().unwrap(), ["7"]);
}

#[tokio::test(start_paused = true)]
async fn what_perhaps_arrived_is_not_sent_again() {
    let server = Server::start().await;
    let (mut peer, conversation, _running) = talk(&server, descriptor("discord")).await;
    let mut stream = conversation.stream();
    let pushing = tokio::spawn(async move { (stream.push("a").await, stream) });
    peer.outbound().await;
    peer.close(close::GOING_AWAY, "").await;
    let (pushed, mut stream) = pushing.await.unwrap();
    assert_eq!(pushed, Err(CallError::Lost));
    let mut peer = server.greet().await;
    let finishing = tokio::spawn(async move {
        stream.push("b").await?;
        stream.finish().await
    });
    assert_eq!(peer.take_text("8").await, "send b");
    assert_eq!(finishing.await.unwrap().unwrap(), ["8"]);
}
