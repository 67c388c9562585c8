//! Calls and their answers.

use std::time::Duration;

use angelia_contract::{Action, ActionResult, ConnectorFrame, Event, GatewayFrame, Inbound, Source, close};
use angelia_gateway::{CallError, Chat};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::support::{Server, deaf, message, run, run_turns, soon};

fn chat() -> Chat {
    Chat::new("discord", "1")
}

#[tokio::test(start_paused = true)]
async fn each_call_gets_its_own_answer() {
    let server = Server::start().await;
    let (handle, _running) = run(server.builder(), deaf);
    let mut peer = server.greet().await;
    let call = |text: &'static str| {
        let handle = handle.clone();
        tokio::spawn(async move { handle.send(&chat(), text).await })
    };
    let (one, two) = (call("one"), call("two"));
    let (first, second) = (peer.outbound().await, peer.outbound().await);
    for outbound in [&first, &second] {
        assert_eq!(outbound.request_id.len(), 32);
        assert!(outbound.request_id.bytes().all(|b| b.is_ascii_hexdigit()));
    }
    let id = |outbound: &angelia_contract::Outbound| match &outbound.action {
        Action::Send { content, .. } => format!("id of {content}"),
        other => panic!("{other:?}"),
    };
    // Answered the other way round.
    peer.answer(&second, ActionResult::sent(id(&second))).await;
    peer.answer(&first, ActionResult::sent(id(&first))).await;
    assert_eq!(one.await.unwrap().unwrap().message_id.unwrap(), "id of one");
    assert_eq!(two.await.unwrap().unwrap().message_id.unwrap(), "id of two");
}

#[tokio::test(start_paused = true)]
async fn a_reply_names_what_it_answers_and_where() {
    let server = Server::start().await;
    let builder = server.builder().identity("discord", "bot1").identity("discord", "bot2");
    let (_handle, _running, mut turns) = run_turns(builder);
    let mut peer = server.greet().await;
    assert!(matches!(peer.next().await, GatewayFrame::Hello(_)));
    let dm = Source { chat_type: "dm".into(), scope_id: None, ..message("5", "42", "", "").source };
    let thread = Source {
        chat_type: "thread".into(),
        thread_id: Some("222".into()),
        ..message("222", "42", "", "").source
    };
    let elsewhere = Source { platform: "webchat".into(), ..dm.clone() };
    let room = message("1", "42", "", "").source;
    let anywhere = Source { platform: "relay".into(), ..dm.clone() };
    for (source, bot, platform, bot_id, metadata) in [
        (room.clone(), None, Some("discord"), Some("bot1"), json!({"notify": true, "scope_id": "900"})),
        (
            room.clone(),
            Some("bot2"),
            Some("discord"),
            Some("bot2"),
            json!({"notify": true, "scope_id": "900"}),
        ),
        (room, Some("bot9"), Some("discord"), Some("bot1"), json!({"notify": true, "scope_id": "900"})),
        (dm, None, Some("discord"), Some("bot1"), json!({"notify": true, "user_id": "42"})),
        (
            thread,
            None,
            Some("discord"),
            Some("bot1"),
            json!({"notify": true, "scope_id": "900", "thread_id": "222"}),
        ),
        (elsewhere, Some("x"), Some("webchat"), None, json!({"notify": true, "user_id": "42"})),
        (anywhere, None, None, None, json!({"notify": true, "user_id": "42"})),
    ] {
        let chat_id = source.chat_id.clone();
        let inbound = Inbound {
            event: Event {
                source,
                message_id: Some("1001".into()),
                text: format!("{bot:?}"),
                ..Event::default()
            },
            bot_id: bot.map(str::to_owned),
            ..Inbound::default()
        };
        peer.send(&ConnectorFrame::Inbound(inbound)).await;
        let (_, conversation) = soon(turns.recv()).await.unwrap();
        let sending = tokio::spawn(async move { conversation.send("hi").await });
        let outbound = peer.outbound().await;
        assert_eq!(outbound.platform.as_deref(), platform);
        assert_eq!(outbound.bot_id.as_deref(), bot_id);
        let expected = Action::from_value(json!({
            "op": "send", "chat_id": chat_id, "content": "hi",
            "reply_to": "1001", "metadata": metadata
        }));
        assert_eq!(outbound.action, expected);
        peer.answer(&outbound, ActionResult::ok()).await;
        sending.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_other_calls_have_their_shapes() {
    let server = Server::start().await;
    let builder = server.builder().identity("discord", "bot1");
    let (handle, _running) = run(builder, deaf);
    let mut peer = server.greet().await;

    let asking = tokio::spawn({
        let handle = handle.clone();
        async move {
            let info = handle.get_chat_info(&chat()).await.unwrap();
            let bare = handle.get_chat_info(&chat()).await.unwrap();
            handle.typing(&chat()).await.unwrap();
            handle.edit(&chat(), "m1", "new").await.unwrap();
            let key = "agent:main:discord:group:1:42";
            handle.follow_up(key, "discord.interaction_token", "hi").await.unwrap();
            (info, bare)
        }
    });
    let answers = [
        ActionResult::chat("ops", "group"),
        ActionResult::ok(),
        ActionResult::ok(),
        ActionResult::ok(),
        ActionResult::sent("9"),
    ];
    let expected = [
        json!({"op": "get_chat_info", "chat_id": "1"}),
        json!({"op": "get_chat_info", "chat_id": "1"}),
        json!({"op": "typing", "chat_id": "1", "metadata": {}}),
        json!({"op": "edit", "chat_id": "1", "message_id": "m1", "content": "new", "metadata": {}}),
        json!({"op": "follow_up", "session_key": "agent:main:discord:group:1:42",
               "kind": "discord.interaction_token", "content": "hi", "metadata": {}}),
    ];
    for (answer, expected) in answers.into_iter().zip(expected) {
        let outbound = peer.outbound().await;
        assert_eq!(outbound.action, Action::from_value(expected));
        assert_eq!(outbound.platform.as_deref(), Some("discord"));
        assert_eq!(outbound.bot_id.as_deref(), Some("bot1"));
        peer.answer(&outbound, answer).await;
    }
    let (info, bare) = asking.await.unwrap();
    assert_eq!((info.name.as_str(), info.chat_type.as_str()), ("ops", "group"));
    assert_eq!((bare.name.as_str(), bare.chat_type.as_str()), ("1", "dm"));
}

#[tokio::test(start_paused = true)]
async fn a_missing_answer_is_ambiguous_after_half_a_minute() {
    let server = Server::start().await;
    let (handle, _running) = run(server.builder(), deaf);
    let mut peer = server.greet().await;
    let begun = Instant::now();
    let calling = tokio::spawn({
        let handle = handle.clone();
        async move { handle.send(&chat(), "x").await }
    });
    let outbound = peer.outbound().await;
    let reading = tokio::spawn(async move {
        peer.silence(Duration::from_secs(31)).await;
        peer
    });
    let error = calling.await.unwrap().unwrap_err();
    assert_eq!(error, CallError::TimedOut);
    assert!(error.is_ambiguous());
    let waited = begun.elapsed().as_millis();
    assert!((30_000..30_100).contains(&waited), "{waited}");
    // An answer that comes too late is for nobody.
    let mut peer = reading.await.unwrap();
    peer.answer(&outbound, ActionResult::ok()).await;
    sleep(Duration::from_millis(10)).await;
    assert!(handle.is_connected());
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_ends_its_calls_at_once() {
    let server = Server::start().await;
    let (handle, _running) = run(server.builder(), deaf);
    let mut peer = server.greet().await;
    let begun = Instant::now();
    let calling = tokio::spawn({
        let handle = handle.clone();
        async move { handle.send(&chat(), "x").await }
    });
    peer.outbound().await;
    peer.close(close::INTERNAL, "").await;
    let error = calling.await.unwrap().unwrap_err();
    assert_eq!(error, CallError::Lost);
    assert!(error.is_ambiguous());
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_connection_but_not_forever() {
    let server = Server::start().await;
    let (handle, _running) = run(server.builder(), deaf);
    let begun = Instant::now();
    let mute = server.accept().await;
    let error = handle.send(&chat(), "x").await.unwrap_err();
    assert_eq!(error, CallError::NotSent);
    assert!(!error.is_ambiguous());
    let waited = begun.elapsed().as_millis();
    assert!((10_000..10_100).contains(&waited), "{waited}");

    mute.close(close::GOING_AWAY, "").await;
    let calling = tokio::spawn({
        let handle = handle.clone();
        async move { handle.send(&chat(), "x").await }
    });
    let mut peer = server.greet().await;
    assert_eq!(peer.take_text("7").await, "send x");
    assert_eq!(calling.await.unwrap().unwrap().message_id.unwrap(), "7");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_why() {
    let server = Server::start().await;
    let (handle, _running) = run(server.builder(), deaf);
    let mut peer = server.greet().await;
    let calling = tokio::spawn(async move { handle.send(&chat(), "x").await });
    let outbound = peer.outbound().await;
    peer.answer(&outbound, ActionResult::declined("discord")).await;
    let error = calling.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("egress declined"));
    let CallError::Refused(result) = error else { panic!() };
    assert_eq!(result.code.as_deref(), Some("egress_declined"));
}

#[tokio::test(start_paused = true)]
async fn a_call_too_large_or_too_late_fails_clearly() {
    let server = Server::start().await;
    let (handle, running) = run(server.builder(), deaf);
    let _peer = server.greet().await;
    let huge = "x".repeat(9 << 20);
    let error = handle.send(&chat(), &huge).await.unwrap_err();
    assert!(matches!(error, CallError::TooLarge { .. }));
    running.abort();
    sleep(Duration::from_millis(10)).await;
    assert_eq!(handle.send(&chat(), "x").await.unwrap_err(), CallError::Stopped);
}

#[tokio::test(start_paused = true)]
async fn many_calls_at_once_wait_their_turn() {
    let server = Server::start().await;
    let (handle, _running) = run(server.builder(), deaf);
    let mut peer = server.greet().await;
    let calls: Vec<_> = (0..3000)
        .map(|_| {
            let handle = handle.clone();
            tokio::spawn(async move { handle.send(&chat(), "x").await })
        })
        .collect();
    for _ in 0..3000 {
        assert_eq!(peer.take_text("1").await, "send x");
    }
    for call in calls {
        assert!(call.await.unwrap().is_ok());
    }
}
