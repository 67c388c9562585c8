//! Reactions, words while it works, drafts and threads, as they go out.

use angelia_contract::{Action, ActionResult, Descriptor};
use angelia_gateway::{Chat, Conversation, RenameIf};
use std::time::Duration;
use tokio::time::sleep;

use crate::support::{Peer, Running, Server, descriptor, message, run_turns, soon};

/// A conversation on a platform like this, about the message `m1` of channel `1`.
async fn talk(server: &Server, descriptor: Descriptor) -> (Peer, Conversation, Running) {
    let (_handle, running, mut turns) = run_turns(server.builder());
    let mut peer = server.greet_as(descriptor).await;
    peer.event(message("1", "42", "m1", "go"), "").await;
    let (_, conversation) = soon(turns.recv()).await.unwrap();
    (peer, conversation, running)
}

fn drafting() -> Descriptor {
    let supported_ops = ["send", "edit", "typing", "draft"].map(str::to_owned).to_vec();
    Descriptor { supports_draft_streaming: true, supported_ops, ..descriptor("discord") }
}

/// The next action, answered with success.
async fn next(peer: &mut Peer, id: &str) -> Action {
    let outbound = peer.outbound().await;
    peer.answer(&outbound, ActionResult::sent(id)).await;
    outbound.action
}

#[tokio::test(start_paused = true)]
async fn a_message_is_marked_and_the_mark_taken_back() {
    let server = Server::start().await;
    let (mut peer, conversation, _running) = talk(&server, descriptor("discord")).await;
    let marking = tokio::spawn(async move {
        conversation.react("👀").await?;
        conversation.take_reaction_back("👀").await?;
        conversation.typing_in_words("looking it up").await
    });
    for removed in [false, true] {
        let Action::React { message_id, emoji, remove, chat_id, .. } = next(&mut peer, "").await else {
            panic!("no mark")
        };
        assert_eq!(
            (chat_id.as_str(), message_id.as_str(), emoji.as_str(), remove),
            ("1", "m1", "👀", removed)
        );
    }
    let Action::Typing { content, .. } = next(&mut peer, "").await else { panic!("no words") };
    assert_eq!(content.as_deref(), Some("looking it up"));
    marking.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_thread_is_an_address_and_is_renamed_under_its_guard() {
    let server = Server::start().await;
    let (mut peer, conversation, _running) = talk(&server, descriptor("discord")).await;
    let opening = tokio::spawn(async move {
        let thread = conversation.open_thread("Harbour plans").await?;
        let gateway = conversation.gateway();
        gateway.rename_thread(&thread, "Quay plans", RenameIf::AsOpened).await?;
        gateway.rename_thread(&thread, "Plans", RenameIf::Named("Quay plans".into())).await?;
        gateway.send(&thread, "here").await?;
        Ok::<Chat, angelia_gateway::CallError>(thread)
    });
    let outbound = peer.outbound().await;
    let Action::ThreadCreate { chat_id, thread_name, message_id, .. } = &outbound.action else {
        panic!("{outbound:?}")
    };
    assert_eq!((chat_id.as_str(), thread_name.as_str()), ("1", "Harbour plans"));
    assert_eq!(message_id.as_deref(), Some("m1"));
    let opened = ActionResult { thread_id: Some("t9".into()), ..ActionResult::sent("t9") };
    peer.answer(&outbound, opened).await;
    let mut guards = Vec::new();
    for _ in 0..2 {
        let Action::ThreadRename { message_id, only_if_current_name, only_if_connector_created, .. } =
            next(&mut peer, "t9").await
        else {
            panic!("not renamed")
        };
        assert_eq!(message_id, "t9");
        guards.push((only_if_connector_created, only_if_current_name));
    }
    assert_eq!(guards, [(Some(true), None), (None, Some("Quay plans".to_owned()))]);
    let sent = next(&mut peer, "m2").await;
    assert_eq!((sent.chat_id(), sent.metadata().unwrap()["thread_id"].as_str()), (Some("1"), Some("t9")));
    assert_eq!(opening.await.unwrap().unwrap().thread_id.as_deref(), Some("t9"));
}

#[tokio::test(start_paused = true)]
async fn where_there_are_drafts_a_reply_grows_as_one_and_is_sent_once() {
    let server = Server::start().await;
    let (mut peer, conversation, _running) = talk(&server, drafting()).await;
    let mut stream = conversation.stream();
    let writing = tokio::spawn(async move {
        for piece in ["Once", " upon", " a time"] {
            sleep(Duration::from_millis(800)).await;
            stream.push(piece).await?;
        }
        stream.finish().await
    });
    let (mut ids, mut texts) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let Action::Draft { draft_id, content, is_final, .. } = next(&mut peer, "").await else {
            panic!("no draft")
        };
        assert!(!is_final && draft_id != 0);
        ids.push(draft_id);
        texts.push(content);
    }
    assert_eq!(texts, ["Once", "Once upon", "Once upon a time"]);
    assert!(ids.iter().all(|id| *id == ids[0]), "one that grows: {ids:?}");
    assert_eq!(peer.take_text("7").await, "send Once upon a time");
    assert_eq!(writing.await.unwrap().unwrap(), ["7"]);
    peer.silence(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn who_wants_a_message_from_its_first_words_on_gets_one() {
    let server = Server::start().await;
    let (mut peer, conversation, _running) = talk(&server, drafting()).await;
    let mut stream = conversation.stream().as_message();
    let writing = tokio::spawn(async move {
        stream.push("Once").await?;
        sleep(Duration::from_millis(800)).await;
        stream.push(" upon").await?;
        stream.finish().await
    });
    assert_eq!(peer.take_text("7").await, "send Once");
    assert_eq!(peer.take_text("7").await, "edit 7 Once upon");
    assert_eq!(writing.await.unwrap().unwrap(), ["7"]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_draft_is_made_up_for_by_edits() {
    let server = Server::start().await;
    let (mut peer, conversation, _running) = talk(&server, drafting()).await;
    let mut stream = conversation.stream();
    let writing = tokio::spawn(async move {
        stream.push("Once").await?;
        sleep(Duration::from_millis(800)).await;
        stream.push(" upon").await?;
        stream.finish().await
    });
    let refused = peer.outbound().await;
    assert!(matches!(refused.action, Action::Draft { .. }), "{refused:?}");
    peer.answer(&refused, ActionResult::failed("this chat has no drafts")).await;
    assert_eq!(peer.take_text("7").await, "send Once");
    assert_eq!(peer.take_text("7").await, "edit 7 Once upon");
    assert_eq!(writing.await.unwrap().unwrap(), ["7"]);
}

#[tokio::test(start_paused = true)]
async fn a_draft_that_outgrows_a_message_leaves_whole_ones_behind() {
    let server = Server::start().await;
    let small = Descriptor { max_message_length: 40, ..drafting() };
    let (mut peer, conversation, _running) = talk(&server, small).await;
    let mut stream = conversation.stream();
    let writing = tokio::spawn(async move {
        stream.push("one two three four five six seven\n\neight nine ten").await?;
        stream.finish().await
    });
    assert_eq!(peer.take_text("1").await, "send one two three four five six seven\n\n");
    assert_eq!(peer.take_text("2").await, "send eight nine ten");
    assert_eq!(writing.await.unwrap().unwrap(), ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn where_markdown_is_not_shown_fences_are_words() {
    let server = Server::start().await;
    let plain =
        Descriptor { max_message_length: 40, markdown_dialect: "plain".into(), ..descriptor("discord") };
    let (mut peer, conversation, _running) = talk(&server, plain).await;
    assert!(!conversation.reads_markdown());
    let mut stream = conversation.stream();
    let writing = tokio::spawn(async move {
        stream.push("```\none one one one one one\ntwo two two two two\n```").await?;
        stream.finish().await
    });
    assert_eq!(peer.take_text("1").await, "send ```\none one one one one one\n");
    assert_eq!(peer.take_text("2").await, "send two two two two two\n```");
    assert_eq!(writing.await.unwrap().unwrap(), ["1", "2"]);
}
